/* See plan-page.h. */
#include "nbox/page/plan-page.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "nbox/page/plan-charts.h"

/* @text: room for the figure and for its place. */
static struct doc_cell figure(json_t *of, const char *where, const char *key, int digits,
			      const char *behind, char (*text)[96])
{
	double x = plan_view_number(of, key);

	if (!isfinite(x))
		return (struct doc_cell){.text = "-"};
	snprintf(text[0], sizeof(text[0]), "%.*f%s", digits, x, behind);
	snprintf(text[1], sizeof(text[1]), "%s.%s", where, key);
	return (struct doc_cell){text[0], text[1], x};
}

/* "nodes=8, inter=8x400Gbps". */
static char *label_of(json_t *point, char *buf, size_t size)
{
	size_t n = 0;

	for (const char *at = plan_view_text(point, "label"); *at && n + 3 < size; at++) {
		buf[n++] = *at;
		if (*at == ',')
			buf[n++] = ' ';
	}
	buf[n] = '\0';
	return buf;
}

static void write_choice(const struct plan_view *v, struct doc *d)
{
	const char *goal = plan_view_text(v->plan, "goal"),
		   *verdict = plan_view_text(v->plan, "verdict");
	char text[5][2][96], where[64], note[64], hour[64], million[64], label[256];
	struct doc_card cards[5];
	size_t n = 0;

	if (!v->chosen) {
		if (goal[0])
			doc_text(d, "No point meets the goal %s.", goal);
		return;
	}
	doc_text(d, "%s%s%s: %s; %s.",
		 v->currency[0] ? "The cheapest point" : "The point with the fewest nodes",
		 goal[0] ? " that meets " : "", goal, label_of(v->chosen, label, sizeof(label)),
		 verdict);
	snprintf(where, sizeof(where), "points.%zu", v->chosen_at);
	snprintf(note, sizeof(note), "%.0f nodes", plan_view_number(v->chosen, "nodes"));
	cards[n++] = (struct doc_card){v->unit, note, SVG_COMPUTE,
				       figure(v->chosen, where, "rate", 0, " /s", text[0])};
	cards[n++] = (struct doc_card){"a step", "mean", SVG_NETWORK,
				       figure(v->chosen, where, "mean_ms", 3, " ms", text[1])};
	cards[n++] = (struct doc_card){"efficiency", "of the smallest world", SVG_OTHERS,
				       figure(v->chosen, where, "efficiency", 3, "", text[2])};
	if (v->currency[0]) {
		snprintf(hour, sizeof(hour), "%.16s an hour", v->currency);
		snprintf(million, sizeof(million), "%.16s a million %.32s", v->currency, v->unit);
		cards[n++] =
			(struct doc_card){hour, "of all nodes", SVG_INJECTED,
					  figure(v->chosen, where, "price_hour", 2, "", text[3])};
		cards[n++] = (struct doc_card){million, "", SVG_EXPOSED,
					       figure(v->chosen, where, "price_million", 4, "",
						      text[4])};
	}
	doc_cards(d, cards, n);
	if (plan_view_text(v->chosen, "bound_by")[0])
		doc_text(d, "Bound by %s: re-timed, a step is %.3f ms shorter if %s.",
			 plan_view_text(v->chosen, "bound_by"),
			 plan_view_number(v->chosen, "won_ms"), plan_view_text(v->chosen, "if"));
}

static void write_row(const struct plan_view *v, size_t i, struct doc *d)
{
	json_t *p = json_array_get(v->points, i);
	char text[6][2][96], where[64], fast[80], slow[80], label[256], ranks[64], why[300];

	snprintf(where, sizeof(where), "points.%zu", i);
	snprintf(fast, sizeof(fast), "%s.fast", where);
	snprintf(slow, sizeof(slow), "%s.slow", where);
	snprintf(ranks, sizeof(ranks), "%.0f",
		 plan_view_is_known(p) ? plan_view_number(p, "ranks") : 0);
	snprintf(why, sizeof(why), "failed: %.280s", plan_view_text(p, "why"));
	doc_row(d, (struct doc_cell[]){
			   {.text = label_of(p, label, sizeof(label))},
			   {.text = plan_view_is_known(p) ? ranks : "-"},
			   figure(p, where, "mean_ms", 3, "", text[0]),
			   figure(p, where, "rate", 0, "", text[1]),
			   figure(json_object_get(p, "slow"), slow, "rate", 0, "", text[2]),
			   figure(json_object_get(p, "fast"), fast, "rate", 0, "", text[3]),
			   figure(p, where, "efficiency", 3, "", text[4]),
			   figure(p, where, "exposed", 3, "", text[5]),
			   {.text = plan_view_is_known(p) ? plan_view_text(p, "bound_by") : why},
			   {.text = plan_view_text(p, "notes")}});
}

