/* See minimize.h. */
#include "calibrate/minimize.h"

#include <math.h>
#include <string.h>

struct corner {
	double x[MINIMIZE_MAX], cost;
};

struct search {
	double (*cost)(void *ctx, const double *x);
	void *ctx;
	size_t n;
	const struct minimize_bounds *bounds;
	int budget;
	double failure;                          /* negative: what the cost said */
	struct corner corners[MINIMIZE_MAX + 1]; /* the best one first */
};

static void ask(struct search *s, struct corner *c)
{
	for (size_t i = 0; i < s->n; i++)
		c->x[i] = fmax(s->bounds[i].low, fmin(c->x[i], s->bounds[i].high));
	c->cost = s->failure < 0 ? INFINITY : s->cost(s->ctx, c->x);
	s->budget--;
	if (c->cost < 0)
		s->failure = c->cost;
}

/* A place for a corner whose cost is known. */
static void put(struct search *s, size_t used, const struct corner *c)
{
	size_t i = used;

	for (; i > 0 && s->corners[i - 1].cost > c->cost; i--)
		s->corners[i] = s->corners[i - 1];
	s->corners[i] = *c;
}

/* From the middle of all but the worst corner, @by times the way from there to the worst. */
static struct corner from_worst(const struct search *s, double by)
{
	struct corner c;

	for (size_t i = 0; i < s->n; i++) {
		double middle = 0;

		for (size_t j = 0; j < s->n; j++)
			middle += s->corners[j].x[i] / (double)s->n;
		c.x[i] = middle + by * (s->corners[s->n].x[i] - middle);
	}
	return c;
}

/* All corners half the way to the best one. */
static void shrink(struct search *s)
{
	struct corner old[MINIMIZE_MAX + 1];

	memcpy(old, s->corners, sizeof(old));
	for (size_t j = 1; j <= s->n; j++) {
		for (size_t i = 0; i < s->n; i++)
			old[j].x[i] = (old[j].x[i] + old[0].x[i]) / 2;
		ask(s, &old[j]);
		put(s, j, &old[j]);
	}
}

static void step(struct search *s)
{
	struct corner mirrored = from_worst(s, -1), more;

	ask(s, &mirrored);
	if (mirrored.cost < s->corners[0].cost) {
		more = from_worst(s, -2);
		ask(s, &more);
		put(s, s->n, more.cost < mirrored.cost ? &more : &mirrored);
		return;
	}
	if (mirrored.cost < s->corners[s->n - 1].cost) {
		put(s, s->n, &mirrored);
		return;
	}
	more = from_worst(s, mirrored.cost < s->corners[s->n].cost ? -.5 : .5);
	ask(s, &more);
	if (more.cost < fmin(mirrored.cost, s->corners[s->n].cost))
		put(s, s->n, &more);
	else
		shrink(s);
}

double minimize(double (*cost)(void *ctx, const double *x), void *ctx, size_t n,
		const struct minimize_bounds *bounds, int budget, double *at)
{
	struct search s = {.cost = cost, .ctx = ctx, .n = n, .bounds = bounds, .budget = budget};

	for (size_t j = 0; j <= n; j++) {
		struct corner c = {{0}, 0};

		memcpy(c.x, at, n * sizeof(*at));
		if (j)
			c.x[j - 1] +=
				(bounds[j - 1].high > -bounds[j - 1].low ? bounds[j - 1].high
									 : bounds[j - 1].low) /
				10;
		ask(&s, &c);
		put(&s, j, &c);
	}
	while (s.budget > 0 && s.failure >= 0 &&
	       s.corners[n].cost - s.corners[0].cost > 1e-6 * s.corners[0].cost)
		step(&s);
	memcpy(at, s.corners[0].x, n * sizeof(*at));
	return s.failure < 0 ? s.failure : s.corners[0].cost;
}
