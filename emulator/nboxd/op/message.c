/* See message.h. */
#include "nboxd/op/message.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/body.h"
#include "nboxd/op/post.h"

static void unexpected(const struct op *op, const struct wire_hdr *h, const char *why)
{
	char title[OP_NAME_MAX];

	comm_abort(op->comm, NULL, EPROTO, "%s: message %llu from rank %u to rank %u, lane %u: %s",
		   op_title(h->seq, op->sched->kind, title, sizeof(title)),
		   (unsigned long long)h->index, h->rank, h->peer, h->lane, why);
}

/* NULL: @op has no such flow. */
static struct flow *find_flow(struct op *op, const struct wire_hdr *h)
{
	uint32_t call;
	int64_t out;

	if (!op->p2p) {
		out = border_find_out(&op->call->border, h->rank, h->peer, h->lane);
		return out < 0 ? NULL : &op->flows[out];
	}
	call = h->peer == h->rank ? UINT32_MAX
				  : sched_send_thread(op->sched, h->rank, h->peer, h->lane);
	return call == UINT32_MAX ? NULL : &op->flows[call];
}

/* Finds what a message is; whatever it may not be aborts the communicator. */
static struct post *message_find(struct live *live, struct worker *w, const struct wire_hdr *h,
				 struct flow **ret_flow)
{
	struct post *post = post_find(live, w, h);
	struct flow *flow = NULL;
	char text[128];
	const char *why = text;
	uint64_t n = 0;

	if (!post)
		return NULL;
	if (live->ops.config->exchange != EXCHANGE_NONE && post->has_arrived)
		flow = find_flow(post->op, h);
	if (flow && post->op->p2p)
		n = sched_conn_messages(post->op->sched, h->rank, h->peer, h->lane);
	else if (flow)
		n = post->op->call->border.out[flow - post->op->flows].n_messages;
	if (flow && h->index == flow->n_arrived && h->index < n) {
		*ret_flow = flow;
		return post;
	}
	if (live->ops.config->exchange == EXCHANGE_NONE)
		why = "no messages are exchanged (exchange none)";
	else if (!post->has_arrived)
		why = "its sender has not arrived";
	else if (!flow)
		why = "no such connection in this op";
	else if (flow->n_arrived < n)
		snprintf(text, sizeof(text), "message %llu of %llu was expected",
			 (unsigned long long)flow->n_arrived, (unsigned long long)n);
	else
		snprintf(text, sizeof(text), "all %llu were here", (unsigned long long)n);
	unexpected(post->op, h, why);
	return NULL;
}

/* Where the body of a message of @flow goes. */
static void *sink(const struct live *live, const struct op *op, const struct flow *flow,
		  uint64_t index, uint64_t bytes)
{
	if (op->p2p)
		return payload_sink(&live->payload, index, bytes,
				    op->p2p->calls[flow - op->flows].bytes);
	return body_sink(op->call, &live->payload, (uint32_t)(flow - op->flows), index, bytes);
}

int op_on_message_header(struct live *live, struct worker *w, const struct wire_hdr *h,
			 void **ret_body)
{
	struct flow *flow = NULL;
	struct post *post = message_find(live, w, h, &flow);
	uint64_t bytes = 0;
	char why[96];

	*ret_body = NULL;
	if (!post)
		return w->state == WORKER_READY ? 0 : 1;
	if (live->ops.config->exchange == EXCHANGE_PAYLOAD)
		bytes = sched_message_bytes(post->op->sched, h->rank, h->peer, h->lane, h->index);
	if (h->body_bytes != bytes) {
		snprintf(why, sizeof(why), "it has %llu bytes instead of %llu",
			 (unsigned long long)h->body_bytes, (unsigned long long)bytes);
		unexpected(post->op, h, why);
		return 0;
	}
	if (bytes)
		*ret_body = sink(live, post->op, flow, h->index, bytes);
	return 0;
}

/* The work of a virtual receiver, where it would reduce what it receives. */
static void reduce(struct live *live, const struct op *op, const struct flow *flow,
		   const struct wire_hdr *h)
{
	const struct call *call = op->call;
	uint32_t out = (uint32_t)(flow - op->flows);
	uint64_t bytes = h->body_bytes;

	if (!call || !call->has_reduces || bytes == 0 ||
	    !bitmap_test(&call->reduces, call->border.out[out].first_bit + h->index))
		return;
	payload_reduce(&live->payload, body_result(call, &live->payload, out, h->index, bytes),
		       h->index, bytes, call->sched.bytes);
}

int op_on_message(struct live *live, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct flow *flow = NULL;
	struct post *post = message_find(live, w, h, &flow);
	struct err err = {""};
	struct op *op;
	uint64_t now_ns;

	if (!post)
		return 0;
	op = post->op;
	live->n_messages_in++;
	post->n_messages++;
	flow->n_arrived++;
	if (body)
		reduce(live, op, flow, h);
	if (!flow->run)
		return 0; /* the run takes it from the count when it starts */
	now_ns = clock_now_ns();
	if (now_ns > op->moved_ns)
		op->moved_ns = now_ns;
	if (engine_arrived(live->engine, flow->run->engine_op, flow->out, h->index, &err))
		unexpected(op, h, err.text);
	return 0;
}
