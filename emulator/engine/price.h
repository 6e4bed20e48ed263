/* What the messages of one op cost on this cluster with these models. The simulations know ranks of
 * a communicator; the delay chain knows world ranks, hops and shares of a port. A price translates.
 */
#pragma once

#include <stdbool.h>

#include "engine/delay.h"
#include "engine/route.h"
#include "engine/sim-cost.h"
#include "schedule/schedule.h"
#include "topology/membership.h"
#include "topology/topology.h"

#define PRICE_KNOWN 256 /* a power of 2 */

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
	bool is_by_ranks; /* see delay.h: messages to and from named ranks have own classes */

	/* where a scheduler plans the op: solve-plan.h */
	const struct nbox_plan *plan; /* or NULL */
	struct routes *routes;
	double residual;        /* what the messages take, times that of their links */
	uint32_t lanes_at_port; /* that share a port's time by turns; their limits add up */
	bool is_steady_price;   /* a message's price follows from its route and bytes */
	struct price_known {    /* answers of a uniform chain */
		uint64_t bytes;
		uint32_t route; /* and whether it is without the what-ifs; 0: empty */
		struct nbox_delay delay;
	} known[PRICE_KNOWN];
};

/* Fills all but those after has_intra. The op that models see points to @p. */
void price_init(struct price *p, const struct sched *s, const struct topology *t,
		const struct membership *m, struct delay_chain *d, uint64_t op_number,
		struct err *err);
/* NCCL's number of an algorithm of the ABI's; of CollNet one of the two. */
uint32_t price_nccl_algorithm(uint32_t algo);
/* The cost function; ctx is the price. */
struct sim_cost price_cost(struct price *p);
/* Kind of hop between two comm ranks, of a planned op the route, and who is named. Besides it a
 * chain that is uniform or by ranks looks at bytes and flows only. For struct symmetry; ctx is the
 * price. */
uint32_t price_class(void *ctx, uint32_t src, uint32_t dst, uint16_t lane);
/* The ranks r and r + period have the same classes. n_ranks: that is not known. */
uint32_t price_period(const struct price *p, uint32_t n_ranks);
/* Whether ranks may differ by who is named. */
bool price_looks_at_ranks(const struct price *p);
