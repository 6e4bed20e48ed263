/* Which rank of a node stands where another one stands on its own. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Where the ranks of a communicator stand. Ranks count inside the communicator. */
struct rewrite_places {
	uint32_t n_ranks;
	const uint32_t *node;     /* [n_ranks]; any numbers, equal for ranks of one node */
	const uint32_t *template; /* [n_ranks]; a real rank's is itself */
	/* made by rewrite_places_init() */
	uint32_t *by_place; /* [n_ranks] owned; ranks, sorted by node, then by template */
};

/**
 * rewrite_places_init - prepares @p for the others
 * @p: n_ranks, node and template are set and stay the caller's
 *
 * NCCL asks that each virtual node has the ranks of the template's node, each once.
 * Return: 0; -EINVAL (some node has not: the sentence names it); -ENOMEM (with a sentence too).
 */
int rewrite_places_init(struct rewrite_places *p, char *sentence, size_t size);
void rewrite_places_deinit(struct rewrite_places *p);
/* The rank that stands on @rank's node for what real rank @of is on its own; -1: none. */
int64_t rewrite_same_place(const struct rewrite_places *p, uint32_t rank, int64_t of);
