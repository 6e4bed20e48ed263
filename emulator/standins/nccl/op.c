/* Makes an op of a call and enqueues it on its stream; the stream's thread connects to the peers,
 * submits the op to the proxy and waits. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "standins/nccl/impl.h"

/* CUDA 12's runtime calls CUDA 13's cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3. */
#if defined(NBOX_CUDART_MAJOR) && NBOX_CUDART_MAJOR == 12
__typeof__(cudaStreamGetCaptureInfo) capture_info __asm__("cudaStreamGetCaptureInfo_v3");
#else
#define capture_info cudaStreamGetCaptureInfo
#endif

static void op_put(struct op *op)
{
	if (atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) > 1)
		return;
	comm_put(op->comm);
	free(op->p2p);
	free(op);
}

/* --- on the stream's thread ------------------------------------------------------------ */

/* Numbers the calls of a group of sends and receives and opens what it sends on. */
static ncclResult_t prepare_p2p(struct run *r)
{
	struct ncclComm *c = r->op->comm;
	ncclResult_t e = ncclSuccess;
	uint32_t i;

	/* ops of a communicator follow each other, so nobody else counts now */
	pthread_mutex_lock(&c->connect_lock);
	for (i = 0; i < r->op->n_p2p; i++) {
		const struct peer *p = &c->peers[r->p2p[i].peer];

		r->p2p_base[i] = r->p2p[i].is_send ? p->n_p2p_sent : p->n_p2p_received;
	}
	for (i = 0; i < r->op->n_p2p; i++) {
		struct peer *p = &c->peers[r->p2p[i].peer];
		uint64_t *n = r->p2p[i].is_send ? &p->n_p2p_sent : &p->n_p2p_received;

		if (!r->p2p[i].bytes || r->p2p[i].peer == c->rank)
			continue;
		if (*n < r->p2p_base[i] + r->p2p[i].lane + 1)
			*n = r->p2p_base[i] + r->p2p[i].lane + 1;
	}
	pthread_mutex_unlock(&c->connect_lock);
	for (i = 0; i < r->op->n_p2p && !e; i++) {
		const struct sched_p2p *p = &r->p2p[i];

		if (!p->bytes || p->peer == c->rank)
			continue;
		if (p->is_send)
			e = conn_open(c, p->peer,
				      (uint16_t)(KEY_P2P | (r->p2p_base[i] + p->lane) % P2P_LINKS));
		else
			e = conn_watch(c, p->peer);
	}
	return e;
}

static ncclResult_t open_conns(struct run *r)
{
	struct ncclComm *c = r->op->comm;
	CLEANUP(freep) struct sched_conn *conns = NULL;
	uint32_t n_in, n_out, i;
	ncclResult_t e = ncclSuccess;

	if (r->op->kind == COLL_SENDRECV)
		return prepare_p2p(r);
	if (sched_conns(&r->sched, c->rank, &conns, &n_in, &n_out))
		return fail(ncclSystemError, "out of memory");
	for (i = n_in; i < n_in + n_out && !e; i++) {
		if (conns[i].dst != c->rank)
			e = conn_open(c, conns[i].dst, conns[i].lane);
	}
	for (i = 0; i < n_in && !e; i++) {
		if (conns[i].src != c->rank)
			e = conn_watch(c, conns[i].src);
	}
	return e;
}

/* A rank alone: copies. */
static void play_alone(const struct op *op)
{
	uint64_t bytes = op->count * coll_dtype_bytes(op->dtype);
	uint32_t i, k;

	if (op->kind != COLL_SENDRECV) {
		run_scalar_copy(op, op->recv, op->send, bytes);
		return;
	}
	for (i = 0; i < op->n_p2p; i++) { /* the k-th send to the k-th receive */
		const struct sched_p2p *s = &op->p2p[i], *d;

		if (!s->is_send || !s->bytes)
			continue;
		for (k = 0, d = op->p2p; d->is_send || !d->bytes || k++ != s->lane;)
			d++;
		memmove((char *)op->recv + d->off, (const char *)op->send + s->off, s->bytes);
	}
}

