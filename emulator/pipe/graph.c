/* See graph.h. A stage's chain is its passes in their order, and those messages that keep it from
 * computing. Messages of one stage in one direction follow each other.
 *
 * Where both stages are blocked they have to meet: between two passes a stage may have a message to
 * send and one to receive, with the same neighbour. The one towards the next stage goes first. */
#include "pipe/graph.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define NONE UINT32_MAX

struct builder {
	const struct pipe_job *job;
	struct pipe_graph g;
	uint32_t *number; /* of an op, by kind, stage and micro-batch; NONE */
	uint32_t last;    /* in the chain of the stage */
};

static uint32_t *number(const struct builder *b, enum pipe_kind kind, uint32_t stage,
			uint32_t micro)
{
	return &b->number[((size_t)kind * b->job->n_stages + stage) * b->job->n_micro + micro];
}

static void add(struct builder *b, enum pipe_kind kind, uint32_t stage, uint32_t micro, double ns)
{
	*number(b, kind, stage, micro) = b->g.n_ops;
	b->g.ns[b->g.n_ops] = ns;
	b->g.ops[b->g.n_ops++] = (struct pipe_op){.kind = kind, .stage = stage, .micro = micro};
}

static void add_pass(struct builder *b, uint32_t stage, struct pipe_pass p)
{
	const struct pipe_stage *s = &b->job->stages[stage];
	double delayed = pipe_delayed(b->job, stage);

	if (p.kind == PIPE_FORWARD) {
		add(b, PIPE_FORWARD, stage, p.micro, s->forward_ns);
		if (stage + 1 < b->job->n_stages)
			add(b, PIPE_TO_NEXT, stage, p.micro, s->to_next_ns);
		return;
	}
	add(b, PIPE_BACKWARD, stage, p.micro, s->backward_ns - delayed);
	if (stage > 0)
		add(b, PIPE_TO_PREVIOUS, stage, p.micro, s->to_previous_ns);
	if (delayed > 0)
		add(b, PIPE_WEIGHTS, stage, p.micro, delayed);
}

static void edge(struct builder *b, uint32_t before, uint32_t after)
{
	if (before != NONE)
		b->g.edges[b->g.n_edges++] = (struct pipe_edge){before, after};
}

static void chain(struct builder *b, uint32_t op)
{
	edge(b, b->last, op);
	b->last = op;
}

/* The message that a pass of @stage waits for, or sends; NONE. */
static uint32_t message_to(const struct builder *b, uint32_t stage, struct pipe_pass p)
{
	if (p.kind == PIPE_FORWARD)
		return stage > 0 ? *number(b, PIPE_TO_NEXT, stage - 1, p.micro) : NONE;
	return stage + 1 < b->job->n_stages ? *number(b, PIPE_TO_PREVIOUS, stage + 1, p.micro)
					    : NONE;
}

static uint32_t message_of(const struct builder *b, uint32_t stage, struct pipe_pass p)
{
	return *number(b, p.kind == PIPE_FORWARD ? PIPE_TO_NEXT : PIPE_TO_PREVIOUS, stage, p.micro);
}

static void connect_message(struct builder *b, uint32_t stage, struct pipe_pass p)
{
	uint32_t message = message_of(b, stage, p);

	if (message == NONE)
		return;
	if (b->job->overlap == PIPE_NOBODY)
		edge(b, *number(b, p.kind, stage, p.micro), message);
	else
		chain(b, message);
	if (p.micro > 0)
		edge(b, *number(b, b->g.ops[message].kind, stage, p.micro - 1), message);
}

static void connect_stage(struct builder *b, uint32_t stage)
{
	uint32_t peak = pipe_peak(b->job, stage), n = 2 * b->job->n_micro, got;
	bool is_met = false; /* the message to the next pass is in the chain already */

	b->last = NONE;
	for (uint32_t i = 0; i < n; i++) {
		struct pipe_pass p = pipe_pass_at(b->job, peak, i), next = {PIPE_KINDS, 0};

		if (i + 1 < n)
			next = pipe_pass_at(b->job, peak, i + 1);
		got = message_to(b, stage, p);
		if (got != NONE && b->job->overlap == PIPE_BOTH && !is_met)
			chain(b, got);
		else if (got != NONE && b->job->overlap != PIPE_BOTH)
			edge(b, got, *number(b, p.kind, stage, p.micro));
		chain(b, *number(b, p.kind, stage, p.micro));
		is_met = b->job->overlap == PIPE_BOTH && stage > 0 && p.kind == PIPE_BACKWARD &&
			 next.kind == PIPE_FORWARD;
		if (is_met)
			chain(b, message_to(b, stage, next));
		connect_message(b, stage, p);
		if (p.kind == PIPE_BACKWARD && *number(b, PIPE_WEIGHTS, stage, p.micro) != NONE)
			chain(b, *number(b, PIPE_WEIGHTS, stage, p.micro));
	}
}

int pipe_graph_make(const struct pipe_job *job, struct pipe_graph *ret)
{
	size_t passes = (size_t)job->n_stages * job->n_micro, most = PIPE_KINDS * passes;
	CLEANUP(freep) uint32_t *numbers = malloc(most * sizeof(*numbers));
	struct builder b = {
		.job = job,
		.number = numbers,
		.g.ops = malloc(most * sizeof(*b.g.ops)),
		.g.ns = malloc(most * sizeof(*b.g.ns)),
		/* each op but the first in a chain, what a pass waits for, what a message follows
		 */
		.g.edges = malloc(2 * most * sizeof(*b.g.edges)),
	};

	if (!numbers || !b.g.ops || !b.g.ns || !b.g.edges) {
		pipe_graph_deinit(&b.g);
		return -ENOMEM;
	}
	for (size_t i = 0; i < most; i++)
		numbers[i] = NONE;
	for (uint32_t s = 0; s < job->n_stages; s++)
		for (uint32_t i = 0; i < 2 * job->n_micro; i++)
			add_pass(&b, s, pipe_pass_at(job, pipe_peak(job, s), i));
	for (uint32_t s = 0; s < job->n_stages; s++)
		connect_stage(&b, s);
	*ret = b.g;
	return 0;
}

void pipe_graph_deinit(struct pipe_graph *g)
{
	free(g->ops);
	free(g->ns);
	free(g->edges);
	*g = (struct pipe_graph){.n_ops = 0};
}
