/* When a what-if holds: from=, for= and every= of its text.
 *
 *   from=30s          since 30 s after the run's first op, in virtual time
 *   from=20steps      since step 20; step-count.h says what a step is
 *   for=10s           for so long; else to the end
 *   every=40steps     again and again, as often after from
 *
 * All three are times, or all are steps; but what begins at a step may last for a time. A rank
 * is at the step that its template, which is real, has begun. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct when_span {
	double x; /* ns, or steps */
	bool is_steps, is_given;
};

struct when {
	struct when_span from, lasts, every;
};

/* Where a rank is. */
struct moment {
	double time_ns;                   /* virtual, since the run's first op */
	int64_t step;                     /* 0: before the first */
	const struct step_count *counted; /* NULL: nobody counts steps */
};

/* "10s", "20steps". Return: 0; -EINVAL with the sentence. */
int when_span_parse(const char *text, struct when_span *ret, struct err *err);
/* Takes @key if it is from, for or every. Return: 0; 1: it is not; -EINVAL with the sentence. */
int when_take(struct when *w, const char *key, const char *value, struct err *err);
/* Do the three go together? Return: 0; -EINVAL with the sentence. */
int when_check(const struct when *w, struct err *err);
static inline bool when_is_always(const struct when *w)
{
	return !w->from.is_given && !w->lasts.is_given;
}
bool when_has_steps(const struct when *w);
bool when_holds(const struct when *w, const struct moment *at);
/* The part of time, [*ret_from, *ret_until), in which it holds at @at or next after; INFINITY:
 * that is not known yet. */
void when_window(const struct when *w, const struct moment *at, double *ret_from,
		 double *ret_until);
