/* See solve-plan.h. */
#include "engine/solve-plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "engine/whole-links.h"
#include "fabric/link-number.h"

_Static_assert((int)NBOX_NVSWITCH == (int)FABRIC_NVSWITCH && (int)NBOX_PCIE == (int)FABRIC_PCIE &&
		       (int)NBOX_OTHER_CPU == (int)FABRIC_OTHER_CPU &&
		       (int)NBOX_SYS == (int)FABRIC_SYS,
	       "the ABI's words for fabrics are the fabric's");

static struct nbox_fabric fabric_of(const struct fabric_view *v)
{
	return (struct nbox_fabric){
		.struct_size = sizeof(struct nbox_fabric),
		.n_domains = v->n_domains,
		.ranks_per_domain = v->ranks_per_domain,
		.most_ranks_per_domain = v->most_ranks_per_domain,
		.sm_min = v->sm_min,
		.sm_max = v->sm_max,
		.intra = v->intra,
		.cpu = v->cpu,
		.distance = v->distance,
		.has_nvls = v->has_nvls,
		.has_gdr = v->has_gdr,
		.n_nics = v->n_nics,
		.gpu_bytes_per_ns = v->gpu_bytes_per_ns,
		.gpu_latency_ns = v->gpu_latency_ns,
		.pcie_bytes_per_ns = v->pcie_bytes_per_ns,
		.nic_bytes_per_ns = v->nic_bytes_per_ns,
		.net_latency_ns = v->net_latency_ns,
		.nic_payload_bytes_per_ns = v->nic_payload_bytes_per_ns,
		.has_no_order = !v->has_order,
	};
}

int planned_schedule(const struct nbox_plan *plan, const struct sched *s, uint32_t per_domain,
		     struct sched *ret, struct err *err)
{
	bool is_tree = plan->algo == NBOX_TREE;
	uint32_t n_first = plan->n_first ? plan->n_first : (plan->n_lanes + 1) / 2;

	*ret = *s;
	if (s->kind == COLL_SENDRECV) /* the calls say */
		return 0;
	ret->algo = (enum sched_algo)plan->algo;
	ret->ranks_per_node = per_domain ? per_domain : 1;
	ret->n_rails = plan->n_rails;
	/* a channel of NCCL's has one of the two trees; a step of ours is half a chunk */
	ret->n_channels = is_tree ? n_first : plan->n_lanes;
	ret->chunk_bytes = is_tree ? 2 * plan->chunk_bytes : plan->chunk_bytes;
	ret->slices = plan->n_slices;
	ret->lane_bytes = plan->lane_bytes;
	return sched_init(ret, err);
}

static int ask_plan(struct planned *pl, struct price *p, struct fabric_view *ret_view,
		    struct err *err)
{
	const struct fabric *f = delay_fabric(p->delay);
	struct nbox_fabric fabric;
	int r;

	if (!f)
		return err_set(
			err, EINVAL,
			"the delay model '%s' plans ops over a fabric, and this run has none: "
			"give a preset, a fabric or NICs (nbox topo lists the presets)",
			delay_describe(p->delay));
	r = fabric_view(f, p->members, ret_view);
	if (r)
		return err_set(err, -r, "no memory for the fabric of an op");
	fabric = fabric_of(ret_view);
	p->op.algo = delay_algo(p->delay, p->op.kind);
	p->op.n_nodes = ret_view->n_domains;
	r = delay_plan(p->delay, &p->op, &fabric, &pl->plan, err);
	if (r > 0)
		return err_set(err, EINVAL, "the delay model '%s' has no plan for %s of %u ranks",
			       delay_describe(p->delay), coll_kind_name(p->op.kind), p->op.n_ranks);
	return r;
}

int planned_ask(struct price *p, struct nbox_plan *ret, struct err *err)
{
	struct planned pl = {.routes = NULL};
	struct fabric_view view;
	int r = ask_plan(&pl, p, &view, err);

	if (r == 0)
		*ret = pl.plan;
	return r;
}

void planned_deinit(struct planned *pl)
{
	pl->routes = routes_free(pl->routes);
	places_deinit(&pl->places);
}

static bool has_member(const struct price *p, uint32_t node)
{
	uint32_t gpus = p->topology->gpus_per_node;

	for (uint32_t i = 0; i < gpus; i++)
		if (membership_rank(p->members, node * gpus + i) >= 0)
			return true;
	return false;
}

