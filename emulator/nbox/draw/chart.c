/* See chart.h. */
#include "nbox/draw/chart.h"

#include <math.h>
#include <string.h>

#define LEFT 52.0 /* of the frame: numbers, and the label above them */
#define TOP 22.0
#define BOTTOM 34.0
#define RIGHT 16.0
#define LETTER 6.6 /* mean width */
#define LINE 16.0  /* of the legend */
#define TICKS_MAX 32

struct scale {
	bool is_log;
	double low, high; /* values; logarithms where is_log */
	double from, to;  /* places in the picture */
};

struct frame {
	FILE *to;
	struct scale x, y;
};

static bool is_drawable(double v, bool is_log)
{
	return isfinite(v) && (!is_log || v > 0);
}

static double place(const struct scale *s, double v)
{
	return s->from +
	       (s->to - s->from) * ((s->is_log ? log10(v) : v) - s->low) / (s->high - s->low);
}

static void widen(struct scale *s, double v)
{
	if (!is_drawable(v, s->is_log))
		return;
	v = s->is_log ? log10(v) : v;
	s->low = fmin(s->low, v);
	s->high = fmax(s->high, v);
}

static void widen_all(struct scale *s, const double *values, size_t n)
{
	for (size_t i = 0; values && i < n; i++)
		widen(s, values[i]);
}

/* 1, 2 or 5 times a power of ten, so that about @n of them span @range. */
static double nice_step(double range, double n)
{
	double rough = range / n, power = pow(10, floor(log10(rough))), m = rough / power;

	return power * (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10);
}

/* What is left of an axis that has one value, or none. */
static void settle(struct scale *s, bool has_zero, double room)
{
	if (s->low > s->high)
		s->low = 0, s->high = 1;
	if (has_zero && !s->is_log) {
		s->low = fmin(s->low, 0);
		s->high = fmax(s->high, 0);
	}
	if (s->high - s->low < 1e-12 * fabs(s->high) + 1e-300) {
		double half = s->is_log ? .3 : fabs(s->high) / 10 + .5;

		s->low -= half;
		s->high += half;
	}
	if (s->low < 0 || !has_zero || s->is_log)
		s->low -= room * (s->high - s->low);
	s->high += room * (s->high - s->low);
}

/* --- legend ---------------------------------------------------------------------------------- */

/* Of a curve, with its mark and the space behind it. */
static double key_width(const struct chart_series *s)
{
	return s->name ? LETTER * (double)strlen(s->name) + 28 : 0;
}

/* The keys from @i on that stand in one line of @room. Return: the one behind them, which is
 * another than @i. */
static size_t line_end(const struct chart *c, size_t i, double room, double *ret_width)
{
	size_t end = i;

	*ret_width = 0;
	while (end < c->n_series && (end == i || *ret_width + key_width(&c->series[end]) <= room))
		*ret_width += key_width(&c->series[end++]);
	return end;
}

/* The first line stands beside the y axis's label, where there is room for all. */
static double legend_room(const struct chart *c, double width)
{
	double room = width - RIGHT, all = 0;

	for (size_t i = 0; i < c->n_series; i++)
		all += key_width(&c->series[i]);
	return all <= room - LETTER * (double)strlen(c->y.label) ? INFINITY : room;
}

double chart_legend_height(const struct chart *c, double width)
{
	double room = legend_room(c, width), used, height = 0;

	for (size_t i = 0; isfinite(room) && i < c->n_series; i = line_end(c, i, room, &used))
		height += LINE;
	return height;
}

static struct frame frame_of(const struct chart *c, FILE *to, double x, double y, double width,
			     double height)
{
	struct frame f = {to,
			  {c->x.is_log, INFINITY, -INFINITY, x + LEFT, x + width - RIGHT},
			  {c->y.is_log, INFINITY, -INFINITY, y + height - BOTTOM,
			   y + TOP + chart_legend_height(c, width)}};

	for (size_t i = 0; i < c->n_series; i++) {
		const struct chart_series *s = &c->series[i];

		widen_all(&f.x, s->x, s->n);
		widen_all(&f.y, s->y, s->n);
		widen_all(&f.y, s->low, s->n);
		widen_all(&f.y, s->high, s->n);
		for (size_t k = 0; s->look & CHART_BARS && k < s->n; k++) {
			widen(&f.x, s->x[k] - s->bar / 2);
			widen(&f.x, s->x[k] + s->bar / 2);
		}
	}
	f.x.low -= c->x.pad;
	f.x.high += c->x.pad;
	settle(&f.x, c->x.has_zero, c->x.is_log ? .02 : .015);
	settle(&f.y, c->y.has_zero, .06);
	return f;
}

