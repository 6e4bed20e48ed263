/* See when.h. */
#include "scenario/when.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "scenario/step-count.h"

#define STEPS_MAX 1e9

/* Is @text digits, then "step" or "steps"? */
static bool is_steps(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits &&
	       (strcmp(text + digits, "steps") == 0 || strcmp(text + digits, "step") == 0);
}

int when_span_parse(const char *text, struct when_span *ret, struct err *err)
{
	struct when_span s = {.is_given = true};
	int r = 0;

	if (is_steps(text)) {
		s.is_steps = true;
		s.x = strtod(text, NULL);
		if (s.x > STEPS_MAX)
			return err_set(err, EINVAL, "%.64s are more steps than a run has", text);
	} else if (strstr(text, "step")) {
		return err_set(err, EINVAL, "'%.64s' is no number of steps, such as 20steps", text);
	} else {
		r = units_time(text, &s.x, err);
		if (r == 0 && !(s.x < 1e18))
			return err_set(err, EINVAL, "%.64s is out of range", text);
	}
	if (r == 0)
		*ret = s;
	return r;
}

int when_take(struct when *w, const char *key, const char *value, struct err *err)
{
	struct when_span *s = strcmp(key, "from") == 0    ? &w->from
			      : strcmp(key, "for") == 0   ? &w->lasts
			      : strcmp(key, "every") == 0 ? &w->every
							  : NULL;
	int r;

	if (!s)
		return 1;
	r = when_span_parse(value, s, err);
	if (r < 0)
		return err_prefix(err, r, "%s", key);
	if (s != &w->from && !(s->x > 0))
		return err_set(err, EINVAL, "%s=%.64s is no time at all", key, value);
	return 0;
}

int when_check(const struct when *w, struct err *err)
{
	const struct when_span *lasts = &w->lasts, *every = &w->every;
	bool in_steps = w->from.is_given ? w->from.is_steps : lasts->is_steps;

	if (lasts->is_steps && !in_steps)
		return err_set(err, EINVAL,
			       "what begins at a time lasts for a time: give for= as "
			       "one, or from= in steps");
	if (!every->is_given)
		return 0;
	if (!lasts->is_given)
		return err_set(err, EINVAL, "every= without for=: it would never end");
	if (every->is_steps != in_steps)
		return err_set(err, EINVAL, "from= and every= are both times, or both steps");
	if (every->is_steps == lasts->is_steps && every->x < lasts->x)
		return err_set(err, EINVAL, "every= is shorter than for=");
	return 0;
}

bool when_has_steps(const struct when *w)
{
	return w->from.is_steps || w->lasts.is_steps;
}

static bool is_in_steps(const struct when *w)
{
	return w->from.is_given ? w->from.is_steps : w->lasts.is_steps;
}

/* The last beginning that is not after @x. */
static double beginning(const struct when *w, double x)
{
	double begin = !w->from.is_given && is_in_steps(w) ? 1 : w->from.x;

	if (w->every.is_given && x > begin)
		begin += floor((x - begin) / w->every.x) * w->every.x;
	return begin;
}

bool when_holds(const struct when *w, const struct moment *at)
{
	double x = is_in_steps(w) ? (double)at->step : at->time_ns, begin = beginning(w, x);

	if (when_is_always(w))
		return true;
	if (x < begin)
		return false;
	if (!w->lasts.is_given)
		return true;
	if (w->lasts.is_steps == is_in_steps(w))
		return x < begin + w->lasts.x;
	return at->time_ns < step_count_began(at->counted, (int64_t)begin) + w->lasts.x;
}

void when_window(const struct when *w, const struct moment *at, double *ret_from, double *ret_until)
{
	double begin = beginning(w, is_in_steps(w) ? (double)at->step : at->time_ns);
	double lasts = w->lasts.is_given ? w->lasts.x : INFINITY;

	*ret_from = *ret_until = INFINITY;
	if (is_in_steps(w)) {
		*ret_from = step_count_began(at->counted, (int64_t)begin);
		if (!w->lasts.is_steps)
			*ret_until = *ret_from + lasts;
		return;
	}
	if (w->every.is_given && at->time_ns >= begin + lasts)
		begin += w->every.x;
	*ret_from = begin;
	*ret_until = begin + lasts;
}
