/* See usage-op.h. */
#include "engine/usage-op.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/solve-plan.h"
#include "engine/usage-walk.h"
#include "engine/whole-links.h"
#include "fabric/link-number.h"

static int add_rank(const struct usage_walk *w, uint32_t rank)
{
	CLEANUP(freep) struct sched_conn *conns = NULL;
	uint32_t n_in, n_out;
	int r = sched_conns(w->s, rank, &conns, &n_in, &n_out);

	for (uint32_t i = n_in; i < n_in + n_out && r == 0; i++)
		r = usage_add_connection(w, conns[i].src, conns[i].dst, conns[i].lane,
					 sched_lane_bytes(w->s, conns[i].lane));
	return r;
}

static int add_link(const struct usage_walk *w, uint64_t link, double bytes, double connections)
{
	struct fabric_link l;

	fabric_link(delay_fabric(w->price->delay), link, &l);
	return usage_maker_add(w->maker, link, l.bytes_per_ns, bytes, connections, w->is_own);
}

/* Both ways. */
static int add_link_pair(const struct usage_walk *w, enum link_kind kind, uint32_t node, uint32_t i,
			 double bytes, double connections)
{
	int r = add_link(w, link_number(kind, node, i, LINK_OUT), bytes, connections);

	return r ? r : add_link(w, link_number(kind, node, i, LINK_IN), bytes, connections);
}

/* Of a plan without messages. */
static int add_whole(const struct usage_walk *w, const struct nbox_plan *plan)
{
	const struct fabric *f = delay_fabric(w->price->delay);
	const struct membership *m = w->price->members;
	double lanes = plan->n_lanes ? plan->n_lanes : 1;
	struct fabric_view view;
	uint64_t met = 0; /* NICs of the node @at that have been added */
	uint32_t at = UINT32_MAX;
	int r = fabric_view(f, m, &view);

	for (uint32_t i = 0; i < m->n_ranks && r == 0; i++) {
		uint32_t rank = membership_world(m, i), node = rank / f->gpus_per_node,
			 gpu = rank % f->gpus_per_node;
		uint32_t nics = fabric_near_nics(fabric_class_of(f, node), gpu);

		if (node != at)
			met = 0;
		at = node;
		r = add_link_pair(w, LINK_GPU, node, gpu,
				  planned_whole_bytes(w->price, &view, LINK_GPU), lanes);
		for (uint32_t nic = 0; nic < FABRIC_NICS_MAX && r == 0; nic++) {
			if (!(nics >> nic & 1) || met >> nic & 1)
				continue;
			met |= UINT64_C(1) << nic;
			r = add_link_pair(w, LINK_NIC, node, nic,
					  planned_whole_bytes(w->price, &view, LINK_NIC),
					  fmax(1, lanes / (view.n_nics ? view.n_nics : 1)));
		}
	}
	return r == 0 ? whole_links_add(w->price, plan, w->maker, w->is_own) : r;
}

/* Ranks that stand for all: an all-to-all has as many connections as pairs. */
static uint32_t n_looked_at(const struct sched *s)
{
	if (s->kind != COLL_ALLTOALL || s->n_ranks <= USAGE_PAIRS_MAX)
		return s->n_ranks;
	return s->ranks_per_node ? s->ranks_per_node : 1;
}

static int add_ranks(const struct usage_walk *w)
{
	uint32_t n = n_looked_at(w->s);
	int r = 0;

	for (uint32_t rank = 0; rank < n && r == 0; rank++)
		r = add_rank(w, rank);
	return r;
}

/* One communicator's: the op's own, or an image's. */
static int add_members(struct usage_maker *maker, const struct sched *s, const struct topology *t,
		       const struct membership *m, struct delay_chain *d, uint64_t op_number,
		       bool is_own, struct err *err)
{
	CLEANUP(planned_deinit) struct planned pl = {.plan.whole_ns = -1};
	struct usage_walk w = {.maker = maker, .s = s, .is_own = is_own};
	struct price p;
	int r;

	price_init(&p, s, t, m, d, op_number, err);
	w.price = &p;
	if (delay_has_plan(d) && s->n_ranks > 1) {
		r = planned_init(&pl, &p, s, err);
		if (r)
			return r;
		w.s = &pl.s;
		w.routes = pl.routes;
	}
	r = pl.plan.whole_ns >= 0 ? add_whole(&w, &pl.plan) : add_ranks(&w);
	return r ? err_set(err, -r, "no memory for what an op puts on its links") : 0;
}

int usage_of_op(const struct sched *s, const struct topology *t, const struct membership *m,
		struct delay_chain *d, uint64_t op_number, const struct usage_images *images,
		struct usage **ret, struct err *err)
{
	CLEANUP(usage_maker_deinit) struct usage_maker maker = {0};
	struct membership image;
	int r = add_members(&maker, s, t, m, d, op_number, true, err);

	while (images && r == 0 && (r = images->next(images->ctx, &image)) == 0)
		r = add_members(&maker, s, t, &image, d, op_number, false, err);
	if (r >= 0)
		r = 0;
	if (r == -ENOMEM || (r == 0 && usage_maker_end(&maker, ret)))
		r = err_set(err, ENOMEM, "no memory for what an op puts on its links");
	return r;
}
