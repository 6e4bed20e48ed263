/* A chart: curves with bands, dots or bars in a frame with two axes, whose ticks it chooses. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "nbox/draw/svg.h"

enum chart_look {
	CHART_LINE = 1,
	CHART_DOTS = 2,
	CHART_BARS = 4,  /* from zero, @bar wide */
	CHART_STEMS = 8, /* a thick line from zero */
	CHART_DASHED = 16,
};

struct chart_series {
	const char *name; /* in the legend; NULL: not there */
	enum svg_role role;
	unsigned look; /* of enum chart_look */
	size_t n;
	const double *x, *y;      /* a y that is NAN is not drawn */
	const double *low, *high; /* of an error band; NULL: none */
	const char *const *tips;  /* of the dots or bars; NULL: none */
	double bar;               /* width of a bar, in units of x */
};

struct chart_tick {
	double at;
	char text[32];
};

struct chart_axis {
	const char *label; /* with the unit */
	bool is_log;
	bool has_zero; /* the axis begins at 0 */
	double pad;    /* that it is longer than the values on each side, in their unit */
	const struct chart_tick *ticks; /* NULL: chosen */
	size_t n_ticks;
};

/* A line from top to bottom, with words. */
struct chart_mark {
	double x;
	const char *text;
};

struct chart {
	struct chart_axis x, y;
	const struct chart_series *series;
	size_t n_series;
	const struct chart_mark *marks;
	size_t n_marks;
};

/* That the legend takes more than its one line, at that width: the curves have less then. */
double chart_legend_height(const struct chart *c, double width);
/* Into the box of the picture; axes and legend are inside it. A chart without a value is an empty
 * frame. */
void chart_draw(const struct chart *c, FILE *to, double x, double y, double width, double height);
/* Places for about @most ticks from @low to @high, at most 32. Return: how many. */
size_t chart_ticks(double low, double high, double most, struct chart_tick *ret);
