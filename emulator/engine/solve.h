/* When an op ends, and when each border message may be released: by closed form
 * or symmetry where that is exact, else by event simulation. One answer serves
 * all three depths of exchange. */
#pragma once

#include "engine/price.h"
#include "engine/timing.h"

/* More than this is not simulated, but refused with a sentence: it would take nboxd
 * minutes, or gigabytes. */
#define SOLVE_MAX_MESSAGES (UINT64_C(1) << 28)
#define SOLVE_MAX_PAIRS (UINT64_C(1) << 23)

/**
 * solve - @border may be NULL (exchange none)
 * @force_sim: event simulation even where symmetry would do (tests, bench)
 * Point-to-point calls: solve_p2p().
 *
 * Return: 0; -EINVAL with a sentence when no model answers; -ENOMEM.
 */
int solve(const struct sched *s, const struct topology *t, const struct membership *m,
	  struct delay_chain *d, const struct border *border, uint64_t op_number, int force_sim,
	  struct timing *ret, struct err *err);

/* Raw times: end_ns and model_ns without extras, how, bound_ns, and at[] of the
 * border when they come from messages. */
int solve_raw(const struct sched *s, struct price *p, const struct border *border, int force_sim,
	      struct timing *t, struct err *err);
