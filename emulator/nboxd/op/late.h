/* When an op starts: at its last arrival, of virtual ranks too. A virtual rank arrives with the
 * real member that it copies, plus what decorators (slow, jitter) say of it: a slow rank needs more
 * of what *its* template computed, not of what any other real rank did. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/delay.h"
#include "engine/timing.h"
#include "wire/wire.h"

/* A real member that has arrived, and how many ranks arrive as it does, itself among them. */
struct late_member {
	const struct wire_arrive *arrive; /* borrowed */
	uint32_t n_ranks;
};

struct late_op {
	const struct sched *sched;
	const struct topology *topology;
	const struct membership *members;
	struct delay_chain *delay;
	uint64_t number;
	/* Whether @world_rank is member @i or arrives as it does. */
	bool (*copies)(const void *ctx, size_t i, uint32_t world_rank);
	const void *ctx; /* borrowed */
};

/**
 * late_start - the start of an op
 * @op: NULL: no virtual rank takes part, or nothing is said of their arrivals
 * @ret_start_ns: wall clock
 * @ret_late_ns: how much later that is than the last real arrival; whole nanoseconds
 *
 * Return: 0; negative errno with the sentence.
 */
int late_start(const struct late_op *op, const struct late_member *m, size_t n,
	       uint64_t *ret_start_ns, double *ret_late_ns, struct err *err);
