/* See impl.h: the plug-ins of the network and of the profiler, in the version that an NCCL of
 * FAKE_NCCL_VERSION takes. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "impl.h"
#include "patches/records.h"
#include "wire.h"

#define TYPE_START 0 /* what a plug-in's callback is told: start, stop, update, update and stop */
#define TYPE_STOP 1

static struct {
	pthread_mutex_t lock;
	void *net, *profiler; /* libraries */
	bool has_init;        /* before version 11: once a process */
	const struct net_plugin_v10 *v10;
	const struct net_plugin_v11 *v11;
	const struct net_plugin_v9 *v9;
	const struct net_plugin_v8 *v8;
	int old; /* 1, 2: p3 is of that version */
	const struct profiler_v3 *p3;
	const struct profiler_v4 *p4;
	const struct profiler_v5 *p5;
	_Atomic int mask;
} the = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void log_line(int level, unsigned long subsystems, const char *file, int line,
		     const char *format, ...) __attribute__((format(printf, 5, 6)));

static void log_line(int level, unsigned long subsystems, const char *file, int line,
		     const char *format, ...)
{
	const char *to = getenv("NCCL_DEBUG_FILE");
	const char *told = getenv("NCCL_DEBUG");
	va_list args;
	FILE *f;

	(void)subsystems, (void)file, (void)line;
	if (!told || (level != PLUGIN_LEVEL_WARN && strcmp(told, "INFO") != 0))
		return;
	f = to ? fopen(to, "ae") : stderr;
	if (!f)
		return;
	fprintf(f, "proxy-nccl:%d NCCL %s ", (int)getpid(),
		level == PLUGIN_LEVEL_WARN ? "WARN" : "INFO");
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	fputc('\n', f);
	if (to)
		fclose(f);
}

/* --- what the network says of its requests ----------------------------------------- */

static int start_event(void *context, void **ret, struct event_v5 *e)
{
	if (the.p5)
		return the.p5->start(context, ret, e);
	if (the.p4)
		return the.p4->start(context, ret, e);
	return the.p3 ? the.p3->start(context, ret, e) : 0;
}

static int on_net_event(void **event, int type, void *parent, int64_t plugin, void *data)
{
	const struct proxy_handle *h = parent;

	if (!the.p3 && !the.p4 && !the.p5)
		return 0;
	if (type == TYPE_START) {
		struct event_v5 e = {
			.type = PROFILED_NET,
			/* 2.26 looks in the wrong place (core/nccl-plugin/profiler.h) */
			.parent = the.p3 ? NULL : h->step_event,
			.net = {plugin, data}};

		if (h->op->mask & PROFILED_NET)
			start_event(h->context, event, &e);
		return 0;
	}
	if (type == TYPE_STOP && *event)
		profiler_stop(*event);
	return 0;
}

/* --- loading ----------------------------------------------------------------------- */

static void *open_named(const char *variable)
{
	const char *name = getenv(variable);
	void *library;

	if (!name)
		return NULL;
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		say("%s: %s", variable, dlerror());
	return library;
}

static void load(int version)
{
	static const char *const names[] = {"ncclProfiler_v3", "ncclProfiler_v1",
					    "ncclProfiler_v2"};

	if (the.net)
		return;
	the.net = open_named("NCCL_NET_PLUGIN");
	if (!the.net)
		return;
	if (version >= NCCL_CODE(2, 28, 0))
		the.v11 = dlsym(the.net, "ncclNetPlugin_v11");
	else if (version < NCCL_CODE(2, 24, 0))
		the.v8 = dlsym(the.net, "ncclNetPlugin_v8");
	else if (version < NCCL_CODE(2, 26, 0))
		the.v9 = dlsym(the.net, "ncclNetPlugin_v9");
	if (!the.v11 && !the.v9 && !the.v8)
		the.v10 = dlsym(the.net, "ncclNetPlugin_v10");
	the.old = version < NCCL_CODE(2, 24, 0) ? 1 : version < NCCL_CODE(2, 26, 0) ? 2 : 0;
	the.profiler = open_named("NCCL_PROFILER_PLUGIN");
	if (!the.profiler)
		the.profiler = the.net;
	if (version >= NCCL_CODE(2, 29, 0))
		the.p5 = dlsym(the.profiler, "ncclProfiler_v6");
	if (!the.p5 && version >= NCCL_CODE(2, 28, 0))
		the.p5 = dlsym(the.profiler, "ncclProfiler_v5");
	if (!the.p5 && version >= NCCL_CODE(2, 27, 0))
		the.p4 = dlsym(the.profiler, "ncclProfiler_v4");
	if (!the.p5 && !the.p4)
		the.p3 = dlsym(the.profiler, names[the.old]);
}

