/* See enqueue.h. */
#include "shim/entry/enqueue.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "schedule/coll.h"
#include "shim/data/data-onesided.h"
#include "shim/data/data-p2p.h"
#include "shim/data/data.h"
#include "shim/edges/edges.h"
#include "shim/entry/result.h"
#include "shim/progress/known.h"
#include "shim/progress/play.h"
#include "shim/progress/real-call.h"
#include "shim/progress/session.h"
#include "shim/progress/traffic.h"
#include "shim/real/last-error.h"
#include "shim/real/real.h"

/* One communicator's share. */
struct batch {
	struct comm *comm;
	device_stream stream; /* of its first call: all work goes there */
	uint64_t capture;
	struct op *first, **last, *p2p, *onesided;
	struct edges_ops edges;
	uint64_t last_name;     /* of the last op */
	uint64_t seq, p2p_seq;  /* the communicator's, with this batch */
	struct op *not_arrived; /* the first whose arrive is not in the stream; NULL: all are */
	int64_t n_self;         /* sends to this rank itself, less receives from it */
	int64_t own_signals;    /* the communicator's, with this batch */
};

struct plan {
	struct call *calls;
	uint32_t n_calls;
	struct batch *batches;
	uint32_t n_batches;
	uint64_t place, call_ns;
};

/* --- making the ops ------------------------------------------------------------------ */

static struct batch *batch_of(struct plan *p, const struct call *call)
{
	struct batch *b;

	for (uint32_t i = p->n_batches; i > 0; i--)
		if (p->batches[i - 1].comm == call->comm)
			return &p->batches[i - 1];
	b = &p->batches[p->n_batches++];
	memset(b, 0, sizeof(*b));
	b->comm = call->comm;
	b->stream = (device_stream)call->stream;
	b->capture = b->comm->dev->capture_id(b->stream);
	b->own_signals = b->comm->own_signals;
	b->seq = b->comm->called_seq;
	b->p2p_seq = b->comm->called_p2p_seq;
	b->last = &b->first;
	return b;
}

static struct op *add_op(struct batch *b, const struct call *call)
{
	struct op *op = comm_get_op(b->comm);

	if (!op)
		return NULL;
	play_prepare(op, b->capture != 0);
	op->called_seq = call->kind == COLL_SENDRECV ? WIRE_SEQ_P2P | b->p2p_seq++ : b->seq++;
	op->gate.kind = call->kind;
	op->call.kind = call->kind;
	op->call.count = call->count;
	op->call.dtype = call->dtype;
	op->call.redop = call->redop < ncclNumOps ? call->redop : ncclSum;
	op->call.root = call->root;
	op->call.flags = (b->capture ? WIRE_ARRIVE_REPLAYED : 0) |
			 (call->is_onesided ? WIRE_ARRIVE_ONESIDED : 0);
	if (call->kind == COLL_SENDRECV) {
		op->call.count = 0;
		op->call.redop = op->call.root = 0;
	}
	*b->last = op;
	b->last = &op->group_next;
	b->not_arrived = b->first;
	return op;
}

/* The schedule of the op, which nboxd derives alike. */
static int make_sched(struct op *op, struct err *err)
{
	const struct comm *c = op->comm;
	struct sched *s = &op->run.sched;
	uint64_t elem = coll_dtype_bytes(op->call.dtype);

	if (session_welcome()->exchange == EXCHANGE_NONE || traffic_is_full())
		return 0;
	memset(s, 0, sizeof(*s));
	s->kind = (enum coll_kind)op->call.kind;
	s->algo = (enum sched_algo)c->ready.algo[op->call.kind];
	s->n_ranks = c->n_ranks;
	s->root = op->call.root;
	s->ranks_per_node = c->ready.ranks_per_node;
	s->n_channels = c->ready.channels;
	s->elem_bytes = (uint32_t)elem;
	s->bytes = op->call.count * elem;
	s->chunk_bytes = c->ready.chunk_bytes;
	if (s->kind == COLL_SENDRECV) {
		s->p2p = op->p2p;
		s->n_p2p = op->call.n_p2p;
		s->p2p_rank = c->rank;
	}
	return sched_init(s, err);
}

