/* See plot.h. */
#include "nbox/fit/plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "nbox/draw/chart.h"
#include "nbox/fit/print.h"

#define WIDTH 740.0
#define TIMES 260.0
#define RESIDUALS 130.0
#define BLOCK (TIMES + RESIDUALS + 34)
#define STEPS 200 /* of the fit's curve */

/* Of one curve: the fit, what was measured, and how far they are apart. */
struct columns {
	double *fit_bytes, *fit_us, *bytes, *us, *residual; /* owned by @fit_bytes */
	struct chart_tick *ticks;                           /* owned */
	size_t n_ticks;
};

static void columns_deinit(struct columns *k)
{
	free(k->fit_bytes);
	free(k->ticks);
}

static int columns_of(const struct curve *c, struct columns *k)
{
	double factor = curve_wire_factor(c->kind, c->n_ranks), first = log(c->points[0].bytes),
	       last = log(c->points[c->n_points - 1].bytes);
	size_t n = c->n_points;

	k->fit_bytes = calloc(2 * STEPS + 3 * n, sizeof(*k->fit_bytes));
	k->ticks = calloc(n, sizeof(*k->ticks));
	if (!k->fit_bytes || !k->ticks)
		return -ENOMEM;
	k->fit_us = k->fit_bytes + STEPS;
	k->bytes = k->fit_us + STEPS;
	k->us = k->bytes + n;
	k->residual = k->us + n;
	for (size_t i = 0; i < STEPS; i++) {
		k->fit_bytes[i] = exp(first + (last - first) * (double)i / (STEPS - 1));
		k->fit_us[i] = curve_ns(c, k->fit_bytes[i]) / 1e3;
	}
	for (size_t i = 0; i < n; i++) {
		const struct curve_point *p = &c->points[i];

		k->bytes[i] = p->bytes;
		k->us[i] = p->ns / 1e3;
		k->residual[i] = 100 * (curve_ns(c, p->bytes) / p->ns - 1);
		if (i % (n / 10 + 1))
			continue;
		k->ticks[k->n_ticks].at = p->bytes;
		units_print_bytes((uint64_t)llround(p->bytes / factor), k->ticks[k->n_ticks].text,
				  sizeof(k->ticks[0].text));
		k->n_ticks++;
	}
	return 0;
}

static int draw_curve(const struct curve *c, double top, FILE *to)
{
	CLEANUP(columns_deinit) struct columns k = {0};
	int r = columns_of(c, &k);
	const struct chart_series times[] = {{.name = "fit",
					      .role = SVG_SERIES_1,
					      .look = CHART_LINE,
					      .n = STEPS,
					      .x = k.fit_bytes,
					      .y = k.fit_us},
					     {.name = "measured",
					      .role = SVG_EXPOSED,
					      .look = CHART_DOTS,
					      .n = c->n_points,
					      .x = k.bytes,
					      .y = k.us}};
	const struct chart_series apart[] = {{.role = SVG_EXPOSED,
					      .look = CHART_STEMS,
					      .n = c->n_points,
					      .x = k.bytes,
					      .y = k.residual}};
	const struct chart_axis bytes = {.label = "size",
					 .is_log = true,
					 .ticks = k.ticks,
					 .n_ticks = k.n_ticks};
	const struct chart upper = {.x = bytes,
				    .y = {.label = "time (us)", .is_log = true},
				    .series = times,
				    .n_series = 2},
			   lower = {.x = bytes,
				    .y = {.label = "fit less measured (%)", .has_zero = true},
				    .series = apart,
				    .n_series = 1};
	char name[128];

	if (r < 0)
		return r;
	svg_print(to, 10, top + 20, SVG_START | SVG_BOLD, SVG_INK,
		  "%s: %s, GMAE %.1f %% at points held out", fit_name(c, name, sizeof(name)),
		  curve_form_names[c->form], 100 * c->gmae);
	chart_draw(&upper, to, 5, top + 28, WIDTH - 10, TIMES);
	chart_draw(&lower, to, 5, top + 28 + TIMES, WIDTH - 10, RESIDUALS);
	return 0;
}

int plot_svg(const struct fitted *f, FILE *to)
{
	int r = 0;

	svg_begin(to, SVG_ALONE, WIDTH, BLOCK * (double)f->n, "a fitted model");
	for (size_t i = 0; r == 0 && i < f->n; i++)
		r = draw_curve(&f->curves[i], BLOCK * (double)i, to);
	svg_end(to);
	return r;
}
