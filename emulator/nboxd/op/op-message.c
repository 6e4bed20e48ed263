/* Messages between the real ranks and the engine; see op.h. What arrives before the
 * op has started is only counted: messages of a connection come in order, so a
 * count says it all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/op-find.h"
#include "nboxd/op/p2p.h"

struct comm_member *op_find_member(struct ops *ops, struct worker *w, const struct wire_hdr *h,
				   struct comm **ret)
{
	struct comm_member *m = comm_frame_member(ops->comms, w, h, ret);

	return m && !(*ret)->is_dead ? m : NULL;
}

bool op_find(struct ops *ops, struct worker *w, const struct wire_hdr *h, struct op **ret,
	     size_t *ret_i)
{
	struct comm *c = NULL;
	struct comm_member *m = op_find_member(ops, w, h, &c);
	struct op *op;

	if (!m)
		return false;
	op = op_by_seq(c, h->seq);
	if (op) {
		*ret = op;
		*ret_i = (size_t)(m - c->real);
		return true;
	}
	worker_refuse(w, EPROTO, "%s for op %llu of communicator %u, which is not open",
		      wire_type_name(h->type), (unsigned long long)h->seq, h->comm);
	return false;
}

/* --- towards real ranks ---------------------------------------------------------- */

void op_send_message(struct engine_user *user, uint32_t in, uint64_t index)
{
	struct op *op = container_of(user, struct op, user);
	struct comm_member *to = op->call->to[in];
	const struct border_conn *conn = &op->call->border.in[in];
	struct ops *ops = op->comm->comms->ops;
	struct op_member *m = &op->members[to - op->comm->real];
	const void *body = NULL;
	uint64_t bytes = 0;
	struct wire_hdr h;

	if (ops->config->exchange == EXCHANGE_PAYLOAD) {
		bytes = sched_message_bytes(&op->call->sched, conn->src, conn->dst, conn->lane,
					    index);
		payload_need(&ops->payload, op->call->sched.bytes);
		/* a ring AllGather's first message of each loop is the sender's own block */
		if (op->call->sched.kind == COLL_ALLGATHER && op->call->sched.n_ranks > 1 &&
		    index % (op->call->sched.n_ranks - 1) == 0 &&
		    ops->config->payload_work == WORK_REDUCE)
			payload_copy(&ops->payload, index, bytes, op->call->sched.bytes);
		body = payload_source(&ops->payload, index, bytes, op->call->sched.bytes);
	}
	wire_hdr_init(&h, WIRE_MESSAGE, bytes);
	h.comm = op->comm->number;
	h.seq = op->seq;
	h.rank = conn->dst;
	h.peer = conn->src;
	h.lane = conn->lane;
	h.index = index;
	m->n_messages++;
	ops->n_messages_out++;
	if (to->worker)
		worker_send_message(to->worker, &h, bytes ? body : NULL);
}

/* --- from real ranks ------------------------------------------------------------- */

/* Where the messages of a connection are counted, and how many it has. */
static uint64_t *find_count(struct op *op, const struct wire_hdr *h, int64_t *ret_out,
			    uint64_t *ret_n_messages)
{
	*ret_out = border_find_out(&op->call->border, h->rank, h->peer, h->lane);
	if (*ret_out < 0)
		return NULL;
	*ret_n_messages = op->call->border.out[*ret_out].n_messages;
	return &op->n_out[*ret_out];
}

static void unexpected(struct op *op, const struct wire_hdr *h, const char *why)
{
	comm_abort(op->comm, NULL, EPROTO,
		   "op %llu (%s): message %llu from rank %u to rank %u, lane %u: %s",
		   (unsigned long long)op->seq, coll_kind_name(op->call->key.kind),
		   (unsigned long long)h->index, h->rank, h->peer, h->lane, why);
}