static void play(struct op *op)
{
	struct ncclComm *c = op->comm;
	CLEANUP(freep) struct sched_p2p *p2p = NULL;
	CLEANUP(freep) uint64_t *base = NULL;
	struct run r = {.op = op, .sched = op->sched};
	ncclResult_t e = ncclSuccess;

	if (atomic_load(&c->error) || atomic_load(&c->abort))
		return;
	if (op->rma.what) {
		e = rma_play(op);
	} else if (c->n_ranks == 1) {
		play_alone(op);
		return;
	}
	if (op->n_p2p) {
		/* a copy: a graph may be replayed by two executables at once */
		p2p = malloc(op->n_p2p * sizeof(*p2p));
		base = calloc(op->n_p2p, sizeof(*base));
		if (!p2p || !base)
			e = fail(ncclSystemError, "out of memory");
		else
			memcpy(p2p, op->p2p, op->n_p2p * sizeof(*p2p));
		r.sched.p2p = p2p;
		r.p2p = p2p;
		r.p2p_base = base;
	}
	if (!e && !op->rma.what)
		e = open_conns(&r);
	if (e) {
		comm_set_error(c, e, last_error());
		proxy_abort(c, last_error(), true);
		return;
	}
	if (op->rma.what)
		return;
	run_data(op, &r.data);
	run_submit(&r);
}

static void CUDART_CB op_run(void *arg)
{
	struct op *op = arg;

	play(op);
	if (!op->is_captured) {
		comm_outstanding(op->comm, -1);
		op_put(op);
	}
}

static void CUDART_CB op_drop(void *arg)
{
	op_put(arg);
}

/* --- on the caller's thread ----------------------------------------------------------------- */

static ncclResult_t cuda_failed(cudaError_t e, const char *what)
{
	return fail(ncclUnhandledCudaError, "%s: %s", what, cudaGetErrorString(e));
}

/* Ops of one communicator follow each other even on several streams. */
static ncclResult_t follow_last(struct ncclComm *c, cudaStream_t stream, unsigned long long capture)
{
	cudaError_t e = cudaSuccess;
	bool must;

	/* an op in a capture cannot wait for one outside, nor the other way round */
	must = c->has_last && c->last_stream != stream && c->last_capture == capture;
	if (must && !c->last_event)
		e = cudaEventCreateWithFlags(&c->last_event, cudaEventDisableTiming);
	if (!e && must)
		e = cudaStreamWaitEvent(stream, c->last_event, 0);
	return e ? cuda_failed(e, "ordering two streams of one communicator") : ncclSuccess;
}

static ncclResult_t remember_last(struct ncclComm *c, cudaStream_t stream,
				  unsigned long long capture)
{
	cudaError_t e = cudaSuccess;

	if (!c->last_event)
		e = cudaEventCreateWithFlags(&c->last_event, cudaEventDisableTiming);
	if (!e)
		e = cudaEventRecord(c->last_event, stream);
	c->last_stream = stream;
	c->last_capture = capture;
	c->has_last = true;
	return e ? cuda_failed(e, "cudaEventRecord") : ncclSuccess;
}

static ncclResult_t capture_of(cudaStream_t stream, unsigned long long *ret_id, cudaGraph_t *ret)
{
	enum cudaStreamCaptureStatus status;
	cudaError_t e = capture_info(stream, &status, ret_id, ret, NULL, NULL, NULL);

	if (e)
		return cuda_failed(e, "cudaStreamGetCaptureInfo");
	if (status == cudaStreamCaptureStatusNone) {
		*ret_id = 0;
		*ret = NULL;
	} else if (status == cudaStreamCaptureStatusInvalidated) {
		return cuda_failed(cudaErrorStreamCaptureInvalidated, "this stream's capture");
	}
	return ncclSuccess;
}

/* The graph owns a captured op: it is freed with it. */
static ncclResult_t give_to_graph(struct op *op, cudaGraph_t graph)
{
	cudaUserObject_t object;
	cudaError_t e;

	op->is_captured = true;
	e = cudaUserObjectCreate(&object, op, op_drop, 1, 1 /* no sync of the destructor */);
	if (e)
		return cuda_failed(e, "cudaUserObjectCreate");
	e = cudaGraphRetainUserObject(graph, object, 1, 1 /* moved */);
	return e ? cuda_failed(e, "cudaGraphRetainUserObject") : ncclSuccess;
}

static ncclResult_t launch(struct op *op, cudaStream_t stream)
{
	struct ncclComm *c = op->comm;
	unsigned long long capture = 0;
	cudaGraph_t graph = NULL;
	ncclResult_t r = capture_of(stream, &capture, &graph);
	cudaError_t e;

	if (!r)
		r = follow_last(c, stream, capture);
	if (!r && capture) {
		atomic_fetch_add(&op->refs, 1); /* the graph's */
		r = give_to_graph(op, graph);
		if (!r) {
			e = cudaLaunchHostFunc(stream, op_run, op);
			r = e ? cuda_failed(e, "cudaLaunchHostFunc") : ncclSuccess;
		}
	} else if (!r) {
		comm_outstanding(c, 1);
		atomic_fetch_add(&op->refs, 1);
		e = cudaLaunchHostFunc(stream, op_run, op);
		if (e) {
			comm_outstanding(c, -1);
			op_put(op);
			r = cuda_failed(e, "cudaLaunchHostFunc");
		}
	}
	return r ? r : remember_last(c, stream, capture);
}

