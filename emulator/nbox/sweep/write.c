/* See write.h. */
#include "nbox/sweep/write.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/page/sweep-page.h"
#include "nbox/report/json-file.h"
#include "nbox/sweep/curve.h"

int sweep_results_read(const struct sweep *s, struct sweep_results *ret)
{
	const struct grid *g = &s->grid;
	struct sweep_results r = {.sweep = s, .x_unit = ""};
	int e = 0;

	r.list = calloc(g->n_points, sizeof(*r.list));
	r.is_knee = calloc(g->n_points, sizeof(*r.is_knee));
	r.x_axis = curve_axis(g, &r.x_unit);
	e = r.list && r.is_knee ? 0 : -ENOMEM;
	for (size_t i = 0; e == 0 && i < g->n_points; i++) {
		e = point_read(s, i, &r.list[i]);
		r.n_failed += r.list[i].state != POINT_DONE;
		r.n_unmet += r.list[i].is_unmet;
	}
	if (e == 0 && r.x_axis != CURVE_NO_AXIS)
		e = curve_knees(g, r.list, r.x_axis, r.is_knee);
	if (e < 0)
		sweep_results_deinit(&r);
	else
		*ret = r;
	return e;
}

void sweep_results_deinit(struct sweep_results *r)
{
	free(r->list);
	free(r->is_knee);
}

/* --- for people ------------------------------------------------------------------------------- */

/* An axis has a column where its values differ. */
static bool is_column(const struct grid *g, size_t axis)
{
	return g->axes[axis].values.n > 1;
}

static int axis_width(const struct grid *g, size_t axis)
{
	size_t width = strlen(g->axes[axis].name);

	for (size_t i = 0; i < g->axes[axis].values.n; i++) {
		size_t n = strlen(g->axes[axis].values.list[i]);

		width = n > width ? n : width;
	}
	return width > 60 ? 60 : (int)width;
}

static void print_figures(const struct point_result *p, bool is_knee, FILE *to)
{
	if (p->state != POINT_DONE) {
		fprintf(to, "  %s%s\n", p->state == POINT_FAILED ? "FAILED: " : "not played yet",
			p->why);
		return;
	}
	if (p->has_steps)
		fprintf(to, " %10.3f %10.3f", p->p50, p->mean);
	else
		fprintf(to, " %10s %10s", "-", "-");
	fprintf(to, " %10.3f %10.3f %10.3f%s%s\n", p->exposed, p->injected, p->modelled,
		is_knee ? "  <- knee" : "", p->is_unmet ? "  NOT as expected" : "");
}

/* What is to be known of the points, each sentence once. */
static void print_warnings(const struct sweep_results *r, FILE *to)
{
	size_t n = r->sweep->grid.n_points;

	for (size_t i = 0; i < n; i++) {
		const char *text = r->list[i].warning;
		size_t n_same = 0, first = n;

		for (size_t k = 0; text[0] && k < n; k++)
			if (strcmp(r->list[k].warning, text) == 0) {
				first = first < k ? first : k;
				n_same++;
			}
		if (first == i)
			fprintf(to, "   warning: %s (%zu of %zu points)\n", text, n_same, n);
	}
}

void sweep_print_heads(const struct sweep_results *r, FILE *to)
{
	const struct grid *g = &r->sweep->grid;

	for (size_t i = 0; i < g->n_axes; i++)
		if (is_column(g, i))
			fprintf(to, "%*s  ", axis_width(g, i), g->axes[i].name);
}

void sweep_print_setting(const struct sweep_results *r, size_t point, FILE *to)
{
	const struct grid *g = &r->sweep->grid;

	for (size_t i = 0; i < g->n_axes; i++)
		if (is_column(g, i))
			fprintf(to, "%*.60s  ", axis_width(g, i), grid_value(g, point, i));
}

void sweep_print_notes(const struct sweep_results *r, FILE *to)
{
	size_t n = r->sweep->grid.n_points;

	print_warnings(r, to);
	if (r->n_unmet)
		fprintf(to, "   not as expected  %zu of %zu points\n", r->n_unmet, n);
	if (r->n_failed)
		fprintf(to, "   failed         %zu of %zu points\n", r->n_failed, n);
}

