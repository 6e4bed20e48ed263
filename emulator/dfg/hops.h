/* The messages of one op as ops of a graph: a SEND on the link that carries it, then a RECV a
 * latency later. Which there are, and what waits for what, the schedule says: ring, tree, chain or
 * direct. Played alone with all ranks at once they end when a simulation of the op (engine/sim.h)
 * says so, but where all ranks send to one: there each message queues at the receiver alone.
 *
 * This is the fine-grained communication topology of dPRO (Hu et al., MLSys 2022, section 4.2). */
#pragma once

#include "base/err.h"
#include "dfg/dfg.h"
#include "engine/sim-cost.h"
#include "schedule/sched.h"

/* All borrowed. Ranks are the schedule's. */
struct hops {
	const struct sched *s; /* by sched_init(); not sends and receives */
	const struct sim_cost *cost;
	double factor; /* hops take so many times as long as @cost says */
	/* Ranks r and r + period do the same, in rings and direct algorithms: those below it stand
	 * for all. Else n_ranks. */
	uint32_t period;
	/* A SEND is so many ops, one after the other, so that others get their turns on its link
	 * between them; 0: one. */
	uint32_t pieces;
	const uint32_t *in;  /* by rank: the op after which it begins */
	const uint32_t *out; /* by rank: the op that waits until it is done */
	/* What carries the message; of a rank to itself what adds up there, where that takes time.
	 * Return: 0; -ENOMEM. */
	int (*device)(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint32_t *ret);
	void *ctx;
};

/* SENDs, and as many RECVs. */
uint64_t hops_count(const struct sched *s, uint32_t period);
/* Return: 0; -ENOMEM, or the cost's error, with the sentence. */
int hops_add(struct dfg *g, const struct hops *h, struct err *err);
