/* See price.h. */
#include "engine/price.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitmap.h"
#include "nccl-plugin/plugin.h"
#include "schedule/tree.h"

_Static_assert((int)NBOX_INTRA == (int)HOP_INTRA && (int)NBOX_INTER == (int)HOP_INTER &&
		       (int)NBOX_SELF == (int)HOP_SELF,
	       "the ABI's hops are the topology's");
_Static_assert((int)NBOX_SENDRECV == (int)COLL_SENDRECV && (int)NBOX_ALLREDUCE == 0,
	       "the ABI's kinds are the schedule's");
_Static_assert((int)NBOX_RING == (int)SCHED_RING && (int)NBOX_TREE == (int)SCHED_TREE &&
		       (int)NBOX_DIRECT == (int)SCHED_DIRECT && (int)NBOX_CHAIN == (int)SCHED_CHAIN,
	       "the ABI's algorithms are the schedule's");

_Static_assert((int)NBOX_LL == (int)PLUGIN_LL && (int)NBOX_LL128 == (int)PLUGIN_LL128 &&
		       (int)NBOX_SIMPLE == (int)PLUGIN_SIMPLE,
	       "the ABI's protocols are NCCL's");

static int has_rank(const struct nbox_op *op, uint32_t world_rank)
{
	return membership_rank(op->host, world_rank) >= 0;
}

/* How many nodes the members live on. */
static uint32_t count_nodes(const struct topology *t, const struct membership *m)
{
	struct bitmap seen;
	uint32_t r, first, last, n;

	if (!m->n_ranks)
		return 0;
	if (!m->table) {
		first = topology_node(t, m->base);
		last = topology_node(t, membership_world(m, m->n_ranks - 1));
		return m->stride >= t->gpus_per_node ? m->n_ranks : last - first + 1;
	}
	if (bitmap_init(&seen, t->n_nodes))
		return m->n_ranks;
	for (r = 0; r < m->n_ranks; r++)
		if (topology_node(t, m->table[r]) < t->n_nodes)
			bitmap_set(&seen, topology_node(t, m->table[r]));
	n = (uint32_t)bitmap_count(&seen);
	bitmap_deinit(&seen);
	return n ? n : 1;
}

/* NCCL's number of an algorithm in the ABI's. */
static uint32_t algo_of_nccl(uint32_t algorithm)
{
	static const uint32_t algos[PLUGIN_N_ALGORITHMS] = {
		[PLUGIN_TREE] = NBOX_TREE,
		[PLUGIN_RING] = NBOX_RING,
		[PLUGIN_COLLNET_DIRECT] = NBOX_COLLNET,
		[PLUGIN_COLLNET_CHAIN] = NBOX_COLLNET,
		[PLUGIN_NVLS] = NBOX_NVLS,
		[PLUGIN_NVLS_TREE] = NBOX_NVLS_TREE,
		[PLUGIN_PAT] = NBOX_PAT,
	};

	return algorithm < PLUGIN_N_ALGORITHMS ? algos[algorithm] : NBOX_ALGO_ANY;
}

uint32_t price_nccl_algorithm(uint32_t algo)
{
	uint32_t i = 0;

	if (algo == NBOX_CHAIN)
		return PLUGIN_RING;
	while (i < PLUGIN_N_ALGORITHMS && algo_of_nccl(i) != algo)
		i++;
	return i;
}

static void set_flows(struct price *p, const struct sched *s)
{
	switch (s->algo) {
	case SCHED_RING:
	case SCHED_CHAIN:
		p->flows[0] = p->flows[1] = s->n_channels;
		break;
	case SCHED_TREE: /* as if all edges were always busy: no message is faster than the port */
		sched_tree_edges(s, &p->flows[NBOX_INTER], &p->flows[NBOX_INTRA]);
		p->flows[NBOX_INTER] *= s->n_channels;
		p->flows[NBOX_INTRA] *= s->n_channels;
		break;
	case SCHED_DIRECT: /* the simulation shares the ports itself */
	case SCHED_ALGOS:
	default:
		p->flows[0] = p->flows[1] = 1;
		break;
	}
}

