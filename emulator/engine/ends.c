/* See ends.h. Ranks that arrive together are the common case: their ends are kept. Others are found
 * by the form of the schedule where it is exact, else by simulation. */
#include "engine/ends.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/ends-alltoall.h"
#include "engine/ends-ring.h"
#include "engine/ends-sim.h"
#include "engine/ends-whole.h"
#include "engine/price.h"
#include "engine/solve.h"
#include "engine/symmetry-pipe.h"

/* Of more messages than this no op is simulated anew for each iteration. */
#define MAX_SIMULATED (UINT64_C(1) << 17)
/* Arrivals that differ by this part of the op's time are the same to what is kept. */
#define QUANTA 4096

struct ends {
	struct sched s;
	struct price price;
	double raw_ns;
	uint32_t n_refs;
	bool is_whole; /* the model says the time of the whole op */
	bool has_form; /* try symmetry */
	bool has_together;
	struct ends_ring *ring; /* owned, or NULL */
	enum solve_how how;
	double *together; /* owned: ends when all arrive at 0, then when ports are free;
			   * then room for a caller who wants no ports; or NULL */
	double first_ns, last_ns;
	struct ends_sim sim;
};

static void ends_free(struct ends *e)
{
	ends_ring_free(e->ring);
	ends_sim_deinit(&e->sim);
	free(e->together);
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

double ends_raw_ns(const struct ends *e)
{
	return e->raw_ns;
}

enum solve_how ends_how(const struct ends *e)
{
	return e->how;
}

int ends_new(const struct sched *s, const struct topology *t, const struct membership *m,
	     struct delay_chain *d, uint64_t op_number, const struct timing *raw, struct ends **ret,
	     struct err *err)
{
	struct ends *e = calloc(1, sizeof(*e));
	struct timing own = {0};
	int r = 0;

	if (!e)
		return err_set(err, ENOMEM, "no memory for the ends of an op");
	e->s = *s;
	e->n_refs = 1;
	price_init(&e->price, &e->s, t, m, d, op_number, err);
	if (!raw) {
		r = solve_raw(&e->s, &e->price, NULL, 0, &own, err);
		raw = &own;
	}
	if (r) {
		ends_free(e);
		return r;
	}
	e->raw_ns = raw->end_ns;
	e->how = raw->how;
	e->is_whole = raw->is_of_model;
	e->price.is_comparing = false;
	e->has_form = delay_is_uniform(d);
	*ret = e;
	return 0;
}

static uint32_t hop_of(void *ctx, uint32_t src, uint32_t dst)
{
	return price_hop(ctx, src, dst);
}

static int by_ring(struct ends *e, struct symmetry *y, const double *arrive, const double *busy,
		   double *ret_end, double *ret_busy, struct err *err)
{
	int r = e->ring ? 0 : ends_ring_new(y, e->raw_ns, &e->ring, err);

	return r ? r : ends_ring_solve(e->ring, y, arrive, busy, ret_end, ret_busy, err);
}

static int by_pipe(struct ends *e, struct symmetry *y, const double *arrive, const double *busy,
		   double *ret_end, double *ret_busy, struct err *err)
{
	struct sim_ranks ranks = {.start_ns = arrive,
				  .busy_ns = busy,
				  .buffered = sim_buffered(&e->s),
				  .end_ns = ret_end,
				  .free_ns = ret_busy};

	memcpy(ret_end, arrive, e->s.n_ranks * sizeof(*ret_end));
	memset(ret_busy, 0, e->s.n_ranks * sizeof(*ret_busy));
	y->ranks = &ranks;
	return symmetry_pipe(y, err);
}

/* Return: 0; SYMMETRY_NONE; negative. */
static int by_form(struct ends *e, const double *arrive, const double *busy, double *ret_end,
		   double *ret_busy, struct err *err)
{
	struct sim_cost cost = price_cost(&e->price);
	struct symmetry y = {.s = &e->s,
			     .cost = &cost,
			     .hop = hop_of,
			     .ctx = &e->price,
			     .n_nodes = e->price.n_nodes};

	if (!e->has_form || e->s.n_ranks < 2)
		return SYMMETRY_NONE;
	switch (e->s.algo) {
	case SCHED_RING:
		return by_ring(e, &y, arrive, busy, ret_end, ret_busy, err);
	case SCHED_TREE:
	case SCHED_CHAIN:
		return by_pipe(e, &y, arrive, busy, ret_end, ret_busy, err);
	case SCHED_DIRECT:
	case SCHED_ALGOS:
	default:
		return SYMMETRY_NONE;
	}
}

/* Without looking whether all arrive together. */
static int solve_apart(struct ends *e, const double *arrive, const double *busy, double *ret_end,
		       double *ret_busy, struct err *err)
{
	struct sim_cost cost = price_cost(&e->price);
	int r;

	if (e->is_whole) {
		ends_whole(&e->s, e->raw_ns, arrive, busy, ret_end, ret_busy);
		return 0;
	}
	e->price.err = err;
	e->how = SOLVE_SYMMETRY;
	r = by_form(e, arrive, busy, ret_end, ret_busy, err);
	if (r != SYMMETRY_NONE)
		return r;
	e->has_form = false;
	e->how = SOLVE_SIM;
	if (sched_total_messages(&e->s) > MAX_SIMULATED) {
		e->how = SOLVE_OP;
		if (e->s.kind == COLL_ALLTOALL)
			return ends_alltoall(&e->s, e->raw_ns, arrive, busy, ret_end, ret_busy,
					     err);
		ends_whole(&e->s, e->raw_ns, arrive, busy, ret_end, ret_busy);
		return 0;
	}
	return ends_sim(&e->sim, &e->s, &cost, fmax(e->raw_ns, 1) / QUANTA, arrive, busy, ret_end,
			ret_busy, err);
}

/* Ends and ports when all arrive together, and ports for a caller who wants none. */
static int make_room(struct ends *e, struct err *err)
{
	if (!e->together)
		e->together = malloc(3 * (size_t)e->s.n_ranks * sizeof(*e->together));
	return e->together
		       ? 0
		       : err_set(err, ENOMEM, "no memory for the ends of %u ranks", e->s.n_ranks);
}

static int find_together(struct ends *e, struct err *err)
{
	uint32_t n = e->s.n_ranks, r;
	CLEANUP(freep) double *zero = NULL;
	int result = 0;

	if (e->has_together)
		return 0;
	result = make_room(e, err);
	if (result)
		return result;
	zero = calloc(n, sizeof(*zero));
	if (!zero)
		return err_set(err, ENOMEM, "no memory for the ends of %u ranks", n);
	result = solve_apart(e, zero, NULL, e->together, e->together + n, err);
	if (result)
		return result;
	e->first_ns = INFINITY;
	e->last_ns = 0;
	for (r = 0; r < n; r++) {
		e->first_ns = fmin(e->first_ns, e->together[r]);
		e->last_ns = fmax(e->last_ns, e->together[r]);
	}
	e->has_together = true;
	return 0;
}

int ends_together(struct ends *e, double *ret_first, double *ret_last, struct err *err)
{
	int r = find_together(e, err);

	if (r)
		return r;
	*ret_first = e->first_ns;
	*ret_last = e->last_ns;
	return 0;
}

static bool is_together(uint32_t n, const double *arrive, const double *busy)
{
	uint32_t r;

	if (isinf(arrive[0]))
		return false;
	for (r = 0; r < n; r++)
		if (arrive[r] != arrive[0] || (busy && busy[r] > arrive[r]))
			return false;
	return true;
}

static void shift(const struct ends *e, double by_ns, double *ret_end, double *ret_busy)
{
	uint32_t n = e->s.n_ranks, r;

	for (r = 0; r < n; r++) {
		ret_end[r] = by_ns + e->together[r];
		ret_busy[r] = by_ns + e->together[n + r];
	}
}

int ends_solve(struct ends *e, const double *arrive, const double *busy, double extra_ns,
	       double *ret_end, double *ret_busy, struct err *err)
{
	uint32_t n = e->s.n_ranks, r;
	bool all = is_together(n, arrive, busy);
	int result = all ? find_together(e, err) : make_room(e, err);

	if (result)
		return result;
	if (!ret_busy)
		ret_busy = e->together + 2 * (size_t)n;
	if (all)
		shift(e, arrive[0], ret_end, ret_busy);
	else
		result = solve_apart(e, arrive, busy, ret_end, ret_busy, err);
	for (r = 0; r < n && !result && extra_ns != 0; r++) {
		ret_end[r] = fmax(arrive[r], ret_end[r] + extra_ns);
		ret_busy[r] = fmax(arrive[r], ret_busy[r] + extra_ns);
	}
	return result;
}
