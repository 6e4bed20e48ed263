/* Event simulation of several ops that share links: every message of each, as sim_run() has them,
 * but that messages of several ops share each link of their paths fairly (sim-net.h). An op that
 * meets no other takes the time of sim_run(). */
#pragma once

#include "engine/sim-cost.h"
#include "schedule/schedule.h"

#define SIM_SET_LINKS 16 /* most of a path */
#define SIM_SET_NONE UINT32_MAX

struct sim_set_op {
	const struct sched *s; /* not SCHED_DIRECT */
	const struct sim_cost *cost;
	/* The links of a connection and what they carry, bytes/ns, of a message's bytes times
	 * @wire_factor. cost->ctx is handed on. Return: their number; negative errno. */
	int (*links)(void *ctx, uint32_t src, uint32_t dst, uint16_t lane,
		     uint64_t ret_links[SIM_SET_LINKS], double ret_bytes_per_ns[SIM_SET_LINKS]);
	double wire_factor;
	double start_ns;         /* all ranks begin, when op @after is over */
	uint32_t after;          /* a number below its own; SIM_SET_NONE */
	double base_ns;          /* it ends so much later than its last message */
	double begin_ns, end_ns; /* out */
};

struct sim_set_result {
	double end_ns; /* of the last op */
	uint64_t n_messages;
	uint64_t n_solved, n_found; /* how often speeds were worked out, and known */
};

/* Return: as sim_run(). */
int sim_set_run(struct sim_set_op *ops, uint32_t n, struct sim_set_result *ret, struct err *err);
