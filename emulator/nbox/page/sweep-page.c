/* See sweep-page.h. */
#include "nbox/page/sweep-page.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbox/draw/chart.h"

#define WIDTH 420.0
#define HEIGHT 270.0
#define LINES_MAX 8         /* colours */
#define NAME_MAX_LETTERS 12 /* of a setting below the axis */

enum column { X, MS, LOW, HIGH, EXPOSED, INJECTED, COLUMNS };

/* The points of each curve by x, column by column. */
struct curves {
	size_t n;
	const char *names[LINES_MAX];
	bool is_dots[LINES_MAX];
	size_t n_points[LINES_MAX];
	double *columns[LINES_MAX]; /* owned; COLUMNS times the sweep's n */
	struct chart_tick *ticks;   /* owned; NULL: chosen */
	bool has_more;              /* than LINES_MAX */
};

static void curves_deinit(struct curves *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->columns[i]);
	free(c->ticks);
}

static const char *line_name(const struct page_point *p)
{
	return p->line ? p->line : "";
}

/* Return: the curve of that name; LINES_MAX: there are too many. */
static size_t find_line(struct curves *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (!strcmp(c->names[i], name))
			return i;
	return LINES_MAX;
}

static int by_x(const void *pa, const void *pb)
{
	const struct page_point *a = *(const struct page_point *const *)pa,
				*b = *(const struct page_point *const *)pb;

	return a->x < b->x ? -1 : a->x > b->x ? 1 : a < b ? -1 : a > b;
}

static void add_point(struct curves *c, size_t line, size_t size, const struct page_point *p,
		      double x)
{
	const double values[COLUMNS] = {x,          p->ms,         p->low_ms,
					p->high_ms, p->exposed_ms, p->injected_ms};

	for (size_t k = 0; k < COLUMNS; k++)
		c->columns[line][k * size + c->n_points[line]] = values[k];
	c->n_points[line]++;
}

/* Where a setting is a sentence, the run's name. */
static const char *short_name(const struct page_point *p)
{
	const char *base = p->run ? strrchr(p->run, '/') : NULL;

	return strlen(p->setting) <= NAME_MAX_LETTERS || !p->run ? p->setting
	       : base                                            ? base + 1
								 : p->run;
}

static int curves_of(const struct page_sweep *s, struct curves *c)
{
	CLEANUP(freep) const struct page_point **sorted = calloc(s->n + 1, sizeof(*sorted));

	c->ticks = s->axis && !s->is_log ? NULL : calloc(s->n + 1, sizeof(*c->ticks));
	if (!sorted || ((!s->axis || s->is_log) && !c->ticks))
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++)
		sorted[i] = &s->points[i];
	if (s->axis)
		qsort(sorted, s->n, sizeof(*sorted), by_x);
	for (size_t i = 0; i < s->n; i++) {
		size_t line = find_line(c, line_name(sorted[i]));

		if (line == LINES_MAX && c->n < LINES_MAX) {
			c->columns[c->n] = calloc(COLUMNS * s->n, sizeof(double));
			if (!c->columns[c->n])
				return -ENOMEM;
			c->names[c->n] = line_name(sorted[i]);
			c->is_dots[c->n] = sorted[i]->is_dot || !s->axis;
			line = c->n++;
		}
		c->has_more |= line == LINES_MAX;
		if (s->axis && c->ticks) {
			c->ticks[i].at = sorted[i]->x;
			snprintf(c->ticks[i].text, sizeof(c->ticks[i].text), "%g", sorted[i]->x);
		} else if (c->ticks) {
			c->ticks[i].at = (double)i + 1;
			snprintf(c->ticks[i].text, sizeof(c->ticks[i].text), "%s",
				 short_name(sorted[i]));
		}
		if (line < LINES_MAX && isfinite(sorted[i]->ms))
			add_point(c, line, s->n, sorted[i], s->axis ? sorted[i]->x : (double)i + 1);
	}
	return 0;
}

static const double *column(const struct page_sweep *s, const struct curves *c, size_t line,
			    enum column k)
{
	return c->columns[line] + (size_t)k * s->n;
}