void sweep_print(const struct sweep_results *r, FILE *to)
{
	bool has_knee = false;

	sweep_print_heads(r, to);
	fprintf(to, "%10s %10s %10s %10s %10s\n", "step, ms", "mean", "exposed", "injected",
		"modelled");
	for (size_t p = 0; p < r->sweep->grid.n_points; p++) {
		sweep_print_setting(r, p, to);
		print_figures(&r->list[p], r->is_knee[p], to);
		has_knee |= r->is_knee[p];
	}
	if (has_knee)
		fprintf(to,
			"   knee           from there on %s tells; before it, computation hides what it adds\n",
			r->sweep->grid.axes[r->x_axis].name);
	sweep_print_notes(r, to);
	fprintf(to, "   results        %s: sweep.csv, sweep.json, sweep.html, sweep.svg, points/\n",
		r->sweep->dir);
}

/* --- for programs ----------------------------------------------------------------------------- */

static void print_field(const char *text, FILE *to)
{
	fputc('"', to);
	for (; *text; text++)
		fprintf(to, *text == '"' ? "\"%c" : "%c", *text);
	fputc('"', to);
}

void sweep_csv_heads(const struct sweep_results *r, FILE *to)
{
	const struct grid *g = &r->sweep->grid;

	for (size_t i = 0; i < g->n_axes; i++) {
		print_field(g->axes[i].name, to);
		fputc(',', to);
	}
}

void sweep_csv_setting(const struct sweep_results *r, size_t point, FILE *to)
{
	const struct grid *g = &r->sweep->grid;

	for (size_t i = 0; i < g->n_axes; i++) {
		print_field(grid_value(g, point, i), to);
		fputc(',', to);
	}
}

static void print_csv(const struct sweep_results *r, FILE *to)
{
	const struct grid *g = &r->sweep->grid;
	char dir[PATH_MAX];

	sweep_csv_heads(r, to);
	fputs("p25_ms,p50_ms,p75_ms,p95_ms,mean_ms,exposed_ms,injected_ms,modelled_ms,warnings,knee,failed,dir\n",
	      to);
	for (size_t p = 0; p < g->n_points; p++) {
		const struct point_result *k = &r->list[p];

		sweep_csv_setting(r, p, to);
		if (k->state == POINT_DONE && k->has_steps)
			fprintf(to, "%.6f,%.6f,%.6f,%.6f,%.6f,", k->p25, k->p50, k->p75, k->p95,
				k->mean);
		else
			fputs(",,,,,", to);
		if (k->state == POINT_DONE)
			fprintf(to, "%.6f,%.6f,%.6f,%u,%d,", k->exposed, k->injected, k->modelled,
				k->n_warnings, r->is_knee[p]);
		else
			fputs(",,,,,", to);
		fprintf(to, "%d,", k->state != POINT_DONE);
		print_field(point_dir(r->sweep, p, dir), to);
		fputc('\n', to);
	}
}

static json_t *axes_json(const struct grid *g)
{
	json_t *list = json_array();

	for (size_t i = 0; i < g->n_axes; i++) {
		json_t *values = json_array();

		for (size_t k = 0; k < g->axes[i].values.n; k++)
			json_array_append_new(values, json_string(g->axes[i].values.list[k]));
		json_array_append_new(list, json_pack("{s:s, s:o}", "name", g->axes[i].name,
						      "values", values));
	}
	return list;
}

static json_t *point_json(const struct sweep_results *r, size_t p)
{
	const struct grid *g = &r->sweep->grid;
	const struct point_result *k = &r->list[p];
	json_t *setting = json_object(), *o;
	char dir[PATH_MAX];

	for (size_t i = 0; i < g->n_axes; i++)
		json_object_set_new(setting, g->axes[i].name, json_string(grid_value(g, p, i)));
	o = json_pack("{s:o, s:s, s:b}", "setting", setting, "dir", point_dir(r->sweep, p, dir),
		      "failed", (int)(k->state != POINT_DONE));
	if (k->state != POINT_DONE)
		json_object_set_new(o, "why",
				    json_string(k->state == POINT_FAILED ? k->why
									 : "not played yet"));
	if (k->state == POINT_DONE && k->has_steps)
		json_object_set_new(o, "ms",
				    json_pack("{s:f, s:f, s:f, s:f, s:f}", "p25", k->p25, "p50",
					      k->p50, "p75", k->p75, "p95", k->p95, "mean",
					      k->mean));
	if (k->state == POINT_DONE)
		json_object_update_new(o, json_pack("{s:f, s:f, s:f, s:i, s:b, s:b}", "exposed_ms",
						    k->exposed, "injected_ms", k->injected,
						    "modelled_ms", k->modelled, "warnings",
						    (int)k->n_warnings, "knee", (int)r->is_knee[p],
						    "as_expected", (int)!k->is_unmet));
	return o;
}

