/* See write.h. */
#include "nbox/plan/write.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/json/json-file.h"

static const char *const names[PLAN_METRICS] = {[PLAN_RATE] = "rate",
						[PLAN_MEAN_MS] = "mean_ms",
						[PLAN_EFFICIENCY] = "efficiency",
						[PLAN_HOUR] = "price_hour",
						[PLAN_MILLION] = "price_million"};

static json_t *figures_json(const double *figures)
{
	json_t *o = json_object();

	for (int m = 0; m < PLAN_METRICS; m++)
		json_object_set_new(o, names[m],
				    isfinite(figures[m]) ? json_real(figures[m]) : json_null());
	return o;
}

static json_t *point_json(const struct plan *plan, size_t i)
{
	const struct plan_point *p = &plan->list[i];
	const struct point_result *k = &plan->results->list[i];
	const struct grid *g = &plan->results->sweep->grid;
	json_t *setting = json_object(), *o;
	char marks[NOTES_MAX + 1], label[GRID_LABEL_MAX];

	for (size_t a = 0; a < g->n_axes; a++)
		json_object_set_new(setting, g->axes[a].name, json_string(grid_value(g, i, a)));
	o = json_pack("{s:o, s:s, s:b}", "setting", setting, "label", grid_label(g, i, label),
		      "failed", (int)!p->is_known);
	if (!p->is_known) {
		json_object_set_new(o, "why",
				    json_string(k->why[0] ? k->why : "no steps were found"));
		return o;
	}
	json_object_update_new(o, figures_json(p->figures[PLAN_MODEL]));
	json_object_set_new(o, "fast",
			    p->has_band ? figures_json(p->figures[PLAN_FAST]) : json_null());
	json_object_set_new(o, "slow",
			    p->has_band ? figures_json(p->figures[PLAN_SLOW]) : json_null());
	json_object_update_new(
		o,
		json_pack("{s:i, s:i, s:f, s:s, s:s, s:f, s:f, s:s, s:b, s:o, s:b}", "nodes",
			  (int)k->nodes, "ranks", (int)k->world, "exposed", p->exposed, "bound_by",
			  p->look.bound_by, "if", p->look.won_if, "won_ms", p->look.won_ms, "won",
			  p->look.won, "notes", notes_text(p->marks, marks), "meets",
			  (int)plan_is_met(plan, i, PLAN_MODEL), "meets_slow",
			  p->has_band ? json_boolean(plan_is_met(plan, i, PLAN_SLOW)) : json_null(),
			  "cheapest", (int)(plan->is_chosen && plan->cheapest[PLAN_MODEL] == i)));
	return o;
}

json_t *plan_json(const struct plan *plan)
{
	const struct plan_ask *ask = plan->ask;
	json_t *points = json_array(), *notes = json_array(), *errors = json_array();
	char verdict[1024];

	for (size_t i = 0; i < plan->results->sweep->grid.n_points; i++) {
		const struct plan_point *p = &plan->list[i];
		bool is_new = p->has_band;

		json_array_append_new(points, point_json(plan, i));
		for (size_t k = 0; k < json_array_size(errors) && is_new; k++)
			is_new = strcmp(json_string_value(json_array_get(errors, k)),
					p->look.error) != 0;
		if (is_new)
			json_array_append_new(errors, json_string(p->look.error));
	}
	for (size_t i = 0; i < plan->notes.n; i++)
		json_array_append_new(notes, json_string(plan->notes.list[i].text));
	return json_pack("{s:s, s:s, s:s, s:f, s:i, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "run",
			 plan->results->sweep->run_dir, "device", plan->device, "unit", ask->unit,
			 "per_step", ask->per_step, "run_ranks",
			 (int)plan->results->sweep->run->run.rec.header.world_size, "goal",
			 ask->goal.text ? json_string(ask->goal.text) : json_null(), "goal_metric",
			 ask->goal.text ? json_string(names[ask->goal.metric]) : json_null(),
			 "goal_value", ask->goal.text ? json_real(ask->goal.value) : json_null(),
			 "currency",
			 ask->prices.n ? json_string(ask->prices.currency) : json_null(), "verdict",
			 plan_verdict(plan, verdict, sizeof(verdict)), "bands", errors, "notes",
			 notes, "points", points);
}

int plan_write_json(const struct plan *plan, const char *path, struct err *err)
{
	return json_file_write(plan_json(plan), path, err);
}

static void print_number(double x, FILE *to)
{
	if (isfinite(x))
		fprintf(to, "%.9g", x);
	fputc(',', to);
}

int plan_write_csv(const struct plan *plan, const char *path, struct err *err)
{
	const struct sweep_results *results = plan->results;
	char marks[NOTES_MAX + 1];
	FILE *to;
	int r = file_create(path, &to, err);

	if (r < 0)
		return r;
	sweep_csv_heads(results, to);
	fputs("ranks,nodes,rate,mean_ms,efficiency,price_hour,price_million,fast_mean_ms,slow_mean_ms,exposed,bound_by,won,notes,meets,cheapest,failed\n",
	      to);
	for (size_t i = 0; i < results->sweep->grid.n_points; i++) {
		const struct plan_point *p = &plan->list[i];
		const struct point_result *k = &results->list[i];

		sweep_csv_setting(results, i, to);
		if (!p->is_known) {
			fputs(",,,,,,,,,,,,,,,1\n", to);
			continue;
		}
		fprintf(to, "%u,%u,", k->world, k->nodes);
		for (int m = 0; m < PLAN_METRICS; m++)
			print_number(p->figures[PLAN_MODEL][m], to);
		print_number(p->has_band ? p->figures[PLAN_FAST][PLAN_MEAN_MS] : NAN, to);
		print_number(p->has_band ? p->figures[PLAN_SLOW][PLAN_MEAN_MS] : NAN, to);
		print_number(p->exposed, to);
		fprintf(to, "\"%s\",%.4f,%s,%d,%d,0\n", p->look.bound_by, p->look.won,
			notes_text(p->marks, marks), plan_is_met(plan, i, PLAN_MODEL),
			plan->is_chosen && plan->cheapest[PLAN_MODEL] == i);
	}
	return file_finish(to, path, err);
}
