/* See lanes.h. */
#include "nbox/draw/lanes.h"

#include <math.h>
#include <string.h>

#include "nbox/draw/chart.h"

#define NAME 15.0 /* high */
#define BAR 16.0
#define LANE (NAME + BAR + 7)
#define AXIS 40.0

double lanes_height(const struct lanes *l)
{
	return LANE * (double)l->n + AXIS;
}

static void draw_lane(const struct lanes *l, const struct lane *lane, FILE *to, double x, double y,
		      double width)
{
	svg_print(to, x, y + NAME - 4, SVG_START, SVG_SOFT, "%s", lane->name);
	svg_box(to, x, y + NAME, width, BAR, SVG_GRID, SVG_FAINT, NULL);
	for (size_t i = 0; i < lane->n; i++) {
		const struct lane_bar *b = &lane->bars[i];
		double from = fmax(0, b->from) / l->length,
		       end = fmin(l->length, b->to) / l->length;

		if (end <= from)
			continue;
		svg_box(to, x + from * width, y + NAME, fmax((end - from) * width, .6), BAR,
			b->role, 0, b->tip);
	}
}

void lanes_draw(const struct lanes *l, FILE *to, double x, double y, double width)
{
	struct chart_tick ticks[32];
	size_t n = chart_ticks(0, l->length, fmax(2, floor(width / 70)), ticks);
	double bottom = y + LANE * (double)l->n;

	for (size_t i = 0; i < n; i++) {
		double at = x + width * ticks[i].at / l->length;

		svg_line(to, at, bottom - 6, at, bottom + 4, SVG_SOFT, SVG_THIN);
		svg_print(to, at, bottom + 17, i ? SVG_MIDDLE : SVG_START, SVG_SOFT, "%s",
			  ticks[i].text);
	}
	for (size_t i = 0; i < l->n; i++)
		draw_lane(l, &l->lanes[i], to, x, y + LANE * (double)i, width);
	svg_print(to, x + width, bottom + 31, SVG_END, SVG_SOFT, "%s", l->label);
}

void lanes_keys(const struct lane_key *keys, size_t n, FILE *to, double x, double y)
{
	for (size_t i = 0; i < n; i++) {
		svg_box(to, x, y, 10, 10, keys[i].role, 0, NULL);
		svg_print(to, x + 14, y + 9, SVG_START, SVG_SOFT, "%s", keys[i].text);
		x += 30 + 6.0 * (double)strlen(keys[i].text);
	}
}
