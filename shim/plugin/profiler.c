/* NCCL's profiler, of versions 1 to 6: its events say of which call a message of the network is.
 * COLL and P2P are matched with the calls of calls.h, PROXY_OP begins a flow, PROXY_STEP numbers
 * its messages. From version 4 on NET, which isend and irecv ask for, leaves the step for them on
 * the thread; before, what NCCL tells last. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nccl-plugin/profiler.h"
#include "schedule/coll.h"
#include "shim/plugin/flow.h"
#include "shim/plugin/room.h"

#define EXPORT __attribute__((visibility("default")))
#define WANTED \
	(PROFILER_COLL | PROFILER_P2P | PROFILER_PROXY_OP | PROFILER_PROXY_STEP | PROFILER_NET)

/* The context of a communicator that is nbox's, or may be. */
struct context {
	struct named is;               /* n_ranks 0: up to version 3 its calls name it */
	_Atomic(struct bound *) bound; /* used; NULL: its first call shows which */
};
/* The handle of groups. */
static enum handle_kind group = HANDLE_GROUP;
/* The handle of a PROXY_OP that is refused: without one NCCL 2.27 tells of no step, and crashes in
 * its plugin_event_fn. */
static enum handle_kind refused = HANDLE_NONE;

static enum handle_kind kind_of(const void *handle)
{
	return handle ? *(const enum handle_kind *)handle : HANDLE_NONE;
}

static struct bound *bound_of(void *context)
{
	return atomic_load(&((struct context *)context)->bound);
}

/* @number, @rank: up to version 3. */
static struct bound *bound_of_call(void *context, uint64_t number, int rank,
				   const struct call_event *e)
{
	struct named called = {number, (uint32_t)rank, 0, 0};
	struct bound *b = bound_of(context), *before = NULL;
	struct context *c = context;

	if (b)
		return b;
	b = bound_use(c->is.n_ranks ? &c->is : &called, e);
	if (b && !atomic_compare_exchange_strong(&c->bound, &before, b)) /* by another thread */
		bound_drop(b);
	return b;
}

/* --- calls ---------------------------------------------------------------------------- */

/* Numbers as in struct wire_flow. -1: not known. */
static int number_of(const char *name, const char *const *names, int n)
{
	for (int i = 0; i < n; i++)
		if (name && !strcmp(name, names[i]))
			return i;
	return -1;
}

static const char *const algorithms[] = {
	[PLUGIN_TREE] = "TREE",
	[PLUGIN_RING] = "RING",
	[PLUGIN_COLLNET_DIRECT] = "COLLNET_DIRECT",
	[PLUGIN_COLLNET_CHAIN] = "COLLNET_CHAIN",
	[PLUGIN_NVLS] = "NVLS",
	[PLUGIN_NVLS_TREE] = "NVLS_TREE",
	[PLUGIN_PAT] = "PAT",
};
static const char *const protocols[] = {
	[PLUGIN_LL] = "LL",
	[PLUGIN_LL128] = "LL128",
	[PLUGIN_SIMPLE] = "SIMPLE",
};

/* A kernel that was launched must end, also where its communicator fails: so there is a call, and
 * its messages are given up as they are posted. */
static struct call *match(struct bound *b, const char *function, const struct call_event *e)
{
	struct call *c = call_match(b, e);

	if (c)
		return c;
	flow_refuse(b, "NCCL runs %s of %llu %s, which nbox has not called",
		    function ? function : "?", (unsigned long long)e->count,
		    e->dtype ? e->dtype : "?");
	return call_stray(b, e);
}

static uint32_t kind_of_function(const char *function)
{
	int kind = function ? coll_kind_parse(function) : -1;

	return kind < 0 ? COLL_KINDS : (uint32_t)kind;
}

