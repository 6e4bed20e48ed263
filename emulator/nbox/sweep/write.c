/* See write.h. */
#include "nbox/sweep/write.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/json/json-file.h"
#include "nbox/sweep/curve.h"
#include "nbox/sweep/notes.h"

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
	if (e == 0)
		e = knee_find(s, r.x_axis, &r.knee);
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

static void print_ms(double ms, FILE *to)
{
	if (isfinite(ms))
		fprintf(to, " %10.3f", ms);
	else
		fprintf(to, " %10s", "-");
}

static void print_figures(const struct sweep_results *r, size_t point, FILE *to)
{
	const struct point_result *p = &r->list[point];

	if (p->state != POINT_DONE) {
		fprintf(to, "  %s%s\n", p->state == POINT_FAILED ? "FAILED: " : "not played yet",
			point && p->why[0] && strcmp(p->why, p[-1].why) == 0 ? "as above" : p->why);
		return;
	}
	print_ms(p->has_steps ? p->p50 : NAN, to);
	if (r->beside.n)
		print_ms(beside_ms(&r->beside, &r->sweep->grid, point), to);
	print_ms(p->has_steps ? p->mean : NAN, to);
	fprintf(to, " %10.3f %10.3f %10.3f%s%s\n", p->exposed, p->injected, p->modelled,
		r->is_knee[point] ? "  <- knee" : "", p->is_unmet ? "  NOT as expected" : "");
}

void sweep_print_warnings(const struct sweep_results *r, FILE *to)
{
	size_t n = r->sweep->grid.n_points;
	struct notes notes = {.n = 0};

	for (size_t i = 0; i < n; i++) {
		char text[sizeof(r->list[i].warnings)];
		uint32_t marks = 0;

		memcpy(text, r->list[i].warnings, sizeof(text));
		for (char *at = text, *line; (line = strsep(&at, "\n")) && *line;)
			if (notes_add(&notes, line, &marks) < 0)
				break;
	}
	for (size_t i = 0; i < notes.n; i++)
		fprintf(to, "   warning: %s (%zu of %zu points)\n", notes.list[i].text,
			notes.list[i].n, n);
	if (notes.n_dropped)
		fputs("   warning: there are more, in summary.json of the points\n", to);
	notes_deinit(&notes);
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

	sweep_print_warnings(r, to);
	if (r->n_unmet)
		fprintf(to, "   not as expected  %zu of %zu points\n", r->n_unmet, n);
	if (r->n_failed)
		fprintf(to, "   failed         %zu of %zu points\n", r->n_failed, n);
}

char *sweep_paid_text(const struct sweep_results *r, char *buf, size_t size)
{
	const struct grid *g = &r->sweep->grid;
	double longest = 0, paid = 0, x;
	const char *unit;

	for (size_t i = 0; i < g->n_points; i++)
		if (r->list[i].state == POINT_DONE &&
		    value_number(grid_value(g, i, r->x_axis), &x, &unit) == 0 && x > longest) {
			longest = x;
			paid = r->list[i].injected;
		}
	return knee_paid_text(&r->knee, longest, paid, buf, size);
}

static void print_beside(const struct sweep_results *r, FILE *to)
{
	const struct beside *b = &r->beside;
	const struct grid *g = &r->sweep->grid;
	size_t n = 0;

	for (size_t p = 0; p < g->n_points; p++)
		n += isfinite(beside_ms(b, g, p));
	if (b->n && n == 0)
		fprintf(to,
			"   %-14.14s none of its points has a setting of this sweep; they are in the pictures alone\n",
			b->name);
	if (b->n_without)
		fprintf(to,
			"   %-14.14s %zu of its %zu points have no steps, and are left out: they failed, or were not played yet\n",
			b->name, b->n_without, b->n + b->n_without);
}

void sweep_print(const struct sweep_results *r, FILE *to)
{
	bool has_knee = false;
	char text[512];

	sweep_print_heads(r, to);
	fprintf(to, " %10s", "median, ms");
	if (r->beside.n)
		fprintf(to, " %10.10s", r->beside.name);
	fprintf(to, " %10s %10s %10s %10s\n", "mean", "exposed", "injected", "modelled");
	for (size_t p = 0; p < r->sweep->grid.n_points; p++) {
		sweep_print_setting(r, p, to);
		print_figures(r, p, to);
		has_knee |= r->is_knee[p];
	}
	if (r->knee.is_known) {
		fprintf(to, "   knee           %s\n", knee_text(&r->knee, text, sizeof(text)));
		fprintf(to, "   paid           %s\n", sweep_paid_text(r, text, sizeof(text)));
	} else if (has_knee) {
		fprintf(to,
			"   knee           from there on %s tells; before it, computation hides what it adds\n",
			r->sweep->grid.axes[r->x_axis].name);
	}
	print_beside(r, to);
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
	if (isfinite(beside_ms(&r->beside, g, p)))
		json_object_set_new(o, "beside_ms", json_real(beside_ms(&r->beside, g, p)));
	return o;
}

int sweep_write_json(const struct sweep_results *r, const char *path, struct err *err)
{
	json_t *o, *points = json_array();

	for (size_t p = 0; p < r->sweep->grid.n_points; p++)
		json_array_append_new(points, point_json(r, p));
	o = json_pack("{s:s, s:b, s:o, s:o, s:I, s:o}", "run", r->sweep->run_dir, "live",
		      (int)!r->sweep->run, "axes", axes_json(&r->sweep->grid), "points", points,
		      "failed", (json_int_t)r->n_failed, "knee_ms",
		      r->knee.is_known ? json_real(r->knee.ms) : json_null());
	return json_file_write(o, path, err);
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
	return e;
}
