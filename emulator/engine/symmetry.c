/* Which short cut is exact for which schedule; and the one for all-to-all.
 *
 *   ring   symmetry-ring.c: all nodes do the same at the same time
 *   tree, chain   symmetry-pipe.c: chunks of equal size through a tree of links
 *   all-to-all   the ranks of one node stand for those of all
 *   Gather, Scatter   symmetry-star.c: what comes to one port */
#include "engine/symmetry.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/sim-ports.h"
#include "engine/symmetry-chain.h"
#include "engine/symmetry-pipe.h"
#include "engine/symmetry-ring.h"
#include "engine/symmetry-star.h"
#include "engine/symmetry-tree.h"

/* The period after which ranks do the same: 1 where all hops are equal, a node's ranks where the
 * communicator's nodes are whole and in order; else 0. */
static uint32_t all_to_all_period(const struct symmetry *y)
{
	uint32_t n = y->s->n_ranks, per_node = y->s->ranks_per_node, r;

	if (y->n_nodes == 1 || y->n_nodes == n)
		return 1;
	if (per_node < 2 || n / per_node != y->n_nodes)
		return 0;
	for (r = 0; r < n; r++)
		if (r % per_node && y->class_of(y->ctx, r - r % per_node, r, 0) != NBOX_INTRA)
			return 0;
	return per_node;
}

/* A border connection and the one that stands for it. */
struct stand_in {
	uint32_t src, dst, in;
	uint16_t lane;
};

struct all_to_all {
	struct symmetry *y;
	struct stand_in *of; /* owned, sorted */
	uint32_t n;
};

static int compare(const void *a, const void *b)
{
	const struct stand_in *x = a, *y = b;

	if (x->src != y->src)
		return x->src < y->src ? -1 : 1;
	if (x->dst != y->dst)
		return x->dst < y->dst ? -1 : 1;
	return x->lane < y->lane ? -1 : x->lane > y->lane;
}

static void all_to_all_arrived(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
			       double sent_ns, double arrived_ns)
{
	struct all_to_all *a = ctx;
	struct stand_in key = {src, dst, 0, lane};
	uint32_t low = 0, high = a->n, mid;

	(void)sent_ns;
	while (low < high) {
		mid = low + (high - low) / 2;
		if (compare(&a->of[mid], &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < a->n && compare(&a->of[low], &key) == 0; low++)
		a->y->at[a->y->offset[a->of[low].in] + index] = arrived_ns;
}

/* All hops are alike: each rank sends to another one at a time, so no port ever waits. The port's
 * messages follow each other, and the last one arrives a latency later, where latencies are equal.
 */
static int all_to_all_alike(struct symmetry *y)
{
	const struct sched *s = y->s;
	double busy_ns = 0, latency_ns = -1;

	for (uint32_t c = 0; c < s->n_channels; c++) {
		uint64_t n = sched_conn_messages(s, 0, 1, (uint16_t)c);
		uint64_t part[2] = {n > 1 ? n - 1 : 0, n ? 1 : 0}; /* full ones, the last one */

		for (int i = 0; i < 2; i++) {
			struct nbox_delay d;
			int r;

			if (!part[i])
				continue;
			r = symmetry_cost(y, 0, 1, (uint16_t)c, i ? n - 1 : 0,
					  sched_message_bytes(s, 0, 1, (uint16_t)c, i ? n - 1 : 0),
					  &d);
			if (r)
				return r;
			if (latency_ns >= 0 && d.latency_ns != latency_ns)
				return SYMMETRY_NONE;
			latency_ns = d.latency_ns;
			busy_ns += (double)part[i] * d.occupancy_ns;
		}
	}
	y->end_ns = (s->n_ranks - 1) * busy_ns + fmax(latency_ns, 0);
	return 0;
}

static int all_to_all(struct symmetry *y, struct err *err)
{
	uint32_t period = all_to_all_period(y), n = y->s->n_ranks, i;
	CLEANUP(freep) struct stand_in *of = NULL;
	struct all_to_all a = {.y = y};
	struct sim_watch watch = {.arrived = all_to_all_arrived, .ctx = &a};
	struct sim_result result;
	int r;

	if (!period)
		return SYMMETRY_NONE;
	r = period == 1 && !y->border && y->s->slices < 2 ? all_to_all_alike(y) : SYMMETRY_NONE;
	if (r != SYMMETRY_NONE)
		return r;
	if (y->border) {
		a.n = y->border->n_in;
		a.of = of = calloc((size_t)a.n + 1, sizeof(*of));
		if (!of)
			return err_set(err, ENOMEM, "no memory for %u connections", a.n);
		for (i = 0; i < a.n; i++) {
			const struct border_conn *c = &y->border->in[i];
			uint32_t src = c->src % period;

			of[i] = (struct stand_in){src, (c->dst + n - c->src + src) % n, i, c->lane};
		}
		qsort(of, a.n, sizeof(*of), compare);
	}
	r = sim_ports_sched(y->s, period, y->cost, NULL, y->border ? &watch : NULL, &result, err);
	if (!r)
		y->end_ns = result.end_ns;
	return r;
}

/* Without a border in one go, else rank by rank. */
static int pipeline(struct symmetry *y, struct err *err)
{
	int r = y->s->algo == SCHED_TREE ? symmetry_tree(y, err) : symmetry_chain(y, err);

	if (r != SYMMETRY_NONE)
		return r;
	y->end_ns = 0;
	return symmetry_pipe(y, err);
}

int symmetry_solve(struct symmetry *y, struct err *err)
{
	y->n_known = 0;
	y->end_ns = 0;
	y->is_near = false;
	if (y->s->n_ranks < 2)
		return 0;
	switch (y->s->kind) {
	case COLL_ALLREDUCE:
		return y->s->algo == SCHED_TREE ? pipeline(y, err) : symmetry_ring(y, err);
	case COLL_ALLGATHER:
	case COLL_REDUCESCATTER:
		return symmetry_ring(y, err);
	case COLL_BROADCAST:
	case COLL_REDUCE:
		return pipeline(y, err);
	case COLL_ALLTOALL:
		return all_to_all(y, err);
	case COLL_GATHER:
	case COLL_SCATTER:
		return symmetry_star(y, err);
	case COLL_SENDRECV:
	case COLL_KINDS:
	default:
		return SYMMETRY_NONE;
	}
}