/* A signal that is waited for comes with each message. What a rank puts into its own window is no
 * message; nobody but itself can give it the signal that it waits for then. */
static int add_p2p(struct batch *b, struct op *op, const struct call *call, struct err *err)
{
	bool is_own = call->root == call->comm->rank, is_wait = call->is_onesided && !call->is_send;
	bool is_short = call->is_onesided && call->is_send && call->bytes < WIRE_SIGNAL_BYTES;
	uint64_t bytes = is_short ? WIRE_SIGNAL_BYTES : call->bytes, n = is_wait ? call->count : 1;
	int r = 0;

	if (is_own && !call->is_onesided)
		b->n_self += call->is_send ? 1 : -1;
	if (is_own && call->is_onesided) {
		b->own_signals += is_wait ? -(int64_t)n : 1;
		return b->own_signals >= 0
			       ? 0
			       : err_set(err, EINVAL,
					 "rank %u waits for %llu signals of its own, but has given "
					 "%lld that it has not waited for: it would wait for ever",
					 call->root, (unsigned long long)n,
					 (long long)(b->own_signals + (int64_t)n));
	}
	if (n > WIRE_P2P_MAX - op->call.n_p2p)
		return err_set(err, EINVAL,
			       "more than %d sends, receives, puts and signals to wait for in one "
			       "group on one communicator",
			       (int)WIRE_P2P_MAX);
	for (uint64_t i = 0; !r && i < n; i++)
		r = op_add_p2p(op, call->root, call->is_send, bytes);
	return r ? err_set(err, ENOMEM, "no memory for an op") : 0;
}

/* NCCL will say what it takes for collectives. */
static void leave_undecided(const struct batch *b)
{
	for (struct op *op = b->first; op; op = op->group_next)
		if (op->call.kind <= COLL_REDUCE)
			op->call.flags |= WIRE_ARRIVE_UNDECIDED;
}

static int make_ops(struct plan *p, struct err *err)
{
	int r;

	for (uint32_t i = 0; i < p->n_calls; i++) {
		struct call *call = &p->calls[i];
		struct batch *b = batch_of(p, call);
		struct op **p2p = call->is_onesided ? &b->onesided : &b->p2p;
		struct op *op = call->kind == COLL_SENDRECV ? *p2p : NULL;

		if (!op) {
			op = add_op(b, call);
			if (!op)
				return err_set(err, ENOMEM, "no memory for an op");
		}
		call->seq = op->called_seq;
		call->op = op;
		if (call->kind != COLL_SENDRECV)
			continue;
		*p2p = op;
		r = add_p2p(b, op, call, err);
		if (r)
			return r;
	}
	for (uint32_t i = 0; i < p->n_batches; i++) {
		if (p->batches[i].comm->is_full && p->batches[i].capture)
			return err_set(
				err, EINVAL,
				"the stream is captured into a CUDA graph: --nccl full cannot tell the "
				"messages of its replays apart; run the job without CUDA graphs, or "
				"with --nccl gate");
		/* NCCL says so before it enqueues anything, and the communicator can go on */
		if (p->batches[i].n_self)
			return err_set(
				err, EINVAL,
				"a send to or a receive from the rank itself without its other half in the same group");
		for (struct op *op = p->batches[i].first; op; op = op->group_next) {
			r = make_sched(op, err);
			if (r)
				return r;
		}
	}
	for (uint32_t i = 0; i < p->n_batches; i++) {
		const struct batch *b = &p->batches[i];

		if (b->comm->is_full)
			leave_undecided(b);
		b->comm->own_signals = b->own_signals;
		b->comm->called_seq = b->seq;
		b->comm->called_p2p_seq = b->p2p_seq;
	}
	return 0;
}

static void drop_ops(struct plan *p)
{
	for (uint32_t i = 0; i < p->n_batches; i++) {
		struct op *op = p->batches[i].first;

		while (op) {
			struct op *next = op->group_next;

			comm_put_op(op);
			op = next;
		}
	}
}

