/* See hops.h. */
#include "dfg/hops.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "schedule/schedule.h"

/* A connection of a rank below the period. A message is the ops of its SEND, then its RECV. */
struct conn {
	uint32_t src, dst;
	uint16_t lane;
	uint64_t n;
	uint32_t first;
};

struct maker {
	struct dfg *g;
	const struct hops *h;
	struct conn *conns; /* owned; by source */
	uint32_t *start;    /* owned; period + 1 */
	uint32_t capacity;
	uint32_t pieces; /* of a SEND */
	struct err *err;
};

static void maker_deinit(struct maker *m)
{
	free(m->conns);
	free(m->start);
}

uint64_t hops_count(const struct sched *s, uint32_t period)
{
	return sched_total_messages(s) / s->n_ranks * period;
}

static int no_memory(const struct maker *m)
{
	return err_set(m->err, ENOMEM, "no memory for the hops of %u ranks", m->h->s->n_ranks);
}

/* What goes on after the SEND's first piece, and what before its RECV. */
static uint32_t first_of(const struct maker *m, const struct conn *c, uint64_t index)
{
	return c->first + (m->pieces + 1) * (uint32_t)index;
}

static uint32_t last_of(const struct maker *m, const struct conn *c, uint64_t index)
{
	return first_of(m, c, index) + m->pieces - 1;
}

static uint32_t recv_of(const struct maker *m, const struct conn *c, uint64_t index)
{
	return first_of(m, c, index) + m->pieces;
}

/* Message @i of connection @c. Those of one connection follow each other. */
static int add_message(struct maker *m, const struct conn *c, uint64_t i)
{
	const struct hops *h = m->h;
	uint64_t bytes = sched_message_bytes(h->s, c->src, c->dst, c->lane, i);
	struct nbox_delay d;
	uint32_t device, op, before = m->pieces > 1 && i ? last_of(m, c, i - 1) : DFG_NONE;
	int r = h->cost->message(h->cost->ctx, c->src, c->dst, c->lane, i, bytes, &d);

	if (r < 0)
		return r;
	r = h->device(h->ctx, c->src, c->dst, c->lane, &device);
	for (uint32_t k = 0; k < m->pieces && r == 0; k++) {
		r = dfg_add_op(m->g, device, d.occupancy_ns * h->factor / m->pieces, 0, &op);
		if (r == 0 && before != DFG_NONE)
			r = dfg_add_edge(m->g, before, op, 0);
		before = op;
	}
	if (r == 0)
		r = dfg_add_op(m->g, DFG_PARALLEL, 0, 0, &op);
	if (r == 0)
		r = dfg_add_edge(m->g, before, op, d.latency_ns * h->factor);
	if (r == 0)
		r = dfg_add_edge(m->g, h->in[c->src], first_of(m, c, i), 0);
	return r < 0 ? no_memory(m) : 0;
}

/* The connections that leave @rank, with their messages. */
static int add_conns(struct maker *m, uint32_t rank)
{
	CLEANUP(freep) struct sched_conn *of = NULL;
	uint32_t n_in, n_out, n = m->start[rank];
	int r = sched_conns(m->h->s, rank, &of, &n_in, &n_out);

	if (r == 0 && n + n_out > m->capacity) {
		uint32_t capacity = 2 * m->capacity + n_out;
		struct conn *grown = realloc(m->conns, capacity * sizeof(*grown));

		m->conns = grown ? grown : m->conns;
		m->capacity = grown ? capacity : m->capacity;
		r = grown ? 0 : -ENOMEM;
	}
	if (r < 0)
		return no_memory(m);
	for (uint32_t i = 0; i < n_out && r == 0; i++, n++) {
		struct conn *c = &m->conns[n];

		*c = (struct conn){of[n_in + i].src, of[n_in + i].dst, of[n_in + i].lane,
				   of[n_in + i].n_messages, dfg_ops(m->g)};
		for (uint64_t k = 0; k < c->n && r == 0; k++)
			r = add_message(m, c, k);
	}
	m->start[rank + 1] = n;
	return r;
}

