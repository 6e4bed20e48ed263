/* How far an op is at each time, when its speed changes: a line that bends. Where it does nothing
 * it would be done in @solo; an op that shares its links is later. */
#pragma once

#include <stdint.h>

struct warp_bend {
	double at, done; /* virtual time; of the solo time, from 0 to it */
};

struct warp {
	struct warp_bend *bends; /* owned; the first is the start, the last the end */
	uint32_t n, capacity;
};

void warp_deinit(struct warp *w);
/* Appends a bend. Return: 0; -ENOMEM. */
int warp_bend(struct warp *w, double at, double done);
static inline double warp_end(const struct warp *w)
{
	return w->bends[w->n - 1].at;
}

/* From the start to the end. */
static inline double warp_span(const struct warp *w)
{
	return warp_end(w) - w->bends[0].at;
}

/* The last bend before @at; else the first. Asked for late times mostly. */
uint32_t warp_before(const struct warp *w, double at);
/* How far it is at @at: no more than at the last bend. */
double warp_done(const struct warp *w, double at);
/* When it is that far: before the start as long before, behind the end as long behind. */
double warp_at(const struct warp *w, double done);
/* When that happens by @to which happened at @at by @from. */
double warp_move(const struct warp *from, const struct warp *to, double at);
/* Forgets what lies behind @at, which becomes the last bend. Return: 0; -ENOMEM. */
int warp_cut(struct warp *w, double at);
