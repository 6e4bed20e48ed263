/* The chains of the ranks of one re-timed run, each made when it is first asked for. */
#pragma once

#include "config/config.h"
#include "nbox/why/chain.h"

struct chains {
	struct chain_source from;
	const struct config *config; /* borrowed; of the re-timed run */
	struct chains_rank {
		uint32_t rank, template; /* a real rank's is itself */
		struct chain chain;
		struct chain_times times; /* as the run has them */
	} * *list;                        /* owned, by pointers that stay */
	size_t n;
};

/* Return: @rank's, without rows where nobody knows when it was where; NULL: no memory. */
const struct chains_rank *chains_of(struct chains *c, uint32_t rank);
void chains_deinit(struct chains *c);
/* An op of @rank, of the communicator and kind of @op, that begins at @start. Return: CHAIN_NONE:
 * there is none. */
uint32_t chains_op(const struct chains_rank *rank, const struct record_op *op, double start);

/* Whom an op waited for, and when that had come. */
struct chains_wait {
	uint32_t rank;
	double at;
};

/* Whether row @i of @on, an op, waited for another rank; *ret is its own beginning where it did
 * not. Return: 1: it did; 0; -ENOMEM. */
int chains_waited(struct chains *c, const struct chains_rank *on, uint32_t i,
		  struct chains_wait *ret);
