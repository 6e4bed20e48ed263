/* See goal.h. */
#include "nbox/plan/goal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int plan_number(const char *text, double *ret)
{
	static const char units[] = "KMGT";
	double factor = 1, x;
	const char *unit;
	char *end;

	x = strtod(text, &end);
	unit = *end ? strchr(units, *end) : NULL;
	for (const char *at = units; unit && at <= unit; at++)
		factor *= 1000;
	if (end == text || (*end && (!unit || end[1])) || !(x >= 0 && x < 1e15))
		return -EINVAL;
	*ret = x * factor;
	return 0;
}

/* Also "95%", of an efficiency. */
static int read_value(const char *metric, char *text, double *ret)
{
	size_t n = strlen(text);
	bool is_percent = text[n - 1] == '%' && strcmp(metric, "efficiency") == 0;
	int r;

	if (is_percent)
		text[n - 1] = '\0';
	r = plan_number(text, ret);
	*ret /= r == 0 && is_percent ? 100 : 1;
	return r;
}

int plan_goal_parse(const char *text, const char *unit, struct plan_goal *ret, struct err *err)
{
	char rate[32], word[32], how[3], value[32], more[2];
	const char *const names[PLAN_METRICS] = {[PLAN_RATE] = rate,
						 [PLAN_MEAN_MS] = "mean_ms",
						 [PLAN_EFFICIENCY] = "efficiency",
						 [PLAN_HOUR] = "price/hour",
						 [PLAN_MILLION] = "price/M"};
	struct plan_goal g = {.text = text};
	size_t i = 0;

	snprintf(rate, sizeof(rate), "%s/s", unit);
	if (sscanf(text, "%31[^<>= ] %2[<>=] %31s %1s", word, how, value, more) != 3 ||
	    how[0] == '=' || (how[1] && how[1] != '=') || read_value(word, value, &g.value) < 0)
		return err_set(
			err, EINVAL,
			"--goal '%s': METRIC >= VALUE or METRIC <= VALUE, such as '%s >= 2M'", text,
			rate);
	while (i < PLAN_METRICS && strcmp(names[i], word) != 0)
		i++;
	if (i == PLAN_METRICS)
		return err_set(
			err, EINVAL,
			"--goal '%s': %s, mean_ms, efficiency, price/hour or price/M, not '%s'",
			text, rate, word);
	g.metric = (enum plan_metric)i;
	if (g.metric == PLAN_EFFICIENCY && g.value > 10)
		return err_set(err, EINVAL, "--goal '%s': an efficiency is 0.95 or 95%%", text);
	g.is_least = how[0] == '>';
	*ret = g;
	return 0;
}

bool plan_goal_is_met(const struct plan_goal *g, const double *figures)
{
	double got = figures[g->metric];

	return !g->text || (g->is_least ? got >= g->value : got <= g->value);
}
