/* See ends.h. The ends are found by the form of the schedule where it is exact, else by simulation,
 * both in times after the first arrival. */
#include "engine/ends.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ends-alltoall.h"
#include "engine/ends-ring.h"
#include "engine/ends-sim.h"
#include "engine/ends-whole.h"
#include "engine/price.h"
#include "engine/solve-plan.h"
#include "engine/symmetry-pipe.h"

/* Of more messages than this no op is simulated anew for each iteration. */
#define MAX_SIMULATED (UINT64_C(1) << 17)
#define MAX_PLANNED (UINT64_C(1) << 14)
/* Arrivals that differ by this part of the op's time are the same to what is kept. */
#define QUANTA 4096

struct ends {
	struct sched s;
	struct price price;
	struct planned planned; /* where a scheduler plans and the messages say the ends */
	double raw_ns;
	uint32_t n_refs;
	bool is_whole; /* the model says the time of the whole op */
	bool has_form; /* try symmetry */
	enum solve_how how;
	double *room;           /* owned, by place: starts, busy ports, free ports, ends; or NULL */
	struct ends_ring *ring; /* owned, or NULL */
	struct pipe_plan *plan; /* owned, or NULL */
	struct ends_sim sim;
};

static void ends_free(struct ends *e)
{
	planned_deinit(&e->planned);
	ends_ring_free(e->ring);
	pipe_plan_free(e->plan);
	ends_sim_deinit(&e->sim);
	free(e->room);
	free(e);
}

struct ends *ends_ref(struct ends *e)
{
	e->n_refs++;
	return e;
}

struct ends *ends_unref(struct ends *e)
{
	if (e && --e->n_refs == 0)
		ends_free(e);
	return NULL;
}

enum solve_how ends_how(const struct ends *e)
{
	return e->how;
}

/* Of a plan's messages the ends follow where ranks are the ring's places, and in trees that cost no
 * more than a millisecond or so; else from the op's time. */
static bool has_planned_ends(const struct timing *timing, const struct sched *s)
{
	const struct nbox_plan *plan = &timing->plan;

	if (!plan->n_lanes || plan->whole_ns >= 0 || s->n_ranks < 2)
		return false;
	return plan->algo == NBOX_RING
		       ? plan->n_rails < 2
		       : plan->algo != NBOX_DIRECT &&
				 (uint64_t)s->n_ranks * plan->n_lanes <= MAX_PLANNED;
}

static int plan_ends(struct ends *e, const struct sched *s, const struct timing *timing,
		     struct err *err)
{
	int r = planned_init(&e->planned, &e->price, s, err);

	if (r)
		return r;
	e->s = e->planned.s;
	e->is_whole = false;
	e->raw_ns -= timing->plan.base_ns;
	return 0;
}

int ends_new(const struct sched *s, const struct topology *t, const struct membership *m,
	     struct delay_chain *d, uint64_t op_number, const struct timing *timing, bool is_plain,
	     struct ends **ret, struct err *err)
{
	struct ends *e = calloc(1, sizeof(*e));
	int r = 0;

	if (!e)
		return err_set(err, ENOMEM, "no memory for the ends of an op");
	e->s = *s;
	e->n_refs = 1;
	price_init(&e->price, &e->s, t, m, d, op_number, err);
	e->price.is_base_only = is_plain;
	e->raw_ns = is_plain ? timing->model_ns : timing->end_ns - timing->extra_ns;
	e->how = timing->how;
	e->is_whole = timing->is_of_model;
	e->has_form =
		is_plain ? delay_base_is_uniform(d) : delay_is_uniform(d) || e->price.is_by_ranks;
	if (has_planned_ends(timing, s))
		r = plan_ends(e, s, timing, err);
	if (r)
		ends_unref(e);
	else
		*ret = e;
	return r;
}

static int by_ring(struct ends *e, struct symmetry *y, struct err *err)
{
	int r = e->ring ? 0 : ends_ring_new(y, e->raw_ns, &e->ring, err);

	return r ? r : ends_ring_solve(e->ring, y, err);
}

/* Return: 0; SYMMETRY_NONE; negative. */
static int by_form(struct ends *e, const struct sim_ranks *ranks, struct err *err)
{
	struct sim_cost cost = price_cost(&e->price);
	uint32_t n = e->s.n_ranks;
	struct symmetry y = {.s = &e->s,
			     .cost = &cost,
			     .class_of = price_class,
			     .ctx = &e->price,
			     .n_nodes = e->price.n_nodes,
			     .ranks = ranks};

	if (!e->has_form || n < 2 || e->s.algo == SCHED_DIRECT)
		return SYMMETRY_NONE;
	memcpy(ranks->end_ns, ranks->start_ns, n * sizeof(*ranks->end_ns));
	memset(ranks->free_ns, 0, n * sizeof(*ranks->free_ns));
	return e->s.algo == SCHED_RING ? by_ring(e, &y, err)
				       : symmetry_pipe_keep(&y, &e->plan, err);
}

static int solve_ranks(struct ends *e, const struct sim_ranks *ranks, struct err *err)
{
	struct sim_cost cost = price_cost(&e->price);
	int r;

	e->price.err = err;
	e->how = SOLVE_SYMMETRY;
	r = e->is_whole ? SYMMETRY_NONE : by_form(e, ranks, err);
	if (r != SYMMETRY_NONE)
		return r;
	e->has_form = false;
	e->how = SOLVE_SIM;
	if (!e->is_whole && sched_total_messages(&e->s) <= MAX_SIMULATED)
		return ends_sim(&e->sim, &e->s, &cost, fmax(e->raw_ns, 1) / QUANTA, ranks, err);
	e->how = SOLVE_OP;
	if (!e->is_whole && e->s.kind == COLL_ALLTOALL)
		return ends_alltoall(&e->s, e->raw_ns, ranks, err);
	ends_whole(&e->s, e->raw_ns, ranks->start_ns, ranks->busy_ns, ranks->end_ns,
		   ranks->free_ns);
	return 0;
}

static double first_of(const double *arrive, uint32_t n)
{
	double first = INFINITY;
	uint32_t r;

	for (r = 0; r < n; r++)
		first = fmin(first, arrive[r]);
	return isinf(first) ? 0 : first;
}

int ends_solve(struct ends *e, const double *arrive, const double *busy, double extra_ns,
	       double *ret_end, double *ret_busy, struct err *err)
{
	uint32_t n = e->s.n_ranks, r, at;
	double first = first_of(arrive, n), *start, *port, *left, *end;
	struct sim_ranks ranks = {.buffered = sim_buffered(&e->s)};
	int result;

	extra_ns += e->planned.plan.base_ns;

	if (!e->room)
		e->room = malloc(4 * (size_t)n * sizeof(*e->room));
	if (!e->room)
		return err_set(err, ENOMEM, "no memory for the ends of %u ranks", n);
	ranks.start_ns = start = e->room;
	ranks.busy_ns = port = start + n;
	ranks.free_ns = left = port + n;
	ranks.end_ns = end = e->planned.places.of ? left + n : ret_end;
	for (r = 0; r < n; r++) {
		at = places_of(&e->planned.places, r);
		start[at] = arrive[r] - first;
		port[at] = busy ? fmax(busy[r] - first, start[at]) : start[at];
	}
	result = solve_ranks(e, &ranks, err);
	for (r = 0; r < n && !result; r++) {
		at = places_of(&e->planned.places, r);
		ret_end[r] = fmax(arrive[r], first + end[at] + extra_ns);
		if (ret_busy)
			ret_busy[r] = first + fmax(port[at], left[at] + extra_ns);
	}
	return result;
}
