/* See scenario-event.h. */
#include "config/scenario-event.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/spec.h"
#include "scenario/when.h"

char *scenario_span(const char *text, char *buf, size_t size)
{
	size_t n = 0;
	bool is_step = strncmp(text, "step", 4) == 0 && text[strcspn(text, "0123456789")];

	text += is_step ? 4 : 0;
	for (; *text; text++) {
		if (n + 6 >= size)
			return NULL;
		if (!isblank((unsigned char)*text))
			buf[n++] = *text;
	}
	strcpy(buf + n, is_step ? "steps" : "");
	return buf;
}

/* What a value rises from. */
static const struct {
	const char *what_if, *key;
	double base;
} rising[] = {{"slow", "compute", 1},  {"slow", "link", 1},     {"add", "delay", 0},
	      {"link", "slower", 1},   {"link", "loss", 0},     {"load", "bandwidth", 0},
	      {"jitter", "min", 0},    {"jitter", "max", 0},    {"jitter", "mean", 0},
	      {"jitter", "stddev", 0}, {"jitter", "median", 0}, {"jitter", "scale", 0}};

/* The base of @key of the what-if @what; NAN: it does not rise. */
static double base_of(const char *what, const char *key, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(rising); i++)
		if (spec_is(what, rising[i].what_if) && strlen(rising[i].key) == n &&
		    memcmp(rising[i].key, key, n) == 0)
			return rising[i].base;
	return NAN;
}

/* @value, a number and its unit, a part of the way from @base. */
static void write_part(FILE *f, const char *value, size_t n, double base, double part)
{
	char *unit;
	double x = strtod(value, &unit);

	if (unit == value || unit > value + n || !isfinite(x)) {
		fprintf(f, "%.*s", (int)n, value); /* its own parser will say what is wrong */
		return;
	}
	if (*unit == '%')
		base *= 100;
	fprintf(f, "%.9g%.*s", base + (x - base) * part, (int)(value + n - unit), unit);
}

/* @what with the values that rise a part of the way up. Return: whether there is one. */
static bool write_what(FILE *f, const char *what, double part)
{
	const char *p = what + strcspn(what, ":");
	bool rises = false;

	fprintf(f, "%.*s", (int)(p - what), what);
	while (*p) {
		size_t n = 1 + strcspn(p + 1, ","), key = strcspn(p + 1, "=,");
		double base = base_of(what, p + 1, key);

		if (key + 1 < n && !isnan(base)) {
			rises = true;
			fprintf(f, "%.*s", (int)key + 2, p);
			write_part(f, p + key + 2, n - key - 2, base, part);
		} else {
			fprintf(f, "%.*s", (int)n, p);
		}
		p += n;
	}
	return rises;
}

struct window {
	char from[48], lasts[48];
};

static int emit(const struct scenario_event *e, const struct scenario_item *what, double part,
		const struct window *w, struct scenario_list *ret, struct err *err)
{
	const char *separator = strchr(what->text, ':') ? "," : ":";
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	bool rises;

	if (!f)
		return err_set(err, ENOMEM, "out of memory");
	rises = write_what(f, what->text, part);
	for (size_t i = 0; i < e->keys.n; i++, separator = ",")
		fprintf(f, "%s%s", separator, e->keys.items[i].text);
	if (w->from[0])
		fprintf(f, "%sfrom=%s", separator, w->from);
	separator = w->from[0] ? "," : separator;
	if (w->lasts[0])
		fprintf(f, "%sfor=%s", separator, w->lasts);
	separator = w->lasts[0] ? "," : separator;
	if (e->every[0])
		fprintf(f, "%severy=%s", separator, e->every);
	if (fclose(f) != 0) {
		free(text);
		return err_set(err, ENOMEM, "out of memory");
	}
	if (e->ramp[0] && !rises) {
		err_set(err, EINVAL, "ramp: nothing of '%.100s' can rise slowly", what->text);
		free(text);
		return -EINVAL;
	}
	if (scenario_list_add(ret, text, what->line, what->column) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int span(const char *key, const char *text, struct when_span *ret, struct err *err)
{
	*ret = (struct when_span){0};
	return text[0] && when_span_parse(text, ret, err) < 0 ? err_prefix(err, -EINVAL, "%s", key)
							      : 0;
}

static void write_span(char *buf, size_t size, double x, bool is_steps)
{
	snprintf(buf, size, is_steps ? "%.0fsteps" : "%.17gns", x);
}

static int check_spans(const struct scenario_event *e, struct err *err)
{
	const char *const keys[] = {"at", "for", "every", "ramp"}, *const texts[] = {e->at,
										     e->lasts,
										     e->every,
										     e->ramp};
	struct when_span ignored;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys) && r == 0; i++)
		r = span(keys[i], texts[i], &ignored, err);
	return r;
}

/* In equal parts, each with the value of its middle; then all of it. */
static int emit_ramp(const struct scenario_event *e, const struct scenario_item *what,
		     struct scenario_list *ret, struct err *err)
{
	struct when_span at, lasts, ramp;
	int n = RAMP_STAGES, r = 0;
	struct window w = {0};

	span("at", e->at, &at, err); /* they were checked */
	span("for", e->lasts, &lasts, err);
	span("ramp", e->ramp, &ramp, err);
	if (!at.is_given && ramp.is_steps)
		at.x = 1;
	if (!(ramp.x > 0))
		return err_set(err, EINVAL, "ramp: %s is no time at all", e->ramp);
	if ((at.is_given && at.is_steps != ramp.is_steps) ||
	    (lasts.is_given && lasts.is_steps != ramp.is_steps))
		return err_set(err, EINVAL,
			       "ramp: give at, for and ramp all in steps or all as times");
	if (lasts.is_given && lasts.x <= ramp.x)
		return err_set(err, EINVAL, "ramp: it takes no less than what it leads to: for: %s",
			       e->lasts);
	if (ramp.is_steps && ramp.x < n)
		n = (int)ramp.x;
	for (int i = 0; i < n && r == 0; i++) {
		double from = ramp.x * i / n, until = ramp.x * (i + 1) / n;

		from = ramp.is_steps ? floor(from) : from;
		until = ramp.is_steps ? floor(until) : until;
		write_span(w.from, sizeof(w.from), at.x + from, ramp.is_steps);
		write_span(w.lasts, sizeof(w.lasts), until - from, ramp.is_steps);
		r = emit(e, what, (i + 0.5) / n, &w, ret, err);
	}
	if (r < 0)
		return r;
	write_span(w.from, sizeof(w.from), at.x + ramp.x, ramp.is_steps);
	w.lasts[0] = '\0';
	if (lasts.is_given)
		write_span(w.lasts, sizeof(w.lasts), lasts.x - ramp.x, ramp.is_steps);
	return emit(e, what, 1, &w, ret, err);
}

int scenario_event_compile(const struct scenario_event *e, struct scenario_list *ret,
			   struct err *err)
{
	struct window w;
	int r = check_spans(e, err);

	snprintf(w.from, sizeof(w.from), "%s", e->at);
	snprintf(w.lasts, sizeof(w.lasts), "%s", e->lasts);
	for (size_t i = 0; i < e->whats.n && r == 0; i++)
		r = e->ramp[0] ? emit_ramp(e, &e->whats.items[i], ret, err)
			       : emit(e, &e->whats.items[i], 1, &w, ret, err);
	return r;
}
