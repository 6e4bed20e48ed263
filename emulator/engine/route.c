/* See route.h. */
#include "engine/route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/number-table.h"
#include "fabric/link-number.h"
#include "schedule/dtree.h"
#include "schedule/rails.h"
#include "schedule/tree.h"

struct routes {
	const struct fabric *fabric;
	const struct membership *members;
	const struct sched *s;
	uint32_t n_rails;
	uint32_t n_lanes;          /* that have data */
	uint32_t gpu_flows;        /* lanes at a GPU's port */
	uint32_t edges;            /* of the domain with most, in both trees; 0: no tree */
	uint32_t nic_flows;        /* SCHED_DIRECT: ranks at a NIC */
	bool is_even;              /* domains of equal size */
	uint32_t period;           /* in ranks */
	bool are_domains_alike;    /* inside, as far as nodes of one class go */
	struct number_table of;    /* a connection's route */
	struct number_table flow;  /* lanes on a link of the network */
	uint32_t most[LINK_KINDS]; /* on any link of a kind */
	struct route *list;        /* owned */
	uint32_t n, capacity;
};

struct routes *routes_free(struct routes *r)
{
	if (r) {
		number_table_deinit(&r->of);
		number_table_deinit(&r->flow);
		free(r->list);
		free(r);
	}
	return NULL;
}

static uint32_t world(const struct routes *r, uint32_t rank)
{
	return membership_world(r->members, rank);
}

static bool is_crossing(const struct routes *r, uint32_t src, uint32_t dst)
{
	return fabric_domain(r->fabric, world(r, src)) != fabric_domain(r->fabric, world(r, dst));
}

/* So many nodes are alike in all that a message between them can cost; 0: they are not. */
static uint32_t alike_nodes(const struct fabric *f)
{
	const struct fabric_network *net = &f->network;
	uint32_t domain = f->classes[f->nodes[0].class].domain_nodes, group;

	if (fabric_is_uniform(f))
		return domain;
	if (f->n_nodes_runs != 1 || f->n_changes || net->kind == FABRIC_CABLES)
		return 0;
	group = net->nodes_per_leaf;
	if (net->kind == FABRIC_FAT_TREE || net->kind == FABRIC_DRAGONFLY)
		group *= net->leaves_per_pod;
	return group && group % domain == 0 && f->n_nodes % group == 0 ? group : 0;
}

/* After how many ranks the same begins again: those of a domain in a uniform fabric, of a group of
 * leaves in a regular one; n_ranks where nothing is known. */
static uint32_t find_period(const struct routes *r)
{
	const struct membership *m = r->members;
	uint32_t n = r->s->n_ranks, per = r->s->ranks_per_node, gpus = r->fabric->gpus_per_node;
	uint32_t nodes = alike_nodes(r->fabric), all = nodes * gpus;
	uint32_t step = n > per ? world(r, per) - world(r, 0) : 0, period;

	if (!nodes || !step || world(r, 0) / gpus % nodes || all % step)
		return n;
	period = all / step * per;
	for (uint32_t i = 0; m->table && i + per < n; i++)
		if (m->table[i + per] - m->table[i] != step)
			return n;
	/* in each domain, no more */
	if (n % period || is_crossing(r, 0, per - 1) || !is_crossing(r, 0, per))
		return n;
	return period;
}

/* The NIC by which a channel leaves the domain of @src: that of the rank where it enters one. */
static uint32_t nic_of(const struct routes *r, uint32_t src, uint32_t dst, uint32_t rail)
{
	const struct fabric *f = r->fabric;
	uint32_t per = r->s->ranks_per_node, head, first, at, node;
	const struct fabric_class *c;

	if (r->s->algo ==
	    SCHED_DIRECT) { /* of the destination's rail, through its GPU's neighbour */
		at = world(r, dst);
		c = fabric_class_of(f, at / f->gpus_per_node);
		return c->intra == FABRIC_PCIE || c->domain_nodes > 1
			       ? FABRIC_NIC_NEAR
			       : fabric_near_nic(c, at % f->gpus_per_node, 0);
	}
	if (!r->is_even)
		return rail;
	head = sched_head(r->s, rail);
	first = (head * r->n_rails + per - 1) / per; /* the first rail at this rank */
	at = world(r, src - src % per + head);
	node = at / f->gpus_per_node;
	c = fabric_class_of(f, node);
	return (node - fabric_domain(f, at)) * c->n_nics +
	       fabric_near_nic(c, at % f->gpus_per_node, rail - first);
}

static uint32_t lanes_of_rail(const struct routes *r, uint32_t rail)
{
	return rail < r->n_lanes ? (r->n_lanes - rail + r->n_rails - 1) / r->n_rails : 0;
}

/* --- how many share a link ---------------------------------------------------- */

