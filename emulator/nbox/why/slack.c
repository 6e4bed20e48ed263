/* See slack.h. What an iteration takes never falls as ops take longer: the slack is found by
 * halves. */
#include "nbox/why/slack.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "schedule/coll.h"

#define HALVES 24         /* of an iteration of a second: 60 ns */
#define NEARLY (1 + 1e-3) /* as long */

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

double slack_iteration(const struct chain *c, const struct why *w, const struct why_slack *s,
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

/* The most that ops may take more for an iteration to grow by no more than nothing, or, with
 * @may_show, than one of them has beyond its slack. */
static double most(const struct chain *c, const struct slack_step *steps, uint64_t n,
		   const struct why *w, const struct why_slack *s, bool may_show)
{
	double base = slack_iteration(c, w, s, steps, n, 0), low = 0, high = 2 * base;

	for (int i = 0; i <= HALVES; i++) {
		double at = i ? (low + high) / 2 : high;
		double shown = may_show ? fmax(0, at - s->ns) : 0;

		if (slack_iteration(c, w, s, steps, n, at) > base * NEARLY + shown)
			high = at;
		else if (i == 0)
			return INFINITY;
		else
			low = at;
	}
	return low;
}

int slack_find(const struct chain *c, const struct slack_step *steps, uint64_t n, struct why *w)
{
	CLEANUP(freep)
	double *count = calloc((size_t)(w->n_groups + 1) * COLL_KINDS, sizeof(*count));

	w->slacks = calloc((size_t)(w->n_groups + 1) * COLL_KINDS, sizeof(*w->slacks));
	if (!count || !w->slacks)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++)
		for (uint32_t k = steps[i].from; k < steps[i].to; k++)
			if (c->rows[k].op)
				count[why_group_of(w, c->rows[k].op->comm) * COLL_KINDS +
				      c->rows[k].op->kind] += 1 / (double)n;
	for (uint32_t i = 0; i < w->n_groups * COLL_KINDS; i++) {
		struct why_slack s = {.group = i / COLL_KINDS, .op = i % COLL_KINDS, .n = count[i]};

		if (count[i] == 0)
			continue;
		s.ns = most(c, steps, n, w, &s, false);
		s.knee_ns = isinf(s.ns) ? INFINITY : most(c, steps, n, w, &s, true);
		w->slacks[w->n_slacks++] = s;
	}
	return 0;
}
