/* Sends to real ranks what is due and ready. */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "nccl-plugin/plugin.h"
#include "reduce/reduce.h"
#include "schedule/coll.h"
#include "traffic/ready.h"
#include "traffic/sum.h"
#include "wire/wire.h"

#define LL_GRAIN 16      /* bytes of data */
#define LL128_GRAIN 1920 /* ... that take 2,048 */

/* No message of this op has more bytes than this, where NCCL has cut it into chunks for all ranks
 * or not at all. */
static uint64_t bytes_bound(const struct flow *f)
{
	const struct traffic_call *call = &f->op->call;
	uint64_t bytes = call->bytes, n = f->comm->depends.nodes.n_ranks;

	if (f->is_ring && call->kind == COLL_ALLREDUCE)
		bytes = bytes / n + (bytes % n != 0);
	bytes = bytes / LL_GRAIN + (bytes % LL_GRAIN != 0);
	if (__builtin_mul_overflow(bytes, LL_GRAIN, &bytes) || bytes >= f->is.message_bytes)
		return f->is.message_bytes;
	if (f->is.protocol == PLUGIN_LL)
		bytes *= 2;
	if (f->is.protocol == PLUGIN_LL128)
		bytes = (bytes + LL128_GRAIN - 1) / LL128_GRAIN * 2048;
	return bytes < f->is.message_bytes ? bytes : f->is.message_bytes;
}

/* An identity is never shorter than what the kernel reads, and hardly ever longer. */
static uint64_t identity_bytes(const struct flow *f, uint64_t index)
{
	const struct flow_sizes *s = f->lane ? &f->lane->sizes : NULL;
	uint32_t i = (uint32_t)(index % f->slices);
	uint64_t bytes;

	if (!f->comm->of->bodies)
		return 0;
	bytes = f->op->call.bytes;
	if (!s)
		return bytes && bytes < f->is.message_bytes ? bytes : f->is.message_bytes;
	bytes = bytes_bound(f);
	if (s->is_known[i] && s->loop[i] <= index / f->loop && s->bytes[i] < bytes)
		bytes = s->bytes[i];
	return bytes;
}

/* The bodies of the source's flows, summed once for all who need the sum. */
static int sum_next(struct flow *f, struct err *err)
{
	struct flow_source *s = f->source;
	struct traffic_body **bodies = f->comm->sums, *sum = NULL;
	uint64_t index = s->sums.first + s->sums.n;
	int r;

	for (uint32_t i = 0; i < s->n; i++)
		bodies[i] = slots_take(&s->edges[i].flow->slots, index);
	r = sum_bodies(f->comm->of->bodies, f->is.protocol, f->op->call.dtype, f->op->call.redop,
		       bodies, s->n, &sum, err);
	return r < 0 ? r : slots_push(&s->sums, sum, s->n_users);
}

/* NCCL divides for an average of integers where the sum is complete: in a ring at the rank that
 * sends message n - 1 of a loop, in a tree at its root. Is that a virtual one before @f? */
static bool is_divided_before(const struct flow *f, uint64_t index)
{
	const struct traffic_call *call = &f->op->call;
	uint64_t step, complete = f->comm->depends.nodes.n_ranks - 1;

	if (call->redop != COLL_AVG || call->kind != COLL_ALLREDUCE || !f->source ||
	    reduce_is_float(call->dtype))
		return false;
	if (!f->is_ring)
		return f->source == f->lane->top;
	step = index % f->loop / f->slices;
	return step >= complete && step - f->shift / f->slices < complete;
}

