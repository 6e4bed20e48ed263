/* See knee.h. */
#include "nbox/sweep/knee.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbox/sweep/curve.h"
#include "nbox/why/why.h"
#include "schedule/coll.h"

struct ask {
	const struct sweep *s;
	size_t point;
	char op[32]; /* that the delay is added to */
};

/* The configuration of the point. */
static int make(void *ctx, struct config **ret, struct err *err)
{
	const struct ask *a = ctx;

	return point_options(a->s, a->point, ret, err);
}

/* The point without a delay. Return: false: there is none, or the sweep has another axis. */
static bool find_point(const struct grid *g, size_t axis, struct ask *a)
{
	const char *unit = "";
	double x;

	for (a->point = 0; a->point < g->n_points; a->point++)
		if (value_number(grid_value(g, a->point, axis), &x, &unit) == 0 && x == 0)
			break;
	return a->point < g->n_points && g->axes[axis].values.n == g->n_points &&
	       strcmp(unit, "ms") == 0;
}

/* Return: the axis is the delay of such a what-if, and nothing else of it; a->op is its. */
static bool find_op(const struct grid *g, size_t axis, struct ask *a)
{
	for (const struct term *t = g->terms; t < g->terms + g->n_terms; t++) {
		char *const *around = t->parts.list;
		int n = 0;

		if (t->n_axes == 1 && t->first_axis == axis && strcmp(t->option, "--what-if") == 0)
			return !around[1][0] &&
			       sscanf(around[0], "add:op=%31[^,],delay=%n", a->op, &n) == 1 && n &&
			       !around[0][n];
	}
	return false;
}

int knee_find(const struct sweep *s, size_t axis, struct knee *ret)
{
	CLEANUP(why_deinit) struct why w = {.n_timed = 0};
	struct ask ask = {.s = s};
	const struct why_config from = {.make = make, .ctx = &ask, .skips_won = true};
	const struct why_slack *of = NULL;
	int r;

	if (!s->run || axis == CURVE_NO_AXIS || !find_point(&s->grid, axis, &ask) ||
	    !find_op(&s->grid, axis, &ask))
		return 0;
	r = why_make(s->run, &from, &w, NULL);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* no two ops */
	for (uint32_t i = 0; i < w.n_slacks; i++) {
		if (w.slacks[i].rank != w.rank ||
		    strcasecmp(coll_kind_name(w.slacks[i].op), ask.op) != 0)
			continue;
		if (of)
			return 0; /* of several communicators */
		of = &w.slacks[i];
	}
	if (!of || isinf(of->knee_ns))
		return 0;
	*ret = (struct knee){.is_known = true, .ms = of->knee_ns / 1e6, .n_ops = of->n};
	snprintf(ret->ops, sizeof(ret->ops), "%s of %.60s", coll_kind_name(of->op),
		 w.groups[of->group].name);
	return 0;
}

char *knee_text(const struct knee *k, char *buf, size_t size)
{
	snprintf(buf, size, "%.3f ms by nbox why: up to there computation hides most of a delay",
		 k->ms);
	return buf;
}

char *knee_paid_text(const struct knee *k, double delay_ms, double paid_ms, char *buf, size_t size)
{
	snprintf(buf, size, "%.1f ms an iteration of %.3g ms on each of %.3g %s; %.1f are hidden",
		 paid_ms, delay_ms, k->n_ops, k->ops, k->n_ops * delay_ms - paid_ms);
	return buf;
}