/* The series of column @k of each curve. */
static void make_series(const struct page_sweep *s, const struct curves *c, enum column k,
			struct chart_series *ret)
{
	for (size_t i = 0; i < c->n; i++)
		ret[i] =
			(struct chart_series){.name = c->names[i][0] ? c->names[i] : NULL,
					      .role = SVG_SERIES_1 + i,
					      .look = CHART_DOTS | (c->is_dots[i] ? 0 : CHART_LINE),
					      .n = c->n_points[i],
					      .x = column(s, c, i, X),
					      .y = column(s, c, i, k)};
}

static void draw(const struct page_sweep *s, const struct curves *c,
		 const struct chart_series *series, size_t n, enum svg_place place,
		 const char *name, FILE *to)
{
	const struct chart chart = {
		.x = {.label = s->axis ? s->axis : "",
		      .is_log = s->axis && s->is_log,
		      .pad = s->axis ? 0 : .5,
		      .ticks = c->ticks,
		      .n_ticks = c->ticks ? s->n : 0},
		.y = {.label = "ms an iteration", .has_zero = true},
		.series = series,
		.n_series = n,
		.marks = s->marks,
		.n_marks = s->n_marks,
	};
	double height = HEIGHT + chart_legend_height(&chart, WIDTH);

	svg_begin(to, place, WIDTH, height, name);
	chart_draw(&chart, to, 0, 0, WIDTH, height);
	svg_end(to);
}

static void draw_times(const struct page_sweep *s, const struct curves *c, enum svg_place place,
		       FILE *to)
{
	struct chart_series series[LINES_MAX];

	make_series(s, c, MS, series);
	for (size_t i = 0; i < c->n; i++) {
		if (s->axis && c->is_dots[i])
			continue; /* there are several at one place */
		series[i].low = column(s, c, i, LOW);
		series[i].high = column(s, c, i, HIGH);
	}
	draw(s, c, series, c->n, place, "iteration time over the setting", to);
}

int sweep_page_draw(const struct page_sweep *s, enum svg_place place, FILE *to)
{
	CLEANUP(curves_deinit) struct curves c = {0};
	int r = curves_of(s, &c);

	if (r == 0)
		draw_times(s, &c, place, to);
	return r;
}

static bool has_any(const double *values, size_t n)
{
	size_t i = 0;

	while (i < n && values[i] == 0)
		i++;
	return i < n;
}

/* Exposed and, dashed, injected time of each curve; where there are lines, of those. */
static void draw_parts(const struct page_sweep *s, const struct curves *c, FILE *to)
{
	struct chart_series exposed[LINES_MAX], injected[LINES_MAX], series[2 * LINES_MAX];
	size_t n = 0, n_lines = 0;

	make_series(s, c, EXPOSED, exposed);
	make_series(s, c, INJECTED, injected);
	for (size_t i = 0; i < c->n; i++)
		n_lines += !c->is_dots[i];
	for (size_t i = 0; i < c->n; i++) {
		if (n_lines > 0 && c->is_dots[i])
			continue;
		injected[i].name = NULL;
		injected[i].look |= CHART_DASHED;
		if (c->n == 1 || n_lines == 1) {
			exposed[i].name = "exposed";
			exposed[i].role = SVG_EXPOSED;
			injected[i].name = "injected";
			injected[i].role = SVG_INJECTED;
		}
		series[n++] = exposed[i];
		if (has_any(injected[i].y, injected[i].n))
			series[n++] = injected[i];
	}
	draw(s, c, series, n, SVG_IN_PAGE, "exposed time over the setting", to);
}

/* "delay 5ms (nodes 8)": the axis without its unit, the setting, the curve. */
static char *in_words(const struct page_sweep *s, const struct page_point *p, char *buf,
		      size_t size)
{
	size_t n = s->axis ? strcspn(s->axis, " (") : 0;
	bool has_name = !s->axis || strchr(p->setting, '=') || !strcmp(p->setting, "none") ||
			!strncmp(p->setting, s->axis, n);

	snprintf(buf, size, "%.*s%s%s%s%s%s", has_name ? 0 : (int)strcspn(s->axis, "("),
		 has_name ? "" : s->axis, has_name || strchr(s->axis, '(') ? "" : " ", p->setting,
		 p->line ? " (" : "", line_name(p), p->line ? ")" : "");
	return buf;
}