/* --- enqueueing -------------------------------------------------------------------------- */

/* Is @stream one that an earlier call of this batch already named? */
static bool is_seen(const struct plan *p, const struct batch *b, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++)
		if (p->calls[j].comm == b->comm && p->calls[j].stream == p->calls[i].stream)
			return true;
	return false;
}

enum direction { JOIN, FORK };

/* The other streams of a batch: JOIN lets its work wait for them, FORK lets them wait for it. */
static int tie_streams(const struct plan *p, const struct batch *b, enum direction d,
		       struct err *err)
{
	struct comm *c = b->comm;
	int r = 0;

	for (uint32_t i = 0; !r && i < p->n_calls; i++) {
		device_stream other = (device_stream)p->calls[i].stream;

		if (p->calls[i].comm != c || other == b->stream || is_seen(p, b, i))
			continue;
		r = DEVICE(c, event_record, (c->join_event, d == JOIN ? other : b->stream));
		if (!r)
			r = DEVICE(c, stream_wait, (d == JOIN ? b->stream : other, c->join_event));
		if (!r && d == JOIN)
			edges_join(b->stream, other);
		else if (!r)
			edges_follow(other, &c->last_op);
	}
	return r;
}

/* Inside a group, calls for several devices come without cudaSetDevice between them. */
static int use_device(const struct comm *c, struct err *err)
{
	if (!device_select(c->dev, c->device))
		return 0;
	return err_set(err, EIO, "cannot select device %d: %s", c->device, c->dev->why());
}

static int make_events(struct comm *c, struct err *err)
{
	if (c->join_event)
		return 0;
	return DEVICE(c, event_new, (&c->join_event)) || DEVICE(c, event_new, (&c->last_event))
		       ? -EIO
		       : 0;
}

static void say_blind(void)
{
	struct wire_text text = {
		.code = ENOTSUP,
		.text = "what the job's streams wait for cannot be seen: its CUDA runtime is linked "
			"statically. Each op is taken to wait for the one before on its "
			"communicator, and all time between the two for computation"};

	known_send(NULL, WIRE_NOTE, &text, sizeof(text));
}

/* What the ops of a batch wait for. */
static int set_edges(const struct plan *p, struct batch *b)
{
	struct comm *c = b->comm;
	struct edges_ops *e = &b->edges;
	static pthread_once_t said = PTHREAD_ONCE_INIT;
	bool is_blind = edges_are_blind();
	int r = 0;

	edges_ops(b->stream, p->place, p->call_ns, e);
	if (is_blind) {
		pthread_once(&said, say_blind);
		e->n_deps = c->last_op.name != 0;
		e->deps[0] = (struct wire_dep){.name = c->last_op.name, .is_same_stream = 1};
	}
	for (struct op *op = b->first; !r && op; op = op->group_next) {
		op->call.name = edges_name(e);
		op->call.call_ns = e->call_ns;
		op->call.work_ns = op == b->first ? e->work_ns : 0;
		op->call.host = e->host;
		op->call.stream = e->stream;
		if (is_blind)
			op->call.flags |= WIRE_ARRIVE_NO_EDGES;
		r = op_set_deps(op, e->deps, e->n_deps);
		b->last_name = op->call.name;
	}
	return r;
}

static int begin_batch(const struct plan *p, struct batch *b, struct err *err)
{
	struct comm *c = b->comm;
	struct gate *before = NULL;
	int r = use_device(c, err);

	if (!r)
		r = make_events(c, err);

	/* an event of another capture, or of none, cannot be waited for here */
	if (!r && c->has_last && c->last_stream != b->stream && c->last_capture == b->capture)
		r = DEVICE(c, stream_wait, (b->stream, c->last_event));
	if (c->has_last && c->last_capture == b->capture)
		edges_follow(b->stream, &c->last_op);
	if (!r)
		r = tie_streams(p, b, JOIN, err);
	if (!r && set_edges(p, b))
		r = err_set(err, ENOMEM, "no memory for an op");
	data_begin(c);
	for (struct op *op = b->first; !r && op; op = op->group_next) {
		r = play_enqueue_arrive(op, b->stream, before, err);
		before = &op->gate;
		if (!r)
			b->not_arrived = op->group_next;
	}
	return r;
}