/* What message @index of @f is. @m->body: a reference. */
static int make(struct flow *f, uint64_t index, struct traffic_message *m, struct err *err)
{
	struct traffic_counts *counts = &f->comm->of->counts;
	uint64_t from = f->conn ? f->conn->sends->taken : flow_depends_on(f, index);
	struct flow_source *s = f->source;
	bool has_bodies = f->comm->of->bodies;
	int r = 0;

	if (from == FLOW_NO_MESSAGE || (s && !s->edges[0].flow)) {
		f->went_without = f->went_without || from != FLOW_NO_MESSAGE;
		m->is_identity = true;
		m->bytes = identity_bytes(f, index);
		counts->n_identity++;
		return 0;
	}
	if (f->conn && has_bodies)
		m->body = slots_take(&f->conn->sends->slots, from);
	else if (s && s->n == 1 && has_bodies)
		m->body = slots_take(&s->edges[0].flow->slots, from);
	else if (s && s->n > 1 && has_bodies) {
		if (from == s->sums.first + s->sums.n)
			r = sum_next(f, err);
		if (r == 0)
			m->body = slots_take(&s->sums, from);
	}
	if (r == 0 && is_divided_before(f, index))
		r = sum_divide(f->comm->of->bodies, f->is.protocol, f->op->call.dtype,
			       f->comm->depends.nodes.n_ranks, &m->body, err);
	m->bytes = m->body ? m->body->bytes : 0;
	counts->n_summed += s && s->n > 1;
	return r;
}

/* The first send of a conn has one message less. */
static void take(struct conn *conn, struct flow *receive)
{
	struct flow *send = conn->sends;
	struct op *op;

	if (receive->done == receive->is.n_messages)
		conn_drop(conn, receive);
	if (++send->taken == send->is.n_messages) {
		conn_drop(conn, send);
		op = send->op;
		op->n_open--;
		if (!send->hh.tbl) /* another one has followed it */
			traffic_comm_drop_flow(receive->comm, send);
		traffic_comm_release_op(receive->comm, op);
	}
	if (conn->receives)
		ready_look(conn->receives);
}

static void fail(struct traffic_comm *c, const struct flow *f, int r, struct err *err)
{
	struct traffic *t = c->of;
	char name[FLOW_NAME_MAX];

	if (r == -ENOMEM)
		err_set(err, ENOMEM, "no memory for NCCL's messages");
	err_prefix(err, r, "%s, message %llu", flow_name(&f->key, name),
		   (unsigned long long)f->done);
	traffic_comm_die(c, r);
	t->sink.failed(t->owner, c->tag, err->text);
}

static void count(struct traffic *t, const struct flow *f, const struct traffic_message *m,
		  uint64_t now_ns)
{
	t->counts.n_sent++;
	t->counts.sent_bytes += m->body ? m->bytes : 0;
	/* of what comes when the op has passed nobody waited for; 0: nobody knows when it is due */
	if (f->pace.due_ns == 0 || f->ready_at != t->n_advances || now_ns <= f->pace.due_ns ||
	    traffic_comm_member(f->comm, f->op, f->key.rank)->has_passed)
		return;
	t->counts.n_late++;
	t->counts.late_ns += now_ns - f->pace.due_ns;
}

static void send_next(struct flow *f, uint64_t now_ns)
{
	struct traffic_comm *c = f->comm;
	struct traffic *t = c->of;
	struct traffic_message m = {.at = {f->key.seq, f->key.rank, f->key.peer,
					   (uint16_t)f->key.channel},
				    .index = f->done,
				    .reads = f->is.reads};
	struct err err = {""};
	int r;

	r = make(f, f->done, &m, &err);
	if (r < 0) {
		fail(c, f, r, &err);
		return;
	}
	count(t, f, &m, now_ns);
	f->done++;
	f->wanted >>= 1;
	if (f->conn)
		take(f->conn, f);
	if (ready_is(f))
		pace_put(&t->pace, &f->pace, ready_due(f));
	else
		pace_remove(&t->pace, &f->pace);
	if (f->done == f->is.n_messages) {
		if (f->went_without)
			depends_learn_lack(&c->depends, f);
		f->op->n_open--;
		traffic_comm_release_op(c, f->op);
	}
	/* last: the sink may call what it likes but this */
	t->sink.send(t->owner, c->tag, &m);
	traffic_body_unref(m.body);
}

uint64_t traffic_advance(struct traffic *t, uint64_t now_ns)
{
	struct pace_item *first;

	while ((first = pace_first(&t->pace)) && first->due_ns <= now_ns)
		send_next(container_of(first, struct flow, pace), now_ns);
	t->n_advances++;
	return first ? first->due_ns : UINT64_MAX;
}
