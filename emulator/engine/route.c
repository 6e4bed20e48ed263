/* See route.h. */
#include "engine/route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/number-table.h"
#include "fabric/leaf.h"
#include "fabric/link-number.h"
#include "schedule/dtree.h"
#include "schedule/rails.h"
#include "schedule/tree.h"

struct routes {
	const struct fabric *fabric;
	const struct membership *members;
	const struct sched *s;
	uint32_t n_rails;
	uint32_t n_lanes;     /* that have data */
	uint32_t gpu_flows;   /* lanes at a GPU's port */
	uint32_t edges;       /* of the domain with most, in both trees; 0: no tree */
	uint32_t nic_flows;   /* SCHED_DIRECT: ranks at a NIC */
	bool is_even;         /* domains of equal size, but for the last one */
	uint32_t group;       /* ranks, after which the same begins again; n_ranks: it does not */
	struct bitmap is_odd; /* groups: links of it were changed, or it is cut */
	uint32_t n_odd;
	uint32_t cut;        /* ranks of the last group, where that is cut; else 0 */
	uint32_t even[2];    /* the first groups that are not odd */
	bool are_gpus_alike; /* of a class */
	uint32_t inside[FABRIC_CLASSES_MAX]
		       [3];        /* then the route inside a domain + 1; by siblings */
	struct number_table of;    /* a connection's route + 1 */
	struct number_table same;  /* a route + 1, by its hash */
	struct number_table flow;  /* lanes on a link of the network */
	uint32_t most[LINK_KINDS]; /* on any link of a kind */
	struct route *list;        /* owned */
	uint32_t n, capacity;
};

