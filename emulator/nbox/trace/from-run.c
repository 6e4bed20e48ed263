/* See from-run.h. */
#include "nbox/trace/from-run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "nbox/report/steps.h"
#include "schedule/coll.h"
#include "trace/spans.h"

#define FAR_NS 1e17 /* as in trace/connect.c */

struct taker {
	const struct record *rec;
	const struct spans *spans;
	struct trace *t;
	struct err *err;
	double off_ns;   /* the record's start in the trace */
	uint32_t *ended; /* owned; the op whose end is a span's; TRACE_NONE */
	uint32_t *begun; /* owned; the op with which it begins */
	uint32_t *comms; /* owned; by row of rec->comms, one more; 0: not added yet */
	uint32_t rank, computation;
};

static double time_of(const struct taker *k, uint64_t ns)
{
	return (double)(int64_t)(ns - k->rec->header.start_ns) + k->off_ns;
}

/* Return: 0; -ENOMEM. */
static int find_comm(struct taker *k, const struct record_comm *c, uint32_t *ret)
{
	uint32_t *known = &k->comms[c - k->rec->comms];
	CLEANUP(freep) uint32_t *members = NULL;
	char name[32];
	int r;

	if (*known) {
		*ret = *known - 1;
		return 0;
	}
	members = calloc(c->n_ranks + 1, sizeof(*members));
	if (!members)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_ranks; i++)
		members[i] = record_world_rank(c, i);
	snprintf(name, sizeof(name), "communicator %u", c->number);
	r = trace_add_comm(k->t, name, c->n_ranks, members, ret);
	*known = *ret + 1;
	return r;
}

/* Return: 0; -ENOMEM. */
static int add_calls(struct taker *k, const struct record_op *o, struct trace_op *op)
{
	int r = 0;

	op->first_call = k->t->n_calls;
	op->n_calls = o->n_calls;
	for (uint32_t i = 0; i < o->n_calls && r == 0; i++)
		r = trace_add_call(k->t,
				   &(struct trace_call){record_world_rank(o->of, o->calls[i].peer),
							o->calls[i].is_send, o->calls[i].bytes});
	return r;
}

static int add_op(struct taker *k, const struct span *s, uint32_t *ret)
{
	const struct record_op *o = s->op;
	struct trace_op op = {.start_ns = time_of(k, s->at_ns),
			      .end_ns = fmax(time_of(k, s->at_ns), time_of(k, s->end_ns)),
			      .bytes = o->bytes,
			      .seq = o->seq,
			      .kind = TRACE_COLLECTIVE,
			      .rank = k->rank,
			      .stream = o->stream,
			      .step = TRACE_NONE,
			      .coll = o->kind,
			      .peer = TRACE_NONE,
			      .launched_by = TRACE_NONE};
	int r = find_comm(k, o->of, &op.comm);

	if (o->kind == COLL_SENDRECV) {
		op.seq = UINT64_MAX; /* its own count */
		r = r < 0 ? r : add_calls(k, o, &op);
		if (o->n_calls == 1) {
			op.kind = o->calls[0].is_send ? TRACE_SEND : TRACE_RECV;
			op.coll = TRACE_NONE;
			op.bytes = o->calls[0].bytes;
			op.peer = record_world_rank(o->of, o->calls[0].peer);
		}
	} else if (coll_has_root(o->kind)) {
		op.peer = record_world_rank(o->of, o->root);
	}
	if (r == 0)
		r = trace_add_name(k->t,
				   op.kind == TRACE_SEND   ? "Send"
				   : op.kind == TRACE_RECV ? "Recv"
							   : coll_kind_name(o->kind),
				   &op.name);
	return r < 0 ? r : trace_add_op(k->t, &op, ret, k->err);
}

static int add_computation(struct taker *k, const struct span *s, uint32_t *ret)
{
	const struct trace_op op = {.start_ns = time_of(k, s->from_ns),
				    .end_ns = time_of(k, s->at_ns),
				    .seq = UINT64_MAX,
				    .kind = TRACE_COMPUTE,
				    .rank = k->rank,
				    .stream = s->stream,
				    .name = k->computation,
				    .step = TRACE_NONE,
				    .coll = TRACE_NONE,
				    .comm = TRACE_NONE,
				    .peer = TRACE_NONE,
				    .launched_by = TRACE_NONE};

	return trace_add_op(k->t, &op, ret, k->err);
}

/* Waits go to what a span begins with. A span that has neither op nor computation ends with the
 * last of what it waited for. */
