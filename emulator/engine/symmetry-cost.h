/* What the short cuts of symmetry.h share: the op, and the costs of its messages. A cost depends on
 * the kind of hop and on the bytes only, so each is asked once. */
#pragma once

#include "engine/border.h"
#include "engine/sim-cost.h"
#include "engine/sim-ranks.h"
#include "schedule/schedule.h"

struct symmetry {
	const struct sched *s;
	const struct sim_cost *cost;
	/* A number for the connections whose messages cost the same, such as the kind of hop. */
	uint32_t (*class_of)(void *ctx, uint32_t src, uint32_t dst, uint16_t lane);
	void *ctx;
	uint32_t period;  /* ranks r and r + period have the same classes; 0: not known */
	uint32_t n_nodes; /* that the communicator spans; 0: hops do not follow from nodes */
	const struct border *border;   /* or NULL */
	uint64_t max_cells;            /* for tests: symmetry-ring.c's MAX_CELLS; 0: that */
	const struct sim_ranks *ranks; /* NULL: all start at 0; ends are only made later */

	/* out; the arrays are made by the caller: see struct timing */
	double end_ns;
	bool is_near; /* unequal chunks counted as the largest: some percent at most */
	double *at;
	const uint64_t *offset;

	/* private: answers of the cost function by class and bytes */
	struct {
		uint32_t class;
		uint64_t bytes;
		struct nbox_delay d;
	} known[64];
	uint32_t n_known;
};

/* SYMMETRY_NONE: this schedule on these nodes has no exact short cut; simulate. */
enum { SYMMETRY_NONE = 1 };

int symmetry_cost(struct symmetry *y, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		  uint64_t bytes, struct nbox_delay *ret);
