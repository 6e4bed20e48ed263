/* The calls of all ranks of an all-to-all that need not be even, for solve_p2p(). */
#pragma once

#include <stdint.h>

#include "schedule/schedule.h"

struct matrix_calls {
	uint32_t n;
	uint32_t *ranks, *n_by_rank; /* owned; arguments of solve_p2p(), as is the next */
	const struct sched_p2p **by_rank;
	struct sched_p2p *calls; /* owned */
};

/* @bytes: [source * @n + destination]; what a rank keeps for itself does not count. Each rank turns
 * to the next one first. Return: 0; -ENOMEM. matrix_calls_deinit() in either case. */
int matrix_calls_init(struct matrix_calls *ret, const uint64_t *bytes, uint32_t n);
void matrix_calls_deinit(struct matrix_calls *c);