static uint32_t make_signature(const struct op *op)
{
	uint64_t h = op_flags(op) ^ (uint64_t)op->count * UINT64_C(0x9e3779b97f4a7c15) ^
		     (uint64_t)op->root << 40;

	h = (h ^ h >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(h >> 32);
}

static ncclResult_t make_sched(struct op *op)
{
	struct ncclComm *c = op->comm;
	struct sched *s = &op->sched;
	struct err err = {{0}};

	s->kind = op->kind;
	s->algo = op->kind == COLL_ALLREDUCE && c->settings.allreduce_algo >= 0
			  ? (enum sched_algo)c->settings.allreduce_algo
			  : sched_default_algo(op->kind);
	s->n_ranks = c->n_ranks;
	s->root = op->root;
	s->ranks_per_node = c->ranks_per_node;
	s->n_channels = op->kind == COLL_SENDRECV ? 1 : c->settings.n_channels;
	s->elem_bytes = (uint32_t)coll_dtype_bytes(op->dtype);
	s->bytes = op->count * s->elem_bytes;
	s->chunk_bytes = c->settings.chunk_bytes;
	s->p2p = op->p2p;
	s->n_p2p = op->n_p2p;
	s->p2p_rank = c->rank;
	if (c->n_ranks > 1 && sched_init(s, &err))
		return fail(ncclInvalidUsage, "%s", err.text);
	return ncclSuccess;
}

/* NCCL pairs the k-th send to oneself with the k-th receive from oneself. */
static ncclResult_t number_alone(struct op *op)
{
	uint64_t n[2] = {0, 0};
	uint32_t i, k;

	for (i = 0; i < op->n_p2p; i++) {
		if (op->p2p[i].bytes)
			op->p2p[i].lane = (uint16_t)n[op->p2p[i].is_send]++;
	}
	for (i = 0; i < op->n_p2p && n[0] == n[1]; i++) {
		for (k = 0; k < op->n_p2p; k++) {
			if (op->p2p[i].bytes && op->p2p[k].bytes &&
			    op->p2p[i].lane == op->p2p[k].lane &&
			    op->p2p[i].bytes != op->p2p[k].bytes)
				n[0]++;
		}
	}
	if (n[0] != n[1])
		return fail(ncclInvalidUsage,
			    "sends to oneself need receives of the same size in the same group");
	return ncclSuccess;
}

/* Offsets count from the lowest buffer of each direction. */
static ncclResult_t fill_p2p(struct op *op, const struct call *calls, uint32_t n)
{
	uintptr_t low[2] = {UINTPTR_MAX, UINTPTR_MAX};
	uint32_t i;

	op->p2p = calloc(n, sizeof(*op->p2p));
	if (!op->p2p)
		return fail(ncclSystemError, "out of memory");
	op->n_p2p = n;
	for (i = 0; i < n; i++) {
		uintptr_t at = (uintptr_t)(calls[i].is_send ? calls[i].send : calls[i].recv);

		if (calls[i].count && at < low[calls[i].is_send])
			low[calls[i].is_send] = at;
	}
	for (i = 0; i < n; i++) {
		const struct call *c = &calls[i];
		struct sched_p2p *p = &op->p2p[i];

		p->peer = (uint32_t)c->root;
		p->is_send = c->is_send;
		p->bytes = c->count * coll_dtype_bytes((uint32_t)c->dtype);
		if (p->bytes && c->is_send) {
			p->off = (uintptr_t)c->send - low[1];
			if (!p->off)
				op->send = c->send;
		} else if (p->bytes) {
			p->off = (uintptr_t)c->recv - low[0];
			if (!p->off)
				op->recv = c->recv;
		}
	}
	return op->comm->n_ranks == 1 ? number_alone(op) : ncclSuccess;
}

static ncclResult_t make_op(const struct call *calls, uint32_t n_calls, struct op **ret)
{
	const struct call *c = &calls[0];
	struct op *op = calloc(1, sizeof(*op));
	ncclResult_t r = ncclSuccess;

	if (!op)
		return fail(ncclSystemError, "out of memory");
	atomic_init(&op->refs, 1);
	op->comm = comm_get(c->comm);
	op->kind = c->kind;
	op->dtype = (enum coll_dtype)c->dtype;
	op->send = c->send;
	op->recv = c->recv;
	op->count = c->count;
	op->root = (uint32_t)c->root;
	if (c->op >= ncclNumOps) {
		op->has_scalar = true;
		op->redop = COLL_SUM;
		op->scalar = c->redop;
	} else {
		op->redop = (enum coll_redop)c->op;
	}
	if (op->kind == COLL_SENDRECV) {
		op->send = op->recv = NULL;
		op->dtype = COLL_INT8;
		op->count = 0;
		op->root = 0;
		r = fill_p2p(op, calls, n_calls);
	}
	op->rma = c->rma;
	if (!op->rma.what) {
		op->signature = make_signature(op);
		r = r ? r : make_sched(op);
	}
	if (r) {
		op_put(op);
		return r;
	}
	*ret = op;
	return ncclSuccess;
}

/* The other streams of a group wait for the op, and the op for them. */
static ncclResult_t join_streams(const struct call *calls, uint32_t n, bool is_before)
{
	cudaEvent_t event = NULL;
	cudaError_t e = cudaSuccess;
	uint32_t i, j;

	for (i = 1; i < n && !e; i++) {
		for (j = 0; calls[j].stream != calls[i].stream;)
			j++;
		if (j < i) /* seen */
			continue;
		e = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
		if (!e)
			e = cudaEventRecord(event, calls[is_before ? i : 0].stream);
		if (!e)
			e = cudaStreamWaitEvent(calls[is_before ? 0 : i].stream, event, 0);
		if (event)
			cudaEventDestroy(event);
		event = NULL;
	}
	return e ? cuda_failed(e, "joining the streams of a group") : ncclSuccess;
}

ncclResult_t op_enqueue(const struct call *calls, uint32_t n_calls)
{
	struct ncclComm *c = calls[0].comm;
	struct op *op = NULL;
	ncclResult_t r = make_op(calls, n_calls, &op);
	int device = c->device, before = device;

	if (r)
		return r;
	cudaGetDevice(&before);
	if (before != device)
		cudaSetDevice(device);
	r = join_streams(calls, n_calls, true);
	if (!r)
		r = launch(op, calls[0].stream);
	if (!r)
		r = join_streams(calls, n_calls, false);
	if (before != device)
		cudaSetDevice(before);
	op_put(op);
	return r;
}

/* --- checks ------------------------------------------------------------------------------------
 */

/* A user's operator is noted in the call. */
static ncclResult_t check_redop(struct call *c)
{
	uint32_t i = (uint32_t)c->op - ncclNumOps;
	ncclResult_t r = ncclSuccess;

	if ((int)c->op < 0)
		return fail(ncclInvalidArgument, "%s: no such operator: %d", c->name, (int)c->op);
	if (c->op < ncclNumOps)
		return ncclSuccess;
	pthread_mutex_lock(&c->comm->lock);
	if (i >= c->comm->n_redops || !c->comm->redops[i].in_use ||
	    c->comm->redops[i].dtype != (enum coll_dtype)c->dtype)
		r = ncclInvalidArgument;
	else
		c->redop = c->comm->redops[i];
	pthread_mutex_unlock(&c->comm->lock);
	if (r)
		return fail(r, "%s: operator %d is not one of this communicator and data type",
			    c->name, (int)c->op);
	return ncclSuccess;
}

static bool needs_send(const struct call *c)
{
	if (c->kind == COLL_SENDRECV)
		return c->is_send;
	return !(c->kind == COLL_BROADCAST || c->kind == COLL_SCATTER) ||
	       (uint32_t)c->root == c->comm->rank;
}

static bool needs_recv(const struct call *c)
{
	if (c->kind == COLL_SENDRECV)
		return !c->is_send;
	return !(c->kind == COLL_REDUCE || c->kind == COLL_GATHER) ||
	       (uint32_t)c->root == c->comm->rank;
}

ncclResult_t op_check(struct call *c)
{
	ncclResult_t r = comm_check(c->comm, c->name);
	uint64_t most;

	if (r)
		return r;
	if ((int)c->dtype < 0 || c->dtype >= ncclNumTypes)
		return fail(ncclInvalidArgument, "%s: no such data type: %d", c->name,
			    (int)c->dtype);
	if (c->root < 0 || (uint32_t)c->root >= c->comm->n_ranks)
		return fail(ncclInvalidArgument, "%s: rank %d is not in 0..%u", c->name, c->root,
			    c->comm->n_ranks - 1);
	most = SCHED_MAX_BYTES / coll_dtype_bytes((uint32_t)c->dtype) / c->comm->n_ranks;
	if (c->count > most)
		return fail(ncclInvalidArgument, "%s: count %zu is larger than %llu", c->name,
			    c->count, (unsigned long long)most);
	r = check_redop(c);
	if (r)
		return r;
	if (c->rma.what)
		return ncclSuccess;
	if (c->count && ((needs_send(c) && !c->send) || (needs_recv(c) && !c->recv)))
		return fail(ncclInvalidArgument, "%s: a buffer is NULL", c->name);
	return ncclSuccess;
}
