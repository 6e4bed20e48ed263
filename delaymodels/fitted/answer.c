/* What a fitted model answers. See fitted-file.h. */
#include <math.h>
#include <string.h>

#include "fitted-file.h"
#include "nbox-delaymodel.h"

/* The curves of one kind that speak of an op: those of one node for an op inside a node, those of
 * several for others; where there are none of its sort, all. */
struct choice {
	uint32_t kind;
	int is_one_node;
	int is_any; /* of the two sorts */
};

static int fits(const struct choice *w, const struct curve *c)
{
	return c->kind == w->kind && (w->is_any || (c->n_nodes == 1) == w->is_one_node);
}

/* How many times @bytes lies outside what was measured. */
static double bytes_beyond(const struct curve *c, double bytes)
{
	double low = c->points[0].bytes, high = c->points[c->n_points - 1].bytes;

	return bytes > high ? bytes / high : bytes < low ? low / fmax(bytes, 1) : 1;
}

/* The time of @n_ranks: the fastest protocol's, of those that were measured nearest to @bytes. */
static double at_ranks(const struct fitted *f, const struct choice *w, uint32_t n_ranks,
		       double bytes, double *ret_beyond)
{
	double ns = INFINITY, beyond = INFINITY;

	for (size_t i = 0; i < f->n; i++) {
		const struct curve *c = &f->curves[i];
		double d, t;

		if (!fits(w, c) || c->n_ranks != n_ranks)
			continue;
		d = bytes_beyond(c, bytes);
		t = curve_ns(c, bytes);
		if (d < beyond || (d == beyond && t < ns)) {
			beyond = d;
			ns = t;
		}
	}
	*ret_beyond = beyond;
	return ns;
}

/* The nearest numbers of ranks that were measured at or below @n_ranks, and at or above. Return:
 * whether there is any; where there is none on one side, both are the other one. */
static int find_ranks(const struct fitted *f, const struct choice *w, uint32_t n_ranks,
		      uint32_t *ret_low, uint32_t *ret_high)
{
	uint32_t low = 0, high = UINT32_MAX;

	for (size_t i = 0; i < f->n; i++) {
		uint32_t n = f->curves[i].n_ranks;

		if (!fits(w, &f->curves[i]))
			continue;
		if (n <= n_ranks && n > low)
			low = n;
		if (n >= n_ranks && n < high)
			high = n;
	}
	*ret_low = low ? low : high;
	*ret_high = high < UINT32_MAX ? high : low;
	return low || high < UINT32_MAX;
}

int fitted_ns(const struct fitted *f, uint32_t kind, uint32_t n_ranks, uint32_t n_nodes,
	      double size, double *ret_ns, struct fitted_beyond *ret_beyond)
{
	struct choice w = {kind, n_nodes == 1, 0};
	double bytes = size * curve_wire_factor(kind, n_ranks), a, b, part = 0;
	struct fitted_beyond beyond = {1, 1}, other = {1, 1};
	uint32_t low, high;

	if (!find_ranks(f, &w, n_ranks, &low, &high)) {
		w.is_any = 1;
		if (!find_ranks(f, &w, n_ranks, &low, &high))
			return 1;
	}
	a = at_ranks(f, &w, low, bytes, &beyond.bytes);
	b = at_ranks(f, &w, high, bytes, &other.bytes);
	if (low < high)
		part = log((double)n_ranks / low) / log((double)high / low);
	else if (low != n_ranks)
		beyond.ranks = n_ranks > low ? (double)n_ranks / low : (double)low / n_ranks;
	beyond.bytes = fmin(beyond.bytes, other.bytes);
	*ret_ns = n_ranks > 1 ? a + (b - a) * part : 0;
	*ret_beyond = beyond;
	return 0;
}
