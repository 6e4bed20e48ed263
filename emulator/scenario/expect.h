/* What is expected of a run: "iteration_ms p95 < 700", "exposed_ms <= 12.5", "exit_code == 1".
 *
 * The metrics are those of summary.json, in the unit that their name has; a time with a unit is
 * taken, too. Of those with several values the mean counts, unless one of mean, min, p25, p50, p75,
 * p95, p99 and max is named. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

#define EXPECT_EXIT_CODE_UNMET 3 /* of nbox run, nbox report and nboxd */

enum expect_metric {
	EXPECT_ITERATION_MS,
	EXPECT_EXPOSED_MS,
	EXPECT_INJECTED_MS,
	EXPECT_MODELLED_MS,
	EXPECT_SHARED_MS,
	EXPECT_QUEUED_MS,
	EXPECT_VIRTUAL_MS,
	EXPECT_WALL_MS,
	EXPECT_LATENESS_US,
	EXPECT_STEPS,
	EXPECT_OPS,
	EXPECT_EARLY_GATES,
	EXPECT_WARNINGS,
	EXPECT_EXIT_CODE,
	EXPECT_METRICS
};

enum expect_stat {
	EXPECT_MEAN,
	EXPECT_MIN,
	EXPECT_P25,
	EXPECT_P50,
	EXPECT_P75,
	EXPECT_P95,
	EXPECT_P99,
	EXPECT_MAX,
	EXPECT_STATS
};

struct expect {
	enum expect_metric metric;
	enum expect_stat stat;
	enum { EXPECT_LESS, EXPECT_AT_MOST, EXPECT_MORE, EXPECT_AT_LEAST, EXPECT_EQUAL } how;
	double value;
};

/* Return: 0; -EINVAL with the sentence. */
int expect_parse(const char *text, struct expect *ret, struct err *err);
bool expect_is_met(const struct expect *e, double got);
