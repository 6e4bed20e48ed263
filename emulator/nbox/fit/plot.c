/* See plot.h. */
#include "nbox/fit/plot.h"

#include <math.h>

#include "base/units.h"
#include "nbox/fit/print.h"

#define WIDTH 640.0
#define TIMES 220.0 /* high */
#define RESIDUALS 70.0
#define LEFT 80.0
#define BLOCK (TIMES + RESIDUALS + 90)

struct frame {
	double top;
	double x_low, x_high, y_low, y_high; /* logarithms: bytes, ns */
	double most;                         /* residual */
};

static struct frame frame_of(const struct curve *c, size_t i)
{
	struct frame f = {.top = 30 + BLOCK * (double)i,
			  .x_low = log(c->points[0].bytes),
			  .x_high = log(c->points[c->n_points - 1].bytes) + 1e-9,
			  .y_low = INFINITY,
			  .y_high = -INFINITY,
			  .most = .01};

	for (size_t j = 0; j < c->n_points; j++) {
		double t = c->points[j].ns, fit = curve_ns(c, c->points[j].bytes);

		f.y_low = fmin(f.y_low, log(fmin(t, fit)));
		f.y_high = fmax(f.y_high, log(fmax(t, fit)) + 1e-9);
		f.most = fmax(f.most, fabs(fit / t - 1));
	}
	return f;
}

static double across(const struct frame *f, double bytes)
{
	return LEFT + WIDTH * (log(bytes) - f->x_low) / (f->x_high - f->x_low);
}

static double down(const struct frame *f, double ns)
{
	return f->top + TIMES * (f->y_high - log(ns)) / (f->y_high - f->y_low);
}

static void text(double x, double y, const char *anchor, const char *what, FILE *to)
{
	fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
		what);
}

static void box(double top, double height, FILE *to)
{
	fprintf(to,
		"<rect x=\"%.0f\" y=\"%.1f\" width=\"%.0f\" height=\"%.1f\" fill=\"none\" "
		"stroke=\"#888\"/>\n",
		LEFT, top, WIDTH, height);
}

static void scales(const struct curve *c, const struct frame *f, FILE *to)
{
	double factor = curve_wire_factor(c->kind, c->n_ranks);
	char label[32];

	for (double d = ceil(f->y_low / log(10)); d * log(10) <= f->y_high; d++) {
		snprintf(label, sizeof(label), "%g us", pow(10, d - 3));
		text(LEFT - 6, down(f, pow(10, d)) + 4, "end", label, to);
	}
	for (size_t i = 0; i < c->n_points; i += c->n_points / 8 + 1)
		text(across(f, c->points[i].bytes), f->top + TIMES + RESIDUALS + 36, "middle",
		     units_print_bytes((uint64_t)llround(c->points[i].bytes / factor), label,
				       sizeof(label)),
		     to);
	snprintf(label, sizeof(label), "+%.1f %%", 100 * f->most);
	text(LEFT - 6, f->top + TIMES + 24, "end", label, to);
	snprintf(label, sizeof(label), "-%.1f %%", 100 * f->most);
	text(LEFT - 6, f->top + TIMES + 20 + RESIDUALS, "end", label, to);
}

static void draw_curve(const struct curve *c, const struct frame *f, FILE *to)
{
	double middle = f->top + TIMES + 20 + RESIDUALS / 2;

	fprintf(to, "<polyline fill=\"none\" stroke=\"#06c\" stroke-width=\"1.5\" points=\"");
	for (int i = 0; i <= 200; i++) {
		double bytes = exp(f->x_low + (f->x_high - f->x_low) * i / 200);
		double ns = curve_ns(c, bytes);

		if (ns > 0)
			fprintf(to, "%.1f,%.1f ", across(f, bytes), down(f, ns));
	}
	fprintf(to, "\"/>\n");
	for (size_t i = 0; i < c->n_points; i++) {
		const struct curve_point *p = &c->points[i];
		double residual = curve_ns(c, p->bytes) / p->ns - 1;

		fprintf(to,
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#c40\"/>"
			"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#c40\" "
			"stroke-width=\"4\"/>\n",
			across(f, p->bytes), down(f, p->ns), across(f, p->bytes),
			across(f, p->bytes), middle, middle - RESIDUALS / 2 * residual / f->most);
	}
}

void plot_svg(const struct fitted *f, FILE *to)
{
	char name[128], title[256];

	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" "
		"height=\"100%%\" fill=\"white\"/>\n",
		LEFT + WIDTH + 30, BLOCK * (double)f->n + 10);
	for (size_t i = 0; i < f->n; i++) {
		const struct curve *c = &f->curves[i];
		struct frame frame = frame_of(c, i);

		snprintf(title, sizeof(title),
			 "%s: %s, GMAE %.1f %% at points held out; below: fit less measured",
			 fit_name(c, name, sizeof(name)), curve_form_names[c->form], 100 * c->gmae);
		text(LEFT, frame.top - 8, "start", title, to);
		box(frame.top, TIMES, to);
		box(frame.top + TIMES + 20, RESIDUALS, to);
		scales(c, &frame, to);
		draw_curve(c, &frame, to);
	}
	fprintf(to, "</svg>\n");
}
