/* See expect.h. */
#include "scenario/expect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/units.h"

static const struct {
	const char *name;
	double unit_ns; /* 0: it is a number */
	bool has_stats;
} metrics[EXPECT_METRICS] = {
	[EXPECT_ITERATION_MS] = {"iteration_ms", 1e6, true},
	[EXPECT_EXPOSED_MS] = {"exposed_ms", 1e6, false},
	[EXPECT_INJECTED_MS] = {"injected_ms", 1e6, false},
	[EXPECT_MODELLED_MS] = {"modelled_ms", 1e6, false},
	[EXPECT_SHARED_MS] = {"shared_ms", 1e6, false},
	[EXPECT_QUEUED_MS] = {"queued_ms", 1e6, false},
	[EXPECT_VIRTUAL_MS] = {"virtual_ms", 1e6, false},
	[EXPECT_WALL_MS] = {"wall_ms", 1e6, false},
	[EXPECT_LATENESS_US] = {"lateness_us", 1e3, true},
	[EXPECT_STEPS] = {"steps", 0, false},
	[EXPECT_OPS] = {"ops", 0, false},
	[EXPECT_EARLY_GATES] = {"early_gates", 0, false},
	[EXPECT_WARNINGS] = {"warnings", 0, false},
	[EXPECT_EXIT_CODE] = {"exit_code", 0, false},
};
static const char *const stats[EXPECT_STATS] = {"mean", "min", "p25", "p50",
						"p75",  "p95", "p99", "max"};
static const char *const signs[] = {"<", "<=", ">", ">=", "=="};

/* Return: the number of @word, -1: none of them. */
static int find(const char *word, const char *const *names, int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], word) == 0)
			return i;
	return -1;
}

static int take_metric(const char *word, struct expect *e, struct err *err)
{
	const char *names[EXPECT_METRICS], *near;
	int i;

	for (i = 0; i < EXPECT_METRICS; i++)
		names[i] = metrics[i].name;
	i = find(word, names, EXPECT_METRICS);
	if (i >= 0) {
		e->metric = (enum expect_metric)i;
		return 0;
	}
	near = suggest(word, names, EXPECT_METRICS);
	return err_set(err, EINVAL, "unknown metric '%.32s'%s%s%s", word,
		       near ? "; did you mean '"
			    : "; there are iteration_ms, exposed_ms, injected_ms, ... (nbox report "
			      "--help)",
		       near ? near : "", near ? "'?" : "");
}

static int take_value(const char *word, struct expect *e, struct err *err)
{
	double unit_ns = metrics[e->metric].unit_ns;
	char *end;
	int r;

	e->value = strtod(word, &end);
	if (end != word && !*end && e->value - e->value == 0) /* finite */
		return 0;
	if (!(unit_ns > 0))
		return err_set(err, EINVAL, "'%.32s' is no number", word);
	r = units_time(word, &e->value, err);
	if (r == 0)
		e->value /= unit_ns;
	return r;
}

int expect_parse(const char *text, struct expect *ret, struct err *err)
{
	static const char blanks[] = " \t";
	char copy[128], *words[5] = {NULL}, *save = NULL;
	struct expect e = {.stat = EXPECT_MEAN};
	int n = 0, k, r;

	if (strlen(text) >= sizeof(copy))
		return err_set(err, EINVAL, "'%.64s...' is too long", text);
	strcpy(copy, text);
	for (char *w = strtok_r(copy, blanks, &save); w && n < 5; w = strtok_r(NULL, blanks, &save))
		words[n++] = w;
	if (n < 3 || n > 4)
		return err_set(
			err, EINVAL,
			"'%.100s' is no METRIC [mean|p50|p95|...] <|<=|>|>=|== VALUE, such as "
			"iteration_ms p95 < 700",
			text);
	r = take_metric(words[0], &e, err);
	if (r < 0)
		return err_prefix(err, r, "'%.100s'", text);
	if (n == 4) {
		k = find(words[1], stats, EXPECT_STATS);
		if (k < 0 || !metrics[e.metric].has_stats)
			return err_set(
				err, EINVAL, "'%.100s': %s has no %.32s%s", text, words[0],
				words[1],
				metrics[e.metric].has_stats
					? "; there are mean, min, p25, p50, p75, p95, p99, max"
					: ", but one value");
		e.stat = (enum expect_stat)k;
	}
	k = find(words[n - 2], signs, 5);
	if (k < 0)
		return err_set(err, EINVAL, "'%.100s': '%.32s' is none of < <= > >= ==", text,
			       words[n - 2]);
	e.how = (unsigned)k;
	r = take_value(words[n - 1], &e, err);
	if (r < 0)
		return err_prefix(err, r, "'%.100s'", text);
	*ret = e;
	return 0;
}

bool expect_is_met(const struct expect *e, double got)
{
	switch (e->how) {
	case EXPECT_LESS:
		return got < e->value;
	case EXPECT_AT_MOST:
		return got <= e->value;
	case EXPECT_MORE:
		return got > e->value;
	case EXPECT_AT_LEAST:
		return got >= e->value;
	case EXPECT_EQUAL:
	default:
		return got == e->value;
	}
}
