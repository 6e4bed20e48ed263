/* See slack.h. What an iteration takes never falls as ops take longer: the slack is found by
 * halves. */
#include "nbox/why/slack.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "schedule/coll.h"

#define HALVES 24         /* of an iteration of a second: 60 ns */
#define THIRDS 40         /* as near */
#define NEARLY (1 + 1e-3) /* as long */
#define MORE 1.01         /* than half, where the slope is half of it for long */

struct late {
	const struct why *w;
	const struct why_slack *s;
};

static bool is_late(const void *ctx, const struct record_op *op)
{
	const struct late *l = ctx;

	return op->kind == l->s->op && why_group_of(l->w, op->comm) == l->s->group;
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

/* The median of @n iterations of @c if each op of @s took @ns more. NAN: no memory. */
static double iteration(const struct chain *c, const struct why *w, const struct why_slack *s,
			const struct slack_step *steps, uint64_t n, double ns)
{
	CLEANUP(chain_times_deinit) struct chain_times t = {0};
	CLEANUP(chain_times_deinit) struct chain_times was = {0};
	CLEANUP(freep) double *times = malloc((n + 1) * sizeof(*times));
	const struct late late = {w, s};

	if (chain_times_make(c, &t) < 0 || chain_times_make(c, &was) < 0 || !times || !n)
		return NAN;
	chain_delayed(c, &was, is_late, &late, ns, &t);
	for (uint64_t i = 0; i < n; i++)
		times[i] = t.at[steps[i].to] - t.at[steps[i].from];
	qsort(times, n, sizeof(*times), by_value);
	return times[(n - 1) / 2];
}

/* What each op of @s taking @ns more adds to an iteration of @base. */
struct curve {
	const struct chain *c;
	const struct why *w;
	const struct slack_step *steps;
	uint64_t n;
	double base;
};

static double added(const struct curve *v, const struct why_slack *s, double ns)
{
	return iteration(v->c, v->w, s, v->steps, v->n, ns) - v->base;
}

/* The most that adds nothing. @high: adds something. */
static double free_ns(const struct curve *v, const struct why_slack *s, double high)
{
	double low = 0;

	for (int i = 0; i < HALVES; i++) {
		double at = (low + high) / 2;

		if (added(v, s, at) > v->base * (NEARLY - 1))
			high = at;
		else
			low = at;
	}
	/* nothing hides what shows at once: it is only too little to be more than nearly */
	return added(v, s, low) < low / 2 ? low : 0;
}

/* Where the curve is furthest below the line through its beginning that is half as steep as its
 * end: it turns upwards only, so that there its slope passes this half. */
static double knee_ns(const struct curve *v, const struct why_slack *s, double high)
{
	double half = MORE * (added(v, s, 2 * high) - added(v, s, high)) / high / 2, low = 0;

	for (int i = 0; i < THIRDS; i++) {
		double a = low + (high - low) / 3, b = high - (high - low) / 3;

		if (half * a - added(v, s, a) < half * b - added(v, s, b))
			low = a;
		else
			high = b;
	}
	return (low + high) / 2;
}

int slack_find(const struct chains_rank *on, const struct slack_step *steps, uint64_t n,
	       struct why *w)
{
	const struct chain *c = &on->chain;
	uint32_t n_kinds = w->n_groups * COLL_KINDS;
	struct curve v = {c, w, steps, n,
			  iteration(c, w, &(struct why_slack){.group = 0}, steps, n, 0)};
	CLEANUP(freep) double *count = calloc((size_t)n_kinds + 1, sizeof(*count));
	struct why_slack *more =
		reallocarray(w->slacks, (size_t)w->n_slacks + n_kinds + 1, sizeof(*more));

	if (more)
		w->slacks = more;
	if (!count || !more)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++)
		for (uint32_t k = steps[i].from; k < steps[i].to; k++)
			if (c->rows[k].op)
				count[why_group_of(w, c->rows[k].op->comm) * COLL_KINDS +
				      c->rows[k].op->kind] += 1 / (double)n;
	for (uint32_t i = 0; i < n_kinds; i++) {
		struct why_slack s = {.rank = on->rank,
				      .group = i / COLL_KINDS,
				      .op = i % COLL_KINDS,
				      .n = count[i]};
		double high = 2 * v.base;
		bool is_waited;

		if (count[i] == 0)
			continue;
		is_waited = added(&v, &s, high) > v.base * (NEARLY - 1);
		s.ns = is_waited ? free_ns(&v, &s, high) : INFINITY;
		s.knee_ns = is_waited ? knee_ns(&v, &s, high) : INFINITY;
		w->slacks[w->n_slacks++] = s;
	}
	return 0;
}