/* Finds what a message is; whatever it may not be aborts the communicator. */
static bool message_find(struct ops *ops, struct worker *w, const struct wire_hdr *h,
			 struct op **ret, size_t *ret_i, int64_t *ret_out, uint64_t **ret_count)
{
	uint64_t n = 0;
	char why[128];

	if (!op_find(ops, w, h, ret, ret_i))
		return false;
	if (ops->config->exchange == EXCHANGE_NONE) {
		unexpected(*ret, h, "no messages are exchanged (exchange none)");
		return false;
	}
	if (!(*ret)->members[*ret_i].has_arrived) {
		unexpected(*ret, h, "its sender has not arrived");
		return false;
	}
	*ret_count = find_count(*ret, h, ret_out, &n);
	if (!*ret_count) {
		unexpected(*ret, h, "no such connection in this op");
		return false;
	}
	if (h->index != **ret_count || h->index >= n) {
		if (**ret_count < n)
			snprintf(why, sizeof(why), "message %llu of %llu was expected",
				 (unsigned long long)**ret_count, (unsigned long long)n);
		else
			snprintf(why, sizeof(why), "all %llu were here", (unsigned long long)n);
		unexpected(*ret, h, why);
		return false;
	}
	return true;
}

int op_on_message_header(struct ops *ops, struct worker *w, const struct wire_hdr *h,
			 void **ret_body)
{
	uint64_t *count, bytes = 0;
	struct op *op;
	int64_t out;
	size_t i;
	char why[96];

	if (h->seq & WIRE_SEQ_P2P)
		return p2p_on_message_header(ops, w, h, ret_body);
	*ret_body = NULL;
	if (!message_find(ops, w, h, &op, &i, &out, &count))
		return w->state == WORKER_READY ? 0 : 1;
	if (ops->config->exchange == EXCHANGE_PAYLOAD)
		bytes = sched_message_bytes(&op->call->sched, h->rank, h->peer, h->lane, h->index);
	if (h->body_bytes != bytes) {
		snprintf(why, sizeof(why), "it has %llu bytes instead of %llu",
			 (unsigned long long)h->body_bytes, (unsigned long long)bytes);
		unexpected(op, h, why);
		return 0;
	}
	if (bytes)
		*ret_body = payload_sink(&ops->payload, h->index, bytes, op->call->sched.bytes);
	return 0;
}

/* Return: 0; -EPROTO with the sentence. */
static int arrived(struct op *op, int64_t out, uint64_t index, struct err *err)
{
	int r = engine_arrived(op->comm->comms->ops->engine, op->engine_op, (uint32_t)out, index,
			       err);

	return r == ENGINE_UNEXPECTED ? -EPROTO : r;
}

int op_on_message(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body)
{
	const struct call *call;
	struct err err = {""};
	uint64_t *count;
	struct op *op;
	int64_t out;
	size_t i;

	if (h->seq & WIRE_SEQ_P2P)
		return p2p_on_message(ops, w, h, body);
	if (!message_find(ops, w, h, &op, &i, &out, &count))
		return 0;
	call = op->call;
	ops->n_messages_in++;
	op->members[i].n_messages++;
	if (body && h->body_bytes && call->has_reduces && out >= 0 &&
	    bitmap_test(&call->reduces, call->first_reduce[out] + h->index))
		payload_reduce(&ops->payload,
			       payload_sink(&ops->payload, h->index, h->body_bytes,
					    call->sched.bytes),
			       h->index, h->body_bytes, call->sched.bytes);
	++*count;
	if (op->is_live) {
		if (arrived(op, out, h->index, &err) < 0)
			unexpected(op, h, err.text);
		else if (clock_now_ns() > op->moved_ns)
			op->moved_ns = clock_now_ns();
	}
	return 0;
}

int op_replay_early(struct op *op, struct err *err)
{
	const struct border *b = &op->call->border;
	int r;

	for (uint32_t out = 0; out < b->n_out; out++) {
		for (uint64_t index = 0; index < op->n_out[out]; index++) {
			r = arrived(op, out, index, err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}