void price_init(struct price *p, const struct sched *s, const struct topology *t,
		const struct membership *m, struct delay_chain *d, uint64_t op_number,
		struct err *err)
{
	*p = (struct price){
		.topology = t,
		.members = m,
		.delay = d,
		.err = err,
		.net = {t->intra.latency_ns, t->intra.bytes_per_ns, t->inter.latency_ns,
			t->inter.bytes_per_ns},
		.n_nodes = count_nodes(t, m),
	};
	p->has_intra = p->n_nodes < m->n_ranks;
	p->is_by_ranks = delay_is_by_ranks(d);
	if (t->reduce_bytes_per_ns > 0 && coll_reduces(s->kind))
		p->reduce_ns_per_byte = 1 / t->reduce_bytes_per_ns;
	p->op = (struct nbox_op){
		.struct_size = sizeof(p->op),
		.kind = s->kind,
		.algo = s->algo,
		.n_ranks = s->n_ranks,
		.n_nodes = p->n_nodes,
		.ranks_per_node = s->ranks_per_node ? s->ranks_per_node : 1,
		.root = s->root,
		.elem_bytes = s->elem_bytes,
		.bytes = s->bytes,
		.number = op_number,
		.net = &p->net,
		.has_rank = has_rank,
		.host = m,
		.took_algo = algo_of_nccl(s->took.algorithm),
		.took_proto = s->took.protocol,
		.took_lanes = s->took.n_channels,
	};
	set_flows(p, s);
}

bool price_looks_at_ranks(const struct price *p)
{
	return p->is_by_ranks && !p->is_base_only;
}

#define NAMED_SHIFT 24 /* there are fewer routes */

static uint32_t named(const struct price *p, uint32_t src, uint32_t dst)
{
	if (!price_looks_at_ranks(p))
		return 0;
	return delay_named(p->delay, membership_world(p->members, src),
			   membership_world(p->members, dst))
	       << NAMED_SHIFT;
}

uint32_t price_class(void *ctx, uint32_t src, uint32_t dst, uint16_t lane)
{
	const struct price *p = ctx;
	uint32_t hop;

	if (!p->routes)
		hop = topology_hop(p->topology, membership_world(p->members, src),
				   membership_world(p->members, dst));
	else
		hop = routes_find(p->routes, src, dst, lane);
	return hop == ROUTE_NONE ? hop : hop | named(p, src, dst);
}

uint32_t price_period(const struct price *p, uint32_t n_ranks)
{
	return p->routes && !price_looks_at_ranks(p) ? routes_period(p->routes) : n_ranks;
}

/* A NIC sends what a thread block has put into its buffer before: with Simple, a chunk. */
static double fill_ns(const struct price *p, const struct route *route, double wire_bytes)
{
	const struct nbox_plan *plan = p->plan;
	double lane = plan->lane_bytes_per_ns[NBOX_INTER];

	if (route->hop != NBOX_INTER || plan->proto != NBOX_SIMPLE || !(lane > 0))
		return 0;
	return fmin(wire_bytes, (double)plan->chunk_bytes * plan->wire_factor) / lane;
}

/* What the plan and the path add to a message. */
static void add_route(const struct price *p, const struct route *route, struct nbox_message *msg)
{
	msg->hop = route->hop;
	msg->links = route->links;
	msg->n_links = route->n_links;
	msg->flows = route->n_links ? route->links[0].flows : 1;
	msg->proto = p->plan->proto;
	msg->wire_bytes = (double)msg->bytes * p->plan->wire_factor;
	if (route->hop == NBOX_INTRA && p->plan->intra_line_bytes)
		msg->wire_bytes = fmin(msg->wire_bytes, p->plan->intra_line_bytes);
	msg->step_ns =
		p->plan->step_ns[route->hop == NBOX_INTER] + fill_ns(p, route, msg->wire_bytes);
	msg->lane_bytes_per_ns = p->plan->lane_bytes_per_ns[route->hop == NBOX_INTER] *
				 (p->lanes_at_port ? p->lanes_at_port : 1);
}

