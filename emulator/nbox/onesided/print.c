/* See print.h. */
#include "nbox/onesided/print.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "base/units.h"
#include "nbox/draw/chart.h"

int compare_onesided(const struct onesided *o, struct compared *ret)
{
	int r;

	ret->o = *o;
	ret->collective = onesided_collective(o);
	r = onesided_play(o, NULL, &ret->stores);
	ret->until_ns = fmax(ret->collective.end_ns, ret->stores.end_ns);
	onesided_collective_curve(o, ret->until_ns, COMPARED_POINTS, ret->collective_sent);
	return r < 0 ? r : onesided_curve(o, ret->until_ns, COMPARED_POINTS, ret->stores_sent);
}

static double speedup(const struct compared *c)
{
	return c->collective.end_ns / c->stores.end_ns;
}

/* The largest rate on the busiest link, between two points of a curve. */
static double peak(const struct compared *c, const double *sent)
{
	double most = 0;

	for (int i = 1; i < COMPARED_POINTS; i++)
		most = fmax(most, sent[i] - sent[i - 1]);
	return most * (COMPARED_POINTS - 1) / c->until_ns;
}

/* --- text ----------------------------------------------------------------------- */

static const char *bound_text(const struct compared *c)
{
	switch (c->stores.bound) {
	case ONESIDED_COMPUTE:
		return "compute: the link is idle at times";
	case ONESIDED_HEADERS:
		return "headers: without them the stores would keep up with computation";
	case ONESIDED_LINK:
	default:
		return "link: the vectors alone take it longer than computation";
	}
}

static void print_row(const char *name, double compute, double sync, double behind, double unpack,
		      double end, FILE *to)
{
	fprintf(to, "%-12s%14.3f%10.3f%18.3f%11.3f%12.3f\n", name, compute / 1e3, sync / 1e3,
		behind / 1e3, unpack / 1e3, end / 1e3);
}

void compared_print(const struct compared *c, FILE *to)
{
	const struct onesided_collective *a = &c->collective;
	const struct onesided_stores *s = &c->stores;
	struct onesided_volume v = onesided_volume(&c->o, c->o.n_ranks - 1);
	char sent[32], all[32];

	fprintf(to, "%u ranks; of its %s of vectors each sends %s to others, in %llu messages\n\n",
		c->o.n_ranks,
		units_print_bytes(c->o.tables * c->o.samples * c->o.vector_bytes, all, sizeof(all)),
		units_print_bytes(v.sent, sent, sizeof(sent)),
		(unsigned long long)onesided_messages(&c->o));
	fprintf(to, "%-12s%14s%10s%18s%11s%12s\n", "us", "computation", "sync", "network behind it",
		"unpacking", "in all");
	print_row("collective", a->compute_ns, a->sync_ns, a->wire_ns, a->unpack_ns, a->end_ns, to);
	print_row("one-sided", s->compute_ns, 0, s->end_ns - s->compute_ns, 0, s->end_ns, to);
	fprintf(to, "\nspeedup      %.3f\nbound        %s\n", speedup(c), bound_text(c));
	fprintf(to, "busiest link %llu packets, %.1f %% of its bytes are headers\n",
		(unsigned long long)s->packets,
		s->packets ? 100. * (double)s->packets * c->o.header_bytes /
				     ((double)s->bytes + (double)s->packets * c->o.header_bytes)
			   : 0);
	fprintf(to, "peak rate    %.3g GB/s of vectors, one-sided; %.3g GB/s, collective\n\n",
		peak(c, c->stores_sent), peak(c, c->collective_sent));
	fprintf(to, "%12s%14s%14s  of what goes over the busiest link has been sent\n", "us",
		"collective", "one-sided");
	for (int i = 0; i < COMPARED_POINTS; i += (COMPARED_POINTS - 1) / 10)
		fprintf(to, "%12.3f%12.1f %%%12.1f %%\n",
			c->until_ns * i / (COMPARED_POINTS - 1) / 1e3,
			s->bytes ? 100 * c->collective_sent[i] / (double)s->bytes : 100,
			s->bytes ? 100 * c->stores_sent[i] / (double)s->bytes : 100);
}

