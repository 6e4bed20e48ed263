/* The picture of print.h: a lane a stage, one schedule below the other, on one axis. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "nbox/draw/lanes.h"
#include "nbox/pipe/print.h"

#define WIDTH 1000.0
#define MOST_BARS 50000

/* What of an op is seen in its stage's lane: computation, and messages that keep it. */
static bool is_seen(const struct pipeline_row *r, const struct pipe_op *o)
{
	return o->kind <= PIPE_WEIGHTS || r->job.overlap != PIPE_NOBODY;
}

static struct lane_bar bar_of(const struct pipe_op *o)
{
	static const char *const names[PIPE_KINDS] = {"forward", "backward", "gradients of weights",
						      "message to the next stage",
						      "message to the stage before"};
	static const enum svg_role roles[PIPE_KINDS] = {SVG_SERIES_1, SVG_SERIES_1 + 1,
							SVG_SERIES_1 + 2, SVG_NETWORK, SVG_NETWORK};
	struct lane_bar bar = {.from = o->start / 1e6, .to = o->end / 1e6, .role = roles[o->kind]};
	char from[32], to[32];

	snprintf(bar.tip, sizeof(bar.tip), "%s of micro-batch %u: %s to %s", names[o->kind],
		 o->micro, units_print_time(o->start, from, sizeof(from)),
		 units_print_time(o->end, to, sizeof(to)));
	return bar;
}

/* @bars: room for the row's ops. */
static void draw_row(const struct pipeline_row *r, double length_ms, struct lane *lanes,
		     struct lane_bar *bars, FILE *to, double y)
{
	const struct lanes l = {.lanes = lanes,
				.n = r->job.n_stages,
				.length = length_ms,
				.label = "ms"};
	size_t at = 0;

	for (uint32_t s = 0; s < r->job.n_stages; s++) {
		snprintf(lanes[s].name, sizeof(lanes[s].name), "stage %u", s);
		lanes[s].bars = bars + at;
		lanes[s].n = 0;
		for (size_t i = 0; i < r->times.n_ops; i++)
			if (r->times.ops[i].stage == s && is_seen(r, &r->times.ops[i]))
				bars[at + lanes[s].n++] = bar_of(&r->times.ops[i]);
		at += lanes[s].n;
	}
	svg_print(to, 10, y + 14, SVG_START | SVG_BOLD, SVG_INK, "%s%s%s",
		  pipeline_schedule(r->job.schedule),
		  r->job.overlap == PIPE_NOBODY ? "" : ", blocked",
		  r->is_delayed ? ", weights delayed" : "");
	lanes_draw(&l, to, 10, y + 22, WIDTH - 20);
}

int pipeline_draw(const struct pipeline_answer *a, FILE *to, struct err *err)
{
	static const struct lane_key keys[] = {{SVG_SERIES_1, "forward"},
					       {SVG_SERIES_1 + 1, "backward"},
					       {SVG_SERIES_1 + 2, "gradients of weights, delayed"},
					       {SVG_NETWORK, "blocked by a message"}};
	const struct lanes one = {.n = a->of->n_stages};
	double row = lanes_height(&one) + 30, length = 0;
	size_t most = 1;

	for (size_t i = 0; i < a->n; i++) {
		most = a->rows[i].times.n_ops > most ? a->rows[i].times.n_ops : most;
		length = fmax(length, a->rows[i].times.end_ns / 1e6);
	}
	if (most > MOST_BARS)
		return err_set(err, EINVAL,
			       "a picture of %zu passes and messages is too large: ask for fewer "
			       "micro-batches",
			       most);

	CLEANUP(freep) struct lane *lanes = calloc(a->of->n_stages, sizeof(*lanes));
	CLEANUP(freep) struct lane_bar *bars = calloc(most, sizeof(*bars));

	if (!lanes || !bars)
		return -ENOMEM;
	svg_begin(to, SVG_ALONE, WIDTH, 30 + row * (double)a->n,
		  "when each stage of a pipeline computes");
	lanes_keys(keys, sizeof(keys) / sizeof(*keys), to, 10, 10);
	for (size_t i = 0; i < a->n; i++)
		draw_row(&a->rows[i], length, lanes, bars, to, 30 + row * (double)i);
	svg_end(to);
	return 0;
}
