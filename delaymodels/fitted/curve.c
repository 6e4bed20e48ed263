/* See curve.h. */
#include "curve.h"

#include <math.h>
#include <stdlib.h>

#include "nbox-delaymodel.h"

const char *const curve_form_names[CURVE_FORMS] = {"alphabeta", "sigmoid", "table"};

void curve_deinit(struct curve *c)
{
	free(c->knots);
	free(c->points);
	c->knots = c->points = NULL;
	c->n_knots = c->n_points = 0;
}

double curve_wire_factor(uint32_t kind, uint32_t n_ranks)
{
	double n = n_ranks;

	switch (kind) {
	case NBOX_ALLREDUCE:
		return 2 * (n - 1) / n;
	case NBOX_ALLGATHER:
	case NBOX_REDUCESCATTER:
	case NBOX_ALLTOALL:
	case NBOX_GATHER:
	case NBOX_SCATTER:
		return (n - 1) / n;
	default:
		return 1;
	}
}

double curve_middle_ns(const struct curve *c, double bytes)
{
	double x = log2(bytes);

	return bytes / pow(10, c->L / (1 + exp(-c->k * (x - c->x0))) + c->b);
}

/* Between two points, both axes logarithmic. */
static double between(double x0, double y0, double x1, double y1, double x)
{
	return y0 * pow(y1 / y0, log(x / x0) / log(x1 / x0));
}

static double line_ns(const struct curve *c, double bytes)
{
	return c->latency_ns + bytes / c->bytes_per_ns;
}

/* The first two parts: up to m2. */
static double below_ns(const struct curve *c, double bytes)
{
	double top = fmin(2 * c->m1, c->m2), ns;

	if (bytes <= c->m1)
		return c->latency_ns;
	ns = fmax(curve_middle_ns(c, fmax(bytes, top)), c->latency_ns);
	return bytes >= top ? ns : between(c->m1, c->latency_ns, top, ns, bytes);
}

static double sigmoid_ns(const struct curve *c, double bytes)
{
	double at_m2;

	if (bytes <= c->m2)
		return below_ns(c, bytes);
	at_m2 = below_ns(c, c->m2);
	if (bytes >= 2 * c->m2)
		return fmax(line_ns(c, bytes), at_m2);
	return between(c->m2, at_m2, 2 * c->m2, fmax(line_ns(c, 2 * c->m2), at_m2), bytes);
}

static double table_ns(const struct curve *c, double bytes)
{
	const struct curve_point *p = c->knots;
	size_t low = 0, high = c->n_knots - 1;

	if (bytes <= p[0].bytes)
		return p[0].ns;
	if (bytes >= p[high].bytes)
		return p[high].ns * (bytes / p[high].bytes);
	while (high - low > 1) { /* p[low] < bytes < p[high] */
		size_t mid = low + (high - low) / 2;

		if (p[mid].bytes < bytes)
			low = mid;
		else
			high = mid;
	}
	return p[low].ns +
	       (p[high].ns - p[low].ns) * (bytes - p[low].bytes) / (p[high].bytes - p[low].bytes);
}

double curve_ns(const struct curve *c, double bytes)
{
	if (c->form == CURVE_TABLE)
		return table_ns(c, bytes);
	return c->form == CURVE_SIGMOID ? sigmoid_ns(c, bytes) : line_ns(c, bytes);
}
