/* See plan-charts.h. */
#include "nbox/page/plan-charts.h"

#include <math.h>

#define WIDTH 420.0
#define HEIGHT 270.0

/* @is_alone: the picture has a legend of its own. */
static size_t take_series(const struct plan_view *v, enum plan_column x, enum plan_column y,
			  bool is_alone, struct chart_series *ret)
{
	for (size_t i = 0; i < v->n_lines; i++) {
		const struct plan_line *l = &v->lines[i];

		ret[i] = (struct chart_series){.name = is_alone && l->name[0] ? l->name : NULL,
					       .role = (enum svg_role)(SVG_SERIES_1 + i),
					       .look = CHART_LINE | CHART_DOTS,
					       .n = l->n,
					       .x = l->columns[x],
					       .y = l->columns[y],
					       .low = y == PLAN_AT_RATE && v->has_band
							      ? l->columns[PLAN_AT_RATE_LOW]
							      : NULL,
					       .high = y == PLAN_AT_RATE && v->has_band
							       ? l->columns[PLAN_AT_RATE_HIGH]
							       : NULL};
	}
	return v->n_lines;
}

static void draw(const struct chart *c, enum svg_place place, const char *name, FILE *to)
{
	svg_begin(to, place, WIDTH, HEIGHT, name);
	chart_draw(c, to, 0, 0, WIDTH, HEIGHT);
	svg_end(to);
}

/* A goal is a line, the choice a dot of its own. Return: how many series those are. */
static size_t add_marks(bool is_alone, const double *goal_x, const double *goal_y,
			const double *choice_x, const double *choice_y, struct chart_series *ret)
{
	size_t n = 0;

	if (isfinite(goal_x[0]) && isfinite(goal_y[0]))
		ret[n++] = (struct chart_series){.name = is_alone ? "goal" : NULL,
						 .role = SVG_INK,
						 .look = CHART_LINE | CHART_DASHED,
						 .n = 2,
						 .x = goal_x,
						 .y = goal_y};
	if (isfinite(*choice_x))
		ret[n++] = (struct chart_series){.name = is_alone ? "choice" : NULL,
						 .role = SVG_INK,
						 .look = CHART_DOTS,
						 .n = 1,
						 .x = choice_x,
						 .y = choice_y};
	return n;
}

static double of_choice(const struct plan_view *v, const char *key)
{
	return v->chosen ? plan_view_number(v->chosen, key) : NAN;
}

static void draw_over_nodes(const struct plan_view *v, enum plan_column y, const char *label,
			    enum svg_place place, FILE *to)
{
	struct chart_series series[PLAN_LINES_MAX + 2];
	bool is_alone = place == SVG_ALONE;
	const double ends[2] = {v->ticks[0].at, v->ticks[v->n_ticks - 1].at};
	const double goal[2] = {v->goal / v->unit_size, v->goal / v->unit_size};
	const double at = of_choice(v, "nodes"), rate = of_choice(v, "rate") / v->unit_size;
	struct chart chart = {.x = {.label = "nodes",
				    .is_log = v->is_wide_nodes,
				    .ticks = v->ticks,
				    .n_ticks = v->n_ticks},
			      .y = {.label = label,
				    .is_log = y == PLAN_AT_RATE && v->is_wide_rate,
				    .has_zero = true},
			      .series = series};

	chart.n_series = take_series(v, PLAN_AT_NODES, y, is_alone, series);
	if (y == PLAN_AT_RATE)
		chart.n_series +=
			add_marks(is_alone, ends, goal, &at, &rate, series + chart.n_series);
	draw(&chart, place, label, to);
}

void plan_charts_draw_rate(const struct plan_view *v, enum svg_place place, FILE *to)
{
	draw_over_nodes(v, PLAN_AT_RATE, v->unit_name, place, to);
}

static void draw_cost(const struct plan_view *v, FILE *to)
{
	struct chart_series series[PLAN_LINES_MAX + 2];
	const double goal[2] = {v->goal / v->unit_size, v->goal / v->unit_size};
	const double rate = of_choice(v, "rate") / v->unit_size, hour = of_choice(v, "price_hour");
	double ends[2] = {INFINITY, 0};
	char label[64];
	struct chart chart = {.x = {.label = v->unit_name,
				    .is_log = v->is_wide_rate,
				    .has_zero = true},
			      .y = {.label = label, .is_log = v->is_wide_rate, .has_zero = true},
			      .series = series};

	snprintf(label, sizeof(label), "%.16s an hour", v->currency);
	for (size_t i = 0; i < v->n_lines; i++)
		for (size_t k = 0; k < v->lines[i].n; k++) {
			ends[0] = fmin(ends[0], v->lines[i].columns[PLAN_AT_HOUR][k]);
			ends[1] = fmax(ends[1], v->lines[i].columns[PLAN_AT_HOUR][k]);
		}
	chart.n_series = take_series(v, PLAN_AT_RATE, PLAN_AT_HOUR, false, series);
	chart.n_series += add_marks(false, goal, ends, &rate, &hour, series + chart.n_series);
	draw(&chart, SVG_IN_PAGE, "price over the rate", to);
}

static void write_keys(const struct plan_view *v, struct doc *d)
{
	struct lane_key keys[PLAN_LINES_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; i < v->n_lines && v->n_lines > 1; i++)
		keys[n++] = (struct lane_key){.role = (enum svg_role)(SVG_SERIES_1 + i),
					      .text = v->lines[i].name};
	if (v->chosen)
		keys[n++] =
			(struct lane_key){.role = SVG_INK,
					  .text = isfinite(v->goal) ? "the choice; dashed: the goal"
								    : "the choice"};
	if (n)
		doc_keys(d, keys, n);
}

void plan_charts_write(const struct plan_view *v, struct doc *d)
{
	bool is_scaling = v->n_ticks > 1;

	write_keys(v, d);
	doc_grid_begin(d);
	if (is_scaling &&
	    doc_picture_begin(d,
			      v->has_band ? "Rate over the nodes, with its band"
					  : "Rate over the nodes; the model's error is not known",
			      false)) {
		draw_over_nodes(v, PLAN_AT_RATE, v->unit_name, SVG_IN_PAGE, d->to);
		doc_picture_end(d);
	}
	if (is_scaling &&
	    doc_picture_begin(d, "Scaling efficiency: a rank's rate, of that in the smallest world",
			      false)) {
		draw_over_nodes(v, PLAN_AT_EFFICIENCY, "efficiency, %", SVG_IN_PAGE, d->to);
		doc_picture_end(d);
	}
	if (v->currency[0] && v->n_ticks &&
	    doc_picture_begin(d, "What a rate costs: to the right and below is better", false)) {
		draw_cost(v, d->to);
		doc_picture_end(d);
	}
	if (is_scaling &&
	    doc_picture_begin(d, "Exposed communication: what computation waits for", false)) {
		draw_over_nodes(v, PLAN_AT_EXPOSED, "% of a step", SVG_IN_PAGE, d->to);
		doc_picture_end(d);
	}
	doc_grid_end(d);
	if (v->has_left_out)
		doc_text(d, "Of more than %d curves only the first are drawn; the table has all.",
			 PLAN_LINES_MAX);
}
