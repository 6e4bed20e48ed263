/* See plan.h. */
#include "nbox/sweep/plan.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/report/json-file.h"

#define COMPUTE_BOUND                                                              \
	0.05 /* less of a step than this is exposed: computation is what bounds it \
	      */

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

int plan_goal_parse(const char *text, const char *unit, struct plan_goal *ret, struct err *err)
{
	char rate[32], word[32], how[3], value[32], more[2];
	const char *const names[] = {[PLAN_RATE] = rate,
				     [PLAN_STEP_MS] = "step_ms",
				     [PLAN_EFFICIENCY] = "efficiency",
				     [PLAN_HOUR] = "price/hour",
				     [PLAN_MILLION] = "price/M"};
	struct plan_goal g = {.text = text};
	size_t i = 0;

	snprintf(rate, sizeof(rate), "%s/s", unit);
	if (sscanf(text, "%31[^<>= ] %2[<>=] %31s %1s", word, how, value, more) != 3 ||
	    how[0] == '=' || plan_number(value, &g.value) < 0)
		return err_set(
			err, EINVAL,
			"--goal '%s': METRIC >= VALUE or METRIC <= VALUE, such as '%s >= 2M'", text,
			rate);
	while (i < ARRAY_SIZE(names) && strcmp(names[i], word) != 0)
		i++;
	if (i == ARRAY_SIZE(names))
		return err_set(
			err, EINVAL,
			"--goal '%s': %s, step_ms, efficiency, price/hour or price/M, not '%s'",
			text, rate, word);
	g.metric = (enum plan_metric)i;
	g.is_least = how[0] == '>';
	*ret = g;
	return 0;
}

static double metric_of(const struct plan_point *p, enum plan_metric m)
{
	const double values[] = {[PLAN_RATE] = p->rate,
				 [PLAN_STEP_MS] = p->ms,
				 [PLAN_EFFICIENCY] = p->efficiency,
				 [PLAN_HOUR] = p->hour,
				 [PLAN_MILLION] = p->million};

	return values[m];
}

static bool is_met(const struct plan_goal *g, const struct plan_point *p)
{
	double got = metric_of(p, g->metric);

	return p->is_known && (!g->text || (g->is_least ? got >= g->value : got <= g->value));
}

static void name_bottleneck(const struct point_result *k, struct plan_point *p)
{
	if (p->exposed < COMPUTE_BOUND)
		snprintf(p->bottleneck, sizeof(p->bottleneck), "computation");
	else if (k->injected > k->exposed / 2)
		snprintf(p->bottleneck, sizeof(p->bottleneck), "what-ifs");
	else
		snprintf(p->bottleneck, sizeof(p->bottleneck), "%s", k->top_op);
}

static int make_point(const struct plan *plan, size_t i, struct err *err)
{
	const struct sweep *s = plan->results->sweep;
	const struct point_result *k = &plan->results->list[i];
	struct plan_point *p = &plan->list[i];
	struct config *c;
	double price;
	int r;

	p->hour = p->million = p->efficiency = NAN;
	if (k->state != POINT_DONE || !k->has_steps || !(k->mean > 0))
		return 0;
	p->is_known = true;
	p->ms = k->mean;
	p->rate =
		plan->ask->per_step * k->world / s->run->run.rec.header.world_size * 1e3 / k->mean;
	p->exposed = k->exposed / k->mean;
	name_bottleneck(k, p);
	if (plan->ask->prices.n == 0)
		return 0;
	r = point_config(s, i, &c, err);
	if (r < 0)
		return r;
	r = prices_find(&plan->ask->prices, c, &price);
	config_free(c);
	if (r < 0) {
		char label[GRID_LABEL_MAX];

		return err_set(err, EINVAL,
			       "--prices: no line fits %.300s; add one, or 'default: PRICE'",
			       grid_label(&s->grid, i, label));
	}
	p->hour = price * k->nodes;
	p->million = p->hour / 3600 / p->rate * 1e6;
	return 0;
}

/* The points differ in nothing but their nodes. */
static bool is_same_curve(const struct grid *g, size_t a, size_t b)
{
	for (size_t i = 0; i < g->n_axes; i++)
		if (strcmp(g->axes[i].name, "nodes") != 0 &&
		    strcmp(grid_value(g, a, i), grid_value(g, b, i)) != 0)
			return false;
	return true;
}

