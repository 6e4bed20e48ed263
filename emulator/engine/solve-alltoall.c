/* See solve-alltoall.h. A rank has one port inside its domain and one to the others, the bandwidth
 * of which its NIC's ranks share. The messages of a port take turns. In NCCL's order each rank of a
 * domain turns to another rank of another domain at a time, so that no port waits for another. */
#include "engine/solve-alltoall.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/sim-ports.h"

#define LOOK_MAX 2048 /* ranks of which all pairs are looked at: half a second */

/* What a rank sends, or what it receives: how long that takes each of its ports, and the longest
 * way of a message. */
struct port_time {
	double port_ns[2], latency_ns;
};

/* @times messages of @rank to @peer; with @is_in to @rank. */
static int add_messages(const struct planned *pl, struct price *p, uint32_t rank, uint32_t peer,
			bool is_in, double times, struct port_time *t)
{
	uint32_t src = is_in ? peer : rank, dst = is_in ? rank : peer, port;
	struct sim_cost cost = price_cost(p);
	struct nbox_delay d;
	int r = cost.message(cost.ctx, src, dst, 0, 0, pl->s.bytes, &d);

	if (r || !times)
		return r;
	port = routes_port(pl->routes, rank, routes_find(pl->routes, src, dst, 0));
	t->port_ns[port] += times * d.occupancy_ns;
	t->latency_ns = fmax(t->latency_ns, d.latency_ns);
	return 0;
}

/* Whether each pair is looked at: what-ifs name some ranks, and there are not too many. */
static bool has_named_ranks(const struct planned *pl, const struct price *p)
{
	return price_looks_at_ranks(p) && pl->s.n_ranks <= LOOK_MAX;
}

/* Ranks of other domains are alike but for their place in it: those of the domain half the way
 * round stand for all, where no what-if tells them apart. */
static int rank_time(const struct planned *pl, struct price *p, uint32_t rank, bool is_in,
		     struct port_time *t)
{
	uint32_t n = pl->s.n_ranks, per = pl->s.ranks_per_node, first = rank - rank % per;
	uint32_t other = (first + n / per / 2 * per) % n;
	bool is_each = has_named_ranks(pl, p);
	int r = 0;

	*t = (struct port_time){0};
	for (uint32_t i = 0; i < n && is_each && !r; i++)
		if (i != rank)
			r = add_messages(pl, p, rank, i, is_in, 1, t);
	for (uint32_t i = 0; i < per && !is_each && !r; i++) {
		uint32_t near = first + i, far = other + i;

		if (near != rank)
			r = add_messages(pl, p, rank, near, is_in, 1, t);
		if (!r && other != first)
			r = add_messages(pl, p, rank, far, is_in, (double)(n - per) / per, t);
	}
	return r;
}

/* Domains of several sizes: no rank stands for another, and how many share a NIC differs. All links
 * are as busy as they must be, and a message has its way to go. */
static int uneven(const struct planned *pl, struct price *p, double bound_ns, double *ret_ns)
{
	struct port_time t = {0};
	int r = add_messages(pl, p, 0, pl->s.n_ranks - 1, false, 1, &t);

	*ret_ns = bound_ns + t.latency_ns;
	return r;
}

int planned_alltoall(const struct planned *pl, struct price *p, double *ret_ns)
{
	const struct fabric *f = delay_fabric(p->delay);
	uint32_t end = has_named_ranks(pl, p) ? pl->s.n_ranks : routes_period(pl->routes);
	double bound_ns = fabric_bound(f, pl->s.kind, pl->s.bytes, 0, p->members, NULL, 0);
	double longest = 0;
	int r = 0;

	if (pl->s.bytes && pl->s.ranks_per_node == 1 && p->op.n_nodes < pl->s.n_ranks)
		return uneven(pl, p, bound_ns, ret_ns);
	for (uint32_t rank = 0; rank < end && !r; rank++)
		for (int is_in = 0; is_in < 2 && !r; is_in++) {
			struct port_time t;

			r = rank_time(pl, p, rank, is_in, &t);
			longest = fmax(longest, t.latency_ns + fmax(t.port_ns[0], t.port_ns[1]));
		}
	/* leaves, groups and the bisection are shared by all: the bound has them */
	*ret_ns = pl->s.bytes ? fmax(longest, bound_ns) : 0;
	return r;
}

/* Whose turn it is: NCCL's rounds, domain by domain, and in a domain place by place. */
static uint64_t turn_of(const struct sched *s, uint32_t src, uint32_t dst)
{
	uint32_t n = s->n_ranks, per = s->ranks_per_node;
	uint32_t domains = (dst / per + n / per - src / per) % (n / per);

	return (uint64_t)domains * per + (dst % per + per - src % per) % per;
}

static int by_turn(const void *a, const void *b)
{
	const struct port_flow *x = a, *y = b;

	if (x->src != y->src)
		return x->src < y->src ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int planned_alltoall_sim(const struct planned *pl, struct price *p, double *ret_ns, struct err *err)
{
	uint32_t n = pl->s.n_ranks, n_flows = 0;
	CLEANUP(freep) struct port_flow *flows = malloc((size_t)n * n * sizeof(*flows));
	struct sim_cost cost = price_cost(p);
	struct sim_result result;
	int r;

	if (!flows)
		return err_set(err, ENOMEM, "no memory for the connections of %u ranks", n);
	for (uint32_t i = 0; i < n * n && pl->s.bytes; i++) {
		uint32_t src = i / n, dst = i % n, number = routes_find(pl->routes, src, dst, 0);

		if (src != dst)
			flows[n_flows++] = (struct port_flow){
				.src = src,
				.dst = dst,
				.egress = 2 * src + routes_port(pl->routes, src, number),
				.ingress = 2 * dst + routes_port(pl->routes, dst, number),
				.order = turn_of(&pl->s, src, dst),
				.n_messages = 1,
				.bytes = pl->s.bytes,
				.chunk_bytes = pl->s.bytes};
	}
	qsort(flows, n_flows, sizeof(*flows), by_turn);
	r = sim_ports(flows, n_flows, 2 * n, &cost, NULL, NULL, &result, err);
	if (!r)
		*ret_ns = result.end_ns;
	return r;
}