struct routes *routes_free(struct routes *r)
{
	if (r) {
		bitmap_deinit(&r->is_odd);
		number_table_deinit(&r->of);
		number_table_deinit(&r->same);
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

/* --- groups that are alike ------------------------------------------------------ */

/* After how many nodes the network begins again: a domain where all are at one switch, else a leaf,
 * a pod or a group of routers. 0: never. */
static uint32_t group_nodes(const struct fabric *f)
{
	const struct fabric_network *net = &f->network;
	uint32_t domain = f->classes[f->nodes[0].class].domain_nodes, group = net->nodes_per_leaf;

	if (f->n_nodes_runs != 1)
		return 0;
	if (net->kind == FABRIC_CABLES)
		return f->n_switches == 1 ? domain : 0;
	if (net->kind == FABRIC_SWITCH || f->n_nodes <= group)
		return domain;
	if (net->kind == FABRIC_FAT_TREE || net->kind == FABRIC_DRAGONFLY)
		group *= net->leaves_per_pod;
	return group % domain == 0 ? group : 0;
}

/* Of a fat tree's pod, or a dragonfly's group. */
static uint32_t pod_nodes(const struct fabric *f)
{
	return f->network.nodes_per_leaf * f->network.leaves_per_pod;
}

/* The node where a link's part of the network begins. */
static uint32_t node_of(const struct fabric *f, uint64_t link)
{
	uint32_t a = link_a(link), per_leaf = f->network.nodes_per_leaf;

	switch (link_kind(link)) {
	case LINK_LEAF:
		return a / leaf_rails(f) * per_leaf;
	case LINK_POD:
	case LINK_GROUP:
		return a * pod_nodes(f);
	case LINK_GPU:
	case LINK_PCIE:
	case LINK_NIC:
	case LINK_CABLE:
	case LINK_KINDS:
	default:
		return a;
	}
}

/* In ranks; n_ranks: nothing is known. The network's groups must be the op's, and have the same
 * ranks of it; the last one may lack some. */
static uint32_t find_group(const struct routes *r)
{
	const struct membership *m = r->members;
	uint32_t n = r->s->n_ranks, per = r->s->ranks_per_node, gpus = r->fabric->gpus_per_node;
	uint32_t all = group_nodes(r->fabric) * gpus;
	uint32_t step = n > per ? world(r, per) - world(r, 0) : 0, group;

	if (!all || !step || all % step || world(r, 0) % all >= step)
		return n;
	group = all / step * per;
	for (uint32_t i = 0; m->table && i + per < n; i++)
		if (m->table[i + per] - m->table[i] != step)
			return n;
	if (r->is_even && (is_crossing(r, 0, per - 1) || !is_crossing(r, 0, per)))
		return n;
	return group < n ? group : n;
}

/* The group that @node is in, if that is one of the op. */
static void set_odd(struct routes *r, uint32_t node, uint32_t group_nodes)
{
	uint32_t first = world(r, 0) / r->fabric->gpus_per_node / group_nodes;
	uint32_t at = node / group_nodes;

	if (at >= first && at - first < r->is_odd.n_bits)
		r->n_odd += bitmap_test_and_set(&r->is_odd, at - first);
}

static int find_odd(struct routes *r)
{
	const struct fabric *f = r->fabric;
	uint32_t n = r->s->n_ranks, nodes = group_nodes(f), n_even = 0, n_groups;

	r->group = find_group(r);
	n_groups = (n + r->group - 1) / r->group;
	if (n_groups == 1)
		return 0;
	if (bitmap_init(&r->is_odd, n_groups))
		return -ENOMEM;
	if (n % r->group)
		r->n_odd += bitmap_test_and_set(&r->is_odd, n_groups - 1);
	if (f->n_nodes % nodes)
		set_odd(r, f->n_nodes - 1, nodes);
	if (r->n_odd)
		r->cut = n - (n_groups - 1) * r->group;
	for (size_t i = 0; i < f->n_changes; i++) {
		uint64_t link = f->changes[i].link;

		set_odd(r, node_of(f, link), nodes);
		if (link_kind(link) == LINK_GROUP) /* that leads to one group only */
			set_odd(r, link_b(link) * pod_nodes(f), nodes);
	}
	for (uint32_t i = 0; i < n_groups && n_even < 2; i++)
		if (!bitmap_test(&r->is_odd, i))
			r->even[n_even++] = i;
	if (n_even < 2) /* nobody stands for another */
		r->group = n;
	return 0;
}

/* The first groups that are not odd stand for all others of these. */
static void to_first(const struct routes *r, uint32_t *src, uint32_t *dst)
{
	uint32_t from = *src / r->group, to = *dst / r->group;
	bool is_odd = bitmap_test(&r->is_odd, from);

	if (!is_odd)
		*src = *src % r->group + r->even[0] * r->group;
	if (!bitmap_test(&r->is_odd, to))
		*dst = *dst % r->group + r->even[!is_odd && from != to] * r->group;
}

/* --- NICs --------------------------------------------------------------------------- */

/* The NIC by which a channel leaves the domain of @src: that of the rank where it enters one. */
static uint32_t nic_of(const struct routes *r, uint32_t src, uint32_t dst, uint32_t rail)
{
	const struct fabric *f = r->fabric;
	uint32_t per = r->s->ranks_per_node, at, node;
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
		return r->n_rails > 1 ? rail : FABRIC_NIC_NEAR;
	at = world(r, src - src % per + sched_head(r->s, rail, src));
	node = at / f->gpus_per_node;
	c = fabric_class_of(f, node);
	return (node - fabric_domain(f, at)) * c->n_nics +
	       fabric_near_nic(c, at % f->gpus_per_node, rail);
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

/* @node, or from there on the next node of those to look at: groups are as busy as the first, but
 * for the last one where it is cut. */
static uint32_t next_of_interest(const struct routes *r, uint32_t node)
{
	uint32_t n = r->s->n_ranks, per = r->s->ranks_per_node, last = n - r->cut - r->group;

	if (node * per < r->group || (r->cut && node * per >= last))
		return node;
	return r->cut ? last / per : sched_n_nodes(r->s);
}

/* What leaves a node for the next one on the ring: all messages of a ring; of trees those of all
 * edges, as if all were always busy, and all nodes as the busiest. */
static int count_rail(struct routes *r, uint32_t rail)
{
	uint32_t per = r->s->ranks_per_node, n_nodes = sched_n_nodes(r->s);
	bool is_tree = r->s->algo == SCHED_TREE;
	uint32_t weight = lanes_of_rail(r, rail) * (is_tree ? r->edges : 1);
	int e = 0;

	for (uint32_t i = 0; i < n_nodes && !e; i = next_of_interest(r, i + 1)) {
		uint32_t next = i + 1 < n_nodes ? (i + 1) * per : 0;
		uint32_t src = sched_rank_at(r->s, rail, i * per);
		uint32_t dst = sched_rank_at(r->s, rail, next);

		if (is_tree && !next)
			break;
		if (!is_tree)
			src = sched_previous(r->s, rail, dst);
		if (is_crossing(r, src, dst))
			e = count_path(r, src, dst, rail, weight);
	}
	return e;
}

static int count_flows(struct routes *r)
{
	const struct sched *s = r->s;
	uint32_t inside = 1;
	int e = 0;

	if (s->algo == SCHED_TREE)
		sched_tree_edges(s, &r->edges, &inside);
	r->gpu_flows = s->algo == SCHED_DIRECT ? 1 : r->n_lanes * inside;
	for (uint32_t rail = 0; rail < r->n_rails && s->algo != SCHED_DIRECT && !e; rail++)
		if (lanes_of_rail(r, rail))
			e = count_rail(r, rail);
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
			     .is_even = v->ranks_per_domain > 0 || s->ranks_per_node > 1,
			     .group = s->n_ranks,
			     .are_gpus_alike = true};
	for (size_t i = 0; i < f->n_changes; i++)
		if (link_kind(f->changes[i].link) == LINK_GPU)
			r->are_gpus_alike = false;
	e = find_odd(r);
	if (!e)
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
	sched_dtree(sched_n_nodes(r->s), top, lane / 2 % 2, &parent, child);
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

static uint64_t hash_of(const struct route *route)
{
	uint64_t words[sizeof(*route) / sizeof(uint64_t)], h = 0;

	memcpy(words, route, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		h = (h ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ h >> 29;
	return h | 1;
}

/* The route's number, also if it was there already; ROUTE_NONE: no memory. */
static uint32_t add_route(struct routes *r, const struct route *route)
{
	uint32_t *same = number_table_at(&r->same, hash_of(route));

	if (!same)
		return ROUTE_NONE;
	if (*same && memcmp(&r->list[*same - 1], route, sizeof(*route)) == 0)
		return *same - 1;
	if (r->n == r->capacity) {
		uint32_t capacity = r->capacity ? 2 * r->capacity : 8;
		struct route *grown = realloc(r->list, capacity * sizeof(*grown));

		if (!grown)
			return ROUTE_NONE;
		r->list = grown;
		r->capacity = capacity;
	}
	r->list[r->n] = *route;
	*same = ++r->n;
	return r->n - 1;
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

/* Where the number + 1 of a connection's route is kept; NULL: no memory. */
static uint32_t *number_of(struct routes *r, uint32_t src, uint32_t dst, uint32_t rail,
			   uint32_t siblings)
{
	const struct fabric *f = r->fabric;
	bool is_inside = src != dst && !is_crossing(r, src, dst);

	if (is_inside && r->are_gpus_alike)
		return &r->inside[fabric_class_of(f, world(r, src) / f->gpus_per_node) - f->classes]
				 [siblings];
	if (is_inside)
		rail = 0;
	return number_table_at(&r->of, UINT64_C(1) << 63 | (uint64_t)siblings << 60 |
					       (uint64_t)rail << 40 | (uint64_t)src << 20 | dst);
}

uint32_t routes_find(struct routes *r, uint32_t src, uint32_t dst, uint16_t lane)
{
	uint32_t siblings = siblings_of(r, src, dst, lane);
	uint32_t rail = rail_of(r, lane), *number, i;
	struct route route;

	if (r->group < r->s->n_ranks)
		to_first(r, &src, &dst);
	number = number_of(r, src, dst, rail, siblings);
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

uint32_t routes_port(const struct routes *r, uint32_t rank, uint32_t number)
{
	const struct fabric *f = r->fabric;

	return number != ROUTE_NONE && r->list[number].hop == NBOX_INTER &&
	       fabric_class_of(f, world(r, rank) / f->gpus_per_node)->intra != FABRIC_PCIE;
}

uint32_t routes_period(const struct routes *r)
{
	return r->n_odd ? r->s->n_ranks : r->group;
}

uint32_t routes_next(const struct routes *r, uint32_t rank)
{
	uint32_t n = r->s->n_ranks, group = rank / r->group;

	while (rank < n && r->group < n && group != r->even[0] && !bitmap_test(&r->is_odd, group))
		rank = ++group * r->group;
	return rank < n ? rank : n;
}
