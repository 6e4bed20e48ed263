/* See curve.h. */
#include "nbox/sweep/curve.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"

size_t curve_axis(const struct grid *g, const char **ret_unit)
{
	size_t best = CURVE_NO_AXIS, best_n = 1;

	for (size_t i = 0; i < g->n_axes; i++) {
		const struct values *v = &g->axes[i].values;
		const char *unit = NULL, *own;
		double x;
		size_t n = 0;

		while (n < v->n && value_number(v->list[n], &x, &own) == 0 &&
		       (!unit || strcmp(unit, own) == 0)) {
			unit = own;
			n++;
		}
		if (n == v->n && n > best_n) {
			best = i;
			best_n = n;
			*ret_unit = unit;
		}
	}
	return best;
}

struct at {
	double x, y;
	size_t point;
};

static int by_x(const void *pa, const void *pb)
{
	const struct at *a = pa, *b = pb;

	return (a->x > b->x) - (a->x < b->x);
}

static double slope(const struct at *a, const struct at *b)
{
	return (b->y - a->y) / fabs(b->x - a->x);
}

/* Return: where the slope sets in, from the end where the curve is low; @n: nowhere. */
static size_t find_knee(struct at *c, size_t n)
{
	double steepest = 0;
	size_t i = 0;

	if (n < 3)
		return n;
	qsort(c, n, sizeof(*c), by_x);
	if (c[0].y > c[n - 1].y)
		for (size_t k = 0; k < n / 2; k++) {
			struct at other = c[k];

			c[k] = c[n - 1 - k];
			c[n - 1 - k] = other;
		}
	if (c[n - 1].y < 1.02 * c[0].y)
		return n;
	for (size_t k = 0; k + 1 < n; k++)
		steepest = fmax(steepest, slope(&c[k], &c[k + 1]));
	while (slope(&c[i], &c[i + 1]) < steepest / 2)
		i++;
	return i ? i : n;
}

int curve_knees(const struct grid *g, const struct point_result *results, size_t axis, bool *ret)
{
	size_t n_values = g->axes[axis].values.n, stride = 1;
	CLEANUP(freep) struct at *curve = calloc(n_values, sizeof(*curve));
	const char *unit;

	if (!curve)
		return -ENOMEM;
	for (size_t i = axis + 1; i < g->n_axes; i++)
		stride *= g->axes[i].values.n;
	for (size_t first = 0; first < g->n_points; first++) {
		size_t n = 0, knee;

		if (first / stride % n_values != 0)
			continue;
		for (size_t i = 0; i < n_values; i++) {
			size_t point = first + i * stride;

			if (results[point].state == POINT_DONE && results[point].has_steps) {
				value_number(grid_value(g, point, axis), &curve[n].x, &unit);
				curve[n].y = results[point].p50;
				curve[n++].point = point;
			}
		}
		knee = find_knee(curve, n);
		if (knee < n)
			ret[curve[knee].point] = true;
	}
	return 0;
}
