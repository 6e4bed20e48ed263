/* See nccl.h. */
#include "nccl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct nccl *nccl_now;

void nccl_log(int level, unsigned long subsystems, const char *file, int line, const char *format,
	      ...)
{
	va_list args;

	(void)level;
	(void)subsystems;
	(void)file;
	(void)line;
	va_start(args, format);
	vsnprintf(nccl_now->logged, sizeof(nccl_now->logged), format, args);
	va_end(args);
}

/* --- the profiler's events, in the words of each version ------------------------------------- */

/* From version 3 on. */
#define START(n, ...)                                                             \
	do {                                                                      \
		if ((n)->version == 3) {                                          \
			struct profiler_event_v3 e = {.rank = (n)->rank};         \
			__VA_ARGS__;                                              \
			ncclProfiler_v3.start((n)->profiler, &handle, &e);        \
		} else if ((n)->version == 4) {                                   \
			struct profiler_event_v4 e = {.rank = (n)->rank};         \
			__VA_ARGS__;                                              \
			ncclProfiler_v4.start((n)->profiler, &handle, &e);        \
		} else {                                                          \
			struct profiler_event_v5 e = {.rank = (n)->rank};         \
			__VA_ARGS__;                                              \
			((n)->version == 5 ? &ncclProfiler_v5 : &ncclProfiler_v6) \
				->start((n)->profiler, &handle, &e);              \
		}                                                                 \
	} while (0)

#define START_2(n, ...)                                                    \
	do {                                                               \
		if ((n)->version == 2) {                                   \
			struct profiler_event_v2 e = {.rank = (n)->rank};  \
			__VA_ARGS__;                                       \
			ncclProfiler_v2.start((n)->profiler, &handle, &e); \
		} else {                                                   \
			START(n, __VA_ARGS__);                             \
		}                                                          \
	} while (0)

#define START_1(n, ...)                                                    \
	do {                                                               \
		if ((n)->version == 1) {                                   \
			struct profiler_event_v1 e = {.rank = (n)->rank};  \
			__VA_ARGS__;                                       \
			ncclProfiler_v1.start((n)->profiler, &handle, &e); \
		} else {                                                   \
			START_2(n, __VA_ARGS__);                           \
		}                                                          \
	} while (0)

static void stop_event(struct nccl *n, void *handle)
{
	if (handle)
		(n->version == 1   ? ncclProfiler_v1.stop
		 : n->version == 2 ? ncclProfiler_v2.stop
		 : n->version == 3 ? ncclProfiler_v3.stop
		 : n->version == 4 ? ncclProfiler_v4.stop
		 : n->version == 5 ? ncclProfiler_v5.stop
				   : ncclProfiler_v6.stop)(handle);
}

/* What phandle is. */
struct step {
	struct nccl *nccl;
	void **event;
};

static int callback(void **event, int type, void *parent, int64_t id, void *data)
{
	struct step *s = parent;
	void *handle = NULL;

	if (type == PROFILER_NET_START) {
		START(s->nccl, {
			e.type = PROFILER_NET;
			e.parent = *s->event;
			e.net.id = id;
			e.net.data = data;
		});
		*event = handle;
	}
	return PLUGIN_OK;
}

void nccl_init(struct nccl *n, int version, uint64_t number, int rank, int n_ranks,
	       const char *name)
{
	int mask = 0, r;

	*n = (struct nccl){.version = version, .number = number, .rank = rank};
	nccl_now = n;
	if (version == 1)
		n->result = ncclNetPlugin_v8.init(nccl_log);
	else if (version == 2)
		n->result = ncclNetPlugin_v9.init(nccl_log);
	else if (version < 5)
		n->result = ncclNetPlugin_v10.init(nccl_log, callback);
	else
		n->result = ncclNetPlugin_v11.init(&n->net, number, NULL, nccl_log, callback);
	if (version <= 3)
		r = (version == 1   ? ncclProfiler_v1.init
		     : version == 2 ? ncclProfiler_v2.init
				    : ncclProfiler_v3.init)(&n->profiler, &mask);
	else if (version == 4)
		r = ncclProfiler_v4.init(&n->profiler, &mask, name, number, 2, n_ranks, rank,
					 nccl_log);
	else
		r = (version == 5 ? ncclProfiler_v5 : ncclProfiler_v6)
			    .init(&n->profiler, number, &mask, name, 2, n_ranks, rank, nccl_log);
	n->result = n->result ? n->result : r;
	if (!n->result && mask != (2 | 4 | 8 | 16 | 128))
		n->result = -1;
}

