/* What the messages of one op cost on this cluster with these models. The simulations know ranks of
 * a communicator; the delay chain knows world ranks, hops and shares of a port. A price translates.
 */
#pragma once

#include <stdbool.h>

#include "engine/delay.h"
#include "engine/sim-cost.h"
#include "schedule/schedule.h"
#include "topology/membership.h"
#include "topology/topology.h"

struct price {
	const struct topology *topology;
	const struct membership *members;
	struct delay_chain *delay;
	struct err *err;
	struct nbox_net net;
	struct nbox_op op;
	double reduce_ns_per_byte;
	uint32_t flows[2]; /* by NBOX_INTRA, NBOX_INTER */
	uint32_t n_nodes;  /* that the communicator spans */
	bool has_intra;    /* two members share a node */
	bool is_base_only; /* without the what-ifs */
	bool is_comparing; /* ask for both, and note whether they ever differ */
	bool has_difference;
};

/* Fills all but the last three. The op that models see points to @p. */
void price_init(struct price *p, const struct sched *s, const struct topology *t,
		const struct membership *m, struct delay_chain *d, uint64_t op_number,
		struct err *err);
/* The cost function; ctx is the price. */
struct sim_cost price_cost(struct price *p);
/* Kind of hop between two comm ranks: besides it a uniform chain looks at bytes and flows only. */
uint32_t price_hop(const struct price *p, uint32_t src, uint32_t dst);