/* Of all versions but 11: once a process. */
static int begin_once(void)
{
	struct net_properties_v9 p;
	struct net_properties_v8 p8;
	int n = 0;

	if (the.v10)
		return the.v10->init(log_line, on_net_event) || the.v10->devices(&n) || n < 1 ||
		       the.v10->get_properties(0, &p);
	if (the.v9)
		return the.v9->init(log_line) || the.v9->devices(&n) || n < 1 ||
		       the.v9->get_properties(0, &p) || p.n_receives_max != 1;
	return the.v8->init(log_line) || the.v8->devices(&n) || n < 1 ||
	       the.v8->get_properties(0, &p8) || p8.n_receives_max != 1;
}

static int net_begin(ncclComm_t c, uint64_t hash)
{
	struct net_config config = {-1};
	struct net_properties_v11 properties = {.n_requests_max = 0};
	int n = 0, r;

	c->plugins.v11 = the.v11;
	c->plugins.v10 = the.v10;
	c->plugins.v9 = the.v9;
	c->plugins.v8 = the.v8;
	if (the.v11) {
		r = the.v11->init(&c->plugins.net_context, hash, &config, log_line, on_net_event);
		if (r || the.v11->devices(&n) || n < 1 || the.v11->get_properties(0, &properties))
			return wire_fail("the network %s does not begin: %d", the.v11->name, r);
		return 0;
	}
	if (!the.v10 && !the.v9 && !the.v8)
		return wire_fail("NCCL_NET_PLUGIN names no network of a version that is known");
	if (!the.has_init && begin_once())
		return wire_fail("the network does not begin");
	the.has_init = true;
	return 0;
}

int plugins_net_init(ncclComm_t c, uint64_t hash)
{
	int r;

	pthread_mutex_lock(&the.lock);
	load(c->version);
	r = net_begin(c, hash);
	pthread_mutex_unlock(&the.lock);
	return r;
}

int plugins_profiler_init(ncclComm_t c, uint64_t hash)
{
	int mask = 0, n = (int)c->n_ranks, n_nodes = (int)c->n_nodes, rank = (int)c->rank, r = 0;
	void **context = &c->plugins.profiler_context;

	pthread_mutex_lock(&the.lock);
	if (the.p5)
		r = the.p5->init(context, hash, &mask, NULL, n_nodes, n, rank, log_line);
	else if (the.p4)
		r = the.p4->init(context, &mask, NULL, hash, n_nodes, n, rank, log_line);
	else if (the.p3)
		r = the.p3->init(context, &mask);
	if (r == 0 && mask)
		the.mask = mask;
	pthread_mutex_unlock(&the.lock);
	return 0; /* as NCCL: it goes on without */
}

void plugins_end(ncclComm_t c)
{
	pthread_mutex_lock(&the.lock);
	if (c->plugins.profiler_context && the.p5)
		the.p5->finalize(c->plugins.profiler_context);
	else if (c->plugins.profiler_context && the.p4)
		the.p4->finalize(c->plugins.profiler_context);
	else if (c->plugins.profiler_context && the.p3)
		the.p3->finalize(c->plugins.profiler_context);
	if (c->plugins.net_context && the.v11)
		the.v11->finalize(c->plugins.net_context);
	pthread_mutex_unlock(&the.lock);
}

/* --- the network ------------------------------------------------------------------- */

#define OLD(c, call)                                \
	((c)->plugins.v10  ? (c)->plugins.v10->call \
	 : (c)->plugins.v9 ? (c)->plugins.v9->call  \
			   : (c)->plugins.v8->call)
#define NET(c, call) ((c)->plugins.v11 ? (c)->plugins.v11->call : OLD(c, call))

int net_listen(ncclComm_t c, void *handle, void **ret_listener)
{
	return c->plugins.v11
		       ? c->plugins.v11->listen(c->plugins.net_context, 0, handle, ret_listener)
		       : OLD(c, listen(0, handle, ret_listener));
}

int net_connect(ncclComm_t c, void *handle, void **ret_sender)
{
	struct net_config config = {-1};
	void *offload = NULL;

	if (c->plugins.v11)
		return c->plugins.v11->connect(c->plugins.net_context, 0, handle, ret_sender,
					       &offload);
	if (c->plugins.v10)
		return c->plugins.v10->connect(0, &config, handle, ret_sender, &offload);
	return c->plugins.v9 ? c->plugins.v9->connect(0, handle, ret_sender, &offload)
			     : c->plugins.v8->connect(0, handle, ret_sender, &offload);
}