static int add_span(struct taker *k, size_t i)
{
	const struct span *s = &k->spans->list[i];
	double last = -INFINITY;
	int r = 0;

	k->begun[i] = k->ended[i] = TRACE_NONE;
	if (s->from_ns < s->at_ns)
		r = add_computation(k, s, &k->begun[i]);
	k->ended[i] = k->begun[i];
	if (r == 0 && s->op) {
		r = add_op(k, s, &k->ended[i]);
		if (r == 0 && k->begun[i] != TRACE_NONE)
			r = trace_add_wait(k->t, k->ended[i], k->begun[i]);
		k->begun[i] = k->begun[i] == TRACE_NONE ? k->ended[i] : k->begun[i];
	}
	for (size_t d = 0; r == 0 && d < s->n_deps; d++) {
		uint32_t on = s->deps[d] < i ? k->ended[s->deps[d]] : TRACE_NONE;

		if (on == TRACE_NONE)
			continue;
		if (k->begun[i] != TRACE_NONE) {
			r = trace_add_wait(k->t, k->begun[i], on);
		} else if (k->t->ops[on].end_ns > last) {
			last = k->t->ops[on].end_ns;
			k->ended[i] = on;
		}
	}
	return r;
}

/* The record's warm-up is that of its lowest rank, as in the run's summary. Return: 0; -ENOMEM. */
static int number_steps(struct taker *k, size_t first, size_t end)
{
	CLEANUP(freep) struct record_op *ops = calloc(end - first + 1, sizeof(*ops));
	CLEANUP(steps_deinit) struct steps steps = {0};
	uint64_t n = 0, step = 0;
	int r;

	if (!ops)
		return -ENOMEM;
	for (size_t i = first; i < end; i++)
		if (k->spans->list[i].op)
			ops[n++] = *k->spans->list[i].op;
	qsort(ops, n, sizeof(*ops), steps_order);
	r = steps_find(k->rec, ops, n, &steps);
	if (r == 0 && !first)
		k->t->n_warm_up = (uint32_t)steps.n_warm_up;
	for (size_t i = first; r == 0 && steps.n && i < end; i++) {
		const struct span *s = &k->spans->list[i];

		/* spans of a rank come in the order in which they arrived */
		while (step + 1 < steps.n &&
		       s->at_ns >= ops[steps.list[step + 1].first].virtual_arrive_ns)
			step++;
		if (k->begun[i] != TRACE_NONE &&
		    s->at_ns >= ops[steps.list[step].first].virtual_arrive_ns)
			k->t->ops[k->begun[i]].step = k->t->ops[k->ended[i]].step =
				(uint32_t)step + 1;
	}
	return r;
}

static int add_rank(struct taker *k, size_t first, size_t end, uint32_t host, const char *name)
{
	uint32_t rank = k->spans->list[first].world_rank;
	int r = k->t->n_ranks < TRACE_TRACED_MAX ? trace_add_rank(k->t, rank, host, &k->rank)
						 : -E2BIG;

	if (r == -EEXIST)
		return err_set(k->err, EEXIST, "%s: has rank %u, as what was read before it", name,
			       rank);
	if (r == -E2BIG)
		return err_set(k->err, E2BIG, "%s: more than %d ranks", name, TRACE_TRACED_MAX);
	for (size_t i = first; r == 0 && i < end; i++)
		r = add_span(k, i);
	return r < 0 ? r : number_steps(k, first, end);
}

int trace_of_run(const struct record *rec, const char *name, struct trace *t, struct err *err)
{
	CLEANUP(spans_deinit) struct spans spans = {0};
	CLEANUP(freep) uint32_t *ended = NULL;
	CLEANUP(freep) uint32_t *begun = NULL;
	CLEANUP(freep) uint32_t *comms = calloc(rec->n_comms + 1, sizeof(*comms));
	struct taker k = {.rec = rec, .spans = &spans, .t = t, .err = err, .comms = comms};
	uint32_t host;
	int r = comms ? spans_find(rec, &spans) : -ENOMEM;

	if (r == 0 && !spans.n)
		return err_set(err, EINVAL, "%s: its record has no ops", name);
	ended = calloc(spans.n + 1, sizeof(*ended));
	begun = calloc(spans.n + 1, sizeof(*begun));
	if (r < 0 || !ended || !begun)
		return -ENOMEM;
	k.ended = ended;
	k.begun = begun;
	if (!t->n_ops)
		t->origin_ns = rec->header.start_unix_ns;
	k.off_ns = (double)(int64_t)(rec->header.start_unix_ns - t->origin_ns);
	if (fabs(k.off_ns) > FAR_NS)
		return err_set(err, EINVAL,
			       "%s: its times are years from those of the other traces", name);
	if (rec->header.world_size > t->world)
		t->world = rec->header.world_size;
	r = trace_add_name(t, "computation", &k.computation);
	if (r == 0)
		r = trace_add_host(t, name, &host);
	for (size_t i = 0; r == 0 && i < spans.n; i = spans_rank_end(&spans, i))
		r = add_rank(&k, i, spans_rank_end(&spans, i), host, name);
	return r;
}
