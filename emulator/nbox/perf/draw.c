/* See draw.h. */
#include "nbox/perf/draw.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "nbox/draw/chart.h"

#define COLUMNS 64
#define LINES 12

enum curve { CURVE_TIME, CURVE_BOUND, CURVE_BUSBW };

static double value(const struct perf_row *row, enum curve curve)
{
	return curve == CURVE_TIME    ? row->answer.ns
	       : curve == CURVE_BOUND ? row->answer.bound_ns
				      : row->busbw;
}

/* The least and the largest logarithm of what is positive. Return: there is any. */
static bool range(const struct perf_rows *r, enum curve curve, double *low, double *high)
{
	for (size_t i = 0; i < r->n; i++) {
		double v = value(&r->rows[i], curve);

		if (v > 0) {
			*low = fmin(*low, log(v));
			*high = fmax(*high, log(v));
		}
	}
	return *high > *low;
}

/* Of times and of their bounds. */
static bool time_range(const struct perf_rows *r, double *low, double *high)
{
	range(r, CURVE_BOUND, low, high);
	return range(r, CURVE_TIME, low, high);
}

/* Where @bytes stands from left to right, 0 to 1. */
static double across(const struct perf_rows *r, size_t i)
{
	double first = log((double)r->rows[0].bytes + 1),
	       last = log((double)r->rows[r->n - 1].bytes + 1);

	return (log((double)r->rows[i].bytes + 1) - first) / (last - first);
}

/* --- characters ------------------------------------------------------------------- */

static void mark(const struct perf_rows *r, enum curve curve, double low, double high, char with,
		 char (*grid)[COLUMNS + 1])
{
	for (size_t i = 0; i < r->n; i++) {
		double v = value(&r->rows[i], curve);

		if (v > 0)
			grid[lround((LINES - 1) * (high - log(v)) / (high - low))]
			    [lround((COLUMNS - 1) * across(r, i))] = with;
	}
}

void perf_draw_text(const struct perf_rows *r, FILE *to)
{
	double low = INFINITY, high = -INFINITY;
	char grid[LINES][COLUMNS + 1], label[32], last[32];

	if (r->n < 3 || !time_range(r, &low, &high))
		return;
	for (int i = 0; i < LINES; i++)
		snprintf(grid[i], sizeof(grid[i]), "%*s", COLUMNS, "");
	mark(r, CURVE_BOUND, low, high, '.', grid);
	mark(r, CURVE_TIME, low, high, 'o', grid);
	fprintf(to, "# time over bytes, both logarithmic; o: modelled, .: the bound\n");
	for (int i = 0; i < LINES; i++) {
		double ns = exp(high - (high - low) * i / (LINES - 1));

		fprintf(to, "# %10s |%s\n",
			i % 4 == 0 || i == LINES - 1 ? units_print_time(ns, label, sizeof(label))
						     : "",
			grid[i]);
	}
	fprintf(to, "# %10s +%.*s\n# %10s  %-*s%s\n#\n", "", COLUMNS,
		"----------------------------------------------------------------", "", COLUMNS - 8,
		units_print_bytes(r->rows[0].bytes, label, sizeof(label)),
		units_print_bytes(r->rows[r->n - 1].bytes, last, sizeof(last)));
}

/* --- SVG -------------------------------------------------------------------------- */

#define WIDTH 800.0
#define PANEL 250.0

/* What the charts show, a value a size. */
struct columns {
	double *bytes, *time, *bound, *busbw; /* owned by @bytes; us, GB/s */
	struct chart_tick *ticks;             /* owned */
	struct chart_mark *marks;             /* owned, with their texts */
	char (*texts)[48];
	size_t n_ticks, n_marks;
};

static void columns_deinit(struct columns *c)
{
	free(c->bytes);
	free(c->ticks);
	free(c->marks);
	free(c->texts);
}

/* Where a plan's algorithm or protocol is another than one size before. */
static void mark_choices(const struct perf_rows *r, struct columns *c)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct nbox_plan *now = &r->rows[i].answer.plan;
		const struct nbox_plan *before = i ? &r->rows[i - 1].answer.plan : NULL;

		if (!now->n_lanes ||
		    (before && before->algo == now->algo && before->proto == now->proto))
			continue;
		snprintf(c->texts[c->n_marks], sizeof(c->texts[0]), "%s %s",
			 ask_algo_name(now->algo), ask_proto_name(now->proto));
		c->marks[c->n_marks] = (struct chart_mark){c->bytes[i], c->texts[c->n_marks]};
		c->n_marks++;
	}
}

static int columns_of(const struct perf_rows *r, struct columns *c)
{
	c->bytes = calloc(4 * r->n, sizeof(*c->bytes));
	c->ticks = calloc(r->n, sizeof(*c->ticks));
	c->marks = calloc(r->n, sizeof(*c->marks));
	c->texts = calloc(r->n, sizeof(*c->texts));
	if (!c->bytes || !c->ticks || !c->marks || !c->texts)
		return -ENOMEM;
	c->time = c->bytes + r->n;
	c->bound = c->time + r->n;
	c->busbw = c->bound + r->n;
	for (size_t i = 0; i < r->n; i++) {
		c->bytes[i] = (double)r->rows[i].bytes + 1; /* 0 bytes have a place, too */
		c->time[i] = value(&r->rows[i], CURVE_TIME) / 1e3;
		c->bound[i] = value(&r->rows[i], CURVE_BOUND) / 1e3;
		c->busbw[i] = value(&r->rows[i], CURVE_BUSBW);
		if (i % (r->n / 10 + 1))
			continue;
		c->ticks[c->n_ticks].at = c->bytes[i];
		units_print_bytes(r->rows[i].bytes, c->ticks[c->n_ticks].text,
				  sizeof(c->ticks[0].text));
		c->n_ticks++;
	}
	mark_choices(r, c);
	return 0;
}

int perf_draw_svg(const struct perf_rows *r, const char *title, FILE *to)
{
	CLEANUP(columns_deinit) struct columns c = {0};
	int made = columns_of(r, &c);
	const struct chart_series times[] = {{.name = "bound",
					      .role = SVG_SOFT,
					      .look = CHART_LINE | CHART_DASHED,
					      .n = r->n,
					      .x = c.bytes,
					      .y = c.bound},
					     {.name = "modelled",
					      .role = SVG_SERIES_1,
					      .look = CHART_LINE,
					      .n = r->n,
					      .x = c.bytes,
					      .y = c.time}};
	const struct chart_series rates[] = {
		{.role = SVG_SERIES_1, .look = CHART_LINE, .n = r->n, .x = c.bytes, .y = c.busbw}};
	const struct chart_axis bytes = {.label = "size",
					 .is_log = true,
					 .ticks = c.ticks,
					 .n_ticks = c.n_ticks};
	const struct chart upper = {.x = bytes,
				    .y = {.label = "time (us)", .is_log = true},
				    .series = times,
				    .n_series = 2,
				    .marks = c.marks,
				    .n_marks = c.n_marks},
			   lower = {.x = bytes,
				    .y = {.label = "bus bandwidth (GB/s)", .is_log = true},
				    .series = rates,
				    .n_series = 1};

	if (made < 0)
		return made;
	svg_begin(to, SVG_ALONE, WIDTH, 40 + 2 * PANEL, title);
	svg_print(to, 10, 22, SVG_START | SVG_BOLD, SVG_INK, "%s", title);
	chart_draw(&upper, to, 5, 34, WIDTH - 10, PANEL);
	chart_draw(&lower, to, 5, 34 + PANEL, WIDTH - 10, PANEL);
	svg_end(to);
	return 0;
}