/* The connection, or the one that stands for it. */
static const struct conn *find(const struct maker *m, uint32_t src, uint32_t dst, uint16_t lane)
{
	uint32_t n = m->h->s->n_ranks, from = src % m->h->period;
	uint32_t to = (uint32_t)(((uint64_t)dst + n - (src - from)) % n);

	for (uint32_t i = m->start[from]; i < m->start[from + 1]; i++)
		if (m->conns[i].dst == to && m->conns[i].lane == lane)
			return &m->conns[i];
	return NULL;
}

/* The op of a step after which its sends go: adding up what came takes turns at the rank. */
static int add_reduction(struct maker *m, uint32_t rank, const struct sched_step *t,
			 uint32_t *waits, uint32_t *n_waits)
{
	double ns = t->n_recv * (double)t->bytes * m->h->cost->reduce_ns_per_byte * m->h->factor;
	uint32_t device, op;

	if (!(t->flags & STEP_REDUCE) || !(ns > 0))
		return 0;
	if (m->h->device(m->h->ctx, rank, rank, 0, &device) < 0 ||
	    dfg_add_op(m->g, device, ns, 0, &op) < 0 ||
	    dfg_add_edge(m->g, m->h->in[rank], op, 0) < 0 ||
	    dfg_add_edge(m->g, op, m->h->out[rank], 0) < 0)
		return no_memory(m);
	for (uint32_t i = 0; i < *n_waits; i++)
		if (dfg_add_edge(m->g, waits[i], op, 0) < 0)
			return no_memory(m);
	waits[0] = op;
	*n_waits = 1;
	return 0;
}

static int add_thread(struct maker *m, uint32_t rank, uint32_t thread)
{
	const struct sched *s = m->h->s;
	uint64_t n = sched_n_steps(s, rank, thread);
	uint32_t waits[SCHED_FAN], n_waits = 0;
	int r = 0;

	for (uint64_t i = 0; i < n && r == 0; i++) {
		struct sched_step t;

		sched_step(s, rank, thread, i, &t);
		for (uint32_t k = 0; k < t.n_recv; k++) {
			const struct conn *c = find(m, t.recv[k], rank, t.recv_lane);

			waits[k] = c ? recv_of(m, c, t.recv_index) : DFG_NONE;
		}
		n_waits = t.n_recv ? t.n_recv : n_waits;
		r = t.n_recv ? add_reduction(m, rank, &t, waits, &n_waits) : 0;
		for (uint32_t k = 0; k < t.n_send && r == 0; k++) {
			const struct conn *c = find(m, rank, t.send[k], t.send_lane);

			for (uint32_t j = 0; j < n_waits && r == 0; j++)
				r = dfg_add_edge(m->g, waits[j], first_of(m, c, t.send_index), 0);
		}
	}
	return r == -ENOMEM ? no_memory(m) : r;
}

/* A rank is done when the last message of each connection has left, or is there. */
static int add_out(struct maker *m, uint32_t rank)
{
	CLEANUP(freep) struct sched_conn *of = NULL;
	uint32_t n_in, n_out, out = m->h->out[rank];
	int r = sched_conns(m->h->s, rank, &of, &n_in, &n_out);

	if (r == 0)
		r = dfg_add_edge(m->g, m->h->in[rank], out, 0);
	for (uint32_t i = 0; i < n_in + n_out && r == 0; i++) {
		const struct conn *c = find(m, of[i].src, of[i].dst, of[i].lane);

		if (c && c->n)
			r = dfg_add_edge(m->g,
					 i < n_in ? recv_of(m, c, c->n - 1)
						  : last_of(m, c, c->n - 1),
					 out, 0);
	}
	return r < 0 ? no_memory(m) : 0;
}

int hops_add(struct dfg *g, const struct hops *h, struct err *err)
{
	CLEANUP(maker_deinit)
	struct maker m = {.g = g, .h = h, .pieces = h->pieces ? h->pieces : 1, .err = err};
	int r = 0;

	m.start = calloc((size_t)h->period + 1, sizeof(*m.start));
	if (!m.start)
		return no_memory(&m);
	for (uint32_t rank = 0; rank < h->period && r == 0; rank++)
		r = add_conns(&m, rank);
	for (uint32_t rank = 0; rank < h->period && r == 0; rank++) {
		uint32_t n_threads = sched_n_threads(h->s, rank);

		for (uint32_t i = 0; i < n_threads && r == 0; i++)
			r = add_thread(&m, rank, i);
		if (r == 0)
			r = add_out(&m, rank);
	}
	return r;
}
