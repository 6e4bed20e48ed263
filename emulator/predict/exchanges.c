/* See exchanges.h. */
#include "predict/exchanges.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* A call of a rank, or its part of an all-to-all. */
struct call {
	uint32_t join, comm, src, dst; /* what its other end has, too */
	bool is_send;
	uint32_t number; /* in the order of the rank's calls */
	uint32_t op;
	uint64_t bytes;
};

struct finder {
	const struct trace *t;
	struct exchanges *x;
	struct call *calls; /* owned, as those below */
	uint32_t *ends;     /* by call: its message */
	struct call *alltoalls;
	uint32_t *n_of_comm; /* all-to-alls of the rank so far */
	uint32_t *met;       /* by rank and direction: 1 + the last op that calls there */
	uint32_t n_calls, n_alltoalls;
	bool has_host; /* which tells iterations: the trace has joined by them */
};

bool exchange_is_one(const struct trace_op *op)
{
	return op->kind == TRACE_COLLECTIVE || op->kind == TRACE_SEND || op->kind == TRACE_RECV;
}

double exchange_taken(const struct exchange_message *m)
{
	return m->bytes ? fmin(1, (double)EXCHANGE_BUFFER_BYTES / (double)m->bytes) : 1;
}

/* It sends to all others of its communicator and receives from them. */
static bool is_alltoall(const struct finder *f, uint32_t op_number)
{
	const struct trace *t = f->t;
	const struct trace_op *op = &t->ops[op_number];
	const struct trace_comm *comm = op->comm == TRACE_NONE ? NULL : &t->comms[op->comm];
	uint32_t n_met = 0, self = t->ranks[op->rank].rank;

	if (!comm || !comm->members || comm->n <= 2 || op->n_calls + 2 < 2 * comm->n)
		return false;
	for (uint32_t i = op->first_call; i < op->first_call + op->n_calls; i++) {
		const struct trace_call *call = &t->calls[i];
		uint32_t *it = &f->met[2 * (size_t)call->peer + call->is_send];

		if (call->peer == self || call->peer >= t->world)
			continue;
		n_met += *it != op_number + 1;
		*it = op_number + 1;
	}
	return n_met == 2 * (comm->n - 1);
}

/* --- what an op calls ---------------------------------------------------------------- */

static void add_call(struct finder *f, uint32_t i, const struct trace_call *call, uint32_t number,
		     uint32_t join)
{
	const struct trace_op *op = &f->t->ops[i];
	uint32_t self = f->t->ranks[op->rank].rank;

	if (call->peer == self || (join == TRACE_NONE && !call->bytes))
		return;
	f->calls[f->n_calls++] = (struct call){.join = join,
					       .comm = op->comm,
					       .src = call->is_send ? self : call->peer,
					       .dst = call->is_send ? call->peer : self,
					       .is_send = call->is_send,
					       .number = number,
					       .op = i,
					       .bytes = call->bytes};
}

static void add_op(struct finder *f, uint32_t i)
{
	const struct trace *t = f->t;
	const struct trace_op *op = &t->ops[i];
	bool is_single = op->kind == TRACE_SEND || op->kind == TRACE_RECV;
	struct trace_call one = {op->peer, op->kind == TRACE_SEND, op->bytes};

	if (is_alltoall(f, i)) {
		f->alltoalls[f->n_alltoalls++] = (struct call){.comm = op->comm,
							       .number = f->n_of_comm[op->comm]++,
							       .op = i};
		return;
	}
	for (uint32_t k = op->first_call; k < op->first_call + op->n_calls; k++)
		add_call(f, i, &t->calls[k], k, TRACE_NONE);
	if (!op->n_calls && is_single && op->join != TRACE_NONE)
		add_call(f, i, &one, i,
			 f->has_host || op->comm == TRACE_NONE ? op->join : TRACE_NONE);
	if (!op->n_calls && !is_single)
		f->x->joins[i] = op->join;
}

/* --- what meets ---------------------------------------------------------------------- */