static void write_table(const struct plan_view *v, struct doc *d)
{
	char rate[64];
	const char *const heads[] = {"setting", "ranks",      "mean, ms", rate,       "from",
				     "to",      "efficiency", "exposed",  "bound by", "notes"};

	snprintf(rate, sizeof(rate), "%.32s/s", v->unit);
	doc_heading(d, "Points");
	doc_table_begin(d, "lrrrrrrrll", heads);
	for (size_t i = 0; i < v->n; i++)
		write_row(v, i, d);
	doc_table_end(d);
	doc_text(
		d,
		"From, to: the band of the rate, each end re-timed. Efficiency and exposed are ratios. Bound by: "
		"what a step is shortest without, re-timed.");
}

static const char *met_text(json_t *met)
{
	return json_is_true(met) ? "yes" : json_is_false(met) ? "no" : "-";
}

static void write_prices(const struct plan_view *v, struct doc *d)
{
	char hour[64], million[80];
	const char *const heads[] = {"setting", hour, million, "meets the goal", "at the slow end"};
	const char *goal = plan_view_text(v->plan, "goal");

	if (!v->currency[0] && !goal[0])
		return;
	snprintf(hour, sizeof(hour), "%.16s an hour", v->currency);
	snprintf(million, sizeof(million), "%.16s a million %.32s", v->currency, v->unit);
	doc_heading(d, v->currency[0] ? "What it costs" : "Which meet the goal");
	doc_table_begin(d, goal[0] ? "lrrll" : "lrr", heads);
	for (size_t i = 0; i < v->n; i++) {
		json_t *p = json_array_get(v->points, i);
		char text[2][2][96], where[64], label[256];
		size_t n = strlen(label_of(p, label, sizeof(label)));

		if (p == v->chosen)
			snprintf(label + n, sizeof(label) - n, ": the choice");
		snprintf(where, sizeof(where), "points.%zu", i);
		doc_row(d,
			(struct doc_cell[]){{.text = label},
					    figure(p, where, "price_hour", 2, "", text[0]),
					    figure(p, where, "price_million", 4, "", text[1]),
					    {.text = met_text(json_object_get(p, "meets"))},
					    {.text = met_text(json_object_get(p, "meets_slow"))}});
	}
	doc_table_end(d);
}

static void write_notes(const struct plan_view *v, struct doc *d)
{
	json_t *note;
	size_t i;

	if (json_array_size(json_object_get(v->plan, "notes")) == 0)
		return;
	doc_heading(d, "What is assumed, and where it is extrapolated");
	json_array_foreach(json_object_get(v->plan, "notes"), i, note)
	{
		char text[600];
		const char *list[] = {text};

		snprintf(text, sizeof(text), "%c: %.580s", (char)('a' + i % 26),
			 json_string_value(note) ? json_string_value(note) : "");
		doc_warnings(d, list, 1);
	}
}

static void write_sources(const struct plan_view *v, struct doc *d)
{
	json_t *error;
	size_t i;

	doc_heading(d, "What was measured, what was modelled");
	doc_text(
		d,
		"Measured: how long computation took between ops, at the real ranks of %s, a record "
		"of %.0f ranks. Modelled: what ops take on each of these clusters. Nothing on this "
		"page was measured on them.",
		plan_view_text(v->plan, "run"), plan_view_number(v->plan, "run_ranks"));
	if (*plan_view_text(v->plan, "device"))
		doc_text(d, "Computation: %s.", plan_view_text(v->plan, "device"));
	doc_text(
		d,
		"A step of the run has %.6g %s; each rank has as many in other worlds, so that the "
		"batch grows with the cluster.",
		plan_view_number(v->plan, "per_step"), v->unit);
	json_array_foreach(json_object_get(v->plan, "bands"), i, error)
		doc_text(d, "Band: the error %s.",
			 json_string_value(error) ? json_string_value(error) : "");
}

int plan_page_write(json_t *plan, const char *command, struct doc *d, struct err *err)
{
	CLEANUP(plan_view_deinit) struct plan_view v;
	CLEANUP(freep) char *text = NULL;
	char title[256];
	int r = plan_view_make(plan, &v, err);

	if (r < 0)
		return r;
	snprintf(title, sizeof(title), "%zu points for %.200s", v.n, plan_view_text(plan, "run"));
	doc_begin(d, title);
	if (command[0])
		doc_code(d, command);
	write_choice(&v, d);
	plan_charts_write(&v, d);
	write_table(&v, d);
	write_prices(&v, d);
	write_notes(&v, d);
	write_sources(&v, d);
	text = json_dumps(plan, JSON_COMPACT);
	if (!text)
		return -ENOMEM;
	doc_json(d, "summary", text);
	doc_end(d);
	return 0;
}

int plan_page_draw(json_t *plan, enum svg_place place, FILE *to, struct err *err)
{
	CLEANUP(plan_view_deinit) struct plan_view v;
	int r = plan_view_make(plan, &v, err);

	if (r < 0)
		return r;
	if (v.n_ticks == 0)
		return err_set(err, ENODATA, "nothing to draw: no point has steps");
	plan_charts_draw_rate(&v, place, to);
	return 0;
}