/* The waits of all ops that arrive, also where something went wrong in between: then these ops
 * still pass. */
static int enqueue_waits(struct batch *b, struct err *err)
{
	struct comm *c = b->comm;
	int r = use_device(c, err);

	for (struct op *op = b->first, *next; !r && op != b->not_arrived; op = next) {
		next = op->group_next; /* once it has passed it is not ours any more */
		r = DEVICE(c, wait, (b->stream, &op->gate));
	}
	for (struct op *op = b->not_arrived, *next; op; op = next) {
		next = op->group_next;
		if (!op->is_persistent)
			comm_put_op(op);
	}
	return r;
}

static int end_batch(const struct plan *p, struct batch *b, struct err *err)
{
	struct comm *c = b->comm;
	int r = enqueue_waits(b, err);

	edges_ops_end(b->stream, &b->edges, b->last_name, &c->last_op);
	if (!r)
		r = tie_streams(p, b, FORK, err);
	if (!r)
		r = DEVICE(c, event_record, (c->last_event, b->stream));
	c->has_last = true;
	c->last_stream = b->stream;
	c->last_capture = b->capture;
	return r;
}

/* Than that of the call before. */
static bool is_other_comm(const struct plan *p, uint32_t i)
{
	return i == 0 || p->calls[i].comm != p->calls[i - 1].comm;
}

/* What single real members do with themselves, for all calls; then what comes from virtual ranks,
 * which may be copies of that. */
static int enqueue_after(struct plan *p, const struct call_index *x, struct err *err)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < p->n_calls; i++) {
		r = is_other_comm(p, i) ? use_device(p->calls[i].comm, err) : 0;
		if (!r)
			r = data_during_alone(&p->calls[i], x, batch_of(p, &p->calls[i])->stream,
					      err);
	}
	for (uint32_t i = 0; !r && i < p->n_calls; i++) {
		r = is_other_comm(p, i) ? use_device(p->calls[i].comm, err) : 0;
		if (!r)
			r = p->calls[i].is_onesided
				    ? data_onesided_after(&p->calls[i],
							  batch_of(p, &p->calls[i])->stream, err)
				    : data_after(&p->calls[i], batch_of(p, &p->calls[i])->stream,
						 err);
	}
	for (uint32_t i = 0; !r && i < p->n_batches; i++) {
		if (!p->batches[i].p2p)
			continue;
		r = use_device(p->batches[i].comm, err);
		if (!r)
			r = data_p2p_after(p->batches[i].comm, x, p->batches[i].stream, err);
	}
	return r;
}

static int enqueue_real(struct plan *p, const struct call_index *x, struct err *err)
{
	const struct real *real = real_get();
	int r = 0;

	if (!real->GroupStart || !real->GroupEnd)
		return (int)real_missing("ncclGroupStart");
	real->GroupStart();
	for (uint32_t i = 0; !r && i < p->n_calls; i++)
		r = data_during(&p->calls[i], x, batch_of(p, &p->calls[i])->stream, err);
	if (r) {
		real->GroupEnd();
		return r;
	}
	r = (int)real->GroupEnd();
	if (r)
		err_set(err, EIO, "the real NCCL says in ncclGroupEnd: %s",
			real->GetLastError ? real->GetLastError(NULL) : "error");
	return r;
}

/* At the virtual size NCCL may wait in there for another rank. What became of that is the error
 * then, not what NCCL makes of it. */
static int call_real(struct plan *p, const struct call_index *x, struct err *err)
{
	uint32_t n = 0;
	int r = 0;

	for (; !r && n < p->n_batches; n++)
		if (p->batches[n].comm->is_full)
			r = real_call_begin(p->batches[n].comm);
	if (!r)
		r = enqueue_real(p, x, err);
	for (uint32_t i = 0; i < n; i++) {
		struct comm *c = p->batches[i].comm;

		if (!c->is_full)
			continue;
		real_call_end(c);
		if (r && comm_error(c)) {
			err_set(err, EIO, "%s", c->why);
			r = comm_error(c);
		}
	}
	return r;
}