/* Where @name is in @names; @n: nowhere. */
static uint8_t number_of(const char *name, const char *const *names, uint8_t n)
{
	uint8_t i = 0;

	while (i < n && strcmp(name, names[i]) != 0)
		i++;
	return i;
}

/* Version 1 has numbers for names. */
static void *start_numbered(struct nccl *n, const struct nccl_call *c, void *group)
{
	static const char *const functions[] = {"Broadcast",     "Reduce",    "AllGather",
						"ReduceScatter", "AllReduce", "SendRecv",
						"Send",          "Recv"};
	static const char *const dtypes[] = {"ncclInt8",    "Unknown",     "ncclInt32",
					     "ncclUint32",  "ncclInt64",   "ncclUint64",
					     "ncclFloat16", "ncclFloat32", "ncclFloat64",
					     "ncclBfloat16"};
	static const char *const algorithms[] = {"TREE", "RING", "", "", "", "", "PAT"};
	static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};
	struct profiler_event_v1 e = {.parent = group, .rank = n->rank};
	uint8_t function = number_of(c->function, functions, 8);
	uint8_t dtype = number_of(c->dtype, dtypes, 10);
	void *handle = NULL;

	if (function >= 6) {
		e.type = PROFILER_P2P;
		e.p2p.comm = n->number;
		e.p2p.function = function;
		e.p2p.buffer = c->recv;
		e.p2p.count = c->count;
		e.p2p.dtype = dtype;
		e.p2p.peer = c->root;
	} else {
		e.type = PROFILER_COLL;
		e.coll.comm = n->number;
		e.coll.function = function;
		e.coll.send = c->send;
		e.coll.recv = c->recv;
		e.coll.count = c->count;
		e.coll.root = c->root;
		e.coll.dtype = dtype;
		e.coll.n_channels_max = (uint8_t)c->n_channels;
		e.coll.algorithm = number_of(c->algorithm, algorithms, 7);
		e.coll.protocol = number_of(c->protocol, protocols, 3);
	}
	ncclProfiler_v1.start(n->profiler, &handle, &e);
	return handle;
}

void *nccl_start_call(struct nccl *n, const struct nccl_call *c)
{
	bool is_p2p = !strcmp(c->function, "Send") || !strcmp(c->function, "Recv");
	void *handle = NULL, *group;

	START_1(n, { e.type = PROFILER_GROUP; });
	group = handle;
	if (!group && n->version < 5)
		return NULL;
	handle = NULL;
	if (n->version == 1) {
		handle = start_numbered(n, c, group);
	} else if (is_p2p) {
		START_2(n, {
			e.type = PROFILER_P2P;
			e.parent = group;
			e.p2p.function = c->function;
			e.p2p.buffer = c->recv;
			e.p2p.count = c->count;
			e.p2p.dtype = c->dtype;
			e.p2p.peer = c->root;
			/* @comm, where the version has it */
			if (n->version <= 3) /* 2 has it there, too */
				memcpy((char *)&e + offsetof(struct profiler_event_v3, p2p.comm),
				       &n->number, 8);
		});
	} else {
		START_2(n, {
			e.type = PROFILER_COLL;
			e.parent = group;
			e.coll.function = c->function;
			e.coll.send = c->send;
			e.coll.recv = c->recv;
			e.coll.count = c->count;
			e.coll.root = c->root;
			e.coll.dtype = c->dtype;
			e.coll.algorithm = c->algorithm;
			e.coll.protocol = c->protocol;
			if (n->version <= 3)
				memcpy((char *)&e + offsetof(struct profiler_event_v3, coll.comm),
				       &n->number, 8);
			*((uint8_t *)&e +
			  (n->version == 2 ? offsetof(struct profiler_event_v2, coll.n_channels_max)
			   : n->version == 3
				   ? offsetof(struct profiler_event_v3, coll.n_channels_max)
			   : n->version == 4 ? offsetof(struct profiler_event_v4, coll.n_channels)
					     : offsetof(struct profiler_event_v5,
							coll.n_channels))) = (uint8_t)c->n_channels;
		});
	}
	if (handle)
		stop_event(n, handle); /* NCCL does so when the proxy has the op */
	stop_event(n, group);
	return handle;
}