int sweep_write_json(const struct sweep_results *r, const char *path, struct err *err)
{
	CLEANUP(json_freep) json_t *o = NULL;
	json_t *points = json_array();
	FILE *to;
	int e;

	for (size_t p = 0; p < r->sweep->grid.n_points; p++)
		json_array_append_new(points, point_json(r, p));
	o = json_pack("{s:s, s:b, s:o, s:o, s:I}", "run", r->sweep->run_dir, "live",
		      (int)!r->sweep->run, "axes", axes_json(&r->sweep->grid), "points", points,
		      "failed", (json_int_t)r->n_failed);
	if (!o)
		return err_set(err, ENOMEM, "out of memory");
	e = file_create(path, &to, err);
	if (e < 0)
		return e;
	json_dumpf(o, to, JSON_INDENT(2));
	fputc('\n', to);
	return file_finish(to, path, err);
}

/* --- pictures --------------------------------------------------------------------------------- */

struct texts {
	char setting[128], line[128], dir[PATH_MAX];
};

/* The setting on the x axis, and what else makes it a curve of its own. */
static void name_point(const struct sweep_results *r, size_t p, struct texts *ret)
{
	const struct grid *g = &r->sweep->grid;
	char label[GRID_LABEL_MAX];
	size_t used = 0;

	*ret = (struct texts){.setting = ""};
	point_dir(r->sweep, p, ret->dir);
	if (r->x_axis == CURVE_NO_AXIS) {
		snprintf(ret->setting, sizeof(ret->setting), "%.120s", grid_label(g, p, label));
		return;
	}
	snprintf(ret->setting, sizeof(ret->setting), "%s %.60s", g->axes[r->x_axis].name,
		 grid_value(g, p, r->x_axis));
	for (size_t i = 0; i < g->n_axes; i++)
		if (i != r->x_axis && is_column(g, i) && used < sizeof(ret->line))
			used += (size_t)snprintf(ret->line + used, sizeof(ret->line) - used,
						 "%s%s %s", used ? ", " : "", g->axes[i].name,
						 grid_value(g, p, i));
}

static struct page_point page_point_of(const struct sweep_results *r, size_t p,
				       const struct texts *t)
{
	const struct point_result *k = &r->list[p];
	bool is_done = k->state == POINT_DONE, has_steps = is_done && k->has_steps;
	const char *unit;
	struct page_point ret = {.line = t->line[0] ? t->line : NULL,
				 .setting = t->setting,
				 .run = t->dir + strlen(r->sweep->dir) + 1,
				 .x = NAN,
				 .ms = has_steps ? k->p50 : NAN,
				 .low_ms = has_steps ? k->p25 : NAN,
				 .high_ms = has_steps ? k->p75 : NAN,
				 .exposed_ms = is_done ? k->exposed : NAN,
				 .injected_ms = is_done ? k->injected : NAN,
				 .modelled_ms = is_done ? k->modelled : NAN,
				 .n_warnings = k->n_warnings};

	if (r->x_axis != CURVE_NO_AXIS)
		value_number(grid_value(&r->sweep->grid, p, r->x_axis), &ret.x, &unit);
	return ret;
}

/* Over so wide a range that most of the points would lie at its beginning. */
static bool is_log(const struct page_point *points, size_t n)
{
	double least = INFINITY, most = 0;

	for (size_t i = 0; i < n; i++) {
		least = fmin(least, points[i].x);
		most = fmax(most, points[i].x);
	}
	return least > 0 && most > 20 * least;
}

/* The points' summaries, for programs that read the page. */
static int write_summaries(const struct sweep_results *r, struct doc *d)
{
	CLEANUP(json_freep) json_t *all = json_array();
	CLEANUP(freep) char *text = NULL;

	for (size_t p = 0; p < r->sweep->grid.n_points; p++) {
		json_t *o = NULL;
		char dir[PATH_MAX], path[PATH_MAX + 32];

		snprintf(path, sizeof(path), "%s/summary.json", point_dir(r->sweep, p, dir));
		json_array_append_new(all, json_file_read(path, &o, NULL) == 0 ? o : json_null());
	}
	text = json_dumps(all, JSON_COMPACT);
	if (!text)
		return -ENOMEM;
	doc_json(d, "summary", text);
	return 0;
}