static void *begin_coll(struct bound *b, const char *function, const struct call_event *e,
			unsigned int n_channels, const char *algorithm, const char *protocol)
{
	struct call *c;
	int kind;

	if (!b)
		return NULL;
	c = match(b, function, e);
	if (!c)
		return NULL;
	kind = number_of(algorithm, algorithms, PLUGIN_N_ALGORITHMS);
	c->algorithm = (uint32_t)kind;
	c->protocol = (uint32_t)number_of(protocol, protocols, PLUGIN_N_PROTOCOLS);
	c->n_channels = n_channels;
	call_told(c);
	if ((kind != PLUGIN_RING && kind != PLUGIN_TREE) || c->protocol >= PLUGIN_N_PROTOCOLS)
		flow_refuse(b,
			    "op %llu (%s): NCCL takes algorithm %s with protocol %s, of which "
			    "nbox has rings and trees alone: set NCCL_ALGO=Ring,Tree",
			    wire_seq_number(c->is.seq), coll_kind_name(c->is.kind),
			    algorithm ? algorithm : "?", protocol ? protocol : "?");
	return c;
}

static void *begin_p2p(struct bound *b, const char *function, const struct call_event *e,
		       unsigned int n_channels)
{
	struct call *c;

	if (!b)
		return NULL;
	c = match(b, function, e);
	if (!c)
		return NULL;
	c->algorithm = WIRE_NCCL_DIRECT;
	c->protocol = PLUGIN_SIMPLE; /* until its memory is known */
	c->n_channels = n_channels;
	call_told(c);
	return c;
}

/* --- messages ----------------------------------------------------------------------------- */

static void *begin_op(struct bound *b, void *parent, const struct profiler_proxy_op *op,
		      bool is_by_steps)
{
	struct flow_event e = {op->pid,         op->channel, op->peer,   op->n_steps,
			       op->chunk_bytes, op->is_send, is_by_steps};
	void *flow = NULL;

	if (kind_of(parent) == HANDLE_CALL)
		flow = flow_begin(parent, &e);
	else if (b)
		flow_refuse(b,
			    "NCCL's proxy %s rank %d, and NCCL's profiler does not say in "
			    "which call",
			    op->is_send ? "sends to" : "receives from", op->peer);
	return flow ? flow : &refused;
}

static void *begin_step(void *parent, int step)
{
	return kind_of(parent) == HANDLE_FLOW && step >= 0 ? flow_step(parent, step) : NULL;
}

static void *begin_net(void *parent)
{
	flow_leave_step(kind_of(parent) == HANDLE_STEP ? parent : NULL);
	return NULL;
}

/* --- the tables --------------------------------------------------------------------------- */

/* @for_coll, @for_p2p: NCCL's number of the communicator, where an event has it; @n_coll, @n_p2p:
 * channels. */
#define BEGIN(for_coll, for_p2p, n_coll, n_p2p)                                         \
	struct call_event call = {0};                                                   \
	void *handle = NULL;                                                            \
                                                                                        \
	switch (context ? e->type : 0) {                                                \
	case PROFILER_GROUP:                                                            \
		handle = &group;                                                        \
		break;                                                                  \
	case PROFILER_COLL:                                                             \
		call.kind = kind_of_function(e->coll.function);                         \
		call.send = e->coll.send;                                               \
		call.recv = e->coll.recv;                                               \
		call.count = e->coll.count;                                             \
		call.dtype = e->coll.dtype;                                             \
		call.root = (uint32_t)e->coll.root;                                     \
		handle = begin_coll(bound_of_call(context, for_coll, e->rank, &call),   \
				    e->coll.function, &call, n_coll, e->coll.algorithm, \
				    e->coll.protocol);                                  \
		break;                                                                  \
	case PROFILER_P2P:                                                              \
		call.kind = COLL_SENDRECV;                                              \
		call.is_send = e->p2p.function && !strcmp(e->p2p.function, "Send");     \
		call.send = call.is_send ? e->p2p.buffer : NULL;                        \
		call.recv = call.is_send ? NULL : e->p2p.buffer;                        \
		call.count = e->p2p.count;                                              \
		call.dtype = e->p2p.dtype;                                              \
		call.root = (uint32_t)e->p2p.peer;                                      \
		handle = begin_p2p(bound_of_call(context, for_p2p, e->rank, &call),     \
				   e->p2p.function, &call, n_p2p);                      \
		break;                                                                  \
	case PROFILER_PROXY_OP:                                                         \
		handle = begin_op(bound_of(context), e->parent, &e->op, false);         \
		break;                                                                  \
	case PROFILER_PROXY_STEP:                                                       \
		handle = begin_step(e->parent, e->step.step);                           \
		break;                                                                  \
	case PROFILER_NET:                                                              \
		handle = begin_net(e->parent);                                          \
		break;                                                                  \
	default:                                                                        \
		break;                                                                  \
	}                                                                               \
	*ret_handle = handle;                                                           \
	return PLUGIN_OK