static int count_path(struct routes *r, uint32_t src, uint32_t dst, uint32_t rail, uint32_t weight)
{
	uint64_t links[FABRIC_PATH_MAX];
	int n = fabric_path(r->fabric, world(r, src), world(r, dst), nic_of(r, src, dst, rail),
			    links);

	for (int i = 0; i < n; i++) {
		enum link_kind kind = link_kind(links[i]);
		uint32_t *flows;

		if (kind == LINK_GPU)
			continue;
		flows = number_table_at(&r->flow, links[i]);
		if (!flows)
			return -ENOMEM;
		*flows += weight;
		r->most[kind] = *flows > r->most[kind] ? *flows : r->most[kind];
	}
	return 0;
}

/* The most edges that a domain has in both trees: inner in one, leaf in the other. */
static uint32_t tree_edges(uint32_t n_domains)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < n_domains && most < 4; i++) {
		uint32_t n = 0;

		for (int tree = 0; tree < 2; tree++) {
			int32_t parent, child[2];

			sched_dtree(n_domains, i, tree, &parent, child);
			n += (parent >= 0) + (child[0] >= 0) + (child[1] >= 0);
		}
		most = n > most ? n : most;
	}
	return most ? most : 1;
}

/* As if all edges of a domain were always busy, and all domains as the busiest. */
static int count_rail_tree(struct routes *r, uint32_t rail)
{
	uint32_t n = r->s->n_ranks, per = r->s->ranks_per_node, head = sched_head(r->s, rail);
	uint32_t end = r->period < n ? r->period : n;
	uint32_t weight = lanes_of_rail(r, rail) * r->edges;
	int e = 0;

	for (uint32_t i = head; i < end && i + per < n && !e; i += per)
		if (is_crossing(r, i, i + per))
			e = count_path(r, i, i + per, rail, weight);
	return e;
}

static int count_rail_ring(struct routes *r, uint32_t rail)
{
	uint32_t n = r->s->n_ranks, per = r->s->ranks_per_node;
	uint32_t end = r->period < n ? r->period : n;
	int e = 0;

	for (uint32_t i = per - 1; i < end && !e; i += per) {
		uint32_t src = sched_rank_at(r->s, rail, i), dst = sched_next(r->s, rail, src);

		if (is_crossing(r, src, dst))
			e = count_path(r, src, dst, rail, lanes_of_rail(r, rail));
	}
	return e;
}

static int count_flows(struct routes *r)
{
	const struct sched *s = r->s;
	uint32_t per = s->ranks_per_node;
	int e = 0;

	r->gpu_flows = s->algo == SCHED_DIRECT ? 1 : r->n_lanes;
	if (s->algo == SCHED_TREE) {
		r->edges = tree_edges(s->n_ranks / per);
		r->gpu_flows *= per == 1 ? r->edges : per > 2 ? 4 : 2;
	}
	for (uint32_t rail = 0; rail < r->n_rails && s->algo != SCHED_DIRECT && !e; rail++)
		if (lanes_of_rail(r, rail))
			e = s->algo == SCHED_TREE ? count_rail_tree(r, rail)
						  : count_rail_ring(r, rail);
	return e;
}

/* --- routes ------------------------------------------------------------------- */

int routes_new(const struct fabric *f, const struct membership *m, const struct sched *s,
	       const struct fabric_view *v, uint32_t n_rails, struct routes **ret)
{
	struct routes *r = calloc(1, sizeof(*r));
	uint64_t lanes;
	int e;

	if (!r)
		return -ENOMEM;
	lanes = s->channel_bytes ? (s->bytes + s->channel_bytes - 1) / s->channel_bytes : 1;
	*r = (struct routes){.fabric = f,
			     .members = m,
			     .s = s,
			     .n_rails = n_rails ? n_rails : 1,
			     .n_lanes = lanes < s->n_channels ? (uint32_t)lanes : s->n_channels,
			     .nic_flows = v->n_nics && v->most_ranks_per_domain > v->n_nics
						  ? v->most_ranks_per_domain / v->n_nics
						  : 1,
			     .is_even = v->ranks_per_domain > 0,
			     .period = s->n_ranks,
			     .are_domains_alike = f->n_changes == 0};
	r->period = find_period(r);
	e = count_flows(r);
	if (e)
		routes_free(r);
	else
		*ret = r;
	return e;
}

/* Of cables each has its own number; other links of a kind are alike. */
static uint32_t flows_on(const struct routes *r, uint64_t link)
{
	enum link_kind kind = link_kind(link);
	uint32_t flows = kind == LINK_GPU     ? r->gpu_flows
			 : kind == LINK_CABLE ? number_table_get(&r->flow, link)
					      : r->most[kind];

	if (r->s->algo == SCHED_DIRECT && (kind == LINK_NIC || kind == LINK_PCIE))
		flows = r->nic_flows;
	return flows ? flows : 1;
}

/* How many children of a tree's parent share its port for a message between domains; inside one,
 * and in other algorithms: 0. */