/* --- connections --------------------------------------------------------------------------- */

void connection_open(struct connection *c, struct nccl *n, bool is_send, bool is_p2p)
{
	static const size_t bytes[] = {
		[PLUGIN_LL] = 8 << 16, [PLUGIN_LL128] = 8 * 614400, [PLUGIN_SIMPLE] = 4 << 20};
	unsigned char handle[NET_HANDLE_BYTES] = "NBOX-netlistener";
	void *listener;

	*c = (struct connection){.nccl = n, .is_send = is_send};
	if (is_send) {
		if (n->version < 3)
			ncclNetPlugin_v9.connect(0, handle, &c->end, NULL);
		else if (n->version < 5)
			ncclNetPlugin_v10.connect(0, NULL, handle, &c->end, NULL);
		else
			ncclNetPlugin_v11.connect(n->net, 0, handle, &c->end, NULL);
	} else {
		if (n->version < 5)
			ncclNetPlugin_v10.listen(0, handle, &listener);
		else
			ncclNetPlugin_v11.listen(n->net, 0, handle, &listener);
		ncclNetPlugin_v11.accept(listener, &c->end, NULL);
		ncclNetPlugin_v11.close_listener(listener);
	}
	for (int p = is_p2p ? PLUGIN_SIMPLE : 0; p < PLUGIN_N_PROTOCOLS; p++) {
		c->bytes[p] = bytes[p];
		c->buffer[p] = aligned_alloc(4096, bytes[p]);
		memset(c->buffer[p], 0x5a, bytes[p]);
		ncclNetPlugin_v11.register_memory(c->end, c->buffer[p], bytes[p], NET_MEMORY_HOST,
						  &c->registered[p]);
	}
}

void connection_close(struct connection *c)
{
	for (int p = 0; p < PLUGIN_N_PROTOCOLS; p++)
		if (c->registered[p])
			ncclNetPlugin_v11.deregister(c->end, c->registered[p]);
	for (int p = 0; p < PLUGIN_N_PROTOCOLS; p++)
		free(c->buffer[p]);
	if (c->is_send)
		ncclNetPlugin_v11.close_sender(c->end);
	else
		ncclNetPlugin_v11.close_receiver(c->end);
}

/* --- the proxy ------------------------------------------------------------------------------ */

/* What version 1 tells of a message: each step of the connection. */
static int steps_told(const struct proxy_op *op)
{
	return op->on->nccl->version == 1 ? op->slice_steps : 1;
}

static void tell_step(struct proxy_op *op, uint64_t message)
{
	void *handle = NULL;

	for (int i = 0, n = steps_told(op); i < n; i++)
		START_1(op->on->nccl, {
			e.type = PROFILER_PROXY_STEP;
			e.parent = op->handle;
			e.step.step = (int)message * n + i;
		});
	op->steps[message % N_SLOTS] = handle;
	op->told = message + 1;
}

/* Of the op, of versions 1 to 3. */
static void tell_progress(struct proxy_op *op, int state, uint64_t messages)
{
	struct profiler_progress p = {0, (int)messages * steps_told(op)};

	(op->on->nccl->version == 1   ? ncclProfiler_v1.record
	 : op->on->nccl->version == 2 ? ncclProfiler_v2.record
				      : ncclProfiler_v3.record)(op->handle, state, &p);
}

/* Versions 1 to 3: the steps of sends are told ahead; isend and irecv have no parent, or @parent,
 * which is of another message. */
