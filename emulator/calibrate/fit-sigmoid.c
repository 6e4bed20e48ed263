/* See fit-sigmoid.h. */
#include "calibrate/fit-sigmoid.h"

#include <math.h>

#define POINTS_MIN 8
#define MIDDLE_MIN 4
#define SATURATED 0.95
#define GROWS 0.10 /* an octave */
#define L_MAX 10
#define K_MIN 0.05
#define K_MAX 3
#define GRID 33

/* The middle region: bandwidth (decades of bytes/ns) by octaves of bytes. */
struct middle {
	const struct curve_point *points;
	size_t n;
};

struct trial {
	double x0, k, L, b, cost;
};

static double bandwidth(const struct curve_point *p)
{
	return p->bytes / p->ns;
}

/* The best L and b for t->x0 and t->k. */
static void project(const struct middle *m, struct trial *t)
{
	double n = (double)m->n, s = 0, y = 0, ss = 0, sy = 0, det;

	for (size_t i = 0; i < m->n; i++) {
		double si = 1 / (1 + exp(-t->k * (log2(m->points[i].bytes) - t->x0)));
		double yi = log10(bandwidth(&m->points[i]));

		s += si;
		y += yi;
		ss += si * si;
		sy += si * yi;
	}
	det = n * ss - s * s;
	t->L = det > 1e-12 ? (n * sy - s * y) / det : 0;
	t->L = fmax(1e-6, fmin(t->L, fmin(L_MAX, CURVE_STEEPEST / t->k)));
	t->b = (y - t->L * s) / n;
	t->cost = 0;
	for (size_t i = 0; i < m->n; i++) {
		double si = 1 / (1 + exp(-t->k * (log2(m->points[i].bytes) - t->x0)));
		double d = t->L * si + t->b - log10(bandwidth(&m->points[i]));

		t->cost += d * d;
	}
}

/* Takes the trial at @x0 and @k if it is better. Return: whether it was. */
static int try(const struct middle *m, double x0, double k, double x_low, double x_high,
	       struct trial *best)
{
	struct trial t = {.x0 = fmax(x_low, fmin(x0, x_high)), .k = fmax(K_MIN, fmin(k, K_MAX))};

	project(m, &t);
	if (!(t.cost < best->cost))
		return 0;
	*best = t;
	return 1;
}

static struct trial search(const struct middle *m)
{
	double low = log2(m->points[0].bytes) - 4, high = log2(m->points[m->n - 1].bytes) + 4;
	double dx = (high - low) / (GRID - 1), dk = log(K_MAX / K_MIN) / (GRID - 1);
	struct trial best = {.cost = INFINITY};

	for (int i = 0; i < GRID; i++)
		for (int j = 0; j < GRID; j++)
			try(m, low + i * dx, K_MIN * exp(j * dk), low, high, &best);
	while (dx > 1e-7) {
		struct trial at = best;
		int is_better = try(m, at.x0 + dx, at.k, low, high, &best);

		is_better |= try(m, at.x0 - dx, at.k, low, high, &best);
		is_better |= try(m, at.x0, at.k * exp(dk), low, high, &best);
		is_better |= try(m, at.x0, at.k * exp(-dk), low, high, &best);
		if (!is_better) {
			dx /= 2;
			dk /= 2;
		}
	}
	return best;
}

/* Where region 3 begins; sets its bandwidth. */
static void find_m2(struct curve *c, const struct curve_point *p, size_t n)
{
	size_t i = n - 1;

	c->bytes_per_ns = 0;
	for (size_t j = 0; j < n; j++)
		c->bytes_per_ns = fmax(c->bytes_per_ns, bandwidth(&p[j]));
	while (i > 0 && bandwidth(&p[i]) >= SATURATED * c->bytes_per_ns)
		i--;
	c->m2 = fmin(4 * p[i].bytes, p[n - 1].bytes);
}

/* Where region 1 ends; sets the latency. */
static void find_m1(struct curve *c, const struct curve_point *p, size_t n)
{
	size_t end = 4; /* where time grows nowhere */

	for (size_t i = n / 4 < 5 ? n / 4 : 5; i + 1 < n; i++) {
		double octaves = log2(p[i + 1].bytes / p[i - 1].bytes);

		if (fabs(p[i + 1].ns - p[i - 1].ns) / octaves / p[i].ns > GROWS) {
			end = i - 1;
			break;
		}
	}
	c->m1 = p[end].bytes;
	c->latency_ns = p[end ? end - 1 : 0].ns;
}

bool fit_sigmoid(struct curve *c, const struct curve_point *points, size_t n)
{
	struct middle m = {.points = points};
	struct trial best;

	if (n < POINTS_MIN)
		return false;
	find_m2(c, points, n);
	find_m1(c, points, n);
	while (m.points < points + n && m.points->bytes < c->m1)
		m.points++;
	while (m.points + m.n < points + n && m.points[m.n].bytes <= c->m2)
		m.n++;
	if (m.n < MIDDLE_MIN || c->m1 >= c->m2)
		return false;
	best = search(&m);
	c->x0 = best.x0;
	c->k = best.k;
	c->L = best.L;
	c->b = best.b;
	return true;
}
