/* How long an all-reduce of a size takes: by the model of a configuration, or by two numbers. Each
 * size is asked for once. */
#pragma once

#include "buckets/buckets.h"
#include "nbox/ask/ask.h"

struct optimize_cost {
	struct ask *ask;      /* borrowed; NULL: by the numbers */
	struct membership of; /* whose all-reduce it is */
	uint32_t elem_bytes;
	double alpha_ns, bytes_per_ns;
	struct optimize_size *sizes; /* owned; those that were asked for */
	double grid[60][33]; /* of so many elements, times 2 so many times; 0: nobody asked */
	uint64_t n_asked;
	struct err err; /* why an answer is NAN */
};

/* @most_pieces: as struct buckets_cost has it. @is_near: a few hundred sizes are asked for, and
 * those between them follow. */
struct buckets_cost optimize_cost(struct optimize_cost *c, uint32_t most_pieces, bool is_near);
void optimize_cost_deinit(struct optimize_cost *c);