int net_accept(ncclComm_t c, void *listener, void **ret_receiver)
{
	void *offload = NULL;

	return NET(c, accept(listener, ret_receiver, &offload));
}

int net_register(ncclComm_t c, void *comm, void *data, size_t bytes, void **ret)
{
	return NET(c, register_memory(comm, data, bytes, NET_MEMORY_HOST, ret));
}

int net_isend(ncclComm_t c, void *sender, void *data, size_t bytes, int tag, void *reg,
	      void *parent, void **ret_request)
{
	if (c->plugins.v11)
		return c->plugins.v11->isend(sender, data, bytes, tag, reg, parent, ret_request);
	if (c->plugins.v10)
		return c->plugins.v10->isend(sender, data, bytes, tag, reg, parent, ret_request);
	if (c->plugins.v9)
		return c->plugins.v9->isend(sender, data, bytes, tag, reg, ret_request);
	return c->plugins.v8->isend(sender, data, (int)bytes, tag, reg, ret_request);
}

int net_irecv(ncclComm_t c, void *receiver, void *data, size_t bytes, int tag, void *reg,
	      void *parent, void **ret_request)
{
	int n = (int)bytes;

	if (c->plugins.v11)
		return c->plugins.v11->irecv(receiver, 1, &data, &bytes, &tag, &reg, &parent,
					     ret_request);
	if (c->plugins.v10)
		return c->plugins.v10->irecv(receiver, 1, &data, &bytes, &tag, &reg, &parent,
					     ret_request);
	if (c->plugins.v9)
		return c->plugins.v9->irecv(receiver, 1, &data, &bytes, &tag, &reg, ret_request);
	return c->plugins.v8->irecv(receiver, 1, &data, &n, &tag, &reg, ret_request);
}

int net_test(ncclComm_t c, void *request, int *ret_done, int *ret_bytes)
{
	return NET(c, test(request, ret_done, ret_bytes));
}

int net_consumed(ncclComm_t c, void *receiver, void *request)
{
	if (!NET(c, receive_consumed))
		return 0;
	return NET(c, receive_consumed(receiver, 1, request));
}

void net_attributes_set(ncclComm_t c, const struct proxy_op *o)
{
	const struct net_flows none = {-1, -1, -1, -1};
	struct net_attributes a = {none, none, o->functions, o->algorithm, o->protocol};

	if (c->plugins.v11 && c->plugins.v11->set_attributes)
		c->plugins.v11->set_attributes(c->plugins.net_context, &a);
}

void net_close(ncclComm_t c, struct pipe *p)
{
	for (int i = 0; p->net && i < PLUGIN_N_PROTOCOLS; i++)
		if (p->registrations[i])
			NET(c, deregister(p->net, p->registrations[i]));
	if (p->net && p->is_send)
		NET(c, close_sender(p->net));
	else if (p->net)
		NET(c, close_receiver(p->net));
	if (p->listener)
		NET(c, close_listener(p->listener));
}

/* --- the profiler ------------------------------------------------------------------ */

static const char *const function_names[COLL_KINDS] = {"AllReduce", "AllGather", "ReduceScatter",
						       "Broadcast", "Reduce",    "AlltoAll",
						       "Gather",    "Scatter",   "SendRecv"};
static const uint8_t function_numbers[COLL_KINDS] = {[COLL_ALLREDUCE] = 4,
						     [COLL_ALLGATHER] = 2,
						     [COLL_REDUCESCATTER] = 3,
						     [COLL_BROADCAST] = 0,
						     [COLL_REDUCE] = 1};
static const char *const dtype_names[ncclNumTypes] = {"ncclInt8",       "ncclUint8",
						      "ncclInt32",      "ncclUint32",
						      "ncclInt64",      "ncclUint64",
						      "ncclFloat16",    "ncclFloat32",
						      "ncclFloat64",    "ncclBfloat16",
						      "ncclFloat8e4m3", "ncclFloat8e5m2"};
static const char *const protocol_names[] = {"LL", "LL128", "SIMPLE"};

int profiler_mask(void)
{
	return the.p3 || the.p4 || the.p5 ? the.mask : 0;
}

void profiler_stop(void *event)
{
	if (!event)
		return;
	if (the.p5)
		the.p5->stop(event);
	else if (the.p4)
		the.p4->stop(event);
	else if (the.p3)
		the.p3->stop(event);
}

