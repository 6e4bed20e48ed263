/* See plan.h. */
#include "nbox/plan/plan.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbox/report/recall.h"

static bool is_done(const struct point_result *k)
{
	return k->state == POINT_DONE && k->has_steps && k->mean > 0;
}

/* --- a point ---------------------------------------------------------------------------------- */

/* Of a node of the point, an hour; NAN: nobody asked. Return: 0; negative errno with the sentence.
 */
static int find_price(const struct plan *plan, size_t i, double *ret, struct err *err)
{
	struct config *c;
	int r;

	*ret = NAN;
	if (plan->ask->prices.n == 0)
		return 0;
	r = point_config(plan->results->sweep, i, &c, err);
	if (r < 0)
		return r;
	r = prices_find(&plan->ask->prices, c, ret, err);
	config_free(c);
	return r;
}

int plan_check_prices(const struct prices *prices, const struct sweep *s, struct err *err)
{
	for (size_t i = 0; prices->n && i < s->grid.n_points; i++) {
		char label[GRID_LABEL_MAX];
		struct config *c;
		double price;
		int r = point_config(s, i, &c, NULL);

		if (r < 0)
			continue; /* it says so when it is played */
		r = prices_find(prices, c, &price, err);
		config_free(c);
		if (r < 0)
			return err_prefix(err, r, "--prices: %.300s",
					  grid_label(&s->grid, i, label));
	}
	return 0;
}

static void fill_side(const struct plan *plan, size_t i, enum plan_side side, double ms,
		      double node_hour)
{
	const struct point_result *k = &plan->results->list[i];
	double *f = plan->list[i].figures[side];

	f[PLAN_MEAN_MS] = ms;
	f[PLAN_RATE] = plan->ask->per_step * k->world /
		       plan->results->sweep->run->run.rec.header.world_size * 1e3 / ms;
	f[PLAN_HOUR] = node_hour * k->nodes;
	f[PLAN_MILLION] = f[PLAN_HOUR] / 3600 / f[PLAN_RATE] * 1e6;
}

/* Of the largest world that was recorded. */
static unsigned recorded_ranks(const struct recorded *r)
{
	unsigned most = 0;

	for (size_t i = 0; i < r->worlds.n; i++)
		most = r->worlds.recs[i]->header.world_size > most
			       ? r->worlds.recs[i]->header.world_size
			       : most;
	return most;
}

/* Return: 0; -ENOMEM. */
static int mark(struct plan *plan, size_t i)
{
	unsigned most = recorded_ranks(plan->results->sweep->run);
	struct plan_point *p = &plan->list[i];
	char text[256];
	int r = 0;

	for (size_t k = 0; k < p->look.notes.n && r == 0; k++)
		r = notes_add(&plan->notes, p->look.notes.list[k], &p->marks);
	snprintf(text, sizeof(text), "extrapolated: more ranks than were recorded (%u)", most);
	if (r == 0 && plan->results->list[i].world > most)
		r = notes_add(&plan->notes, text, &p->marks);
	if (r == 0 && p->look.is_beyond)
		r = notes_add(&plan->notes,
			      "extrapolated: more nodes than the model's error is known from",
			      &p->marks);
	if (r == 0 && !p->has_band)
		r = notes_add(&plan->notes, p->look.error, &p->marks);
	return r;
}

static int make_point(struct plan *plan, size_t i, struct err *err)
{
	const struct point_result *k = &plan->results->list[i];
	struct plan_point *p = &plan->list[i];
	double price;
	int r;

	if (!is_done(k))
		return 0;
	r = look_read(plan->results->sweep, i, &p->look, err);
	r = r == 0 ? find_price(plan, i, &price, err) : r;
	if (r < 0)
		return r;
	p->is_known = true;
	p->has_band = p->look.has_band;
	p->exposed = k->exposed / k->mean;
	fill_side(plan, i, PLAN_MODEL, k->mean, price);
	if (p->has_band) { /* with the point in it: the last steps of a record may be odd */
		const double *ms = p->look.ms;

		fill_side(plan, i, PLAN_FAST, fmin(k->mean, fmin(ms[MODEL_FAST], ms[MODEL_SLOW])),
			  price);
		fill_side(plan, i, PLAN_SLOW, fmax(k->mean, fmax(ms[MODEL_FAST], ms[MODEL_SLOW])),
			  price);
	}
	return mark(plan, i) < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

/* --- all -------------------------------------------------------------------------------------- */

/* The points differ in nothing but their nodes, or in a layout that follows them. */
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
		for (int side = 0; side < PLAN_SIDES && plan->list[i].is_known; side++) {
			double *f = plan->list[i].figures[side];

			f[PLAN_EFFICIENCY] =
				f[PLAN_RATE] / r->list[i].world /
				(plan->list[least].figures[side][PLAN_RATE] / r->list[least].world);
		}
	}
}

