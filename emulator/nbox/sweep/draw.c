/* See draw.h. */
#include "nbox/sweep/draw.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/json/json-file.h"
#include "nbox/page/sweep-page.h"
#include "nbox/sweep/curve.h"

struct texts {
	char setting[128], line[128], dir[PATH_MAX];
};

/* Adds ", nodes 8" to the name of a curve. */
static void add_to_line(struct texts *t, const char *name, const char *value)
{
	size_t n = strlen(t->line);

	snprintf(t->line + n, sizeof(t->line) - n, "%s%s%s%s", n ? ", " : "", name,
		 value[0] ? " " : "", value);
}

/* The setting on the x axis, and what else makes it a curve of its own. */
static void name_point(const struct sweep_results *r, size_t p, struct texts *ret)
{
	const struct grid *g = &r->sweep->grid;
	char label[GRID_LABEL_MAX];

	*ret = (struct texts){.setting = ""};
	point_dir(r->sweep, p, ret->dir);
	if (r->x_axis == CURVE_NO_AXIS) {
		snprintf(ret->setting, sizeof(ret->setting), "%.120s", grid_label(g, p, label));
		return;
	}
	snprintf(ret->setting, sizeof(ret->setting), "%s %.60s", g->axes[r->x_axis].name,
		 grid_value(g, p, r->x_axis));
	if (r->beside.n)
		add_to_line(ret, r->sweep->run ? "re-timed" : "live", "");
	for (size_t i = 0; i < g->n_axes; i++)
		if (i != r->x_axis && g->axes[i].values.n > 1)
			add_to_line(ret, g->axes[i].name, grid_value(g, p, i));
}

/* The same of a point that stands beside: a curve for each of those that it may be seen with. */
static void name_beside(const struct sweep_results *r, const struct beside_point *b,
			struct texts *ret)
{
	const struct grid *g = &r->sweep->grid;
	const char *axis = g->axes[r->x_axis].name;

	*ret = (struct texts){.setting = ""};
	snprintf(ret->dir, sizeof(ret->dir), "%s", b->dir);
	snprintf(ret->setting, sizeof(ret->setting), "%s %.60s", axis, beside_value(b, axis));
	add_to_line(ret, r->beside.name, "");
	for (size_t i = 0; i < g->n_axes; i++)
		if (i != r->x_axis && g->axes[i].values.n > 1)
			add_to_line(ret, g->axes[i].name, beside_value(b, g->axes[i].name));
}

static struct page_point page_point_of(const struct point_result *k, const struct texts *t)
{
	bool is_done = k->state == POINT_DONE, has_steps = is_done && k->has_steps;

	return (struct page_point){.line = t->line[0] ? t->line : NULL,
				   .setting = t->setting,
				   .run = t->dir,
				   .x = NAN,
				   .ms = has_steps ? k->p50 : NAN,
				   .low_ms = has_steps ? k->p25 : NAN,
				   .high_ms = has_steps ? k->p75 : NAN,
				   .exposed_ms = is_done ? k->exposed : NAN,
				   .injected_ms = is_done ? k->injected : NAN,
				   .modelled_ms = is_done ? k->modelled : NAN,
				   .n_warnings = k->n_warnings};
}

/* All points: the sweep's, then those beside it. */
static void make_points(const struct sweep_results *r, struct texts *texts,
			struct page_point *points)
{
	const struct grid *g = &r->sweep->grid;
	const char *unit;

	for (size_t p = 0; p < g->n_points; p++) {
		name_point(r, p, &texts[p]);
		points[p] = page_point_of(&r->list[p], &texts[p]);
		points[p].run += strlen(r->sweep->dir) + 1;
		if (r->x_axis != CURVE_NO_AXIS)
			value_number(grid_value(g, p, r->x_axis), &points[p].x, &unit);
	}
	for (size_t i = 0; i < r->beside.n; i++) {
		struct page_point *to = &points[g->n_points + i];

		name_beside(r, &r->beside.list[i], &texts[g->n_points + i]);
		*to = page_point_of(&r->beside.list[i].result, &texts[g->n_points + i]);
		to->x = r->beside.list[i].x;
		to->is_dot = true;
	}
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
static int write_summaries(const struct sweep_results *r, const struct texts *texts, struct doc *d)
{
	CLEANUP(json_freep) json_t *all = json_array();
	CLEANUP(freep) char *text = NULL;

	for (size_t p = 0; p < r->sweep->grid.n_points + r->beside.n; p++) {
		json_t *o = NULL;
		char path[PATH_MAX + 32];

		snprintf(path, sizeof(path), "%s/summary.json", texts[p].dir);
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
	sweep_print_warnings(r, f);
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

	if (r->knee.is_known) {
		doc_text(d, "Knee: %s.", knee_text(&r->knee, text, sizeof(text)));
		doc_text(d, "Paid: %s.", sweep_paid_text(r, text, sizeof(text)));
		return;
	}
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

static int write_page(const struct sweep_results *r, const struct page_sweep *page,
		      const struct texts *texts, bool is_svg, const char *name, struct err *err)
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
		e = e == 0 ? write_summaries(r, texts, &d) : e;
		doc_end(&d);
	}
	closed = file_finish(d.to, path, err);
	return e < 0 ? err_set(err, -e, "%s: %s", path, strerror(-e)) : closed;
}

int sweep_draw(const struct sweep_results *r, struct err *err)
{
	const struct grid *g = &r->sweep->grid;
	size_t n = g->n_points + r->beside.n;
	CLEANUP(freep) struct page_point *points = calloc(n, sizeof(*points));
	CLEANUP(freep) struct texts *texts = calloc(n, sizeof(*texts));
	bool has_axis = r->x_axis != CURVE_NO_AXIS;
	char axis[96], title[PATH_MAX + 64], knee[32];
	const struct chart_mark mark = {r->knee.ms, knee};
	int e;

	if (!points || !texts)
		return err_set(err, ENOMEM, "out of memory");
	make_points(r, texts, points);
	snprintf(knee, sizeof(knee), "knee %.2f ms", r->knee.ms);
	if (has_axis)
		snprintf(axis, sizeof(axis), r->x_unit[0] ? "%s (%s)" : "%s",
			 g->axes[r->x_axis].name, r->x_unit);
	snprintf(title, sizeof(title), "%zu points of %s%s", g->n_points, r->sweep->run_dir,
		 r->sweep->run ? ", re-timed" : ", run");

	const struct page_sweep page = {.title = title,
					.axis = has_axis ? axis : NULL,
					.band = "the middle half of the iterations",
					.is_log = has_axis && is_log(points, n),
					.points = points,
					.n = n,
					.marks = &mark,
					.n_marks = r->knee.is_known};

	e = write_page(r, &page, texts, false, "sweep.html", err);
	return e == 0 ? write_page(r, &page, texts, true, "sweep.svg", err) : e;
}