void profiler_group(ncclComm_t c, void **ret)
{
	struct event_v5 e = {.type = PROFILED_GROUP};

	if (profiler_mask())
		start_event(c->plugins.profiler_context, ret, &e);
}

void profiler_coll(ncclComm_t c, void *group, const struct op *o, uint64_t seq, void **ret)
{
	const char *algorithm = o->algorithm == PLUGIN_TREE ? "TREE" : "RING";
	/* NCCL makes bytes of what it only moves */
	bool is_bytes = o->kind == COLL_ALLGATHER || o->kind == COLL_BROADCAST;
	int n_channels = 0;

	for (int i = 0; i < o->n_channels; i++)
		n_channels += o->part[i] > 0;
	if (!profiler_mask())
		return;
	if (the.old == 1) {
		struct event_v1 e = {.type = PROFILED_COLL, .parent = group, .rank = (int)c->rank};

		e.coll.comm = c->hash;
		e.coll.seq = seq;
		e.coll.function = function_numbers[o->kind];
		e.coll.send = o->send;
		e.coll.recv = o->recv;
		e.coll.count = is_bytes ? o->count * dtype_bytes(o->dtype) : o->count;
		e.coll.root = (int)o->root;
		e.coll.dtype = (uint8_t)(is_bytes ? ncclInt8 : o->dtype);
		e.coll.redop = o->redop;
		e.coll.n_channels_max = (uint8_t)n_channels;
		e.coll.n_warps = 16;
		e.coll.algorithm = (uint8_t)o->algorithm;
		e.coll.protocol = (uint8_t)o->protocol;
		the.p3->start(c->plugins.profiler_context, ret, &e);
		return;
	}
	if (the.old == 2) {
		struct event_v2 e = {.type = PROFILED_COLL, .parent = group, .rank = (int)c->rank};

		e.coll.comm = c->hash;
		e.coll.seq = seq;
		e.coll.function = function_names[o->kind];
		e.coll.send = o->send;
		e.coll.recv = o->recv;
		e.coll.count = is_bytes ? o->count * dtype_bytes(o->dtype) : o->count;
		e.coll.root = (int)o->root;
		e.coll.dtype = dtype_names[is_bytes ? ncclInt8 : o->dtype];
		e.coll.n_channels_max = (uint8_t)n_channels;
		e.coll.n_warps = 16;
		e.coll.algorithm = algorithm;
		e.coll.protocol = protocol_names[o->protocol];
		the.p3->start(c->plugins.profiler_context, ret, &e);
		return;
	}
	if (the.p3) {
		struct event_v3 e = {.type = PROFILED_COLL, .parent = group, .rank = (int)c->rank};

		e.coll.comm = c->hash;
		e.coll.seq = seq;
		e.coll.function = function_names[o->kind];
		e.coll.send = o->send;
		e.coll.recv = o->recv;
		e.coll.count = is_bytes ? o->count * dtype_bytes(o->dtype) : o->count;
		e.coll.root = (int)o->root;
		e.coll.dtype = dtype_names[is_bytes ? ncclInt8 : o->dtype];
		e.coll.n_channels_max = (uint8_t)n_channels;
		e.coll.n_warps = 16;
		e.coll.algorithm = algorithm;
		e.coll.protocol = protocol_names[o->protocol];
		the.p3->start(c->plugins.profiler_context, ret, &e);
		return;
	}
	struct event_v5 e = {.type = PROFILED_COLL,
			     .parent = the.p5 ? NULL : group,
			     .rank = (int)c->rank};

	e.coll.seq = seq;
	e.coll.function = function_names[o->kind];
	e.coll.send = o->send;
	e.coll.recv = o->recv;
	e.coll.count = is_bytes ? o->count * dtype_bytes(o->dtype) : o->count;
	e.coll.root = (int)o->root;
	e.coll.dtype = dtype_names[is_bytes ? ncclInt8 : o->dtype];
	e.coll.n_channels = (uint8_t)n_channels;
	e.coll.n_warps = 16;
	e.coll.algorithm = algorithm;
	e.coll.protocol = protocol_names[o->protocol];
	e.coll.parent_group = group;
	start_event(c->plugins.profiler_context, ret, &e);
}