static void compare_sizes(struct plan *plan)
{
	const struct sweep_results *r = plan->results;
	size_t n = r->sweep->grid.n_points;

	for (size_t i = 0; i < n; i++) {
		size_t least = i;

		for (size_t k = 0; k < n; k++)
			if (plan->list[k].is_known && r->list[k].world < r->list[least].world &&
			    is_same_curve(&r->sweep->grid, i, k))
				least = k;
		plan->list[i].efficiency = plan->list[i].rate / r->list[i].world /
					   (plan->list[least].rate / r->list[least].world);
	}
}

/* Of the points that meet the goal: the least price; without prices the fewest nodes. */
static void find_cheapest(struct plan *plan)
{
	const struct plan_ask *ask = plan->ask;
	struct plan_point *best = NULL;
	double best_price = INFINITY;

	for (size_t i = 0; i < plan->results->sweep->grid.n_points; i++) {
		struct plan_point *p = &plan->list[i];
		double price = ask->prices.n == 0 ? plan->results->list[i].nodes
			       : ask->goal.text   ? p->hour
						  : p->million;

		p->is_met = is_met(&ask->goal, p);
		plan->n_met += p->is_met;
		if (p->is_met && price < best_price) {
			best = p;
			best_price = price;
		}
	}
	if (best && (ask->goal.text || ask->prices.n))
		best->is_cheapest = true;
}

int plan_make(const struct plan_ask *ask, const struct sweep_results *results, struct plan *ret,
	      struct err *err)
{
	size_t n = results->sweep->grid.n_points;
	struct plan p = {.ask = ask, .results = results, .list = calloc(n, sizeof(*p.list))};
	int r = p.list ? 0 : err_set(err, ENOMEM, "out of memory");

	for (size_t i = 0; r == 0 && i < n; i++)
		r = make_point(&p, i, err);
	if (r < 0) {
		plan_deinit(&p);
		return r;
	}
	compare_sizes(&p);
	find_cheapest(&p);
	*ret = p;
	return 0;
}

void plan_deinit(struct plan *p)
{
	free(p->list);
}

/* --- as a table ------------------------------------------------------------------------------- */

/* "2.13 M" */
static char *print_large(double x, char *buf, size_t size)
{
	static const char *const units[] = {"", " K", " M", " G", " T"};
	size_t i = 0;

	while (x >= 1000 && i + 1 < ARRAY_SIZE(units)) {
		x /= 1000;
		i++;
	}
	snprintf(buf, size, "%.*f%s", x < 10 ? 2 : x < 100 ? 1 : 0, x, units[i]);
	return buf;
}

static void print_point(const struct plan *plan, size_t i, FILE *to)
{
	const struct plan_point *p = &plan->list[i];
	const struct point_result *k = &plan->results->list[i];
	const struct plan_ask *ask = plan->ask;
	char rate[32];

	if (!p->is_known) {
		fprintf(to, " FAILED: %s\n", k->why[0] ? k->why : "no steps were found");
		return;
	}
	fprintf(to, " %6u %10.3f %12s %9.1f %% %7.1f %%  %-14s", k->world, p->ms,
		print_large(p->rate, rate, sizeof(rate)), p->efficiency * 100, p->exposed * 100,
		p->bottleneck);
	if (ask->prices.n)
		fprintf(to, " %10.2f %10.4f", p->hour, p->million);
	fprintf(to, "%s%s%s\n", k->n_warnings ? " *" : "",
		ask->goal.text && p->is_met ? "  meets" : "",
		!p->is_cheapest ? ""
		: ask->prices.n ? "  <- cheapest"
				: "  <- fewest nodes");
}

