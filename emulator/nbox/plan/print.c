/* See print.h. */
#include "nbox/plan/print.h"

#include <string.h>

/* "1.95 M to 2.20 M" of the rate. */
static const char *band_text(const struct plan_point *p, char *buf, size_t size)
{
	char low[32], high[32];

	if (!p->has_band)
		return "-";
	snprintf(buf, size, "%s to %s",
		 plan_large(p->figures[PLAN_SLOW][PLAN_RATE], low, sizeof(low)),
		 plan_large(p->figures[PLAN_FAST][PLAN_RATE], high, sizeof(high)));
	return buf;
}

static int bound_width(const struct plan *p)
{
	size_t width = strlen("bound by");

	for (size_t i = 0; i < p->results->sweep->grid.n_points; i++) {
		size_t n = strlen(p->list[i].look.bound_by) + strlen(", 100 %");

		width = n > width ? n : width;
	}
	return width > 48 ? 48 : (int)width;
}

static void print_point(const struct plan *plan, size_t i, FILE *to)
{
	const struct plan_point *p = &plan->list[i];
	const struct point_result *k = &plan->results->list[i];
	const struct plan_ask *ask = plan->ask;
	const double *f = p->figures[PLAN_MODEL];
	char rate[32], band[80], bound[160] = "-", marks[NOTES_MAX + 1];
	bool is_chosen = plan->is_chosen && plan->cheapest[PLAN_MODEL] == i;

	if (!p->is_known) {
		fprintf(to, " FAILED: %s\n", k->why[0] ? k->why : "no steps were found");
		return;
	}
	if (p->look.bound_by[0])
		snprintf(bound, sizeof(bound), "%s, %.0f %%", p->look.bound_by, p->look.won * 100);
	fprintf(to, " %6u %10.3f %10s %20s %9.1f %% %6.1f %%  %-*.48s", k->world, f[PLAN_MEAN_MS],
		plan_large(f[PLAN_RATE], rate, sizeof(rate)), band_text(p, band, sizeof(band)),
		f[PLAN_EFFICIENCY] * 100, p->exposed * 100, bound_width(plan), bound);
	if (ask->prices.n)
		fprintf(to, " %10.2f %10.4f", f[PLAN_HOUR], f[PLAN_MILLION]);
	fprintf(to, " %-4s%s%s\n", notes_text(p->marks, marks),
		ask->goal.text && plan_is_met(plan, i, PLAN_MODEL) ? "  meets" : "",
		!is_chosen      ? ""
		: ask->prices.n ? "  <- cheapest"
				: "  <- fewest nodes");
}

static void print_heads(const struct plan *plan, FILE *to)
{
	const struct plan_ask *ask = plan->ask;
	char text[64];

	sweep_print_heads(plan->results, to);
	snprintf(text, sizeof(text), "%s/s", ask->unit);
	fprintf(to, " %6s %10s %10s %20s %11s %8s  %-*s", "ranks", "mean, ms", text, "band",
		"efficiency", "exposed", bound_width(plan), "bound by");
	if (ask->prices.n) {
		snprintf(text, sizeof(text), "%s/h", ask->prices.currency);
		fprintf(to, " %10s", text);
		snprintf(text, sizeof(text), "%s/M", ask->prices.currency);
		fprintf(to, " %10s", text);
	}
	fputc('\n', to);
}

static void print_choice(const struct plan *plan, FILE *to)
{
	const struct grid *g = &plan->results->sweep->grid;
	size_t chosen = plan->cheapest[PLAN_MODEL];
	char label[GRID_LABEL_MAX], verdict[1024];
	const struct look *look;

	if (plan->ask->goal.text)
		fprintf(to, "   goal           %s: %zu of %zu points meet it\n",
			plan->ask->goal.text, plan->n_met, g->n_points);
	if (!plan->is_chosen || chosen == PLAN_NONE)
		return;
	look = &plan->list[chosen].look;
	fprintf(to, "   %-14s %s: %s\n", plan->ask->prices.n ? "cheapest" : "fewest nodes",
		grid_label(g, chosen, label), plan_verdict(plan, verdict, sizeof(verdict)));
	if (look->bound_by[0])
		fprintf(to, "                  bound by %s: a step is %.3f ms shorter if %s\n",
			look->bound_by, look->won_ms, look->won_if);
}

/* The bands' sources, each once. */
static void print_errors(const struct plan *plan, FILE *to)
{
	for (size_t i = 0; i < plan->results->sweep->grid.n_points; i++) {
		const struct plan_point *p = &plan->list[i];
		bool is_new = p->has_band;

		for (size_t k = 0; k < i && is_new; k++)
			is_new = !plan->list[k].has_band ||
				 strcmp(plan->list[k].look.error, p->look.error) != 0;
		if (is_new)
			fprintf(to, "   band           %s; re-timed at either end\n",
				p->look.error);
	}
}

void plan_print_table(const struct plan *plan, FILE *to)
{
	const struct sweep_results *r = plan->results;
	const struct plan_ask *ask = plan->ask;
	const struct grid *g = &r->sweep->grid;

	print_heads(plan, to);
	for (size_t i = 0; i < g->n_points; i++) {
		sweep_print_setting(r, i, to);
		print_point(plan, i, to);
	}
	print_choice(plan, to);
	fprintf(to,
		"   %-14s %.6g a step in the run, of %u ranks; as many a rank in other worlds\n",
		ask->unit, ask->per_step, r->sweep->run->run.rec.header.world_size);
	fprintf(to,
		"   bound by       what a step is shortest without, re-timed, and how much of it that is\n");
	if (plan->device[0])
		fprintf(to, "   computation    %s\n", plan->device);
	print_errors(plan, to);
	for (size_t i = 0; i < plan->notes.n; i++)
		fprintf(to, "   %c              %s (%zu of %zu points)\n", (char)('a' + i),
			plan->notes.list[i].text, plan->notes.list[i].n, g->n_points);
	if (r->n_unmet)
		fprintf(to, "   not as expected  %zu of %zu points\n", r->n_unmet, g->n_points);
	if (r->n_failed)
		fprintf(to, "   failed         %zu of %zu points\n", r->n_failed, g->n_points);
	fprintf(to,
		"   results        %s: plan.html, plan.csv, plan.json, and those of nbox sweep\n",
		r->sweep->dir);
}
