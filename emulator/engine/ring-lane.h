/* One lane of a ring, for the parts of symmetry-ring.c. */
#pragma once

#include "engine/ring-hops.h"

#define MAX_SLICES 16 /* costs are kept by slice and rank */

struct ring {
	struct symmetry *y;
	uint16_t lane;
	uint32_t n;
	uint32_t period; /* of the pattern of hops */
	uint32_t slices;
	uint64_t n_messages, n_positions, n_loops;
	uint64_t n_reduced;    /* positions of a loop, the first ones */
	struct ring_hops hops; /* of the lane */
	struct ring_known known;
	double *rows;       /* owned: slices + 1 rows of done(), n each */
	double *arrived;    /* owned: n, of the last message */
	double *free_ns;    /* owned: n */
	double *kept;       /* owned: a state, slices + 3 rows */
	double *handed;     /* owned: n, when the rest fits the buffers */
	double *cost;       /* owned, a slice: occupancy, latency of each class, reduction by
			     * chunk, each 2n */
	uint32_t n_columns; /* of a slice's costs, 2n each */
	uint32_t *in;       /* owned: border connections of the lane */
	uint32_t n_in;
};

static inline uint32_t rank_at(const struct ring *g, uint32_t place)
{
	return ring_rank(g->y->s, g->lane, place);
}

static inline uint32_t rank_behind(const struct ring *g, uint32_t place)
{
	return ring_behind(g->y->s, g->lane, place);
}

static inline uint64_t loop_first(const struct ring *g, uint64_t loop)
{
	return loop * g->n_positions * g->slices;
}

static inline uint64_t first_bytes(const struct ring *g, uint32_t place, uint64_t loop,
				   uint32_t slice)
{
	return sched_message_bytes(g->y->s, rank_at(g, place), rank_behind(g, place), g->lane,
				   loop_first(g, loop) + slice);
}

/* Chunks get smaller towards the loop's end: places 1 and 0 begin with the first and
 * the last. */
static inline bool is_even(const struct ring *g, uint64_t loop)
{
	uint32_t j;

	for (j = 0; j < g->slices; j++)
		if (first_bytes(g, 1, loop, j) != first_bytes(g, 0, loop, j))
			return false;
	return true;
}

static inline int cost_of(const struct ring *g, uint32_t hop, uint64_t bytes,
			  struct nbox_delay *ret)
{
	uint32_t place = g->hops.place[hop];

	return symmetry_cost(g->y, rank_at(g, place), rank_behind(g, place), g->lane, 0, bytes,
			     ret);
}

static inline double reduction(const struct ring *g, uint64_t bytes)
{
	return (double)bytes * g->y->cost->reduce_ns_per_byte;
}

static inline bool ring_has_bytes_of_first(const struct ring *g, uint64_t loop)
{
	for (uint32_t j = 0; j < g->slices; j++)
		if (first_bytes(g, 1, loop, j) != first_bytes(g, 1, 0, j))
			return false;
	return true;
}
