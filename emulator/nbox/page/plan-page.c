/* See plan-page.h. */
#include "nbox/page/plan-page.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "nbox/draw/chart.h"

#define WIDTH 420.0
#define HEIGHT 270.0
#define LINES_MAX 8 /* colours */
#define TEXT_MAX 160

enum column { NODES, RATE, RATE_LOW, RATE_HIGH, EFFICIENCY, EXPOSED, HOUR, COLUMNS };

struct line {
	char name[TEXT_MAX];
	double *columns[COLUMNS]; /* owned by struct plan_view; n each */
	size_t n;
};

struct plan_view {
	json_t *plan, *points; /* borrowed */
	const char *unit, *currency;
	json_t *chosen;           /* borrowed; NULL: none */
	size_t chosen_at;         /* its place */
	double unit_size;         /* rates are shown in so many a second */
	char unit_name[64];       /* "M tokens/s" */
	double goal;              /* rate; NAN: none of it */
	struct line *lines;       /* owned; LINES_MAX */
	struct chart_tick *ticks; /* owned; a node count each */
	double *room;             /* owned */
	size_t n, n_lines, n_ticks;
	bool is_wide_rate, is_wide_nodes; /* on a logarithmic axis */
	bool has_band, has_left_out;
};

static void plan_view_deinit(struct plan_view *v)
{
	free(v->lines);
	free(v->ticks);
	free(v->room);
}

