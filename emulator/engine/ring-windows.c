/* See ring-windows.h. Message m out of place r is ready when message m - slices is there from the
 * place before and message m-1 has left r. So when it is ready is the latest of many paths, message
 * after message, either over the port to the next place (occupancy + latency) or to the next
 * message of the same port (occupancy). Where all messages have the same bytes, a path of K
 * messages over d hops takes the hops' occupancies and latencies and K - d * slices times the
 * largest occupancy of a port on it:
 *
 *   ready(r, K) = max over d of  ready(r - d, 0) + C(r) - C(r - d)
 *                                + (K - d * slices) * M(r - d .. r)
 *
 * C: sum of occupancy + latency along the ring, which goes on round after round. M is one of a few
 * numbers, the slopes. For each the term falls into one part for r and one for r - d, and d moves
 * in a window along the ring: the largest in a sliding window, O(n). Of places that are on a path
 * more than once either the first or the last time counts, because more rounds cost the same each.
 */
#include "engine/ring-windows.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct window {
	double *value; /* falling; owned: 3n */
	int64_t *at;   /* owned: 3n */
	uint32_t head, tail;
	int64_t next; /* place on the line of places, round after round */
	uint32_t place;
	double way; /* C() of the round */
};

struct ring_windows {
	uint32_t n;
	double *way;          /* owned: n + 1, C() */
	double *next;         /* owned: n */
	struct window window; /* of the slope in work */
};

int ring_windows_new(uint32_t n, struct ring_windows **ret)
{
	struct ring_windows *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->n = n;
	w->way = calloc((size_t)n + 1, sizeof(*w->way));
	w->next = malloc(n * sizeof(*w->next));
	w->window.value = malloc(3 * (size_t)n * sizeof(*w->window.value));
	w->window.at = malloc(3 * (size_t)n * sizeof(*w->window.at));
	if (!w->way || !w->next || !w->window.value || !w->window.at) {
		ring_windows_free(w);
		return -ENOMEM;
	}
	*ret = w;
	return 0;
}

struct ring_windows *ring_windows_free(struct ring_windows *w)
{
	if (w) {
		free(w->way);
		free(w->next);
		free(w->window.value);
		free(w->window.at);
		free(w);
	}
	return NULL;
}

/* The next windows start at @from. */
static void window_start(const struct ring_windows *g, struct window *w, int64_t from)
{
	int64_t n = g->n, round = from / n - (from % n < 0);

	w->head = w->tail = 0;
	w->next = from;
	w->place = (uint32_t)(from - round * n);
	w->way = (double)round * g->way[n];
}

/* The largest ready - C + place * slope from @low to @high, which only grow; -INFINITY: none. */
static double window_max(const struct ring_windows *g, struct window *w, const double *ready,
			 double slope, int64_t low, int64_t high)
{
	for (; w->next <= high; w->next++) {
		double v = ready[w->place] - w->way - g->way[w->place] + (double)w->next * slope;

		while (w->tail > w->head && w->value[w->tail - 1] <= v)
			w->tail--;
		w->value[w->tail] = v;
		w->at[w->tail++] = w->next;
		if (++w->place == g->n) {
			w->place = 0;
			w->way += g->way[g->n];
		}
	}
	while (w->head < w->tail && w->at[w->head] < low)
		w->head++;
	return w->head < w->tail ? w->value[w->head] : -INFINITY;
}

/* The last places of each kind, up to the one in work: with more than the slope, and with it. */
struct last {
	int64_t above, same;
};

static void look_at(struct last *l, double occupancy, double slope, int64_t place)
{
	if (occupancy > slope)
		l->above = place;
	else if (occupancy == slope)
		l->same = place;
}

/* Paths on which no port is busier than @slope, and one is as busy. */
static void pass_slope(struct ring_windows *g, const struct ring_hops *h,
		       const struct ring_costs *c, uint32_t slices, uint64_t k, double slope,
		       const double *ready)
{
	int64_t n = g->n, m = (int64_t)(k / slices), none = -2 * n;
	bool more_rounds = g->way[n] > (double)n * slices * slope;
	struct last l = {none, none};

	for (int64_t r = 0; r < n; r++) /* in the round before */
		look_at(&l, c->occupancy[h->of[r]], slope, r - n);
	for (int64_t r = 0; r < n; r++) {
		int64_t low = r - m, high;
		double late;

		look_at(&l, c->occupancy[h->of[r]], slope, r);
		high = l.same;
		if (l.above > none)
			low = low > l.above ? low : l.above + 1;
		else if (more_rounds)
			high = low + n - 1 < high ? low + n - 1 : high;
		else
			low = low > l.same - n + 1 ? low : l.same - n + 1;
		if (r == 0)
			window_start(g, &g->window, low);
		late = window_max(g, &g->window, ready, slices * slope, low, high) + g->way[r] +
		       ((double)k - (double)r * slices) * slope;
		g->next[r] = late > g->next[r] ? late : g->next[r];
	}
}

static bool is_first_of(const struct ring_costs *c, uint32_t class)
{
	for (uint32_t i = 0; i < class; i++)
		if (c->occupancy[i] == c->occupancy[class])
			return false;
	return true;
}

void ring_windows_pass(struct ring_windows *g, const struct ring_hops *h,
		       const struct ring_costs *c, uint32_t slices, uint64_t k, double *ready)
{
	if (!k)
		return;
	for (uint32_t r = 0; r < g->n; r++) {
		g->way[r + 1] = g->way[r] + c->occupancy[h->of[r]] + c->latency[h->of[r]];
		g->next[r] = -INFINITY;
	}
	for (uint32_t i = 0; i < h->n; i++)
		if (is_first_of(c, i))
			pass_slope(g, h, c, slices, k, c->occupancy[i], ready);
	memcpy(ready, g->next, g->n * sizeof(*ready));
}
