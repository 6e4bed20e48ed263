/* See period.h. In the middle of a long iteration each micro-batch has the edges of the one before
 * it. An edge from an op of micro-batch i to one of j is one between kinds of ops, with j - i
 * micro-batches. Of all circles the one that takes longest for each micro-batch on it says the
 * period: from any lower bound, look for a circle that takes longer, take its ratio, again. */
#include "pipe/period.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "pipe/graph.h"

struct arc {
	uint32_t from, to;
	double ns, micro;
};

struct search {
	struct arc *arcs; /* owned, as all here */
	uint32_t n_arcs, n_nodes;
	double *far;   /* by node: the longest way to it */
	uint32_t *arc; /* that it came by */
};

static bool is_backward(enum pipe_kind kind)
{
	return kind == PIPE_BACKWARD || kind == PIPE_WEIGHTS || kind == PIPE_TO_PREVIOUS;
}

/* The node of a circle that takes more than @period for each micro-batch; UINT32_MAX: none. */
static uint32_t find_circle(struct search *s, double period)
{
	double least = 1e-9 * (period > 0 ? period : 1);
	uint32_t moved = UINT32_MAX;

	for (uint32_t i = 0; i < s->n_nodes; i++) {
		s->far[i] = 0;
		s->arc[i] = UINT32_MAX;
	}
	for (uint32_t round = 0; round <= s->n_nodes; round++) {
		moved = UINT32_MAX;
		for (uint32_t i = 0; i < s->n_arcs; i++) {
			const struct arc *a = &s->arcs[i];
			double far = s->far[a->from] + a->ns - period * a->micro;

			if (far <= s->far[a->to] + least)
				continue;
			s->far[a->to] = far;
			s->arc[a->to] = i;
			moved = a->to;
		}
		if (moved == UINT32_MAX)
			return moved;
	}
	for (uint32_t i = 0; i < s->n_nodes; i++) /* back into the circle */
		moved = s->arcs[s->arc[moved]].from;
	return moved;
}

static double largest_ratio(struct search *s)
{
	double period = 0;

	for (;;) {
		uint32_t node = find_circle(s, period), at = node;
		double ns = 0, micro = 0;

		if (node == UINT32_MAX)
			return period;
		do {
			const struct arc *a = &s->arcs[s->arc[at]];

			ns += a->ns;
			micro += a->micro;
			at = a->from;
		} while (at != node);
		if (micro < 0.5 || ns / micro <= period) /* rounding */
			return period;
		period = ns / micro;
	}
}

static int arcs_of(const struct pipe_job *job, const struct pipe_graph *g, uint32_t middle,
		   bool with_forward, bool with_backward, struct search *s)
{
	s->n_nodes = PIPE_KINDS * job->n_stages;
	s->n_arcs = 0;
	for (uint32_t i = 0; i < g->n_edges; i++) {
		const struct pipe_op *from = &g->ops[g->edges[i].before],
				     *to = &g->ops[g->edges[i].after];

		if (to->micro != middle || (is_backward(to->kind) ? !with_backward : !with_forward))
			continue;
		s->arcs[s->n_arcs++] = (struct arc){
			.from = (uint32_t)from->kind * job->n_stages + from->stage,
			.to = (uint32_t)to->kind * job->n_stages + to->stage,
			.ns = g->ns[g->edges[i].before],
			.micro = (double)to->micro - from->micro,
		};
	}
	return 0;
}

int pipe_period(const struct pipe_job *job, double *ret_ns)
{
	struct pipe_job steady = *job;
	struct pipe_graph g;
	int r;

	/* no pass of the middle one has a neighbour in its stage's order that is of the beginning
	 * or the end */
	steady.n_micro = 5 * job->n_stages + 2;
	r = pipe_graph_make(&steady, &g);
	if (r < 0)
		return r;

	CLEANUP(freep) struct arc *arcs = malloc((g.n_edges + 1) * sizeof(*arcs));
	CLEANUP(freep) double *far = malloc(PIPE_KINDS * job->n_stages * sizeof(*far));
	CLEANUP(freep) uint32_t *arc = malloc(PIPE_KINDS * job->n_stages * sizeof(*arc));
	struct search s = {.arcs = arcs, .far = far, .arc = arc};
	uint32_t middle = 5 * job->n_stages / 2;

	if (arcs && far && arc) {
		bool is_apart = job->schedule == PIPE_GPIPE; /* all forward, then all backward */

		arcs_of(&steady, &g, middle, true, !is_apart, &s);
		*ret_ns = largest_ratio(&s);
		if (is_apart) {
			arcs_of(&steady, &g, middle, false, true, &s);
			*ret_ns += largest_ratio(&s);
		}
	} else {
		r = -ENOMEM;
	}
	pipe_graph_deinit(&g);
	return r;
}
