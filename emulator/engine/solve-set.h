/* When ops end that share the network, by simulation of all their messages. */
#pragma once

#include "engine/delay.h"
#include "engine/sim-set.h"
#include "schedule/schedule.h"
#include "topology/membership.h"

struct set_op {
	const struct sched *s;
	const struct membership *m;
	double start_ns;         /* all its ranks begin, when op @after is over */
	uint32_t after;          /* a number below its own; SIM_SET_NONE */
	double begin_ns, end_ns; /* out */
};

/**
 * solve_set - @ops: rings, trees and chains, as they were asked for or as the scheduler plans them
 *
 * What-ifs that add to whole ops are left out. Messages that a rank passes on line by line (plans
 * with intra_line_bytes) share their links for a line's time only: other ops are too fast there.
 *
 * Return: 0; -ENOTSUP with the sentence: the op is no such thing (or a plan without messages);
 * others as solve().
 */
int solve_set(struct set_op *ops, uint32_t n, const struct topology *t, struct delay_chain *d,
	      struct sim_set_result *ret, struct err *err);