static int begin_v2(void *context, void **ret_handle, struct profiler_event_v2 *e)
{
	BEGIN(e->coll.comm, e->p2p.comm, e->coll.n_channels_max, 1);
}

static int start_v2(void *context, void **ret_handle, struct profiler_event_v2 *e)
{
	begin_v2(context, ret_handle, e);
	if (e->type == PROFILER_PROXY_STEP)
		flow_leave_step(*ret_handle); /* its irecv comes next */
	return PLUGIN_OK;
}

static const char *const functions[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
					"AllReduce", "SendRecv", "Send",      "Recv"};

static const char *name_of(uint8_t number, const char *const *names, uint8_t n)
{
	return number < n ? names[number] : NULL;
}

/* As version 2. */
static int start_v1(void *context, void **ret_handle, struct profiler_event_v1 *e1)
{
	struct profiler_event_v2 e = {.type = e1->type, .parent = e1->parent, .rank = e1->rank};

	switch (e1->type) {
	case PROFILER_COLL:
		e.coll.comm = e1->coll.comm;
		e.coll.function = name_of(e1->coll.function, functions, ARRAY_SIZE(functions));
		e.coll.send = e1->coll.send;
		e.coll.recv = e1->coll.recv;
		e.coll.count = e1->coll.count;
		e.coll.root = e1->coll.root;
		e.coll.dtype = call_dtype_name(e1->coll.dtype);
		e.coll.n_channels_max = e1->coll.n_channels_max;
		e.coll.algorithm = name_of(e1->coll.algorithm, algorithms, PLUGIN_N_ALGORITHMS);
		e.coll.protocol = name_of(e1->coll.protocol, protocols, PLUGIN_N_PROTOCOLS);
		break;
	case PROFILER_P2P:
		e.p2p.comm = e1->p2p.comm;
		e.p2p.function = name_of(e1->p2p.function, functions, ARRAY_SIZE(functions));
		e.p2p.buffer = e1->p2p.buffer;
		e.p2p.dtype = call_dtype_name(e1->p2p.dtype);
		e.p2p.count = e1->p2p.count;
		e.p2p.peer = e1->p2p.peer;
		break;
	case PROFILER_PROXY_OP:
		*ret_handle =
			context ? begin_op(bound_of(context), e1->parent, &e1->op, true) : NULL;
		return PLUGIN_OK;
	case PROFILER_PROXY_STEP:
		e.step = e1->step;
		break;
	default:
		break;
	}
	return start_v2(context, ret_handle, &e);
}

static int begin_v3(void *context, void **ret_handle, struct profiler_event_v3 *e)
{
	BEGIN(e->coll.comm, e->p2p.comm, e->coll.n_channels_max, 1);
}

static int start_v3(void *context, void **ret_handle, struct profiler_event_v3 *e)
{
	begin_v3(context, ret_handle, e);
	if (e->type == PROFILER_PROXY_STEP)
		flow_leave_step(*ret_handle);
	return PLUGIN_OK;
}

