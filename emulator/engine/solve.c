/* See solve.h. The model is asked for the whole op; else the op is worked out message by message,
 * by symmetry.h where that is exact, by sim.h elsewhere. These are the *raw* times, which may be
 * kept for equal ops (struct solver). Then the what-ifs add their extras, which are asked for each
 * op. */
#include "engine/solve.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/bound.h"
#include "engine/sim.h"
#include "engine/solve-alltoall.h"
#include "engine/solve-parts.h"
#include "engine/symmetry.h"

/* Takes the arrivals of a simulation at real ranks. */
struct catcher {
	const struct border *border;
	struct timing *timing;
	struct bitmap is_real; /* ranks that receive over the border */
};

static void catch_arrival(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
			  double sent_ns, double arrived_ns)
{
	struct catcher *c = ctx;
	int64_t in;

	(void)sent_ns;
	if (!bitmap_test(&c->is_real, dst))
		return;
	in = border_find_in(c->border, src, dst, lane);
	if (in >= 0)
		c->timing->at[c->timing->offset[in] + index] = arrived_ns;
}

static int catcher_init(struct catcher *c, const struct border *b, struct timing *t,
			uint32_t n_ranks, struct err *err)
{
	uint32_t i;

	*c = (struct catcher){.border = b, .timing = t};
	if (bitmap_init(&c->is_real, n_ranks))
		return err_set(err, ENOMEM, "no memory for %u ranks", n_ranks);
	for (i = 0; b && i < b->n_in; i++)
		bitmap_set(&c->is_real, b->in[i].dst);
	return 0;
}

/* Sets @t->end_ns and the border times by simulation, with what-ifs or without, as @p says. */
static int by_simulation(const struct sched *s, struct price *p, const struct border *border,
			 struct timing *t, struct err *err)
{
	struct sim_cost cost = price_cost(p);
	struct catcher catcher;
	struct sim_watch watch = {.arrived = catch_arrival, .ctx = &catcher};
	struct sim_result result;
	int r = catcher_init(&catcher, border, t, s->n_ranks, err);

	if (!r)
		r = sim_run(s, &cost, NULL, border ? &watch : NULL, &result, err);
	bitmap_deinit(&catcher.is_real);
	if (!r)
		t->end_ns = result.end_ns;
	return r;
}

static int by_symmetry(const struct sched *s, struct price *p, const struct border *border,
		       struct timing *t, struct err *err)
{
	struct sim_cost cost = price_cost(p);
	struct symmetry y = {
		.s = s,
		.cost = &cost,
		.class_of = price_class,
		.ctx = p,
		.period = p->routes ? price_period(p, s->n_ranks) : 0,
		.n_nodes = price_looks_at_ranks(p) ? 0 : p->n_nodes,
		.border = border,
		.at = t->at,
		.offset = t->offset,
	};
	int r = symmetry_solve(&y, err);

	if (!r)
		t->end_ns = y.end_ns;
	t->is_near = y.is_near;
	return r;
}

/* A world whose messages would have to be simulated one by one for minutes is refused:
 * nboxd would stand still for as long. */
static int check_size(const struct sched *s, const struct price *p, struct err *err)
{
	uint64_t n = sched_total_messages(s);
	uint64_t pairs = s->kind == COLL_ALLTOALL
				 ? (uint64_t)s->n_ranks * (s->n_ranks - 1) * s->n_channels
				 : 0;

	if (n <= SOLVE_MAX_MESSAGES && pairs <= SOLVE_MAX_PAIRS)
		return 0;
	return err_set(err, EINVAL,
		       "%s of %u ranks by %s has %llu messages, and with '%s' each must be "
		       "simulated (limits: %llu messages, %llu pairs of ranks): %s, or take a "
		       "smaller world",
		       coll_kind_name(s->kind), s->n_ranks, sched_algo_name(s->algo),
		       (unsigned long long)n, delay_describe(p->delay),
		       (unsigned long long)SOLVE_MAX_MESSAGES, (unsigned long long)SOLVE_MAX_PAIRS,
		       p->reduce_ns_per_byte > 0
			       ? "leave out reduce-bandwidth"
			       : "use what-ifs that treat all ranks alike, a model of whole ops "
				 "such as ring or alltoall");
}

static int times_of(const struct sched *s, struct price *p, const struct border *border,
		    bool is_uniform, struct timing *t, struct err *err)
{
	int r = is_uniform ? by_symmetry(s, p, border, t, err) : SYMMETRY_NONE;

	t->how = SOLVE_SYMMETRY;
	if (r != SYMMETRY_NONE)
		return r;
	t->how = SOLVE_SIM;
	t->is_near = false;
	r = check_size(s, p, err);
	return r ? r : by_simulation(s, p, border, t, err);
}

/* The raw times from messages: end_ns, model_ns, how, border. */
static int from_messages(const struct sched *s, struct price *p, const struct border *border,
			 int force_sim, struct timing *t, struct err *err)
{
	bool is_base_quick = delay_base_is_uniform(p->delay) && !force_sim;
	struct timing base = {0};
	int r = border ? timing_alloc(t, border, err) : 0;

	if (r)
		return r;
	/* a run of the model alone would cost as much again: ask for both in one run */
	p->is_comparing = !is_base_quick;
	r = times_of(s, p, border, (delay_is_uniform(p->delay) || p->is_by_ranks) && !force_sim, t,
		     err);
	base.end_ns = t->end_ns;
	if (!r && (is_base_quick ? delay_works_on_messages(p->delay) : p->has_difference)) {
		p->is_comparing = false;
		p->is_base_only = true;
		r = times_of(s, p, NULL, is_base_quick, &base, err);
		p->is_base_only = false;
	}
	t->model_ns = base.end_ns;
	return r;
}