double planned_whole_bytes(const struct price *p, const struct fabric_view *v, enum link_kind kind)
{
	double bytes = (double)p->op.bytes, n = p->op.n_ranks, nodes = v->n_domains;
	bool is_part = p->op.kind != NBOX_ALLREDUCE;

	if (kind == LINK_GPU)
		return is_part ? n * bytes : bytes;
	if ((kind != LINK_NIC && kind != LINK_PCIE) || nodes < 2 || !v->n_nics)
		return 0;
	if (is_part)
		return n * (nodes - 1) / nodes * bytes / v->n_nics;
	return bytes * (nodes < 4 ? nodes / 2 : 2) / v->n_nics;
}

/* The scheduler knows what the classes of the fabric say. A link that was changed holds up its
 * rail, and so all: NCCL deals the bytes evenly. */
static double whole_over_links(const struct price *p, const struct fabric_view *v,
			       const struct nbox_plan *plan)
{
	const struct fabric *f = delay_fabric(p->delay);
	double ns = fmax(plan->whole_ns, whole_links_ns(p, plan));

	for (size_t i = 0; i < f->n_changes; i++) {
		enum link_kind kind = link_kind(f->changes[i].link);
		double bytes = planned_whole_bytes(p, v, kind);
		struct fabric_link link;

		if (bytes <= 0 || !has_member(p, link_a(f->changes[i].link)))
			continue;
		fabric_link(f, f->changes[i].link, &link);
		ns = fmax(ns, bytes / link.bytes_per_ns);
	}
	return fmax(ns, fabric_bound(f, (enum coll_kind)p->op.kind, p->op.bytes, p->op.root,
				     p->members, NULL, 0));
}

/* The ranks of each domain; 0: they differ. The last one may have fewer, but not in direct
 * algorithms. */
static uint32_t ranks_per_domain(const struct planned *pl, const struct price *p,
				 const struct fabric_view *v)
{
	const struct fabric *f = delay_fabric(p->delay);
	const struct membership *m = p->members;
	uint32_t most = v->most_ranks_per_domain;

	if (v->ranks_per_domain || pl->plan.algo == NBOX_DIRECT)
		return v->ranks_per_domain;
	for (uint32_t i = 0; i + most < m->n_ranks; i += most)
		if (fabric_domain(f, membership_world(m, i)) !=
		    fabric_domain(f, membership_world(m, i + most - 1)))
			return 0;
	return most;
}

int planned_init(struct planned *pl, struct price *p, const struct sched *s, struct err *err)
{
	struct fabric_view view;
	int r;

	*pl = (struct planned){.s = *s};
	r = ask_plan(pl, p, &view, err);
	if (r)
		return r;
	r = s->kind == COLL_SENDRECV ? 0
				     : places_init(&pl->places, delay_fabric(p->delay), p->members);
	if (r)
		return err_set(err, -r, "no memory for the places of an op's ranks");
	if (pl->places.of)
		p->members = &pl->places.members;
	pl->s.root = p->op.root = s->n_ranks ? places_of(&pl->places, s->root) : 0;
	p->op.algo = pl->plan.algo;
	p->plan = &pl->plan;
	p->residual = p->n_nodes > 1
			      ? fabric_residual(delay_fabric(p->delay), (enum coll_kind)p->op.kind,
						(double)p->op.bytes)
			      : 1;
	pl->plan.base_ns *= p->residual;
	if (pl->plan.whole_ns >= 0) {
		pl->plan.whole_ns *= p->residual;
		pl->plan.whole_ns = whole_over_links(p, &view, &pl->plan);
		return 0;
	}
	r = planned_schedule(&pl->plan, &pl->s, ranks_per_domain(pl, p, &view), &pl->s, err);
	if (r)
		return err_prefix(err, r, "the plan of the delay model '%s'",
				  delay_describe(p->delay));
	r = routes_new(delay_fabric(p->delay), p->members, &pl->s, &view, pl->plan.n_rails,
		       &pl->routes);
	if (r)
		return err_set(err, -r, "no memory for the paths of an op");
	p->routes = pl->routes;
	p->is_steady_price = delay_is_uniform(p->delay) || p->is_by_ranks;
	if (pl->s.algo == SCHED_DIRECT) /* peers have lanes of their own; a Gather's root decides */
		p->lanes_at_port = pl->plan.n_lanes * (s->n_ranks > 1 ? s->n_ranks - 1 : 1);
	return 0;
}

void planned_bound(const struct price *p, const struct sched *s, struct timing *t)
{
	if (!s->bytes) /* nothing moves */
		return;
	t->bound_ns = fabric_bound(delay_fabric(p->delay), s->kind, s->bytes, s->root, p->members,
				   t->bound_where, sizeof(t->bound_where));
}
