/* See plan-view.h. */
#include "nbox/page/plan-view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void plan_view_deinit(struct plan_view *v)
{
	free(v->lines);
	free(v->ticks);
	free(v->room);
}

const char *plan_view_text(json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

double plan_view_number(json_t *o, const char *key)
{
	json_t *x = json_object_get(o, key);

	return json_is_number(x) ? json_number_value(x) : NAN;
}

bool plan_view_is_known(json_t *point)
{
	return isfinite(plan_view_number(point, "rate"));
}

static bool differs(json_t *points, const char *key)
{
	const char *first =
		plan_view_text(json_object_get(json_array_get(points, 0), "setting"), key);
	json_t *point;
	size_t i;

	json_array_foreach(points, i,
			   point) if (strcmp(first,
					     plan_view_text(json_object_get(point, "setting"),
							    key)) != 0) return true;
	return false;
}

/* What makes the point's curve, but for the nodes: "inter 8x400Gbps, gpu-speed 2". */
static void name_line(const struct plan_view *v, json_t *point, char *buf)
{
	json_t *setting = json_object_get(point, "setting"), *value;
	const char *key;
	size_t used = 0;

	buf[0] = '\0';
	json_object_foreach(setting, key, value)
	{
		if (strcmp(key, "nodes") == 0 || !differs(v->points, key) ||
		    used >= PLAN_LINE_NAME_MAX)
			continue;
		used += (size_t)snprintf(buf + used, PLAN_LINE_NAME_MAX - used, "%s%s %s",
					 used ? ", " : "", key, plan_view_text(setting, key));
	}
}

static struct plan_line *find_line(struct plan_view *v, json_t *point)
{
	char name[PLAN_LINE_NAME_MAX];

	name_line(v, point, name);
	for (size_t i = 0; i < v->n_lines; i++)
		if (strcmp(v->lines[i].name, name) == 0)
			return &v->lines[i];
	if (v->n_lines == PLAN_LINES_MAX)
		return NULL;
	strcpy(v->lines[v->n_lines].name, name);
	return &v->lines[v->n_lines++];
}

static int by_nodes(const void *pa, const void *pb)
{
	double a = plan_view_number(*(json_t *const *)pa, "nodes"),
	       b = plan_view_number(*(json_t *const *)pb, "nodes");

	return (a > b) - (a < b);
}

static void add_point(struct plan_view *v, json_t *point)
{
	struct plan_line *l = find_line(v, point);
	json_t *slow = json_object_get(point, "slow"), *fast = json_object_get(point, "fast");
	bool has_band = json_is_object(slow);
	double rate = plan_view_number(point, "rate");
	const double values[PLAN_COLUMNS] = {
		[PLAN_AT_NODES] = plan_view_number(point, "nodes"),
		[PLAN_AT_RATE] = rate / v->unit_size,
		[PLAN_AT_RATE_LOW] =
			(has_band ? plan_view_number(slow, "rate") : rate) / v->unit_size,
		[PLAN_AT_RATE_HIGH] =
			(has_band ? plan_view_number(fast, "rate") : rate) / v->unit_size,
		[PLAN_AT_EFFICIENCY] = 100 * plan_view_number(point, "efficiency"),
		[PLAN_AT_EXPOSED] = 100 * plan_view_number(point, "exposed"),
		[PLAN_AT_HOUR] = plan_view_number(point, "price_hour"),
	};

	v->has_left_out |= !l;
	if (!l)
		return;
	v->has_band |= has_band;
	for (int c = 0; c < PLAN_COLUMNS; c++)
		l->columns[c][l->n] = values[c];
	l->n++;
	if (v->n_ticks == 0 || v->ticks[v->n_ticks - 1].at != values[PLAN_AT_NODES]) {
		v->ticks[v->n_ticks].at = values[PLAN_AT_NODES];
		snprintf(v->ticks[v->n_ticks].text, sizeof(v->ticks[0].text), "%g",
			 values[PLAN_AT_NODES]);
		v->n_ticks++;
	}
}

static void scale(struct plan_view *v, double most)
{
	static const char *const units[] = {"", "K ", "M ", "G "};
	size_t i = 0;

	for (v->unit_size = 1; most >= 10000 * v->unit_size && i + 1 < ARRAY_SIZE(units); i++)
		v->unit_size *= 1000;
	snprintf(v->unit_name, sizeof(v->unit_name), "%s%.32s/s", units[i], v->unit);
}

static void find_range(struct plan_view *v)
{
	double least[2] = {INFINITY, INFINITY}, most[2] = {0, 0};
	json_t *point;
	size_t i;

	json_array_foreach(v->points, i, point)
	{
		const double x[2] = {plan_view_number(point, "rate"),
				     plan_view_number(point, "nodes")};

		for (int k = 0; k < 2 && plan_view_is_known(point); k++) {
			least[k] = fmin(least[k], x[k]);
			most[k] = fmax(most[k], x[k]);
		}
		if (json_is_true(json_object_get(point, "cheapest"))) {
			v->chosen = point;
			v->chosen_at = i;
		}
	}
	v->is_wide_rate = most[0] > 20 * least[0];
	v->is_wide_nodes = most[1] > 8 * least[1];
	scale(v, most[0]);
}

int plan_view_make(json_t *plan, struct plan_view *v, struct err *err)
{
	CLEANUP(freep) json_t **sorted = NULL;
	json_t *points = json_object_get(plan, "points");
	size_t n = json_array_size(points);

	*v = (struct plan_view){.plan = plan, .points = points, .n = n};
	v->unit = plan_view_text(plan, "unit");
	v->currency = plan_view_text(plan, "currency");
	if (n == 0 || !v->unit[0])
		return err_set(err, EINVAL, "plan.json: there are no points in it");
	v->goal = strcmp(plan_view_text(plan, "goal_metric"), "rate") == 0
			  ? plan_view_number(plan, "goal_value")
			  : NAN;
	sorted = calloc(n, sizeof(json_t *));
	v->lines = calloc(PLAN_LINES_MAX, sizeof(*v->lines));
	v->ticks = calloc(n, sizeof(*v->ticks));
	v->room = calloc((size_t)PLAN_LINES_MAX * PLAN_COLUMNS * n, sizeof(*v->room));
	if (!sorted || !v->lines || !v->ticks || !v->room) {
		plan_view_deinit(v);
		return -ENOMEM;
	}
	for (size_t i = 0; i < (size_t)PLAN_LINES_MAX * PLAN_COLUMNS; i++)
		v->lines[i / PLAN_COLUMNS].columns[i % PLAN_COLUMNS] = v->room + i * n;
	for (size_t i = 0; i < n; i++)
		sorted[i] = json_array_get(points, i);
	for (size_t i = 0; i < n; i++) /* in the order of the table */
		if (plan_view_is_known(sorted[i]))
			find_line(v, sorted[i]);
	find_range(v);
	qsort(sorted, n, sizeof(json_t *), by_nodes);
	for (size_t i = 0; i < n; i++)
		if (plan_view_is_known(sorted[i]))
			add_point(v, sorted[i]);
	return 0;
}
