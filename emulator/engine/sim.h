/* Exact event simulation of one op over a whole world: every message of the
 * schedule, in order of virtual time, links served first come first served. No
 * clock, no socket, no allocation per message. */
#pragma once

#include <stdint.h>

#include "engine/delay.h"
#include "schedule/schedule.h"

/* What one message costs: cost(ctx, ...) is asked once a message. */
struct sim_cost {
	int (*message)(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		       uint64_t bytes, struct nbox_delay *ret);
	void *ctx;
};

/* Told of each message in order of arrival time; may be NULL. */
struct sim_watch {
	void (*arrived)(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
			double sent_ns, double arrived_ns);
	void *ctx;
};

struct sim_result {
	double end_ns; /* when the last rank is done */
	uint64_t n_messages;
};

/**
 * sim_run - @start_ns: when each rank starts, n_ranks values, or NULL for all 0
 *
 * Return: 0; -ENOMEM; -EDEADLK with a sentence when messages remain that nothing
 * can release (a broken schedule); a cost's own error.
 */
int sim_run(const struct sched *s, const struct sim_cost *cost, const double *start_ns,
	    const struct sim_watch *watch, struct sim_result *ret, struct err *err);

/* The same for an explicit DAG (tests, later traces): message i costs cost[i],
 * uses link[i] (below n_links) and waits for its predecessors (CSR). ret_end_ns
 * has n values: the arrival of each. Uses the ready/sent/arrived bitmaps. */
struct dag {
	uint32_t n, n_links;
	const uint32_t *pred_start; /* n + 1 offsets into pred */
	const uint32_t *pred;
	const uint32_t *link;
	const struct nbox_delay *cost;
};
int sim_dag(const struct dag *d, double *ret_end_ns, struct err *err);