/* --- files ------------------------------------------------------------------------ */

json_t *compared_json(const struct compared *c)
{
	const struct onesided_collective *a = &c->collective;
	const struct onesided_stores *s = &c->stores;
	struct onesided_volume v = onesided_volume(&c->o, c->o.n_ranks - 1);
	json_t *o = json_pack(
		"{s:i, s:I, s:I, s:I, s:I, s:{s:f, s:f, s:f, s:f, s:f}, s:{s:f, s:f, s:I, s:I}, s:f, s:s}",
		"ranks", (int)c->o.n_ranks, "sent_bytes", (json_int_t)v.sent, "received_bytes",
		(json_int_t)onesided_volume(&c->o, 0).received, "pair_bytes", (json_int_t)v.pair,
		"messages", (json_int_t)onesided_messages(&c->o), "collective", "compute_us",
		a->compute_ns / 1e3, "sync_us", a->sync_ns / 1e3, "wire_us", a->wire_ns / 1e3,
		"unpack_us", a->unpack_ns / 1e3, "end_us", a->end_ns / 1e3, "onesided",
		"compute_us", s->compute_ns / 1e3, "end_us", s->end_ns / 1e3, "link_packets",
		(json_int_t)s->packets, "link_bytes", (json_int_t)s->bytes, "speedup", speedup(c),
		"bound", onesided_bound_names[s->bound]);
	json_t *curve = json_array();

	for (int i = 0; i < COMPARED_POINTS; i++)
		json_array_append_new(curve,
				      json_pack("{s:f, s:f, s:f}", "us",
						c->until_ns * i / (COMPARED_POINTS - 1) / 1e3,
						"collective_bytes", c->collective_sent[i],
						"onesided_bytes", c->stores_sent[i]));
	json_object_set_new(o, "sent", curve);
	return o;
}

void compared_csv(const struct compared *c, FILE *to)
{
	fputs("us,collective_bytes,onesided_bytes\n", to);
	for (int i = 0; i < COMPARED_POINTS; i++)
		fprintf(to, "%.6f,%.0f,%.0f\n", c->until_ns * i / (COMPARED_POINTS - 1) / 1e3,
			c->collective_sent[i], c->stores_sent[i]);
}

#define WIDTH 800.0
#define HEIGHT 300.0

void compared_svg(const struct compared *c, FILE *to)
{
	double us[COMPARED_POINTS], collective[COMPARED_POINTS], stores[COMPARED_POINTS];
	const struct chart_series series[] = {{.name = "collective",
					       .role = SVG_SERIES_1,
					       .look = CHART_LINE,
					       .n = COMPARED_POINTS,
					       .x = us,
					       .y = collective},
					      {.name = "one-sided",
					       .role = SVG_SERIES_1 + 1,
					       .look = CHART_LINE,
					       .n = COMPARED_POINTS,
					       .x = us,
					       .y = stores}};
	const struct chart_mark mark = {c->o.compute_ns / 1e3, "computed"};
	const struct chart chart = {.x = {.label = "time (us)", .has_zero = true},
				    .y = {.label = "sent over the busiest link (MiB)",
					  .has_zero = true},
				    .series = series,
				    .n_series = 2,
				    .marks = &mark,
				    .n_marks = 1};

	for (int i = 0; i < COMPARED_POINTS; i++) {
		us[i] = c->until_ns * i / (COMPARED_POINTS - 1) / 1e3;
		collective[i] = c->collective_sent[i] / (1 << 20);
		stores[i] = c->stores_sent[i] / (1 << 20);
	}
	svg_begin(to, SVG_ALONE, WIDTH, HEIGHT + 40, "bytes sent over time");
	svg_print(to, 10, 22, SVG_START | SVG_BOLD, SVG_INK,
		  "%u ranks: collective %.3f us, one-sided %.3f us, speedup %.3f", c->o.n_ranks,
		  c->collective.end_ns / 1e3, c->stores.end_ns / 1e3, speedup(c));
	chart_draw(&chart, to, 5, 34, WIDTH - 10, HEIGHT);
	svg_end(to);
}
