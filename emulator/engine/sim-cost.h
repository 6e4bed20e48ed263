/* What every simulation of an op asks and answers: the cost of one message, the arrival of one
 * message, and the result. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "nbox-delaymodel.h"

/* What one message costs: cost(ctx, ...) is asked once a message. A step that reduces what it has
 * received sends when that is done; the reductions of one rank take turns. */
struct sim_cost {
	int (*message)(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		       uint64_t bytes, struct nbox_delay *ret);
	void *ctx;
	double reduce_ns_per_byte; /* of what is received */
};

/* arrived() is called for each message, in the order of arrival times. */
struct sim_watch {
	void (*arrived)(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
			double sent_ns, double arrived_ns);
	void *ctx;
};

struct sim_result {
	double end_ns; /* when the last rank is done */
	uint64_t n_messages;
};