bool plan_is_met(const struct plan *p, size_t point, enum plan_side side)
{
	const struct plan_point *k = &p->list[point];

	return k->is_known && (side == PLAN_MODEL || k->has_band) &&
	       plan_goal_is_met(&p->ask->goal, k->figures[side]);
}

/* Of the points that meet the goal: the least price; without prices the fewest nodes; of equal ones
 * the fastest. */
static size_t find_cheapest(const struct plan *plan, enum plan_side side)
{
	const struct plan_ask *ask = plan->ask;
	double best_price = INFINITY, best_rate = 0;
	size_t best = PLAN_NONE;

	for (size_t i = 0; i < plan->results->sweep->grid.n_points; i++) {
		const double *f = plan->list[i].figures[side];
		double price = ask->prices.n == 0 ? plan->results->list[i].nodes
			       : ask->goal.text   ? f[PLAN_HOUR]
						  : f[PLAN_MILLION];

		if (plan_is_met(plan, i, side) &&
		    (price < best_price || (price == best_price && f[PLAN_RATE] > best_rate))) {
			best = i;
			best_price = price;
			best_rate = f[PLAN_RATE];
		}
	}
	return best;
}

char *plan_verdict(const struct plan *p, char *buf, size_t size)
{
	size_t chosen = p->cheapest[PLAN_MODEL], then = p->cheapest[PLAN_SLOW];
	char label[GRID_LABEL_MAX];

	buf[0] = '\0';
	if (chosen == PLAN_NONE || !p->is_chosen)
		return buf;
	if (!p->list[chosen].has_band)
		snprintf(buf, size, "how sure that is, is not known: the model's error is not");
	else if (p->ask->goal.text && !plan_is_met(p, chosen, PLAN_SLOW) && then != PLAN_NONE)
		snprintf(buf, size,
			 "not at the slow end of its band: there the choice would be %.300s",
			 grid_label(&p->results->sweep->grid, then, label));
	else if (p->ask->goal.text && !plan_is_met(p, chosen, PLAN_SLOW))
		snprintf(buf, size, "not at the slow end of its band, nor does any other point");
	else if (then != chosen && then != PLAN_NONE)
		snprintf(buf, size, "%sbut at the slow end of the bands %.300s would be cheaper",
			 p->ask->goal.text ? "meets the goal at the slow end of its band, too, "
					   : "",
			 grid_label(&p->results->sweep->grid, then, label));
	else
		snprintf(buf, size, "%salso at the slow end of its band",
			 p->ask->goal.text ? "meets the goal " : "");
	return buf;
}

/* What computation the run had, by its summary. */
static void take_device(const char *run_dir, struct plan *p)
{
	struct report run = {.n_ops = 0};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s/summary.json", PATH_MAX - 16, run_dir);
	report_recall(&run, path);
	snprintf(p->device, sizeof(p->device), "%s", run.device);
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
	take_device(results->sweep->run_dir, &p);
	compare_sizes(&p);
	p.is_chosen = ask->goal.text || ask->prices.n;
	for (size_t i = 0; i < n; i++)
		p.n_met += plan_is_met(&p, i, PLAN_MODEL);
	for (int side = 0; side < PLAN_SIDES; side++)
		p.cheapest[side] = find_cheapest(&p, (enum plan_side)side);
	*ret = p;
	return 0;
}

void plan_deinit(struct plan *p)
{
	for (size_t i = 0; p->list && i < p->results->sweep->grid.n_points; i++)
		look_deinit(&p->list[i].look);
	notes_deinit(&p->notes);
	free(p->list);
}

char *plan_large(double x, char *buf, size_t size)
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