static void write_notes(const struct sweep_results *r, struct doc *d)
{
	CLEANUP(freep) char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return;
	print_warnings(r, f);
	for (size_t p = 0; p < r->sweep->grid.n_points; p++) {
		char label[GRID_LABEL_MAX];

		if (r->list[p].state == POINT_FAILED)
			fprintf(f, "   failed: %s: %s\n", grid_label(&r->sweep->grid, p, label),
				r->list[p].why);
	}
	if (fclose(f) != 0 || !text[0])
		return;
	doc_heading(d, "Look at this before you trust the figures");
	for (char *at = text, *line; (line = strsep(&at, "\n")) && *line;) {
		const char *list[] = {line};

		doc_warnings(d, list, 1);
	}
}

static void write_knees(const struct sweep_results *r, struct doc *d)
{
	const struct grid *g = &r->sweep->grid;
	char label[GRID_LABEL_MAX], text[1024] = "";
	size_t used = 0;

	for (size_t p = 0; p < g->n_points && used < sizeof(text); p++)
		if (r->is_knee[p])
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used ? "; " : "", grid_label(g, p, label));
	if (used)
		doc_text(
			d,
			"Knee: from there on %s tells; before it, computation hides what it adds: %s.",
			g->axes[r->x_axis].name, text);
}

static int write_page(const struct sweep_results *r, const struct page_sweep *page, bool is_svg,
		      const char *name, struct err *err)
{
	char path[PATH_MAX];
	struct doc d = {.form = DOC_HTML};
	int e, closed;

	snprintf(path, sizeof(path), "%.*s/%s", PATH_MAX - 32, r->sweep->dir, name);
	e = file_create(path, &d.to, err);
	if (e < 0)
		return e;
	if (is_svg) {
		e = sweep_page_draw(page, SVG_ALONE, d.to);
	} else {
		doc_begin(&d, page->title);
		write_knees(r, &d);
		e = sweep_page_write(page, &d);
		write_notes(r, &d);
		e = e == 0 ? write_summaries(r, &d) : e;
		doc_end(&d);
	}
	closed = file_finish(d.to, path, err);
	return e < 0 ? err_set(err, -e, "%s: %s", path, strerror(-e)) : closed;
}

static int write_pages(const struct sweep_results *r, struct err *err)
{
	const struct grid *g = &r->sweep->grid;
	CLEANUP(freep) struct page_point *points = calloc(g->n_points, sizeof(*points));
	CLEANUP(freep) struct texts *texts = calloc(g->n_points, sizeof(*texts));
	bool has_axis = r->x_axis != CURVE_NO_AXIS;
	char axis[96], title[PATH_MAX + 64];
	int e;

	if (!points || !texts)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t p = 0; p < g->n_points; p++) {
		name_point(r, p, &texts[p]);
		points[p] = page_point_of(r, p, &texts[p]);
	}
	if (has_axis)
		snprintf(axis, sizeof(axis), r->x_unit[0] ? "%s (%s)" : "%s",
			 g->axes[r->x_axis].name, r->x_unit);
	snprintf(title, sizeof(title), "%zu points of %s%s", g->n_points, r->sweep->run_dir,
		 r->sweep->run ? ", re-timed" : ", run");

	const struct page_sweep page = {.title = title,
					.axis = has_axis ? axis : NULL,
					.band = "the middle half of the iterations",
					.is_log = has_axis && is_log(points, g->n_points),
					.points = points,
					.n = g->n_points};

	e = write_page(r, &page, false, "sweep.html", err);
	return e == 0 ? write_page(r, &page, true, "sweep.svg", err) : e;
}

int sweep_write(const struct sweep_results *r, struct err *err)
{
	char path[PATH_MAX];
	FILE *to;
	int e;

	snprintf(path, sizeof(path), "%.*s/sweep.json", PATH_MAX - 32, r->sweep->dir);
	e = sweep_write_json(r, path, err);
	if (e == 0) {
		snprintf(path, sizeof(path), "%.*s/sweep.csv", PATH_MAX - 32, r->sweep->dir);
		e = file_create(path, &to, err);
	}
	if (e == 0) {
		print_csv(r, to);
		e = file_finish(to, path, err);
	}
	return e == 0 ? write_pages(r, err) : e;
}