static void write_answer(const struct page_sweep *s, struct doc *d)
{
	const struct page_point *least = NULL, *most = NULL;
	char text[2][256];

	for (size_t i = 0; i < s->n; i++) {
		const struct page_point *p = &s->points[i];

		if (!isfinite(p->ms) || p->is_dot)
			continue;
		least = least && least->ms <= p->ms ? least : p;
		most = most && most->ms >= p->ms ? most : p;
	}
	if (!least || least == most)
		return;
	doc_text(d, "An iteration takes %.3f ms at %s, and %.3f ms at %s: %.2f times as long.",
		 least->ms, in_words(s, least, text[0], sizeof(text[0])), most->ms,
		 in_words(s, most, text[1], sizeof(text[1])), most->ms / least->ms);
}

static struct doc_cell ms_cell(double ms, size_t point, const char *key, char (*text)[64])
{
	if (isfinite(ms))
		snprintf(text[0], sizeof(text[0]), "%.3f", ms);
	else
		snprintf(text[0], sizeof(text[0]), "-");
	snprintf(text[1], sizeof(text[1]), "%zu.%s", point, key);
	return (struct doc_cell){text[0], isfinite(ms) ? text[1] : NULL, ms};
}

static void write_table(const struct page_sweep *s, struct doc *d)
{
	static const char *const heads[] = {"setting",      "median, ms",  "from",
					    "to",           "exposed, ms", "injected, ms",
					    "modelled, ms", "warnings",    "run"};
	bool has_runs = false;

	for (size_t i = 0; i < s->n; i++)
		has_runs |= s->points[i].run != NULL;
	doc_table_begin(d, has_runs ? "lrrrrrrrl" : "lrrrrrrr", heads);
	for (size_t i = 0; i < s->n; i++) {
		const struct page_point *p = &s->points[i];
		char text[6][2][64], setting[256], warnings[16];

		snprintf(setting, sizeof(setting), "%s%s%s", line_name(p), p->line ? ", " : "",
			 p->setting);
		snprintf(warnings, sizeof(warnings), "%u", p->n_warnings);
		doc_row(d, (struct doc_cell[]){{.text = setting},
					       ms_cell(p->ms, i, "steps.ms.p50", text[0]),
					       ms_cell(p->low_ms, i, "steps.ms.p25", text[1]),
					       ms_cell(p->high_ms, i, "steps.ms.p75", text[2]),
					       ms_cell(p->exposed_ms, i, "exposed_ms", text[3]),
					       ms_cell(p->injected_ms, i, "injected_ms", text[4]),
					       ms_cell(p->modelled_ms, i, "modelled_ms", text[5]),
					       {.text = warnings},
					       {.text = p->run ? p->run : ""}});
	}
	doc_table_end(d);
	doc_text(d, "From, to: %s.", s->band);
}

int sweep_page_write(const struct page_sweep *s, struct doc *d)
{
	CLEANUP(curves_deinit) struct curves c = {0};
	char caption[256];
	int r = curves_of(s, &c);

	if (r < 0)
		return r;
	write_answer(s, d);
	doc_grid_begin(d);
	snprintf(caption, sizeof(caption), "Time of an iteration, median; band: %s%s", s->band,
		 c.has_more ? "; the first eight curves, the table has all" : "");
	if (doc_picture_begin(d, caption, false)) {
		draw_times(s, &c, SVG_IN_PAGE, d->to);
		doc_picture_end(d);
	}
	if (doc_picture_begin(
		    d,
		    "Of it: exposed communication, what computation waits for; dashed: injected, what what-ifs add",
		    false)) {
		draw_parts(s, &c, d->to);
		doc_picture_end(d);
	}
	doc_grid_end(d);
	doc_heading(d, "Settings");
	write_table(s, d);
	return 0;
}
