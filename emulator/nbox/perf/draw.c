/* See draw.h. */
#include "nbox/perf/draw.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/plain.h"
#include "base/units.h"

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

#define WIDTH 720.0
#define HEIGHT 220.0
#define LEFT 80.0

struct panel {
	double top, low, high; /* of the picture; logarithms */
};

static double down(const struct panel *p, double v)
{
	return p->top + HEIGHT * (p->high - log(v)) / (p->high - p->low);
}

static void line_svg(const struct perf_rows *r, enum curve curve, const struct panel *p,
		     const char *style, FILE *to)
{
	fprintf(to, "<polyline fill=\"none\" %s points=\"", style);
	for (size_t i = 0; i < r->n; i++) {
		double v = value(&r->rows[i], curve);

		if (v > 0)
			fprintf(to, "%.1f,%.1f ", LEFT + WIDTH * across(r, i), down(p, v));
	}
	fprintf(to, "\"/>\n");
}

/* A line and a number at each power of ten. */
static void scale_svg(const struct panel *p, const char *what, double unit, FILE *to)
{
	fprintf(to,
		"<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"none\" stroke=\"#888\"/>\n"
		"<text x=\"%.0f\" y=\"%.0f\" font-weight=\"bold\">%s</text>\n",
		LEFT, p->top, WIDTH, HEIGHT, LEFT + 8, p->top + 18, what);
	for (double d = floor(log10(exp(p->low) / unit)); d < 19; d++) {
		double v = pow(10, d) * unit;

		if (log(v) < p->low || log(v) > p->high)
			continue;
		fprintf(to,
			"<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>"
			"<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
			LEFT, LEFT + WIDTH, down(p, v), down(p, v), LEFT - 6, down(p, v) + 4,
			v / unit);
	}
}

/* Where a plan's algorithm or protocol is another than one size before. */
static void choices_svg(const struct perf_rows *r, const struct panel *p, FILE *to)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct nbox_plan *now = &r->rows[i].answer.plan;
		const struct nbox_plan *before = i ? &r->rows[i - 1].answer.plan : NULL;
		double x = LEFT + WIDTH * across(r, i), end = p->top + HEIGHT;
		bool is_right = across(r, i) > 0.85; /* the words stand before it */

		if (!now->n_lanes ||
		    (before && before->algo == now->algo && before->proto == now->proto))
			continue;
		fprintf(to,
			"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\" stroke=\"#c60\" "
			"stroke-dasharray=\"1 3\"/><text x=\"%.1f\" y=\"%.0f\" "
			"text-anchor=\"%s\" fill=\"#c60\">%s %s</text>\n",
			x, x, p->top, end, is_right ? x - 4 : x + 4, end - 8,
			is_right ? "end" : "start", ask_algo_name(now->algo),
			ask_proto_name(now->proto));
	}
}

static void bytes_svg(const struct perf_rows *r, double y, FILE *to)
{
	size_t step = r->n / 8 + 1;
	char text[32];

	for (size_t i = 0; i < r->n; i += step)
		fprintf(to, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%s</text>\n",
			LEFT + WIDTH * across(r, i), y,
			units_print_bytes(r->rows[i].bytes, text, sizeof(text)));
}

void perf_draw_svg(const struct perf_rows *r, const char *title, FILE *to)
{
	struct panel times = {40, INFINITY, -INFINITY}, rates = {290, INFINITY, -INFINITY};

	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"830\" height=\"550\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
		"fill=\"white\"/>\n<text x=\"80\" y=\"24\">");
	plain_xml(title, to);
	fprintf(to, "</text>\n");
	if (r->n > 1 && time_range(r, &times.low, &times.high)) {
		scale_svg(&times, "time (us); dashed: the bound", 1e3, to);
		choices_svg(r, &times, to);
		line_svg(r, CURVE_BOUND, &times, "stroke=\"#888\" stroke-dasharray=\"5 4\"", to);
		line_svg(r, CURVE_TIME, &times, "stroke=\"#06c\" stroke-width=\"2\"", to);
	}
	if (r->n > 1 && range(r, CURVE_BUSBW, &rates.low, &rates.high)) {
		scale_svg(&rates, "bus bandwidth (GB/s)", 1, to);
		line_svg(r, CURVE_BUSBW, &rates, "stroke=\"#06c\" stroke-width=\"2\"", to);
		bytes_svg(r, 528, to);
	}
	fprintf(to, "</svg>\n");
}