void plan_print_table(const struct plan *plan, FILE *to)
{
	const struct sweep_results *r = plan->results;
	const struct plan_ask *ask = plan->ask;
	const struct grid *g = &r->sweep->grid;
	char text[64];

	sweep_print_heads(r, to);
	snprintf(text, sizeof(text), "%s/s", ask->unit);
	fprintf(to, " %6s %10s %12s %11s %9s  %-14s", "ranks", "step, ms", text, "efficiency",
		"exposed", "bound by");
	if (ask->prices.n) {
		snprintf(text, sizeof(text), "%s/h", ask->prices.currency);
		fprintf(to, " %10s", text);
		snprintf(text, sizeof(text), "%s/M %s", ask->prices.currency, ask->unit);
		fprintf(to, " %10s", text);
	}
	fputc('\n', to);
	for (size_t i = 0; i < g->n_points; i++) {
		sweep_print_setting(r, i, to);
		print_point(plan, i, to);
	}
	fprintf(to,
		"   %-14s %.6g a step in the run, of %u ranks; as many a rank in other worlds\n",
		ask->unit, ask->per_step, r->sweep->run->run.rec.header.world_size);
	if (ask->goal.text)
		fprintf(to, "   goal           %s: %zu of %zu points meet it\n", ask->goal.text,
			plan->n_met, g->n_points);
	sweep_print_notes(r, to);
	fprintf(to, "   results        %s: plan.csv, plan.json, and those of nbox sweep\n",
		r->sweep->dir);
}

/* --- for programs ----------------------------------------------------------------------------- */

static json_t *number_json(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *point_json(const struct plan *plan, size_t i)
{
	const struct plan_point *p = &plan->list[i];
	const struct point_result *k = &plan->results->list[i];
	const struct grid *g = &plan->results->sweep->grid;
	json_t *setting = json_object();

	for (size_t a = 0; a < g->n_axes; a++)
		json_object_set_new(setting, g->axes[a].name, json_string(grid_value(g, i, a)));
	if (!p->is_known)
		return json_pack("{s:o, s:b, s:s}", "setting", setting, "failed", 1, "why", k->why);
	return json_pack("{s:o, s:b, s:i, s:i, s:f, s:f, s:o, s:f, s:s, s:o, s:o, s:i, s:b, s:b}",
			 "setting", setting, "failed", 0, "nodes", (int)k->nodes, "ranks",
			 (int)k->world, "step_ms", p->ms, "rate", p->rate, "efficiency",
			 number_json(p->efficiency), "exposed", p->exposed, "bound_by",
			 p->bottleneck, "price_hour", number_json(p->hour), "price_million",
			 number_json(p->million), "warnings", (int)k->n_warnings, "meets",
			 (int)p->is_met, "cheapest", (int)p->is_cheapest);
}

int plan_write_json(const struct plan *plan, const char *path, struct err *err)
{
	CLEANUP(json_freep) json_t *o = NULL;
	json_t *points = json_array();
	FILE *to;
	int r;

	for (size_t i = 0; i < plan->results->sweep->grid.n_points; i++)
		json_array_append_new(points, point_json(plan, i));
	o = json_pack("{s:s, s:s, s:f, s:o, s:o}", "run", plan->results->sweep->run_dir, "unit",
		      plan->ask->unit, "per_step", plan->ask->per_step, "goal",
		      plan->ask->goal.text ? json_string(plan->ask->goal.text) : json_null(),
		      "points", points);
	if (!o)
		return err_set(err, ENOMEM, "out of memory");
	r = file_create(path, &to, err);
	if (r < 0)
		return r;
	json_dumpf(o, to, JSON_INDENT(2));
	fputc('\n', to);
	return file_finish(to, path, err);
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
	FILE *to;
	int r = file_create(path, &to, err);

	if (r < 0)
		return r;
	sweep_csv_heads(results, to);
	fputs("ranks,nodes,step_ms,rate,efficiency,exposed,bound_by,price_hour,price_million,warnings,meets,cheapest,failed\n",
	      to);
	for (size_t i = 0; i < results->sweep->grid.n_points; i++) {
		const struct plan_point *p = &plan->list[i];
		const struct point_result *k = &results->list[i];

		sweep_csv_setting(results, i, to);
		if (!p->is_known) {
			fputs(",,,,,,,,,,,,1\n", to);
			continue;
		}
		fprintf(to, "%u,%u,", k->world, k->nodes);
		print_number(p->ms, to);
		print_number(p->rate, to);
		print_number(p->efficiency, to);
		print_number(p->exposed, to);
		fprintf(to, "%s,", p->bottleneck);
		print_number(p->hour, to);
		print_number(p->million, to);
		fprintf(to, "%u,%d,%d,0\n", k->n_warnings, p->is_met, p->is_cheapest);
	}
	return file_finish(to, path, err);
}
