/* The chains of the real ranks of one re-timed run, each made when it is first asked for. */
#pragma once

#include "nbox/why/chain.h"

struct chains {
	/* Borrowed, as chain_make() has them. */
	const struct rows_graph *graph;
	const struct record *rec;
	const struct timeline_terms *terms;
	struct chains_rank {
		uint32_t rank;
		struct chain chain;
		struct chain_times times; /* as the run has them */
	} * *list;                        /* owned, by pointers that stay */
	size_t n;
};

/* Return: @rank's, without rows where it is no real one; NULL: no memory. */
const struct chains_rank *chains_of(struct chains *c, uint32_t rank);
void chains_deinit(struct chains *c);
/* An op of @rank, of the communicator and kind of @op, that begins at @start. Return: CHAIN_NONE:
 * there is none. */
uint32_t chains_op(const struct chains_rank *rank, const struct record_op *op, double start);