/* The real call is over, or there is none: NCCL tells no more of these. */
static void decide_rest(const struct batch *b)
{
	if (!b->comm->is_full)
		return;
	for (struct op *op = b->first; op != b->not_arrived; op = op->group_next)
		play_decided(op, NULL);
}

/* The real work of all batches, as one real group. */
static int enqueue_data(struct plan *p, struct err *err)
{
	CLEANUP(call_index_deinit) struct call_index x = {.calls = p->calls, .n_calls = p->n_calls};
	bool is_any = false, has_p2p = false;
	int r = 0;

	for (uint32_t i = 0; i < p->n_batches; i++)
		has_p2p = has_p2p || p->batches[i].p2p;
	if (has_p2p && call_index_init(&x, p->calls, p->n_calls))
		return err_set(err, ENOMEM, "no memory for a group");
	for (uint32_t i = 0; !r && i < p->n_calls; i++) {
		struct batch *b = batch_of(p, &p->calls[i]);

		r = is_other_comm(p, i) ? use_device(b->comm, err) : 0;
		if (!r)
			r = data_before(&p->calls[i], b->stream, b->capture != 0, err);
		is_any = is_any || data_needs_real(&p->calls[i]);
	}
	if (!r && is_any)
		r = call_real(p, &x, err);
	return r ? r : enqueue_after(p, &x, err);
}

static int enqueue_plan(struct plan *p, struct err *err)
{
	const struct device *dev = p->calls[0].comm->dev;
	int r = 0, before = DEVICE_NONE;

	p->place = edges_place();
	dev->get(&before);
	for (uint32_t i = 0; !r && i < p->n_batches; i++)
		r = begin_batch(p, &p->batches[i], err);
	if (!r)
		r = enqueue_data(p, err);
	for (uint32_t i = 0; i < p->n_batches; i++) {
		struct err none;

		decide_rest(&p->batches[i]);

		if (r)
			enqueue_waits(&p->batches[i], &none);
		else
			r = end_batch(p, &p->batches[i], err);
	}
	device_select(dev, before);
	if (dev->poll)
		note_nudge();
	return r;
}

/* As result_of(), but here -EIO is what the device refused. */
static ncclResult_t failure(int r)
{
	return r == -EIO ? ncclUnhandledCudaError : result_of(r);
}

ncclResult_t enqueue_calls(struct call *calls, uint32_t n)
{
	struct batch one;
	CLEANUP(freep) struct batch *many = NULL;
	struct plan p = {.calls = calls, .n_calls = n, .batches = &one, .call_ns = clock_now_ns()};
	struct err err = {""};
	ncclResult_t result;
	int r;

	for (uint32_t i = 0; i < n; i++) {
		result = result_check(calls[i].comm, coll_kind_name(calls[i].kind));
		if (result != ncclSuccess)
			return result;
	}
	if (n > 1) {
		many = malloc(n * sizeof(*many));
		if (!many)
			return last_error_set(ncclSystemError, "no memory for a group");
		p.batches = many;
	}
	r = make_ops(&p, &err);
	if (r) {
		drop_ops(&p);
		return last_error_set(failure(r), "%s: %s", coll_kind_name(calls[0].kind),
				      err.text);
	}
	r = enqueue_plan(&p, &err);
	if (!r)
		return ncclSuccess;
	/* Something is in the streams and something is not. The communicators are of no use any
	 * more, and nobody may wait for what is missing. */
	result = failure(r);
	for (uint32_t i = 0; i < p.n_batches; i++) {
		comm_fail(p.batches[i].comm, (int)result, "%s", err.text);
		play_kill(p.batches[i].comm);
	}
	return last_error_set(result, "%s: %s", coll_kind_name(calls[0].kind), err.text);
}
