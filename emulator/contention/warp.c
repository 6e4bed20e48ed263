/* See warp.h. */
#include "contention/warp.h"

#include <errno.h>
#include <stdlib.h>

void warp_deinit(struct warp *w)
{
	free(w->bends);
	*w = (struct warp){0};
}

int warp_bend(struct warp *w, double at, double done)
{
	if (w->n == w->capacity) {
		uint32_t capacity = w->capacity ? 2 * w->capacity : 4;
		struct warp_bend *bends = realloc(w->bends, capacity * sizeof(*bends));

		if (!bends)
			return -ENOMEM;
		w->bends = bends;
		w->capacity = capacity;
	}
	w->bends[w->n++] = (struct warp_bend){at, done};
	return 0;
}

/* Through two points, at @x. */
static double line(double x0, double y0, double x1, double y1, double x)
{
	return x1 > x0 ? y0 + (y1 - y0) * ((x - x0) / (x1 - x0)) : y1;
}

uint32_t warp_before(const struct warp *w, double at)
{
	uint32_t i = w->n - 1;

	while (i > 0 && w->bends[i].at >= at)
		i--;
	return i;
}

double warp_done(const struct warp *w, double at)
{
	const struct warp_bend *b = &w->bends[warp_before(w, at)];

	if (at <= b->at || b == &w->bends[w->n - 1])
		return b->done;
	return line(b->at, b->done, b[1].at, b[1].done, at);
}

double warp_at(const struct warp *w, double done)
{
	const struct warp_bend *b = w->bends, *last = &b[w->n - 1];
	uint32_t i = 1;

	if (done <= b[0].done)
		return b[0].at + (done - b[0].done);
	if (done >= last->done)
		return last->at + (done - last->done);
	while (b[i].done < done)
		i++;
	return line(b[i - 1].done, b[i - 1].at, b[i].done, b[i].at, done);
}

double warp_move(const struct warp *from, const struct warp *to, double at)
{
	double start = from->bends[0].at, end = warp_end(from);

	if (at <= start)
		return at - start + to->bends[0].at;
	if (at >= end)
		return at - end + warp_end(to);
	return warp_at(to, warp_done(from, at));
}

int warp_cut(struct warp *w, double at)
{
	double done = warp_done(w, at);

	if (at >= warp_end(w))
		return 0;
	while (w->n > 1 && w->bends[w->n - 1].at >= at)
		w->n--;
	return at > w->bends[w->n - 1].at ? warp_bend(w, at, done) : 0;
}