static int by_numbers(const uint32_t *a, const uint32_t *b, int n)
{
	for (int i = 0; i < n; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static int by_message(const struct call *a, const struct call *b)
{
	return by_numbers((const uint32_t[]){a->join, a->comm, a->src, a->dst},
			  (const uint32_t[]){b->join, b->comm, b->src, b->dst}, 4);
}

static int by_end(const void *pa, const void *pb)
{
	const struct call *a = pa, *b = pb;
	int r = by_message(a, b);

	return r ? r
		 : by_numbers((const uint32_t[]){!a->is_send, a->number},
			      (const uint32_t[]){!b->is_send, b->number}, 2);
}

static int by_turn(const void *pa, const void *pb)
{
	const struct call *a = pa, *b = pb;

	return by_numbers((const uint32_t[]){a->comm, a->number, a->op},
			  (const uint32_t[]){b->comm, b->number, b->op}, 3);
}

static void join_alltoalls(struct finder *f)
{
	const struct call *list = f->alltoalls;

	qsort(f->alltoalls, f->n_alltoalls, sizeof(*list), by_turn);
	for (uint32_t i = 0; i < f->n_alltoalls; i++) {
		bool is_new = !i || list[i].comm != list[i - 1].comm ||
			      list[i].number != list[i - 1].number;

		f->x->n_joins += is_new;
		f->x->joins[list[i].op] = f->x->n_joins - 1;
	}
}

/* Both may be NULL, one of them is not. */
static void add_message(struct finder *f, const struct call *send, const struct call *receive)
{
	const struct call *known = send ? send : receive;
	uint32_t n = f->x->n_messages++;

	f->x->messages[n] = (struct exchange_message){.send = send ? send->op : TRACE_NONE,
						      .receive = receive ? receive->op : TRACE_NONE,
						      .src = known->src,
						      .dst = known->dst,
						      .bytes = known->bytes,
						      .ns = NAN};
	if (send)
		f->ends[send - f->calls] = n;
	if (receive)
		f->ends[receive - f->calls] = n;
}

static void join_messages(struct finder *f)
{
	const struct call *list = f->calls;
	uint32_t first = 0, middle, end;

	qsort(f->calls, f->n_calls, sizeof(*list), by_end);
	for (; first < f->n_calls; first = end) {
		end = first;
		while (end < f->n_calls && by_message(&list[first], &list[end]) == 0)
			end++;
		middle = first;
		while (middle < end && list[middle].is_send)
			middle++;
		for (uint32_t i = 0; i < middle - first || i < end - middle; i++)
			add_message(f, i < middle - first ? &list[first + i] : NULL,
				    i < end - middle ? &list[middle + i] : NULL);
	}
}

static void list_ends(struct finder *f)
{
	struct exchanges *x = f->x;
	uint32_t at = 0;

	for (uint32_t i = 0; i < f->n_calls; i++)
		x->first_end[f->calls[i].op]++;
	for (uint32_t i = 0; i <= f->t->n_ops; i++) {
		at += x->first_end[i];
		x->first_end[i] = at; /* where it ends */
	}
	for (uint32_t i = f->n_calls; i-- > 0;)
		x->ends[--x->first_end[f->calls[i].op]] =
			(struct exchange_end){f->ends[i], f->calls[i].is_send};
}

/* --- how long messages take ---------------------------------------------------------- */

/* At most. Clocks of hosts need not agree: then what waited for nobody says it, as of
 * collectives. */
static double took(const struct trace *t, const struct exchange_message *m)
{
	const struct trace_op *send = &t->ops[m->send], *receive = &t->ops[m->receive];
	double rest = 1 - exchange_taken(m), received = receive->end_ns - receive->start_ns;

	if (t->ranks[send->rank].host != t->ranks[receive->rank].host)
		return fmin(received, send->end_ns - send->start_ns);
	return fmax(0,
		    fmin(receive->end_ns - send->start_ns, rest > 0 ? received / rest : INFINITY));
}

static int by_path(const void *pa, const void *pb, void *ctx)
{
	const struct exchange_message *list = ctx, *a = &list[*(const uint32_t *)pa],
				      *b = &list[*(const uint32_t *)pb];
	int r = by_numbers((const uint32_t[]){a->src, a->dst}, (const uint32_t[]){b->src, b->dst},
			   2);

	return r ? r : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Return: 0; -ENOMEM. */
static int time_messages(const struct trace *t, struct exchanges *x)
{
	CLEANUP(freep) uint32_t *order = malloc((x->n_messages + (size_t)1) * sizeof(*order));
	double least;
	uint32_t end;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->n_messages; i++)
		order[i] = i;
	qsort_r(order, x->n_messages, sizeof(*order), by_path, x->messages);
	for (uint32_t first = 0; first < x->n_messages; first = end) {
		least = INFINITY;
		for (end = first;
		     end < x->n_messages && by_path(&order[first], &order[end], x->messages) == 0;
		     end++) {
			const struct exchange_message *m = &x->messages[order[end]];

			if (m->send != TRACE_NONE && m->receive != TRACE_NONE)
				least = fmin(least, took(t, m));
		}
		for (uint32_t i = first; i < end; i++) {
			struct exchange_message *m = &x->messages[order[i]];

			if (m->send != TRACE_NONE && m->receive != TRACE_NONE)
				m->ns = least;
		}
	}
	return 0;
}

/* --- all ----------------------------------------------------------------------------- */

static int find(struct finder *f)
{
	const struct trace *t = f->t;
	struct exchanges *x = f->x;
	uint32_t rank = TRACE_NONE;

	for (uint32_t i = 0; i < t->n_ops; i++)
		f->has_host |= t->ops[i].kind == TRACE_HOST || t->ops[i].kind == TRACE_CALL;
	for (uint32_t i = 0; i < t->n_ops; i++) {
		x->joins[i] = TRACE_NONE;
		if (t->ops[i].rank != rank)
			for (uint32_t c = 0; c < t->n_comms; c++)
				f->n_of_comm[c] = 0;
		rank = t->ops[i].rank;
		if (exchange_is_one(&t->ops[i]))
			add_op(f, i);
	}
	x->n_joins = t->n_joins;
	join_alltoalls(f);
	join_messages(f);
	list_ends(f);
	return time_messages(t, x);
}

int exchanges_find(const struct trace *t, struct exchanges *ret)
{
	size_t n_ops = t->n_ops + (size_t)1, n_calls = t->n_calls + n_ops;
	CLEANUP(freep) struct call *calls = malloc(n_calls * sizeof(*calls));
	CLEANUP(freep) uint32_t *ends = malloc(n_calls * sizeof(*ends));
	CLEANUP(freep) struct call *alltoalls = malloc(n_ops * sizeof(*alltoalls));
	CLEANUP(freep)
	uint32_t *n_of_comm = calloc(t->n_comms + (size_t)1, sizeof(*n_of_comm));
	CLEANUP(freep) uint32_t *met = calloc(2 * (size_t)t->world + 1, sizeof(*met));
	struct exchanges x = {.joins = malloc(n_ops * sizeof(*x.joins)),
			      .first_end = calloc(n_ops + 1, sizeof(*x.first_end)),
			      .ends = malloc(n_calls * sizeof(*x.ends)),
			      .messages = malloc(n_calls * sizeof(*x.messages))};
	struct finder f = {.t = t,
			   .x = &x,
			   .calls = calls,
			   .ends = ends,
			   .alltoalls = alltoalls,
			   .n_of_comm = n_of_comm,
			   .met = met};
	int r = -ENOMEM;

	if (calls && ends && alltoalls && n_of_comm && met && x.joins && x.first_end && x.ends &&
	    x.messages)
		r = find(&f);
	if (r < 0)
		exchanges_deinit(&x);
	else
		*ret = x;
	return r;
}

void exchanges_deinit(struct exchanges *x)
{
	free(x->joins);
	free(x->first_end);
	free(x->ends);
	free(x->messages);
}
