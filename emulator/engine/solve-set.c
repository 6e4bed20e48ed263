/* See solve-set.h. */
#include "engine/solve-set.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/solve-plan.h"
#include "engine/usage-walk.h"

/* An op with its price; stays where it is. */
struct priced {
	struct price price;
	struct sim_cost cost;
	struct planned pl;
};

static int links_of(void *ctx, uint32_t src, uint32_t dst, uint16_t lane,
		    uint64_t ret_links[SIM_SET_LINKS], double ret_bytes_per_ns[SIM_SET_LINKS])
{
	const struct price *p = ctx;

	_Static_assert(SIM_SET_LINKS == FABRIC_PATH_MAX, "the simulation takes any path");
	return usage_links(p, p->routes, src, dst, lane, ret_links, ret_bytes_per_ns);
}

static int price_op(struct priced *q, const struct set_op *op, uint32_t number,
		    const struct topology *t, struct delay_chain *d, struct sim_set_op *ret,
		    struct err *err)
{
	const struct sched *s = op->s;
	int r = 0;

	price_init(&q->price, s, t, op->m, d, number, err);
	if (delay_has_plan(d) && s->n_ranks > 1) {
		r = planned_init(&q->pl, &q->price, s, err);
		if (r)
			return r;
		s = &q->pl.s;
	}
	if (s->algo == SCHED_DIRECT || (q->price.plan && q->pl.plan.whole_ns >= 0))
		return err_set(err, ENOTSUP,
			       "op %u, %s, is not simulated message by message beside others: "
			       "rings, trees and chains are",
			       number, coll_kind_name(s->kind));
	q->cost = price_cost(&q->price);
	*ret = (struct sim_set_op){.s = s,
				   .cost = &q->cost,
				   .links = links_of,
				   .wire_factor = usage_wire_factor(&q->price),
				   .start_ns = op->start_ns,
				   .after = op->after,
				   .base_ns = q->price.plan ? q->pl.plan.base_ns : 0};
	return 0;
}

int solve_set(struct set_op *ops, uint32_t n, const struct topology *t, struct delay_chain *d,
	      struct sim_set_result *ret, struct err *err)
{
	struct priced *priced = calloc(n + 1, sizeof(*priced));
	struct sim_set_op *set = calloc(n + 1, sizeof(*set));
	int r = priced && set ? 0 : err_set(err, ENOMEM, "no memory for %u ops", n);

	for (uint32_t i = 0; i < n && !r; i++)
		r = price_op(&priced[i], &ops[i], i, t, d, &set[i], err);
	if (!r)
		r = sim_set_run(set, n, ret, err);
	for (uint32_t i = 0; i < n && priced; i++) {
		if (!r) {
			ops[i].begin_ns = set[i].begin_ns;
			ops[i].end_ns = set[i].end_ns;
		}
		planned_deinit(&priced[i].pl);
	}
	free(priced);
	free(set);
	return r;
}
