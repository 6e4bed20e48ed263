/* See run-iterations.h. */
#include "nbox/page/run-iterations.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "nbox/draw/chart.h"

#define NARROW 400.0 /* of a picture in the grid: its text is readable on a phone */
#define BINS 16
#define POINTS_MAX 400

/* Of a long run each point is several iterations: their mean, the least and the most. */
struct thinned {
	double *x, *y, *low, *high; /* owned by @x */
	size_t n, each;
};

static void thinned_deinit(struct thinned *t)
{
	free(t->x);
}

static int thin(const struct view *v, struct thinned *t)
{
	uint64_t n = v->n_timed - v->n_warm_up;

	t->each = n / POINTS_MAX + 1;
	t->n = (n + t->each - 1) / t->each;
	t->x = calloc(4 * t->n + 1, sizeof(*t->x));
	if (!t->x)
		return -ENOMEM;
	t->y = t->x + t->n;
	t->low = t->y + t->n;
	t->high = t->low + t->n;
	for (size_t i = 0; i < t->n; i++) {
		uint64_t first = i * t->each, end = first + t->each < n ? first + t->each : n;

		t->low[i] = INFINITY;
		for (uint64_t k = v->n_warm_up + first; k < v->n_warm_up + end; k++) {
			t->x[i] += v->step_number[k] / (double)(end - first);
			t->y[i] += v->step_ms[k] / (double)(end - first);
			t->low[i] = fmin(t->low[i], v->step_ms[k]);
			t->high[i] = fmax(t->high[i], v->step_ms[k]);
		}
	}
	return 0;
}

static void draw_iterations(const struct view *v, const struct thinned *t, FILE *to)
{
	bool is_thin = t->each > 1;
	const struct chart_series series[] = {{.name = v->n_warm_up ? "warm-up" : NULL,
					       .role = SVG_OTHERS,
					       .look = CHART_DOTS,
					       .n = v->n_warm_up,
					       .x = v->step_number,
					       .y = v->step_ms},
					      {.role = SVG_COMPUTE,
					       .look = t->n > 100 ? CHART_LINE
								  : CHART_LINE | CHART_DOTS,
					       .n = t->n,
					       .x = t->x,
					       .y = t->y,
					       .low = is_thin ? t->low : NULL,
					       .high = is_thin ? t->high : NULL}};
	const struct chart c = {.x = {.label = "iteration"},
				.y = {.label = "time (ms)", .has_zero = true},
				.series = series,
				.n_series = 2};

	svg_begin(to, SVG_IN_PAGE, NARROW, 230, "times of iterations over the run");
	chart_draw(&c, to, 0, 0, NARROW, 230);
	svg_end(to);
}

/* What lies far out is in the last bar, so that the others say something. */
static void draw_histogram(const struct view *v, const struct report_stat *s, FILE *to)
{
	double high = s->n >= 100 ? s->p99 / 1e6 : s->max / 1e6, low = s->min / 1e6;
	double width = fmax((high - low) / BINS, 1e-6), x[BINS], y[BINS] = {0};
	const double *ms = v->step_ms + v->n_warm_up;
	const struct chart_series bars = {
		.role = SVG_COMPUTE, .look = CHART_BARS, .n = BINS, .x = x, .y = y, .bar = width};
	const struct chart c = {
		.x = {.label = s->n >= 100 ? "time of an iteration (ms); the last bar: and above"
					   : "time of an iteration (ms)"},
		.y = {.label = "iterations", .has_zero = true},
		.series = &bars,
		.n_series = 1};

	for (int b = 0; b < BINS; b++)
		x[b] = low + width * (b + .5);
	for (uint64_t i = 0; i < v->n_timed - v->n_warm_up; i++)
		y[(int)fmax(0, fmin(BINS - 1, (ms[i] - low) / width))]++;
	svg_begin(to, SVG_IN_PAGE, NARROW, 230, "how often iterations take how long");
	chart_draw(&c, to, 0, 0, NARROW, 230);
	svg_end(to);
}

int run_iterations_write(const struct report *rep, const struct view *v, struct doc *d)
{
	CLEANUP(thinned_deinit) struct thinned t = {0};
	static const char *const heads[] = {"iterations", "mean", "p25", "p50", "p75", "p95"};
	const struct report_stat *s = &rep->step_ns;
	char text[5][32], n[32], caption[128];

	if (!rep->n_steps)
		return 0;
	if (thin(v, &t) < 0)
		return -ENOMEM;
	doc_heading(d, "Iterations");
	doc_grid_begin(d);
	snprintf(caption, sizeof(caption),
		 t.each > 1 ? "In the order of the run: means of %zu, the least and the most"
			    : "In the order of the run",
		 t.each);
	if (doc_picture_begin(d, caption, false)) {
		draw_iterations(v, &t, d->to);
		doc_picture_end(d);
	}
	if (s->n >= 8 && doc_picture_begin(d, "How they spread", false)) {
		draw_histogram(v, s, d->to);
		doc_picture_end(d);
	}
	doc_grid_end(d);
	snprintf(n, sizeof(n), "%llu", (unsigned long long)s->n);
	doc_table_begin(d, "rrrrrr", heads);
	doc_row(d, (struct doc_cell[]){{n, "steps.timed", (double)s->n},
				       doc_ms(s->mean, "steps.ms.mean", text[0], sizeof(text[0])),
				       doc_ms(s->p25, "steps.ms.p25", text[1], sizeof(text[1])),
				       doc_ms(s->p50, "steps.ms.p50", text[2], sizeof(text[2])),
				       doc_ms(s->p75, "steps.ms.p75", text[3], sizeof(text[3])),
				       doc_ms(s->p95, "steps.ms.p95", text[4], sizeof(text[4]))});
	doc_table_end(d);
	doc_text(d, "An iteration is %s.", rep->steps_how);
	return 0;
}