/* A model of whole ops knows of no reductions. The op takes what they make longer in a run of its
 * messages; to the answer of a model without messages nothing is added. */
static int add_reductions(const struct sched *s, struct price *p, struct timing *t, struct err *err)
{
	bool is_uniform = delay_base_is_uniform(p->delay);
	struct timing with = {0}, without = {0};
	double ns_per_byte = p->reduce_ns_per_byte;
	int r;

	if (!ns_per_byte || !delay_has_message(p->delay))
		return 0;
	p->is_base_only = true;
	r = times_of(s, p, NULL, is_uniform, &with, err);
	p->reduce_ns_per_byte = 0;
	if (!r)
		r = times_of(s, p, NULL, is_uniform, &without, err);
	p->reduce_ns_per_byte = ns_per_byte;
	p->is_base_only = false;
	t->model_ns = t->end_ns += with.end_ns - without.end_ns;
	return r;
}

static int alltoall_ns(const struct planned *pl, struct price *p, int force_sim, double *ret_ns,
		       struct err *err)
{
	int r = force_sim ? check_size(&pl->s, p, err) : 0;

	if (r)
		return r;
	return force_sim ? planned_alltoall_sim(pl, p, ret_ns, err)
			 : planned_alltoall(pl, p, ret_ns);
}

/* The messages of a plan. */
static int from_plan(struct planned *pl, struct price *p, int force_sim, struct timing *t,
		     struct err *err)
{
	int r;

	if (pl->plan.whole_ns >= 0) {
		t->how = SOLVE_OP;
		t->model_ns = t->end_ns = pl->plan.whole_ns;
		return 0;
	}
	if (pl->s.kind == COLL_ALLTOALL) {
		t->how = force_sim ? SOLVE_SIM : SOLVE_SYMMETRY;
		r = alltoall_ns(pl, p, force_sim, &t->end_ns, err);
		t->model_ns = t->end_ns;
		if (!r && delay_works_on_messages(p->delay)) {
			p->is_base_only = true;
			r = alltoall_ns(pl, p, force_sim, &t->model_ns, err);
			p->is_base_only = false;
		}
		t->is_near = !force_sim && price_period(p, pl->s.n_ranks) == pl->s.n_ranks;
	} else {
		r = from_messages(&pl->s, p, NULL, force_sim, t, err);
	}
	t->model_ns += pl->plan.base_ns;
	t->end_ns += pl->plan.base_ns;
	if (p->residual * delay_scale(p->delay, &p->op) < 1 &&
	    t->model_ns < t->bound_ns) { /* no measurement of this op says so */
		t->end_ns += t->bound_ns - t->model_ns;
		t->model_ns = t->bound_ns;
	}
	return r;
}

/* The scheduler says which messages there are. The schedule that both ends of the links agree on
 * stays @s: its messages are spread over the op's time. */
static int solve_planned(const struct sched *s, struct price *p, int force_sim, struct timing *t,
			 struct err *err)
{
	const struct membership *members = p->members;
	struct planned pl;
	int r = planned_init(&pl, p, s, err);

	if (!r) {
		planned_bound(p, &pl.s, t);
		t->plan = pl.plan;
		t->is_of_model = 1;
		r = s->n_ranks > 1 ? from_plan(&pl, p, force_sim, t, err) : 0;
	}
	planned_deinit(&pl);
	p->plan = NULL;
	p->routes = NULL;
	p->members = members;
	return r;
}

int solve_raw(const struct sched *s, struct price *p, const struct border *border, int force_sim,
	      struct timing *t, struct err *err)
{
	int r;
	bool has_whole;
	double whole_ns;

	if (delay_has_plan(p->delay))
		return solve_planned(s, p, force_sim, t, err);
	r = solve_from_op(p, t, err);
	has_whole = r == 0;
	if (has_whole)
		r = add_reductions(s, p, t, err);
	whole_ns = t->end_ns;
	t->bound_ns = bound_of_op(s, p->topology, p->n_nodes, p->has_intra);
	if (r < 0 || (has_whole && !delay_works_on_messages(p->delay)))
		return r;
	if (!delay_has_message(p->delay))
		return solve_no_answer(p, err);
	r = from_messages(s, p, border, force_sim, t, err);
	if (r == 0 && has_whole)
		solve_on_top(whole_ns, border, t);
	return r;
}

int solve(const struct sched *s, const struct topology *t, const struct membership *m,
	  struct delay_chain *d, const struct border *border, uint64_t op_number, int force_sim,
	  struct timing *ret, struct err *err)
{
	CLEANUP(timing_deinit) struct timing own = {0};
	struct price p;
	int r;

	price_init(&p, s, t, m, d, op_number, err);
	r = solve_raw(s, &p, border, force_sim, &own, err);
	if (!r)
		r = solve_finish(&p, border, &own, err);
	if (r)
		return r;
	*ret = own;
	own = (struct timing){0};
	return 0;
}
