/* Ends by simulation of all messages, kept for arrivals that are nearly the same. */
#pragma once

#include "engine/sim.h"

#define ENDS_SIM_KEPT 8

struct ends_sim {
	struct ends_sim_kept {
		uint64_t hash, used; /* 0: empty */
		double *end;         /* owned: ends, then when ports are free */
	} kept[ENDS_SIM_KEPT];
	uint64_t n_lookups;
};

void ends_sim_deinit(struct ends_sim *c);

/* @quantum_ns: arrivals that differ by less may get each other's ends. @ranks: all its arrays are
 * there. Return as sim_run(). */
int ends_sim(struct ends_sim *c, const struct sched *s, const struct sim_cost *cost,
	     double quantum_ns, const struct sim_ranks *ranks, struct err *err);