static int post_old(struct proxy_op *op, void *data, size_t bytes, void *parent, void **ret_request)
{
	enum { SEND_POSTED, SEND_TRANSMITTED = 2, RECEIVE_POSTED = 4 };
	struct connection *c = op->on;
	void *registered = c->registered[op->protocol];
	int tag = 0, n = (int)bytes, r;

	if (!c->is_send) {
		tell_step(op, op->posted);
		r = c->nccl->version == 1 ? ncclNetPlugin_v8.irecv(c->end, 1, &data, &n, &tag,
								   &registered, ret_request)
		    : c->nccl->version == 2
			    ? ncclNetPlugin_v9.irecv(c->end, 1, &data, &bytes, &tag, &registered,
						     ret_request)
			    : ncclNetPlugin_v10.irecv(c->end, 1, &data, &bytes, &tag, &registered,
						      &parent, ret_request);
		tell_progress(op, RECEIVE_POSTED, op->posted + 1);
		return r;
	}
	while (op->told < op->posted + 3 && op->told < (uint64_t)op->n) {
		tell_step(op, op->told);
		tell_progress(op, SEND_POSTED, op->told);
	}
	tell_progress(op, PROFILER_SEND_BEGINS, op->posted + 1);
	r = c->nccl->version == 1
		    ? ncclNetPlugin_v8.isend(c->end, data, n, tag, registered, ret_request)
	    : c->nccl->version == 2
		    ? ncclNetPlugin_v9.isend(c->end, data, bytes, tag, registered, ret_request)
		    : ncclNetPlugin_v10.isend(c->end, data, bytes, tag, registered, parent,
					      ret_request);
	tell_progress(op, SEND_TRANSMITTED, op->posted + 1);
	return r;
}

void proxy_start(struct proxy_op *op, struct connection *on, void *call, int protocol, int channel,
		 int peer, int n, int slice_steps)
{
	uint64_t chunk_steps = slice_steps == 2 ? 4 : 1;
	void *handle = NULL;

	*op = (struct proxy_op){.on = on, .protocol = protocol, .n = n, .slice_steps = slice_steps};
	op->base = (on->step + chunk_steps - 1) / chunk_steps * chunk_steps;
	on->step = op->base + (uint64_t)n * (uint64_t)slice_steps;
	START_1(on->nccl, {
		e.type = PROFILER_PROXY_OP;
		e.parent = call;
		e.op = (struct profiler_proxy_op){.pid = getpid(),
						  .channel = (uint8_t)channel,
						  .peer = peer,
						  .n_steps = n * steps_told(op),
						  .chunk_bytes = (1 << 17) / steps_told(op),
						  .is_send = on->is_send};
	});
	op->handle = handle;
}

uint64_t proxy_step(const struct proxy_op *op, uint64_t message)
{
	return op->base + message * (uint64_t)op->slice_steps;
}

unsigned char *proxy_buffer(const struct proxy_op *op, uint64_t message)
{
	int p = op->protocol;

	return op->on->buffer[p] + proxy_step(op, message) % N_SLOTS * (op->on->bytes[p] / N_SLOTS);
}

int proxy_post(struct proxy_op *op, size_t bytes, bool *ret_is_posted)
{
	struct connection *c = op->on;
	uint64_t slot = op->posted % N_SLOTS;
	bool is_old = c->nccl->version <= 3;
	struct step step = {c->nccl, op->is_untold ? NULL
				     : is_old      ? &op->steps[(slot + 3) % N_SLOTS]
						   : &op->steps[slot]};
	void *data = proxy_buffer(op, op->posted), *parent = &step, *request = NULL;
	int r;

	if (!is_old)
		tell_step(op, op->posted);
	if (is_old)
		r = post_old(op, data, bytes, parent, &request);
	else if (c->is_send)
		r = ncclNetPlugin_v11.isend(c->end, data, bytes, 0, c->registered[op->protocol],
					    parent, &request);
	else
		r = ncclNetPlugin_v11.irecv(c->end, 1, &data, &bytes, &(int){0},
					    &c->registered[op->protocol], &parent, &request);
	*ret_is_posted = request != NULL;
	if (request) {
		op->requests[slot] = request;
		op->posted++;
	}
	return r;
}

bool proxy_test(struct proxy_op *op, int *ret_bytes)
{
	int is_done = 0;

	ncclNetPlugin_v11.test(op->requests[op->done % N_SLOTS], &is_done, ret_bytes);
	if (is_done) {
		stop_event(op->on->nccl, op->steps[op->done % N_SLOTS]);
		op->done++;
	}
	return is_done;
}

void proxy_stop(struct proxy_op *op)
{
	stop_event(op->on->nccl, op->handle);
}
