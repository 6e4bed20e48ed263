/* See fit.h. */
#include "calibrate/fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "calibrate/fit-sigmoid.h"
#include "schedule/coll.h"

#define FOLDS 5

/* Least squares of the relative errors; neither latency nor time a byte is negative. */
static int fit_line(struct curve *c, const struct curve_point *p, size_t n)
{
	double s = 0, x = 0, xx = 0, y = 0, xy = 0, det, a, b;

	for (size_t i = 0; i < n; i++) { /* t / t = a / t + b x / t */
		double u = 1 / p[i].ns, v = p[i].bytes / p[i].ns;

		s += u * u;
		x += u * v;
		xx += v * v;
		y += u;
		xy += v;
	}
	det = s * xx - x * x;
	if (n < 2 || !(det > 0))
		return FIT_IMPOSSIBLE;
	a = (xx * y - x * xy) / det;
	b = (s * xy - x * y) / det;
	if (a < 0) {
		a = 0;
		b = xy / xx;
	}
	if (!(b > 0))
		return FIT_IMPOSSIBLE;
	c->latency_ns = a;
	c->bytes_per_ns = 1 / b;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The logarithm of the middle time of @n points. @room: for as many. */
static double middle(const struct curve_point *points, size_t n, double *room)
{
	for (size_t i = 0; i < n; i++)
		room[i] = log(points[i].ns);
	qsort(room, n, sizeof(*room), by_time);
	return (room[(n - 1) / 2] + room[n / 2]) / 2;
}

/* A knot at each point. Where a larger size took less time, the sizes between share the median of
 * their times (pool adjacent violators): so a first launch, which takes long, moves no other. */
static int fit_table(struct curve *c, const struct curve_point *points, size_t n)
{
	struct curve_point *knots = calloc(n, sizeof(*knots));
	CLEANUP(freep) size_t *ends = calloc(n, sizeof(*ends));
	CLEANUP(freep) double *room = calloc(n, sizeof(*room));
	CLEANUP(freep) double *times = calloc(n, sizeof(*times));
	size_t n_blocks = 0;

	if (!knots || !ends || !room || !times) {
		free(knots);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		times[n_blocks] = log(points[i].ns);
		ends[n_blocks++] = i + 1;
		for (; n_blocks > 1 && times[n_blocks - 2] > times[n_blocks - 1]; n_blocks--) {
			size_t first = n_blocks > 2 ? ends[n_blocks - 3] : 0;

			ends[n_blocks - 2] = i + 1;
			times[n_blocks - 2] = middle(points + first, i + 1 - first, room);
		}
	}
	for (size_t i = 0, block = 0; i < n; i++) {
		block += i == ends[block];
		knots[i] = (struct curve_point){points[i].bytes, exp(times[block])};
	}
	free(c->knots);
	c->knots = knots;
	c->n_knots = n;
	return 0;
}

int fit_form(struct curve *c, enum curve_form form, const struct curve_point *points, size_t n)
{
	int r = FIT_IMPOSSIBLE;

	if (n >= 2 && form == CURVE_TABLE)
		r = fit_table(c, points, n);
	else if (form == CURVE_SIGMOID)
		r = fit_sigmoid(c, points, n) ? 0 : FIT_IMPOSSIBLE;
	else if (form == CURVE_ALPHABETA)
		r = fit_line(c, points, n);
	if (r == 0)
		c->form = form;
	return r;
}

/* Fits to what is not in @fold and adds the errors at what is. */
static int try_fold(const struct curve *c, enum curve_form form, size_t fold,
		    struct curve_point *rest, struct score_sum *sum)
{
	struct curve trial = {.kind = c->kind, .n_ranks = c->n_ranks};
	size_t n = 0;
	int r;

	for (size_t i = 0; i < c->n_points; i++)
		if (i % FOLDS != fold || i == 0 || i + 1 == c->n_points)
			rest[n++] = c->points[i];
	r = fit_form(&trial, form, rest, n);
	for (size_t i = 1; r == 0 && i + 1 < c->n_points; i++)
		if (i % FOLDS == fold)
			score_add(sum, curve_ns(&trial, c->points[i].bytes), c->points[i].ns);
	curve_deinit(&trial);
	return r;
}

static int hold_out(const struct curve *c, enum curve_form form, struct score *ret)
{
	CLEANUP(freep)
	struct curve_point *rest = calloc(c->n_points, sizeof(*rest));
	struct score_sum sum = {.n = 0};
	int r = rest ? 0 : -ENOMEM;

	for (size_t fold = 0; r == 0 && fold < FOLDS; fold++)
		r = try_fold(c, form, fold, rest, &sum);
	if (r == 0)
		*ret = score_of(&sum);
	return r;
}

int fit_curve(struct curve *c, enum curve_form form, struct fit_scores *ret, struct err *err)
{
	struct fit_scores s = {.held_out = {{.n = 0}}};
	enum curve_form best = form;
	int r;

	if (c->n_points < FIT_POINTS_MIN)
		return err_set(
			err, EINVAL,
			"%s of %u ranks was measured at %zu of the %d sizes that a fit needs",
			coll_kind_name(c->kind), c->n_ranks, c->n_points, FIT_POINTS_MIN);
	for (enum curve_form f = 0; f < CURVE_FORMS; f++) {
		r = hold_out(c, f, &s.held_out[f]);
		if (r < 0)
			return r;
		if (form == FIT_AUTO && s.held_out[f].n &&
		    (best == FIT_AUTO || s.held_out[f].gmae < s.held_out[best].gmae))
			best = f;
	}
	r = best == FIT_AUTO || !s.held_out[best].n ? FIT_IMPOSSIBLE
						    : fit_form(c, best, c->points, c->n_points);
	if (r < 0)
		return r;
	if (r == FIT_IMPOSSIBLE)
		return err_set(
			err, EINVAL,
			"%s of %u ranks: the %zu sizes do not make a %s; measure more sizes, "
			"or take --kind auto",
			coll_kind_name(c->kind), c->n_ranks, c->n_points,
			best < CURVE_FORMS ? curve_form_names[best] : "curve");
	c->gmae = s.held_out[best].gmae;
	c->mape = s.held_out[best].mape;
	c->max = s.held_out[best].max;
	*ret = s;
	return 0;
}
