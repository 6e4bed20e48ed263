/* See solve-plan.h. */
#include "engine/solve-plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

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
	ret->ranks_per_node = per_domain && s->n_ranks % per_domain == 0 ? per_domain : 1;
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
	p->op.algo = NBOX_ALGO_ANY;
	p->op.n_nodes = ret_view->n_domains;
	r = delay_plan(p->delay, &p->op, &fabric, &pl->plan, err);
	if (r > 0)
		return err_set(err, EINVAL, "the delay model '%s' has no plan for %s of %u ranks",
			       delay_describe(p->delay), coll_kind_name(p->op.kind), p->op.n_ranks);
	return r;
}

void planned_deinit(struct planned *pl)
{
	pl->routes = routes_free(pl->routes);
}

int planned_init(struct planned *pl, struct price *p, const struct sched *s, struct err *err)
{
	struct fabric_view view;
	int r;

	*pl = (struct planned){0};
	r = ask_plan(pl, p, &view, err);
	if (r)
		return r;
	p->op.algo = pl->plan.algo;
	p->plan = &pl->plan;
	if (pl->plan.whole_ns >= 0)
		return 0;
	r = planned_schedule(&pl->plan, s, view.ranks_per_domain, &pl->s, err);
	if (r)
		return err_prefix(err, r, "the plan of the delay model '%s'",
				  delay_describe(p->delay));
	r = routes_new(delay_fabric(p->delay), p->members, &pl->s, &view, pl->plan.n_rails,
		       &pl->routes);
	if (r)
		return err_set(err, -r, "no memory for the paths of an op");
	p->routes = pl->routes;
	p->is_steady_price = delay_is_uniform(p->delay);
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
