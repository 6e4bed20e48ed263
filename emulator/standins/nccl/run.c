/* Ops in execution, on the proxy thread. A communicator plays one op at a time, in the order in
 * which they reached the heads of their streams. The player asks for messages; this file chooses
 * their connection and their name on the wire:
 *
 * collectives: key = lane, seq = number of the collective, comm = signature.
 *
 * send, recv: key = KEY_P2P | call % P2P_LINKS, seq = number of the call between the two ranks,
 * so that calls meet in order however they are grouped. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "reduce/reduce.h"
#include "standins/nccl/impl.h"

/* --- what an op looks like to others ------------------------------------------------ */

static const char *const redop_names[] = {"sum", "prod", "max", "min", "avg"};

void op_describe(const struct op *op, char *buf, size_t size)
{
	bool is_reduction = coll_reduces(op->kind);
	bool is_rooted = op->kind == COLL_BROADCAST || op->kind == COLL_REDUCE ||
			 op->kind == COLL_GATHER || op->kind == COLL_SCATTER;
	char root[24] = "";

	if (op->kind == COLL_SENDRECV) {
		snprintf(buf, size, "a group of %u sends and receives", op->n_p2p);
		return;
	}
	if (is_rooted)
		snprintf(root, sizeof(root), ", root %u", op->root);
	snprintf(buf, size, "%s(%zu %s%s%s%s)", coll_kind_name(op->kind), op->count,
		 coll_dtype_name(op->dtype), is_reduction ? ", " : "",
		 !is_reduction    ? ""
		 : op->has_scalar ? "premulsum"
				  : redop_names[op->redop],
		 root);
}

/* What of an op fits in a frame's flags: kind 4 bits, type 4, operator 3, root 5. */
uint16_t op_flags(const struct op *op)
{
	return (uint16_t)(op->kind | op->dtype << 4 | (op->has_scalar ? 7u : op->redop) << 8 |
			  (op->root & 31) << 11);
}

void signature_describe(uint16_t flags, char *buf, size_t size)
{
	uint32_t kind = flags & 15, redop = flags >> 8 & 7;

	if (kind == COLL_SENDRECV)
		snprintf(buf, size, "send");
	else
		snprintf(buf, size, "%s(%s, %s)", coll_kind_name(kind),
			 coll_dtype_name(flags >> 4 & 15),
			 redop < ARRAY_SIZE(redop_names) ? redop_names[redop] : "premulsum");
}

/* --- bytes ---------------------------------------------------------------------------- */

static void data_reduce(const struct player_data *d, void *dst, const void *a, const void *b,
			uint64_t bytes)
{
	const struct op *op = d->ctx;

	reduce_apply(op->dtype, op->redop == COLL_AVG ? COLL_SUM : op->redop, dst, a, b,
		     bytes / coll_dtype_bytes(op->dtype));
}

static void data_scale(const struct player_data *d, void *dst, const void *src, uint64_t bytes)
{
	run_scalar_copy(d->ctx, dst, src, bytes);
}

static void data_average(const struct player_data *d, void *dst, const void *src, uint64_t bytes)
{
	const struct op *op = d->ctx;

	reduce_average(op->dtype, dst, src, op->comm->n_ranks, bytes / coll_dtype_bytes(op->dtype));
}

static void data_average_post(const struct player_data *d, void *buf, uint64_t bytes)
{
	data_average(d, buf, buf, bytes);
}

/* Copies @bytes, multiplied by PreMulSum's scalar. */
void run_scalar_copy(const struct op *op, void *dst, const void *src, size_t bytes)
{
	const void *scalar = op->scalar.on_device ? op->scalar.scalar_at : op->scalar.scalar;

	if (op->has_scalar)
		reduce_scale(op->dtype, dst, src, scalar, bytes / coll_dtype_bytes(op->dtype));
	else if (dst != src && bytes)
		memmove(dst, src, bytes);
}

/* As in NCCL, an average of floats multiplies the inputs, so that no sum
 * overflows, and one of integers divides the sum. */
void run_data(struct op *op, struct player_data *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->input = op->send;
	ret->output = op->recv;
	ret->reduce = data_reduce;
	ret->ctx = op;
	if (op->has_scalar)
		ret->pre = data_scale;
	else if (op->redop == COLL_AVG && reduce_is_float(op->dtype))
		ret->pre = data_average;
	else if (op->redop == COLL_AVG)
		ret->post = data_average_post;
}

/* --- the player's owner ------------------------------------------------------------------ */

static uint16_t p2p_key(uint64_t call)
{
	return (uint16_t)(KEY_P2P | call % P2P_LINKS);
}

/* The number of the call of lane @lane with @peer in this op. */
static uint64_t p2p_call(const struct run *r, uint32_t peer, bool is_send, uint16_t lane)
{
	uint32_t i;

	for (i = 0; i < r->op->n_p2p; i++) {
		if (r->p2p[i].peer == peer && r->p2p[i].is_send == is_send && r->p2p[i].bytes)
			return r->p2p_base[i] + lane;
	}
	return 0;
}

static int io_send(void *owner, uint32_t peer, uint16_t lane, uint64_t index, const void *src,
		   uint64_t bytes)
{
	struct run *r = owner;
	struct ncclComm *c = r->op->comm;
	bool is_p2p = r->op->kind == COLL_SENDRECV;
	struct wire_hdr h;
	struct conn *k;

	wire_hdr_init(&h, WIRE_MESSAGE, bytes);
	h.seq = is_p2p ? p2p_call(r, peer, true, lane) : r->seq;
	h.comm = is_p2p ? 0 : r->op->signature;
	h.index = index;
	h.rank = c->rank;
	h.peer = peer;
	h.lane = lane;
	h.flags = op_flags(r->op);
	k = conn_out(c, peer, is_p2p ? p2p_key(h.seq) : lane);
	if (!k)
		return -ECONNRESET;
	return conn_send(k, lane, &h, bytes ? src : NULL);
}