/* --- axes ------------------------------------------------------------------------------------ */

static size_t add_tick(struct chart_tick *ticks, size_t n, double at)
{
	if (n == TICKS_MAX)
		return n;
	ticks[n].at = at;
	snprintf(ticks[n].text, sizeof(ticks[n].text), fabs(at) < 1e7 ? "%.10g" : "%.4g",
		 at + 0.0); /* no -0 */
	return n + 1;
}

/* Of a logarithmic axis over a decade or more: powers of ten, thinned out where they are many. */
static size_t log_ticks(const struct scale *s, double most, struct chart_tick *ticks)
{
	static const double steps[] = {1, 2, 5};
	double every = fmax(1, ceil((s->high - s->low) / most));
	size_t n = 0, n_steps = s->high - s->low < 2.5 ? 3 : 1;

	for (double d = floor(s->low); d <= s->high; d += every)
		for (size_t k = 0; k < n_steps; k++)
			if (d + log10(steps[k]) >= s->low && d + log10(steps[k]) <= s->high)
				n = add_tick(ticks, n, steps[k] * pow(10, d));
	return n;
}

size_t chart_ticks(double low, double high, double most, struct chart_tick *ret)
{
	double step = nice_step(high - low, most);
	size_t n = 0;

	for (double k = ceil(low / step); k * step <= high; k++)
		n = add_tick(ret, n, k * step);
	return n;
}

static size_t choose_ticks(const struct scale *s, double most, struct chart_tick *ticks)
{
	return s->is_log ? log_ticks(s, most, ticks) : chart_ticks(s->low, s->high, most, ticks);
}

static void draw_y_axis(const struct chart *c, const struct frame *f)
{
	struct chart_tick chosen[TICKS_MAX];
	const struct chart_tick *ticks = c->y.ticks ? c->y.ticks : chosen;
	double height = f->y.from - f->y.to;
	size_t n = c->y.ticks ? c->y.n_ticks
			      : choose_ticks(&f->y, fmax(3, floor(height / 32)), chosen);

	for (size_t i = 0; i < n; i++) {
		double at = place(&f->y, ticks[i].at);

		svg_line(f->to, f->x.from, at, f->x.to, at, SVG_GRID, SVG_THIN);
		svg_print(f->to, f->x.from - 6, at + 4, SVG_END, SVG_SOFT, "%s", ticks[i].text);
	}
	svg_print(f->to, f->x.from - LEFT + 2, f->y.to - 9, SVG_START, SVG_SOFT, "%s", c->y.label);
}

/* Words that would run into those before them are left out. */
static void draw_x_axis(const struct chart *c, const struct frame *f)
{
	struct chart_tick chosen[TICKS_MAX];
	const struct chart_tick *ticks = c->x.ticks ? c->x.ticks : chosen;
	double width = f->x.to - f->x.from, free_from = -INFINITY;
	size_t n =
		c->x.ticks ? c->x.n_ticks : choose_ticks(&f->x, fmax(2, floor(width / 55)), chosen);

	for (size_t i = 0; i < n; i++) {
		double at = place(&f->x, ticks[i].at);
		double half = LETTER * (double)strlen(ticks[i].text) / 2;

		svg_line(f->to, at, f->y.from, at, f->y.from + 4, SVG_SOFT, SVG_THIN);
		if (at - half < free_from)
			continue;
		svg_print(f->to, at, f->y.from + 15, SVG_MIDDLE, SVG_SOFT, "%s", ticks[i].text);
		free_from = at + half + 6;
	}
	svg_line(f->to, f->x.from, f->y.from, f->x.to, f->y.from, SVG_SOFT, SVG_THIN);
	svg_print(f->to, f->x.to, f->y.from + 29, SVG_END, SVG_SOFT, "%s", c->x.label);
}

static void draw_key(const struct frame *f, const struct chart_series *s, double x, double y)
{
	if (s->look & CHART_LINE)
		svg_line(f->to, x, y - 4, x + 14, y - 4, s->role,
			 SVG_THICK | (s->look & CHART_DASHED ? SVG_DASHED : 0));
	else if (s->look & CHART_DOTS)
		svg_dot(f->to, x + 7, y - 4, s->role, NULL);
	else
		svg_box(f->to, x + 4, y - 9, 9, 9, s->role, 0, NULL);
	svg_print(f->to, x + 18, y, SVG_START, SVG_SOFT, "%s", s->name);
}

