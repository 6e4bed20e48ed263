#include "pipe/pipe.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "dfg/dfg.h"
#include "pipe/graph.h"
#include "pipe/period.h"

static int start_and_end(const struct pipe_graph *g, uint32_t n_stages)
{
	struct dfg *d = dfg_new();
	uint32_t op;
	int r = d ? 0 : -ENOMEM;

	/* each stage computes, and sends in two directions */
	for (uint32_t i = 0; i < 3 * n_stages && r == 0; i++)
		r = dfg_add_device(d, &op);
	for (uint32_t i = 0; i < g->n_ops && r == 0; i++) {
		uint32_t what = g->ops[i].kind <= PIPE_WEIGHTS ? 0 : g->ops[i].kind - PIPE_WEIGHTS;

		r = dfg_add_op(d, 3 * g->ops[i].stage + what, g->ns[i], 0, &op);
	}
	for (uint32_t i = 0; i < g->n_edges && r == 0; i++)
		r = dfg_add_edge(d, g->edges[i].before, g->edges[i].after, 0);
	r = r == 0 ? dfg_play(d, DFG_EVENT, &op) : r;
	for (uint32_t i = 0; i < g->n_ops && r == 0; i++) {
		g->ops[i].start = dfg_op(d, i)->start;
		g->ops[i].end = dfg_op(d, i)->end;
	}
	dfg_free(d);
	return r;
}

/* All but the period. */
static int play(const struct pipe_job *job, struct pipe_times *ret)
{
	struct pipe_times t = {.n_ops = 0};
	double busy = 0;
	struct pipe_graph g;
	int r = pipe_graph_make(job, &g);

	if (r < 0)
		return r;
	r = start_and_end(&g, job->n_stages);
	for (uint32_t i = 0; i < g.n_ops; i++) {
		t.end_ns = fmax(t.end_ns, g.ops[i].end);
		busy += g.ops[i].kind <= PIPE_WEIGHTS ? g.ns[i] : 0;
	}
	if (t.end_ns > 0)
		t.bubble = 1 - busy / (t.end_ns * job->n_stages);
	t.ops = g.ops;
	t.n_ops = g.n_ops;
	g.ops = NULL;
	pipe_graph_deinit(&g);
	if (r < 0)
		pipe_times_deinit(&t);
	*ret = t;
	return r;
}

int pipe_play(const struct pipe_job *job, struct pipe_times *ret)
{
	struct pipe_times t = {.n_ops = 0};
	int r = play(job, &t);

	if (r == 0)
		r = pipe_period(job, &t.period_ns);
	if (r == 0)
		*ret = t;
	else
		pipe_times_deinit(&t);
	return r;
}

void pipe_times_deinit(struct pipe_times *t)
{
	free(t->ops);
	t->ops = NULL;
}

/* The end with messages that take @factor as long; what is delayed follows from that. */
static int end_with(const struct pipe_job *job, double factor, double *ret_ns)
{
	CLEANUP(freep) struct pipe_stage *stages = malloc(job->n_stages * sizeof(*stages));
	struct pipe_job other = *job;
	struct pipe_times t;
	int r = stages ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < job->n_stages && r == 0; i++) {
		stages[i] = job->stages[i];
		stages[i].to_next_ns *= factor;
		stages[i].to_previous_ns *= factor;
	}
	other.stages = stages;
	r = r == 0 ? play(&other, &t) : r;
	if (r == 0) {
		*ret_ns = t.end_ns;
		pipe_times_deinit(&t);
	}
	return r;
}

int pipe_signal(const struct pipe_job *job, double *ret_ns)
{
	return end_with(job, 0, ret_ns);
}

/* The end is a convex function of the factor, of straight pieces, so a line through two of its
 * points meets it soon. Where one side stays, its height is halved (the Illinois algorithm). */
int pipe_slowest_messages(const struct pipe_job *job, double share, double most, double *ret)
{
	double low = 0, high = most, signal, above, below, end;
	int r = end_with(job, 0, &signal), side = 0;

	r = r == 0 ? end_with(job, most, &above) : r;
	if (r < 0)
		return r;
	above -= signal / share;
	below = signal - signal / share;
	if (above <= 0)
		low = high;
	while (high - low > 1e-9 * high) {
		double factor = low + (high - low) * below / (below - above);

		r = end_with(job, factor, &end);
		if (r < 0)
			return r;
		end -= signal / share;
		if (end <= 0) {
			low = factor;
			below = end;
			above /= side < 0 ? 2 : 1;
			side = -1;
		} else {
			high = factor;
			above = end;
			below /= side > 0 ? 2 : 1;
			side = 1;
		}
		if (fabs(end) < 1e-9 * signal) {
			low = factor;
			break;
		}
	}
	*ret = low;
	return 0;
}