static int io_post(void *owner, uint32_t peer, uint16_t lane, uint64_t index, void *dst,
		   uint64_t bytes)
{
	struct run *r = owner;
	struct ncclComm *c = r->op->comm;
	bool is_p2p = r->op->kind == COLL_SENDRECV;
	struct post p = {.index = index, .dst = dst, .bytes = bytes, .lane = lane};
	struct inbox *in;

	p.seq = is_p2p ? p2p_call(r, peer, false, lane) : r->seq;
	in = conn_inbox(c, peer, is_p2p ? p2p_key(p.seq) : lane);
	return in ? conn_post(c, in, &p) : -ENOMEM;
}

static const struct player_io run_io = {io_send, io_post};

/* --- the queue ------------------------------------------------------------------------------ */

static void run_end(struct run *r)
{
	player_free(r->player);
	r->player = NULL;
	futex_wake_done(&r->done);
}

/* A mismatch shows in a held header only when it is looked at again. */
static void resume_held(struct ncclComm *c)
{
	struct conn *k;

	for (k = proxy_conns(); k; k = k->next) {
		if (k->comm == c && k->is_held && !(k->key & KEY_P2P)) {
			k->is_held = false;
			link_resume(k->link);
		}
	}
}

void run_begin(struct ncclComm *c)
{
	struct run *r = c->waiting;
	char what[160];
	int e;

	if (!r || c->run)
		return;
	c->waiting = r->next;
	if (!c->waiting)
		c->waiting_end = &c->waiting;
	c->run = r;
	if (r->op->kind != COLL_SENDRECV)
		r->seq = c->n_colls++;
	r->started_ns = clock_now_ns();
	e = player_start(&r->player, &r->sched, c->rank, &r->data, &run_io, r);
	if (e) {
		op_describe(r->op, what, sizeof(what));
		r->player = NULL;
		if (e == -ECONNRESET || e == -EPIPE)
			peer_lost(c, PEER_SILENT, ncclRemoteError,
				  "a rank that this op needs has left");
		else
			comm_fail(c, result_of_errno(e), "%s: %s", what, strerror(-e));
		return;
	}
	resume_held(c);
}

static void do_submit(void *arg)
{
	struct run *r = arg;
	struct ncclComm *c = r->op->comm;

	r->next = NULL;
	if (!c->is_attached || c->is_failed) {
		run_end(r);
		return;
	}
	if (!c->waiting)
		c->waiting_end = &c->waiting;
	*c->waiting_end = r;
	c->waiting_end = &r->next;
	run_begin(c);
}

void run_submit(struct run *r)
{
	/* The proxy reads nothing of a request once its function began; ours ends with
	 * the run at the earliest. */
	struct request request = {.fn = do_submit, .arg = r};

	proxy_push(&request);
	futex_wait_done(&r->done);
}

/* Messages that had been set aside and whose receives are posted now. */
static bool take_stash(struct ncclComm *c, struct inbox *in)
{
	struct stash **p = &in->stash, *s;
	bool moved = false;
	uint32_t i;

	while ((s = *p)) {
		struct post done;
		struct err err;
		int r;

		for (i = 0; s->is_whole && i < in->n_posts; i++) {
			if (in->posts[i].seq == s->hdr.seq && in->posts[i].index == s->hdr.index)
				break;
		}
		if (!s->is_whole || i == in->n_posts) {
			p = &s->next;
			continue;
		}
		done = in->posts[i];
		if (done.bytes != s->hdr.body_bytes) {
			comm_fail(c, ncclInvalidUsage,
				  "rank %u sent %llu bytes where rank %u receives %llu", in->peer,
				  (unsigned long long)s->hdr.body_bytes, c->rank,
				  (unsigned long long)done.bytes);
			return true;
		}
		if (done.bytes)
			memcpy(done.dst, s->body, done.bytes);
		memmove(&in->posts[i], &in->posts[i + 1],
			(in->n_posts - i - 1) * sizeof(*in->posts));
		in->n_posts--;
		*p = s->next;
		free(s);
		moved = true;
		r = player_received(c->run->player, in->peer, (uint16_t)done.lane, done.index,
				    &err);
		if (r == -ECONNRESET || r == -EPIPE)
			peer_lost(c, PEER_SILENT, ncclRemoteError, err.text);
		else if (r)
			comm_fail(c, ncclInternalError, "%s", err.text);
		if (r)
			return true;
		p = &in->stash; /* the player may have posted more */
	}
	return moved;
}

bool run_advance(struct ncclComm *c)
{
	struct run *r = c->run;
	bool moved = false;
	uint32_t i;

	if (c->is_failed || c->is_lost)
		return c->is_failed;
	for (i = 0; r->op->kind == COLL_SENDRECV && i < c->n_ranks; i++) {
		struct inbox *in;

		for (in = c->peers[i].in; in; in = in->next) {
			if (in->stash && !c->is_failed && !c->is_lost)
				moved |= take_stash(c, in);
		}
	}
	if (c->is_failed || c->is_lost || !player_done(r->player))
		return moved;
	c->run = NULL;
	run_end(r);
	run_begin(c);
	return true;
}

void run_fail_all(struct ncclComm *c)
{
	struct run *r;

	if (c->run) {
		r = c->run;
		c->run = NULL;
		run_end(r);
	}
	while ((r = c->waiting)) {
		c->waiting = r->next;
		run_end(r);
	}
	c->waiting_end = &c->waiting;
}