static int start_v4(void *context, void **ret_handle, struct profiler_event_v4 *e)
{
	BEGIN(0, 0, e->coll.n_channels, e->p2p.n_channels);
}

static int start_v5(void *context, void **ret_handle, struct profiler_event_v5 *e)
{
	BEGIN(0, 0, e->coll.n_channels, e->p2p.n_channels);
}

static int stop(void *handle)
{
	if (kind_of(handle) == HANDLE_FLOW)
		flow_end(handle);
	return PLUGIN_OK;
}

static int record(void *handle, int state, void *args)
{
	(void)handle;
	(void)state;
	(void)args;
	return PLUGIN_OK;
}

/* Of versions 1 to 3. */
static int record_progress(void *handle, int state, void *args)
{
	const struct profiler_progress *p = args;

	if (state == PROFILER_SEND_BEGINS && p)
		flow_leave_step(begin_step(handle, p->steps - 1)); /* its isend comes next */
	return PLUGIN_OK;
}

static int finalize(void *context)
{
	if (!context)
		return PLUGIN_OK;
	bound_drop(bound_of(context));
	free(context);
	return PLUGIN_OK;
}

static int init(void **ret_context, int *mask, void *context)
{
	*ret_context = context;
	if (!room_is_open())
		return PLUGIN_INTERNAL_ERROR;
	*mask = WANTED;
	return PLUGIN_OK;
}

/* Up to version 3. */
static int init_unnamed(void **ret_context, int *mask)
{
	flow_set_told(true);
	return init(ret_context, mask, room_is_open() ? calloc(1, sizeof(struct context)) : NULL);
}

/* A communicator that is not nbox's has no context: its events pass. */
static int init_named(void **ret_context, int *mask, const struct named *n)
{
	struct bound *b = bound_use(n, NULL);
	struct context *c = b || bound_may_be(n) ? malloc(sizeof(*c)) : NULL;

	flow_set_told(false);
	if (c)
		*c = (struct context){.is = *n, .bound = b};
	else
		bound_drop(b); /* without memory its messages are refused */
	return init(ret_context, mask, c);
}

static int init_v4(void **ret_context, int *mask, const char *name, uint64_t comm, int n_nodes,
		   int n_ranks, int rank, plugin_log_fn log)
{
	(void)n_nodes;
	(void)log;
	flow_set_may_lack();
	return init_named(ret_context, mask,
			  &(struct named){comm, (uint32_t)rank, (uint32_t)n_ranks,
					  plugin_number(name)});
}

static int init_v5(void **ret_context, uint64_t comm, int *mask, const char *name, int n_nodes,
		   int n_ranks, int rank, plugin_log_fn log)
{
	(void)n_nodes;
	(void)log;
	return init_named(ret_context, mask,
			  &(struct named){comm, (uint32_t)rank, (uint32_t)n_ranks,
					  plugin_number(name)});
}

#define ALIKE(v) .name = PLUGIN_NAME, .start = start_v##v, .stop = stop, .finalize = finalize
#define UNNAMED .init = init_unnamed, .record = record_progress

EXPORT struct profiler_plugin_v1 ncclProfiler_v1 = {ALIKE(1), UNNAMED};
EXPORT struct profiler_plugin_v2 ncclProfiler_v2 = {ALIKE(2), UNNAMED};
EXPORT struct profiler_plugin_v3 ncclProfiler_v3 = {ALIKE(3), UNNAMED};
EXPORT struct profiler_plugin_v4 ncclProfiler_v4 = {ALIKE(4), .init = init_v4, .record = record};
EXPORT struct profiler_plugin_v5 ncclProfiler_v5 = {ALIKE(5), .init = init_v5, .record = record};
EXPORT struct profiler_plugin_v5 ncclProfiler_v6 = {ALIKE(5), .init = init_v5, .record = record};