static uint32_t siblings_of(const struct routes *r, uint32_t src, uint32_t dst, uint16_t lane)
{
	uint32_t per = r->s->ranks_per_node, top = lane % 2 == SCHED_UP ? dst / per : src / per;
	int32_t parent, child[2];

	if (!r->edges || src / per == dst / per)
		return 0;
	sched_dtree(r->s->n_ranks / per, top, lane / 2 % 2, &parent, child);
	return (child[0] >= 0) + (child[1] >= 0);
}

/* Of @flows those that are busy while a tree fills: between domains one for each sibling; inside
 * one a GPU has the two trees' up or down, of the four. */
static uint32_t filling_flows(const struct routes *r, uint32_t flows, uint32_t siblings)
{
	if (!r->edges)
		return flows;
	if (siblings)
		return (flows * siblings + r->edges - 1) / r->edges;
	return r->s->ranks_per_node > 2 ? (flows + 1) / 2 : flows;
}

static int make_route(const struct routes *r, uint32_t src, uint32_t dst, uint32_t rail,
		      uint32_t siblings, struct route *ret)
{
	uint64_t links[FABRIC_PATH_MAX];
	struct fabric_link link;
	int n = fabric_path(r->fabric, world(r, src), world(r, dst), nic_of(r, src, dst, rail),
			    links);

	memset(ret, 0, sizeof(*ret)); /* compared as bytes */
	if (n < 0)
		return n;
	ret->n_links = (uint32_t)n;
	ret->hop = src == dst ? NBOX_SELF : is_crossing(r, src, dst) ? NBOX_INTER : NBOX_INTRA;
	for (int i = 0; i < n; i++) {
		fabric_link(r->fabric, links[i], &link);
		ret->links[i].latency_ns = link.latency_ns;
		ret->links[i].bytes_per_ns = link.bytes_per_ns;
		ret->links[i].flows = flows_on(r, links[i]);
		ret->filling[i] = filling_flows(r, ret->links[i].flows, siblings);
	}
	return 0;
}

static uint32_t add_route(struct routes *r, const struct route *route)
{
	for (uint32_t i = r->n; i-- > 0;)
		if (memcmp(&r->list[i], route, sizeof(*route)) == 0)
			return i;
	if (r->n == r->capacity) {
		uint32_t capacity = r->capacity ? 2 * r->capacity : 8;
		struct route *grown = realloc(r->list, capacity * sizeof(*grown));

		if (!grown)
			return ROUTE_NONE;
		r->list = grown;
		r->capacity = capacity;
	}
	r->list[r->n] = *route;
	return r->n++;
}

/* The first period stands for all: @src is in it, @dst there or in the next. */
static void to_first(const struct routes *r, uint32_t *src, uint32_t *dst)
{
	uint32_t per = r->period;
	bool is_inside = *src / per == *dst / per;

	*src %= per;
	*dst = *dst % per + (is_inside ? 0 : per);
}

/* One number for all connections that have the same route for sure. */
static uint64_t key_of(const struct routes *r, uint32_t src, uint32_t dst, uint32_t rail,
		       uint32_t siblings)
{
	const struct fabric *f = r->fabric;

	if (r->are_domains_alike && src != dst && !is_crossing(r, src, dst))
		return 1 + (uint64_t)(fabric_class_of(f, world(r, src) / f->gpus_per_node) -
				      f->classes);
	return UINT64_C(1) << 63 | (uint64_t)siblings << 60 | (uint64_t)rail << 40 |
	       (uint64_t)src << 20 | dst;
}

static uint32_t rail_of(const struct routes *r, uint16_t lane)
{
	uint32_t channel = r->s->algo == SCHED_TREE ? lane / 4 : lane;

	return r->s->algo == SCHED_DIRECT ? 0 : channel % r->n_rails;
}

int routes_links(const struct routes *r, uint32_t src, uint32_t dst, uint16_t lane,
		 uint64_t ret_links[FABRIC_PATH_MAX])
{
	return fabric_path(r->fabric, world(r, src), world(r, dst),
			   nic_of(r, src, dst, rail_of(r, lane)), ret_links);
}

uint32_t routes_find(struct routes *r, uint32_t src, uint32_t dst, uint16_t lane)
{
	uint32_t siblings = siblings_of(r, src, dst, lane);
	uint32_t rail = rail_of(r, lane), *number, i;
	struct route route;

	if (r->period < r->s->n_ranks)
		to_first(r, &src, &dst);
	number = number_table_at(&r->of, key_of(r, src, dst, rail, siblings));
	if (!number)
		return ROUTE_NONE;
	if (*number == 0) {
		i = make_route(r, src, dst, rail, siblings, &route) < 0 ? ROUTE_NONE
									: add_route(r, &route);
		if (i == ROUTE_NONE)
			return ROUTE_NONE;
		*number = i + 1;
	}
	return *number - 1;
}

const struct route *routes_get(const struct routes *r, uint32_t number)
{
	return &r->list[number];
}

uint32_t routes_period(const struct routes *r)
{
	return r->period;
}
