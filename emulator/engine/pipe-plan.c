/* See pipe-plan.h. */
#include "engine/pipe-plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { UNKNOWN, WAITS, KNOWN };

struct maker {
	const struct symmetry *y;
	struct pipe_plan *p;
	uint32_t channel;
	uint32_t n_ids;
	uint8_t *state;
	uint32_t *stack;
};

struct pipe_plan *pipe_plan_free(struct pipe_plan *p)
{
	if (p) {
		free(p->thread);
		free(p->first);
		free(p->sender);
		free(p->hop);
		free(p->sample);
		free(p);
	}
	return NULL;
}

uint32_t pipe_plan_sender(const struct pipe_plan *p, const struct sched *s, uint32_t channel,
			  uint32_t src, uint32_t dst, uint16_t lane)
{
	uint32_t thread = sched_send_thread(s, src, dst, lane), first = channel * p->each;

	if (thread < first || thread - first >= p->each)
		return UINT32_MAX;
	return src * p->each + thread - first;
}

uint32_t pipe_plan_class(struct pipe_plan *p, uint32_t class)
{
	for (uint32_t i = 0; i < p->n_classes; i++)
		if (p->class[i] == class)
			return i;
	if (p->n_classes == PIPE_CLASSES || class == UINT32_MAX)
		return PIPE_CLASSES;
	p->class[p->n_classes] = class;
	return p->n_classes++;
}

/* Adds the thread; those that it receives from are there. */
static int add(struct maker *m, uint32_t id, const struct sched_step *st, const uint32_t *sender)
{
	struct pipe_plan *p = m->p;
	uint32_t rank = id / p->each, j, hop;

	for (j = 0; j < st->n_recv; j++) {
		hop = pipe_plan_class(p,
				      m->y->class_of(m->y->ctx, st->recv[j], rank, st->recv_lane));
		if (hop == PIPE_CLASSES ||
		    p->n_conns == m->n_ids) /* each receives from one, on average */
			return SYMMETRY_NONE;
		p->sender[p->n_conns] = sender[j];
		p->hop[p->n_conns++] = (uint8_t)hop;
	}
	p->thread[p->n++] = id;
	p->first[p->n] = p->n_conns;
	m->state[id] = KNOWN;
	return 0;
}

/* Adds the thread on top of the stack, or puts those it waits for on top of it. */
static int visit(struct maker *m, uint32_t *depth)
{
	uint32_t each = m->p->each, id = m->stack[*depth - 1], rank = id / each;
	uint32_t thread = id % each, sender[SCHED_FAN], j, waiting = 0;
	struct sched_step st;

	if (m->state[id] == KNOWN) {
		--*depth;
		return 0;
	}
	sched_step(m->y->s, rank, m->channel * each + thread, 0, &st);
	for (j = 0; j < st.n_recv; j++) {
		sender[j] =
			pipe_plan_sender(m->p, m->y->s, m->channel, st.recv[j], rank, st.recv_lane);
		if (sender[j] == UINT32_MAX || st.recv_lane != m->channel * each + thread ||
		    m->state[sender[j]] == WAITS || *depth + waiting >= m->n_ids + SCHED_FAN)
			return SYMMETRY_NONE; /* a circle is no pipeline */
		if (m->state[sender[j]] == UNKNOWN)
			m->stack[*depth + waiting++] = sender[j];
	}
	m->state[id] = WAITS;
	*depth += waiting;
	if (waiting)
		return 0;
	--*depth;
	return add(m, id, &st, sender);
}

static int make(struct maker *m)
{
	struct pipe_plan *p = m->p;
	uint32_t id, depth;
	int r;

	for (id = 0; id < m->n_ids; id++) {
		if (!sched_n_steps(m->y->s, id / p->each, m->channel * p->each + id % p->each))
			continue;
		if (p->sample[id % p->each] == UINT32_MAX)
			p->sample[id % p->each] = id / p->each;
		if (m->state[id] == KNOWN)
			continue;
		m->stack[0] = id;
		for (depth = 1; depth;) {
			r = visit(m, &depth);
			if (r)
				return r;
		}
	}
	return 0;
}

int pipe_plan_new(const struct symmetry *y, uint32_t channel, struct pipe_plan **ret)
{
	uint32_t each = sched_n_threads(y->s, 0) / y->s->n_channels;
	size_t n = (size_t)y->s->n_ranks * each;
	struct pipe_plan *p = calloc(1, sizeof(*p));
	CLEANUP(freep) uint8_t *state = calloc(n, 1);
	CLEANUP(freep) uint32_t *stack = malloc((n + SCHED_FAN) * sizeof(*stack));
	struct maker m = {y, p, channel, (uint32_t)n, state, stack};
	int r = -ENOMEM;

	if (p) {
		p->each = each;
		p->thread = malloc(n * sizeof(*p->thread));
		p->first = calloc(n + 1, sizeof(*p->first));
		p->sender = malloc(n * sizeof(*p->sender));
		p->hop = malloc(n);
		p->sample = malloc(each * sizeof(*p->sample));
	}
	if (p && p->thread && p->first && p->sender && p->hop && p->sample && state && stack) {
		memset(p->sample, 0xff, each * sizeof(*p->sample));
		r = make(&m);
	}
	if (r)
		pipe_plan_free(p);
	else
		*ret = p;
	return r;
}
