/* What the cluster must do: "tokens/s >= 2M". */
#pragma once

#include <stdbool.h>

#include "base/err.h"

enum plan_metric {
	PLAN_RATE,
	PLAN_MEAN_MS,
	PLAN_EFFICIENCY,
	PLAN_HOUR,
	PLAN_MILLION,
	PLAN_METRICS
};

struct plan_goal {
	const char *text; /* borrowed; NULL: none */
	enum plan_metric metric;
	bool is_least; /* else the most */
	double value;
};

/* "2M", "1.5K", "300": Return: 0; -EINVAL. */
int plan_number(const char *text, double *ret);
/* "tokens/s >= 2M", "mean_ms <= 300", "efficiency >= 0.9", "price/hour <= 500", "price/M < 2".
 * @unit: "tokens". Return: 0; -EINVAL with the sentence. */
int plan_goal_parse(const char *text, const char *unit, struct plan_goal *ret, struct err *err);
/* By figures[PLAN_METRICS]. Without a goal all do. */
bool plan_goal_is_met(const struct plan_goal *g, const double *figures);