static int ask(struct price *p, const struct nbox_message *msg, struct nbox_delay *ret)
{
	struct nbox_delay base;
	int r = delay_message(p->delay, &p->op, msg, p->is_base_only, ret, p->err);

	if (r == 0 && p->is_comparing && !p->has_difference) {
		r = delay_message(p->delay, &p->op, msg, true, &base, p->err);
		p->has_difference = r == 0 && (base.latency_ns != ret->latency_ns ||
					       base.occupancy_ns != ret->occupancy_ns);
	}
	if (r > 0)
		return err_set(p->err, EINVAL,
			       "the delay model '%s' says nothing about the messages of %s by %s: "
			       "choose another model or algorithm",
			       delay_describe(p->delay), coll_kind_name(p->op.kind),
			       sched_algo_name(p->op.algo));
	return r;
}

/* What the fabric's measurements say beyond its links; what-ifs add what they add. */
static int ask_planned(struct price *p, const struct nbox_message *msg, struct nbox_delay *ret)
{
	struct nbox_delay base;
	int r = ask(p, msg, ret);

	if (r < 0 || p->residual == 1)
		return r;
	base = *ret;
	if (!p->is_base_only && delay_works_on_messages(p->delay))
		r = delay_message(p->delay, &p->op, msg, true, &base, p->err);
	ret->latency_ns += (p->residual - 1) * base.latency_ns;
	ret->occupancy_ns += (p->residual - 1) * base.occupancy_ns;
	return r;
}

static int price_message(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
			 uint64_t bytes, struct nbox_delay *ret)
{
	struct price *p = ctx;
	struct nbox_message msg = {
		.struct_size = sizeof(msg),
		.src = membership_world(p->members, src),
		.dst = membership_world(p->members, dst),
		.lane = lane,
		.bytes = bytes,
		.index = index,
	};

	msg.hop = topology_hop(p->topology, msg.src, msg.dst);
	msg.flows = p->flows[msg.hop == NBOX_INTER];
	return ask(p, &msg, ret);
}

static int no_path(const struct price *p, uint32_t src, uint32_t dst)
{
	return err_set(p->err, EINVAL,
		       "the fabric has no path from rank %u to rank %u: give it one, or NICs to "
		       "their nodes",
		       membership_world(p->members, src), membership_world(p->members, dst));
}

/* While a tree fills, fewer share the links: a message is there sooner than its connection is free
 * for the next one, as if the latency were shorter by that. */
static int ask_filling(struct price *p, const struct route *route, struct nbox_message *msg,
		       struct nbox_delay *ret)
{
	struct nbox_link links[FABRIC_PATH_MAX];
	struct nbox_delay filling;
	int r;

	memcpy(links, route->links, sizeof(links));
	for (uint32_t i = 0; i < route->n_links; i++)
		links[i].flows = route->filling[i];
	msg->links = links;
	r = ask_planned(p, msg, &filling);
	if (r == 0)
		ret->latency_ns = filling.latency_ns + filling.occupancy_ns - ret->occupancy_ns;
	return r;
}

static int planned_message(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
			   uint64_t bytes, struct nbox_delay *ret)
{
	struct price *p = ctx;
	uint32_t number = routes_find(p->routes, src, dst, lane);
	uint32_t key = (number | named(p, src, dst)) * 2 + 1 + p->is_base_only;
	struct price_known *known = &p->known[(bytes * 31 + key) % PRICE_KNOWN];
	struct nbox_message msg = {.struct_size = sizeof(msg),
				   .lane = lane,
				   .bytes = bytes,
				   .index = index};
	int r;

	if (number == ROUTE_NONE)
		return no_path(p, src, dst);
	if (p->is_steady_price && known->route == key && known->bytes == bytes) {
		*ret = known->delay;
		return 0;
	}
	msg.src = membership_world(p->members, src);
	msg.dst = membership_world(p->members, dst);
	add_route(p, routes_get(p->routes, number), &msg);
	r = ask_planned(p, &msg, ret);
	if (r == 0 && p->op.algo == NBOX_TREE)
		r = ask_filling(p, routes_get(p->routes, number), &msg, ret);
	if (r == 0)
		*known = (struct price_known){bytes, key, *ret};
	return r;
}

struct sim_cost price_cost(struct price *p)
{
	return (struct sim_cost){.message = p->plan ? planned_message : price_message,
				 .ctx = p,
				 .reduce_ns_per_byte = p->reduce_ns_per_byte};
}