static const char *text_of(json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static double number_of(json_t *o, const char *key)
{
	json_t *x = json_object_get(o, key);

	return json_is_number(x) ? json_number_value(x) : NAN;
}

static bool is_known(json_t *point)
{
	return isfinite(number_of(point, "rate"));
}

/* --- curves ----------------------------------------------------------------------------------- */

static bool differs(json_t *points, const char *key)
{
	const char *first = text_of(json_object_get(json_array_get(points, 0), "setting"), key);
	json_t *point;
	size_t i;

	json_array_foreach(points, i,
			   point) if (strcmp(first, text_of(json_object_get(point, "setting"),
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
		if (strcmp(key, "nodes") == 0 || !differs(v->points, key) || used >= TEXT_MAX)
			continue;
		used += (size_t)snprintf(buf + used, TEXT_MAX - used, "%s%s %s", used ? ", " : "",
					 key, text_of(setting, key));
	}
}

static struct line *find_line(struct plan_view *v, json_t *point)
{
	char name[TEXT_MAX];

	name_line(v, point, name);
	for (size_t i = 0; i < v->n_lines; i++)
		if (strcmp(v->lines[i].name, name) == 0)
			return &v->lines[i];
	if (v->n_lines == LINES_MAX)
		return NULL;
	strcpy(v->lines[v->n_lines].name, name);
	return &v->lines[v->n_lines++];
}

static int by_nodes(const void *pa, const void *pb)
{
	double a = number_of(*(json_t *const *)pa, "nodes"),
	       b = number_of(*(json_t *const *)pb, "nodes");

	return (a > b) - (a < b);
}

static void add_point(struct plan_view *v, json_t *point)
{
	struct line *l = find_line(v, point);
	json_t *slow = json_object_get(point, "slow"), *fast = json_object_get(point, "fast");
	bool has_band = json_is_object(slow);
	double rate = number_of(point, "rate");
	const double values[COLUMNS] = {
		[NODES] = number_of(point, "nodes"),
		[RATE] = rate / v->unit_size,
		[RATE_LOW] = (has_band ? number_of(slow, "rate") : rate) / v->unit_size,
		[RATE_HIGH] = (has_band ? number_of(fast, "rate") : rate) / v->unit_size,
		[EFFICIENCY] = 100 * number_of(point, "efficiency"),
		[EXPOSED] = 100 * number_of(point, "exposed"),
		[HOUR] = number_of(point, "price_hour"),
	};

	v->has_left_out |= !l;
	if (!l)
		return;
	v->has_band |= has_band;
	for (int c = 0; c < COLUMNS; c++)
		l->columns[c][l->n] = values[c];
	l->n++;
	if (v->n_ticks == 0 || v->ticks[v->n_ticks - 1].at != values[NODES]) {
		v->ticks[v->n_ticks].at = values[NODES];
		snprintf(v->ticks[v->n_ticks].text, sizeof(v->ticks[0].text), "%g", values[NODES]);
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
		const double x[2] = {number_of(point, "rate"), number_of(point, "nodes")};

		for (int k = 0; k < 2 && is_known(point); k++) {
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

/* Return: 0; -ENOMEM; -EINVAL with the sentence. */
static int view_of(json_t *plan, struct plan_view *v, struct err *err)
{
	CLEANUP(freep) json_t **sorted = NULL;
	json_t *points = json_object_get(plan, "points");
	size_t n = json_array_size(points);

	*v = (struct plan_view){.plan = plan, .points = points, .n = n};
	v->unit = text_of(plan, "unit");
	v->currency = text_of(plan, "currency");
	if (n == 0 || !v->unit[0])
		return err_set(err, EINVAL, "plan.json: there are no points in it");
	v->goal = strcmp(text_of(plan, "goal_metric"), "rate") == 0 ? number_of(plan, "goal_value")
								    : NAN;
	sorted = calloc(n, sizeof(json_t *));
	v->lines = calloc(LINES_MAX, sizeof(*v->lines));
	v->ticks = calloc(n, sizeof(*v->ticks));
	v->room = calloc((size_t)LINES_MAX * COLUMNS * n, sizeof(*v->room));
	if (!sorted || !v->lines || !v->ticks || !v->room) {
		plan_view_deinit(v);
		return -ENOMEM;
	}
	for (size_t i = 0; i < (size_t)LINES_MAX * COLUMNS; i++)
		v->lines[i / COLUMNS].columns[i % COLUMNS] = v->room + i * n;
	for (size_t i = 0; i < n; i++)
		sorted[i] = json_array_get(points, i);
	for (size_t i = 0; i < n; i++) /* in the order of the table */
		if (is_known(sorted[i]))
			find_line(v, sorted[i]);
	find_range(v);
	qsort(sorted, n, sizeof(json_t *), by_nodes);
	for (size_t i = 0; i < n; i++)
		if (is_known(sorted[i]))
			add_point(v, sorted[i]);
	return 0;
}

/* --- pictures --------------------------------------------------------------------------------- */

/* @is_alone: the picture has a legend of its own. */
static size_t take_series(const struct plan_view *v, enum column x, enum column y, bool is_alone,
			  struct chart_series *ret)
{
	for (size_t i = 0; i < v->n_lines; i++) {
		const struct line *l = &v->lines[i];

		ret[i] = (struct chart_series){
			.name = is_alone && l->name[0] ? l->name : NULL,
			.role = (enum svg_role)(SVG_SERIES_1 + i),
			.look = CHART_LINE | CHART_DOTS,
			.n = l->n,
			.x = l->columns[x],
			.y = l->columns[y],
			.low = y == RATE && v->has_band ? l->columns[RATE_LOW] : NULL,
			.high = y == RATE && v->has_band ? l->columns[RATE_HIGH] : NULL};
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
	return v->chosen ? number_of(v->chosen, key) : NAN;
}

static void draw_over_nodes(const struct plan_view *v, enum column y, const char *label,
			    enum svg_place place, FILE *to)
{
	struct chart_series series[LINES_MAX + 2];
	bool is_alone = place == SVG_ALONE;
	const double ends[2] = {v->ticks[0].at, v->ticks[v->n_ticks - 1].at};
	const double goal[2] = {v->goal / v->unit_size, v->goal / v->unit_size};
	const double at = of_choice(v, "nodes"), rate = of_choice(v, "rate") / v->unit_size;
	struct chart chart = {.x = {.label = "nodes",
				    .is_log = v->is_wide_nodes,
				    .ticks = v->ticks,
				    .n_ticks = v->n_ticks},
			      .y = {.label = label,
				    .is_log = y == RATE && v->is_wide_rate,
				    .has_zero = true},
			      .series = series};

	chart.n_series = take_series(v, NODES, y, is_alone, series);
	if (y == RATE)
		chart.n_series +=
			add_marks(is_alone, ends, goal, &at, &rate, series + chart.n_series);
	draw(&chart, place, label, to);
}

static void draw_cost(const struct plan_view *v, FILE *to)
{
	struct chart_series series[LINES_MAX + 2];
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
			ends[0] = fmin(ends[0], v->lines[i].columns[HOUR][k]);
			ends[1] = fmax(ends[1], v->lines[i].columns[HOUR][k]);
		}
	chart.n_series = take_series(v, RATE, HOUR, false, series);
	chart.n_series += add_marks(false, goal, ends, &rate, &hour, series + chart.n_series);
	draw(&chart, SVG_IN_PAGE, "price over the rate", to);
}

static void write_keys(const struct plan_view *v, struct doc *d)
{
	struct lane_key keys[LINES_MAX + 1];
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

int plan_page_draw(json_t *plan, enum svg_place place, FILE *to, struct err *err)
{
	CLEANUP(plan_view_deinit) struct plan_view v;
	int r = view_of(plan, &v, err);

	if (r < 0)
		return r;
	if (v.n_ticks == 0)
		return err_set(err, ENODATA, "nothing to draw: no point has steps");
	draw_over_nodes(&v, RATE, v.unit_name, place, to);
	return 0;
}

static void write_pictures(const struct plan_view *v, struct doc *d)
{
	bool is_scaling = v->n_ticks > 1;

	write_keys(v, d);
	doc_grid_begin(d);
	if (is_scaling &&
	    doc_picture_begin(d,
			      v->has_band ? "Rate over the nodes, with its band"
					  : "Rate over the nodes; the model's error is not known",
			      false)) {
		draw_over_nodes(v, RATE, v->unit_name, SVG_IN_PAGE, d->to);
		doc_picture_end(d);
	}
	if (is_scaling &&
	    doc_picture_begin(d, "Scaling efficiency: a rank's rate, of that in the smallest world",
			      false)) {
		draw_over_nodes(v, EFFICIENCY, "efficiency, %", SVG_IN_PAGE, d->to);
		doc_picture_end(d);
	}
	if (v->currency[0] && v->n_ticks &&
	    doc_picture_begin(d, "What a rate costs: to the right and below is better", false)) {
		draw_cost(v, d->to);
		doc_picture_end(d);
	}
	if (is_scaling &&
	    doc_picture_begin(d, "Exposed communication: what computation waits for", false)) {
		draw_over_nodes(v, EXPOSED, "% of a step", SVG_IN_PAGE, d->to);
		doc_picture_end(d);
	}
	doc_grid_end(d);
	if (v->has_left_out)
		doc_text(d, "Of more than %d curves only the first are drawn; the table has all.",
			 LINES_MAX);
}

/* --- words ------------------------------------------------------------------------------------ */

/* @text: room for the figure and for its place. */
static struct doc_cell figure(json_t *of, const char *where, const char *key, int digits,
			      const char *behind, char (*text)[96])
{
	double x = number_of(of, key);

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

	for (const char *at = text_of(point, "label"); *at && n + 3 < size; at++) {
		buf[n++] = *at;
		if (*at == ',')
			buf[n++] = ' ';
	}
	buf[n] = '\0';
	return buf;
}

static void write_choice(const struct plan_view *v, struct doc *d)
{
	const char *goal = text_of(v->plan, "goal"), *verdict = text_of(v->plan, "verdict");
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
	snprintf(note, sizeof(note), "%.0f nodes", number_of(v->chosen, "nodes"));
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
	if (text_of(v->chosen, "bound_by")[0])
		doc_text(d, "Bound by %s: re-timed, a step is %.3f ms shorter if %s.",
			 text_of(v->chosen, "bound_by"), number_of(v->chosen, "won_ms"),
			 text_of(v->chosen, "if"));
}

static void write_row(const struct plan_view *v, size_t i, struct doc *d)
{
	json_t *p = json_array_get(v->points, i);
	char text[6][2][96], where[64], fast[80], slow[80], label[256], ranks[64], why[300];

	snprintf(where, sizeof(where), "points.%zu", i);
	snprintf(fast, sizeof(fast), "%s.fast", where);
	snprintf(slow, sizeof(slow), "%s.slow", where);
	snprintf(ranks, sizeof(ranks), "%.0f", is_known(p) ? number_of(p, "ranks") : 0);
	snprintf(why, sizeof(why), "failed: %.280s", text_of(p, "why"));
	doc_row(d, (struct doc_cell[]){
			   {.text = label_of(p, label, sizeof(label))},
			   {.text = is_known(p) ? ranks : "-"},
			   figure(p, where, "mean_ms", 3, "", text[0]),
			   figure(p, where, "rate", 0, "", text[1]),
			   figure(json_object_get(p, "slow"), slow, "rate", 0, "", text[2]),
			   figure(json_object_get(p, "fast"), fast, "rate", 0, "", text[3]),
			   figure(p, where, "efficiency", 3, "", text[4]),
			   figure(p, where, "exposed", 3, "", text[5]),
			   {.text = is_known(p) ? text_of(p, "bound_by") : why},
			   {.text = text_of(p, "notes")}});
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
	const char *goal = text_of(v->plan, "goal");

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
		text_of(v->plan, "run"), number_of(v->plan, "run_ranks"));
	if (*text_of(v->plan, "device"))
		doc_text(d, "Computation: %s.", text_of(v->plan, "device"));
	doc_text(
		d,
		"A step of the run has %.6g %s; each rank has as many in other worlds, so that the "
		"batch grows with the cluster.",
		number_of(v->plan, "per_step"), v->unit);
	json_array_foreach(json_object_get(v->plan, "bands"), i, error)
		doc_text(d, "Band: the error %s.",
			 json_string_value(error) ? json_string_value(error) : "");
}

int plan_page_write(json_t *plan, const char *command, struct doc *d, struct err *err)
{
	CLEANUP(plan_view_deinit) struct plan_view v;
	CLEANUP(freep) char *text = NULL;
	char title[256];
	int r = view_of(plan, &v, err);

	if (r < 0)
		return r;
	snprintf(title, sizeof(title), "%zu points for %.200s", v.n, text_of(plan, "run"));
	doc_begin(d, title);
	if (command[0])
		doc_code(d, command);
	write_choice(&v, d);
	write_pictures(&v, d);
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