/* To the right, line by line; the last one stands above the y axis's label. */
static void draw_legend(const struct chart *c, const struct frame *f, double width)
{
	double room = legend_room(c, width), used;
	double y = f->y.to - 9 - chart_legend_height(c, width);

	for (size_t i = 0, end; i < c->n_series; i = end, y += LINE) {
		double x;

		end = line_end(c, i, room, &used);
		x = f->x.to + 10 - used;
		for (size_t k = i; k < end; k++) {
			if (c->series[k].name)
				draw_key(f, &c->series[k], x, y);
			x += key_width(&c->series[k]);
		}
	}
}

/* --- series ---------------------------------------------------------------------------------- */

static bool has_place(const struct frame *f, const struct chart_series *s, size_t i)
{
	return is_drawable(s->x[i], f->x.is_log) && is_drawable(s->y[i], f->y.is_log);
}

static void draw_band(const struct frame *f, const struct chart_series *s)
{
	if (s->n == 0)
		return;
	if (s->n == 1 || !(s->look & CHART_LINE)) { /* whiskers */
		for (size_t i = 0; i < s->n; i++) {
			double x = place(&f->x, s->x[i]), low = place(&f->y, s->low[i]),
			       high = place(&f->y, s->high[i]);

			svg_line(f->to, x, low, x, high, s->role, SVG_THIN);
			svg_line(f->to, x - 4, low, x + 4, low, s->role, SVG_THIN);
			svg_line(f->to, x - 4, high, x + 4, high, s->role, SVG_THIN);
		}
		return;
	}
	svg_area_begin(f->to, s->role);
	for (size_t i = 0; i < s->n; i++)
		svg_corner(f->to, place(&f->x, s->x[i]), place(&f->y, s->high[i]));
	for (size_t i = s->n; i-- > 0;)
		svg_corner(f->to, place(&f->x, s->x[i]), place(&f->y, s->low[i]));
	svg_path_end(f->to);
}

static void draw_line(const struct frame *f, const struct chart_series *s)
{
	svg_path_begin(f->to, s->role, SVG_THICK | (s->look & CHART_DASHED ? SVG_DASHED : 0));
	for (size_t i = 0; i < s->n; i++)
		if (has_place(f, s, i))
			svg_corner(f->to, place(&f->x, s->x[i]), place(&f->y, s->y[i]));
	svg_path_end(f->to);
}

static void draw_marks_of(const struct frame *f, const struct chart_series *s, size_t i)
{
	const char *tip = s->tips ? s->tips[i] : NULL;
	double x = place(&f->x, s->x[i]), y = place(&f->y, s->y[i]), zero = f->y.from;

	if (!f->y.is_log && f->y.low < 0)
		zero = place(&f->y, fmin(0, f->y.high));
	if (s->look & CHART_BARS) {
		double left = place(&f->x, s->x[i] - s->bar / 2),
		       right = place(&f->x, s->x[i] + s->bar / 2);

		svg_box(f->to, left + .5, fmin(y, zero), fmax(right - left - 1, .5), fabs(zero - y),
			s->role, 0, tip);
	}
	if (s->look & CHART_STEMS)
		svg_line(f->to, x, zero, x, y, s->role, SVG_THICK);
	if (s->look & CHART_DOTS)
		svg_dot(f->to, x, y, s->role, tip);
}

static void draw_series(const struct frame *f, const struct chart_series *s)
{
	if (s->low && s->high)
		draw_band(f, s);
	if (s->look & CHART_LINE)
		draw_line(f, s);
	for (size_t i = 0; i < s->n; i++)
		if (has_place(f, s, i))
			draw_marks_of(f, s, i);
}

static void draw_mark(const struct frame *f, const struct chart_mark *m)
{
	double x = place(&f->x, m->x);
	bool is_right = x > f->x.from + .8 * (f->x.to - f->x.from); /* the words stand before it */

	svg_line(f->to, x, f->y.to, x, f->y.from, SVG_EXPOSED, SVG_DASHED);
	svg_print(f->to, is_right ? x - 4 : x + 4, f->y.to + 10, is_right ? SVG_END : SVG_START,
		  SVG_EXPOSED, "%s", m->text);
}

void chart_draw(const struct chart *c, FILE *to, double x, double y, double width, double height)
{
	struct frame f = frame_of(c, to, x, y, width, height);

	draw_y_axis(c, &f);
	draw_x_axis(c, &f);
	draw_legend(c, &f, width);
	for (size_t i = 0; i < c->n_series; i++)
		draw_series(&f, &c->series[i]);
	for (size_t i = 0; i < c->n_marks; i++)
		draw_mark(&f, &c->marks[i]);
}