void profiler_p2p(ncclComm_t c, void *group, const struct p2p_task *t, void **ret)
{
	const char *function = t->is_send ? "Send" : "Recv";

	if (!profiler_mask())
		return;
	if (the.old == 1) {
		struct event_v1 e = {.type = PROFILED_P2P, .parent = group, .rank = (int)c->rank};

		e.p2p.comm = c->hash;
		e.p2p.function = t->is_send ? 6 : 7;
		e.p2p.buffer = t->buffer;
		e.p2p.dtype = (uint8_t)t->dtype;
		e.p2p.count = t->count;
		e.p2p.peer = (int)t->peer;
		the.p3->start(c->plugins.profiler_context, ret, &e);
		return;
	}
	if (the.p3) { /* 2 has the same */
		struct event_v3 e = {.type = PROFILED_P2P, .parent = group, .rank = (int)c->rank};

		e.p2p.comm = c->hash;
		e.p2p.function = function;
		e.p2p.buffer = t->buffer;
		e.p2p.dtype = dtype_names[t->dtype];
		e.p2p.count = t->count;
		e.p2p.peer = (int)t->peer;
		the.p3->start(c->plugins.profiler_context, ret, &e);
		return;
	}
	struct event_v5 e = {.type = PROFILED_P2P,
			     .parent = the.p5 ? NULL : group,
			     .rank = (int)c->rank};

	e.p2p.function = function;
	e.p2p.buffer = t->buffer;
	e.p2p.dtype = dtype_names[t->dtype];
	e.p2p.count = t->count;
	e.p2p.peer = (int)t->peer;
	e.p2p.n_channels = 1;
	e.p2p.parent_group = group;
	start_event(c->plugins.profiler_context, ret, &e);
}

/* The steps of the connection that count one for the profiler: all that are sent together, but in
 * version 1. */
static uint64_t counted_steps(const struct proxy_op *o)
{
	return the.old == 1 ? 1 : (uint64_t)o->slice_steps;
}

void profiler_proxy_op(ncclComm_t c, struct proxy_op *o)
{
	uint64_t each = counted_steps(o);
	struct event_v5 e = {.type = PROFILED_PROXY_OP,
			     .parent = o->task_event,
			     .rank = (int)c->rank};

	if (!(o->mask & (PROFILED_PROXY_OP | PROFILED_PROXY_STEP | PROFILED_NET)))
		return;
	e.proxy_op = (struct proxy_op_event){.pid = getpid(),
					     .channel = (uint8_t)o->pipe->channel,
					     .peer = (int)o->pipe->peer,
					     .n_steps = (int)((o->n_steps + each - 1) / each),
					     .chunk_bytes = o->chunk_bytes * (int)each,
					     .is_send = o->pipe->is_send};
	start_event(c->plugins.profiler_context, &o->event, &e);
}

static struct proxy_handle *handle_of(struct proxy_op *o, uint64_t step)
{
	uint64_t n = (step + (uint64_t)o->slice_steps - 1) / (uint64_t)o->slice_steps;

	return &o->handles[n % STEPS];
}

void profiler_step(ncclComm_t c, struct proxy_op *o, uint64_t step)
{
	uint64_t each = counted_steps(o), n = (step + each - 1) / each;
	struct event_v5 e = {.type = PROFILED_PROXY_STEP, .parent = o->event, .rank = (int)c->rank};
	struct proxy_handle *h = handle_of(o, step);

	h->op = o;
	h->context = c->plugins.profiler_context;
	/* version 1: an event for each, of which the last one is kept here */
	for (uint64_t i = 0; i < (uint64_t)o->slice_steps / each; i++) {
		e.proxy_step.step = (int)(n + i);
		if (o->mask & (PROFILED_PROXY_STEP | PROFILED_NET))
			start_event(c->plugins.profiler_context, &h->step_event, &e);
	}
}

void profiler_op_state(struct proxy_op *o, uint64_t steps, int state)
{
	union state_args args = {.v3 = {0, (int)(steps / counted_steps(o))}};

	if (the.p3 && o->event)
		the.p3->state(o->event, state, &args);
}

void profiler_step_state(ncclComm_t c, struct proxy_op *o, uint64_t step, int state, size_t bytes)
{
	union state_args args = {.v3 = {0, 0}};
	struct proxy_handle *h = handle_of(o, step);

	(void)c;
	if (!h->step_event)
		return;
	args.bytes = bytes;
	if (the.p5)
		the.p5->state(h->step_event, state, &args);
	else if (the.p4)
		the.p4->state(h->step_event, state, &args);
	else if (the.p3 && state != STATE_SEND_PEER_WAIT) /* since version 4 */
		the.p3->state(h->step_event, state, &args);
}

void profiler_step_stop(struct proxy_op *o, uint64_t step)
{
	struct proxy_handle *h = handle_of(o, step);

	profiler_stop(h->step_event);
	h->step_event = NULL;
}
