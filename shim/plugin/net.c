/* NCCL's network, of versions 8 to 11. The other end of each connection is nboxd, whoever it stands
 * for: so listen, connect and accept agree at once, and what a message is comes from NCCL's
 * profiler: since NCCL 2.27 isend and irecv ask it, before it has told. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "nccl-plugin/net.h"
#include "nccl-plugin/profiler.h"
#include "shim/plugin/devices.h"
#include "shim/plugin/room.h"
#include "shim/plugin/transfer.h"

#define EXPORT __attribute__((visibility("default")))
/* How handles begin, also those of virtual ranks (bootstrap/bootstrap.h). */
#define HANDLE_HEAD "NBOX-net"
#define EVENT_ID 0x6e626f78 /* of events that we ask for: "nbox" */
#define CONNECTION_SLOTS 8  /* NCCL's steps in the buffer of a connection */

/* That of a virtual receiver: struct bootstrap_handle. */
struct handle {
	char head[8], what[8]; /* here the communicator's magic */
	uint32_t from, to;
};

#define LISTENER "listener" /* what a handle of our own listen() is */

struct listener {
	bool has_accepted;
};

struct registration {
	struct region *region;
	uint32_t order; /* 0, 1, ... of its end */
};

static _Atomic(plugin_event_fn) tell_profiler;
static char context; /* NCCL gives it back, and nothing is to be known of it */

/* --- init, devices --------------------------------------------------------------------- */

static int start(plugin_log_fn log, plugin_event_fn event)
{
	struct err err;

	if (!room_is_open())
		return PLUGIN_INTERNAL_ERROR; /* NCCL looks for another network */
	room_set_log(log);
	if (devices_count(&err) < 0)
		return room_refuse("%s", err.text);
	atomic_store_explicit(&tell_profiler, event, memory_order_relaxed);
	return PLUGIN_OK;
}

static int start_v8(plugin_log_fn log)
{
	return start(log, NULL);
}

static int init_v11(void **ret_context, uint64_t comm, struct net_config *config, plugin_log_fn log,
		    plugin_event_fn event)
{
	(void)comm;
	(void)config;
	*ret_context = &context;
	return start(log, event);
}

static int finalize(void *which)
{
	(void)which;
	return PLUGIN_OK;
}

static int devices(int *ret_n)
{
	struct err err;
	int n = devices_count(&err);

	if (n < 0)
		return room_refuse("%s", err.text);
	*ret_n = n;
	return PLUGIN_OK;
}

static int properties_v8(int device, struct net_properties_v8 *ret)
{
	struct net_properties_v9 p;
	int r = devices_properties(device, &p);

	if (r == PLUGIN_OK)
		*ret = (struct net_properties_v8){
			.name = p.name,
			.pci_path = p.pci_path,
			.guid = p.guid,
			.memory = p.memory,
			.registrations_are_global = p.registrations_are_global,
			.speed_mbps = p.speed_mbps,
			.port = p.port,
			.n_comms_max = p.n_comms_max,
			.n_receives_max = p.n_receives_max,
		};
	return r;
}

static int properties_v11(int device, struct net_properties_v11 *ret)
{
	ret->n_requests_max = 1;
	return devices_properties(device, &ret->v9);
}

/* --- connections -------------------------------------------------------------------------- */

static int no_memory(const char *what)
{
	room_refuse("no memory for %s", what);
	return PLUGIN_SYSTEM_ERROR;
}

static int listen(int device, void *ret_handle, void **ret_listener)
{
	static _Atomic uint64_t n_listeners;
	struct {
		char head[8], what[8];
		uint64_t number, device;
	} handle = {HANDLE_HEAD, LISTENER, atomic_fetch_add(&n_listeners, 1), (uint64_t)device};
	struct listener *l = calloc(1, sizeof(*l));

	if (!l)
		return no_memory("a listener");
	memset(ret_handle, 0, NET_HANDLE_BYTES);
	memcpy(ret_handle, &handle, sizeof(handle));
	*ret_listener = l;
	return PLUGIN_OK;
}

static int listen_v11(void *which, int device, void *ret_handle, void **ret_listener)
{
	(void)which;
	return listen(device, ret_handle, ret_listener);
}

static int close_listener(void *listener)
{
	free(listener);
	return PLUGIN_OK;
}

static int open_end(void **ret)
{
	struct end *e = end_new();

	if (!e)
		return no_memory("a connection");
	*ret = e;
	return PLUGIN_OK;
}

/* A real receiver's handle does not name it. */
static int connect(int device, const void *handle, void **ret_sender)
{
	struct handle h;
	struct end *e;

	(void)device;
	memcpy(&h, handle, sizeof(h));
	if (memcmp(h.head, HANDLE_HEAD, strlen(HANDLE_HEAD)) != 0)
		return room_refuse("connect: the other end's handle is not of nbox: its NCCL has "
				   "another network; set NCCL_NET=" PLUGIN_NAME " for all ranks");
	e = end_new();
	if (!e)
		return no_memory("a connection");
	e->has_peer = memcmp(h.what, LISTENER, sizeof(h.what)) != 0;
	e->peer = h.to;
	*ret_sender = e;
	return PLUGIN_OK;
}

static int connect_v8(int device, void *handle, void **ret_sender, void **offload)
{
	(void)offload;
	return connect(device, handle, ret_sender);
}

static int connect_v10(int device, struct net_config *config, void *handle, void **ret_sender,
		       void **offload)
{
	(void)config;
	(void)offload;
	return connect(device, handle, ret_sender);
}

static int connect_v11(void *which, int device, void *handle, void **ret_sender, void **offload)
{
	(void)which;
	(void)offload;
	return connect(device, handle, ret_sender);
}

static int accept(void *listener, void **ret_receiver, void **offload)
{
	struct listener *l = listener;

	(void)offload;
	if (l->has_accepted)
		return room_refuse("accept: a listener is for one connection");
	l->has_accepted = true;
	return open_end(ret_receiver);
}

static int close_end(void *end)
{
	end_free(end);
	return PLUGIN_OK;
}

/* --- memory -------------------------------------------------------------------------------- */

static int register_memory(void *end, void *data, size_t bytes, int memory, void **ret)
{
	struct end *e = end;
	struct registration *r;

	if (memory != NET_MEMORY_HOST)
		return room_refuse(
			"memory of a GPU is not reached: nbox says so in its properties");
	r = calloc(1, sizeof(*r));
	if (!r)
		return no_memory("a registration");
	r->region = region_get(data, bytes);
	if (!r->region) {
		free(r);
		return no_memory("a registration");
	}
	r->order = e->n_registered++;
	*ret = r;
	return PLUGIN_OK;
}

static int register_dmabuf(void *end, void *data, size_t bytes, int memory, uint64_t offset, int fd,
			   void **ret)
{
	(void)memory;
	(void)offset;
	(void)fd;
	return register_memory(end, data, bytes, NET_MEMORY_DMABUF, ret);
}

static int deregister(void *end, void *registration)
{
	struct registration *r = registration;

	if (!r)
		return PLUGIN_OK;
	end_settle(end, r->region); /* next NCCL frees it, and then it closes the connection */
	region_put(r->region);
	free(r);
	return PLUGIN_OK;
}

/* NCCL registers its buffers in the order of their protocols: of rings and trees LL, LL128, Simple,
 * of sends and receives Simple alone, or LL before it (NCCL_ALLOC_P2P_NET_LL_BUFFERS). */
static uint32_t protocol_of(const struct end *e, const struct registration *r, const struct flow *f)
{
	if (!f->is_direct)
		return f->protocol;
	if (e->n_registered >= 3 && r->order < 3)
		return r->order;
	return e->n_registered == 2 && r->order == 0 ? PLUGIN_LL : PLUGIN_SIMPLE;
}

/* --- messages ------------------------------------------------------------------------------ */

/* What NCCL's profiler knows of the message that it is about to send or receive. */
static struct flow_step *ask_profiler(void *parent)
{
	plugin_event_fn tell = atomic_load_explicit(&tell_profiler, memory_order_relaxed);
	void *event = NULL;

	if (flow_is_told())
		return flow_take_step();
	flow_leave_step(NULL);
	if (tell && flow_may_ask(parent))
		tell(&event, PROFILER_NET_START, parent, EVENT_ID, NULL);
	return flow_take_step();
}

static void check_step(const struct end *e, const struct flow_step *s, bool is_send)
{
	struct flow *f = s->of;

	if (is_send && e->has_peer && e->peer != f->peer)
		flow_refuse(f->of,
			    "op %llu: NCCL's profiler says that message %llu on channel %u is to "
			    "rank %u, but its connection is to rank %u: this NCCL's events do not "
			    "fit its messages; take another version, or --nccl gate",
			    wire_seq_number(f->seq), (unsigned long long)s->index, f->channel,
			    f->peer, e->peer);
	if (f->is_send == is_send && s->index == f->n_posted && s->index < f->n_messages)
		return;
	flow_refuse(f->of,
		    "op %llu: NCCL %s message %llu of %llu %s rank %u on channel %u; the next "
		    "one is %llu",
		    wire_seq_number(f->seq), is_send ? "sends" : "receives",
		    (unsigned long long)s->index, (unsigned long long)f->n_messages,
		    f->is_send ? "to" : "from", f->peer, f->channel,
		    (unsigned long long)f->n_posted);
}

/* Step @f->slice_steps further from now on. Return: the step of the next message. */
static uint64_t next_step(struct end *e, const struct region *r, const void *data,
			  const struct flow *f)
{
	size_t slot_bytes = r->bytes / CONNECTION_SLOTS;
	uint64_t step = e->step;

	/* an op begins at a multiple of four steps, or of one; buffers of sends and receives are
	 * shared, and have no slots */
	if (!f->is_direct && slot_bytes)
		step += ((size_t)((const unsigned char *)data - r->base) / slot_bytes - step) %
			CONNECTION_SLOTS;
	e->step = step + f->slice_steps;
	return step;
}

static uint64_t most_bytes(const struct request *r)
{
	const struct flow *f = r->flow;
	uint64_t most = r->bytes;

	if (f->is_send && f->is_direct && f->chunk_bytes > most)
		most = f->chunk_bytes;
	else if (f->is_send && !f->is_direct)
		most = r->region->bytes / CONNECTION_SLOTS * f->slice_steps;
	return most < WIRE_NCCL_MESSAGE_MAX ? most : WIRE_NCCL_MESSAGE_MAX;
}

static int post(struct end *e, bool is_send, void *data, size_t bytes, struct registration *m,
		struct flow_step *s, void **ret_request)
{
	const struct region *region = m ? m->region : NULL;
	struct request *r;
	struct flow *f;

	if (!s)
		return room_refuse("%s: NCCL's profiler does not say of which op this message is: "
				   "set NCCL_PROFILER_PLUGIN to libnbox.so, and no other profiler; "
				   "NCCL 2.27 needs NCCL_NET_SHARED_BUFFERS=0, too",
				   is_send ? "isend" : "irecv");
	check_step(e, s, is_send);
	if (!region || (unsigned char *)data < region->base ||
	    (unsigned char *)data + bytes > region->base + region->bytes)
		return room_refuse("%s: memory that is not registered",
				   is_send ? "isend" : "irecv");
	r = request_get(e);
	*ret_request = r;
	if (!r)
		return PLUGIN_OK; /* NCCL calls again */
	f = s->of;
	f->n_posted++;
	r->comm = f->of->comm;
	r->flow = f;
	r->index = s->index;
	r->data = data;
	r->bytes = bytes;
	r->region = m->region;
	r->protocol = protocol_of(e, m, f);
	r->step = is_send ? 0 : next_step(e, region, data, f);
	r->message_bytes = most_bytes(r);
	request_begin(r);
	return PLUGIN_OK;
}

static int isend(void *sender, void *data, size_t bytes, int tag, void *registration, void *parent,
		 void **ret_request)
{
	(void)tag;
	return post(sender, true, data, bytes, registration, ask_profiler(parent), ret_request);
}

static int isend_v9(void *sender, void *data, size_t bytes, int tag, void *registration,
		    void **ret_request)
{
	(void)tag;
	return post(sender, true, data, bytes, registration, flow_take_step(), ret_request);
}

static int isend_v8(void *sender, void *data, int bytes, int tag, void *registration,
		    void **ret_request)
{
	return isend_v9(sender, data, (size_t)bytes, tag, registration, ret_request);
}

static int receive(void *receiver, int n, void *data, size_t bytes, void *registration,
		   struct flow_step *s, void **ret_request)
{
	if (n != 1)
		return room_refuse("irecv: %d messages in one, of which nbox has said 1", n);
	return post(receiver, false, data, bytes, registration, s, ret_request);
}

static int irecv(void *receiver, int n, void **data, size_t *bytes, int *tags, void **registrations,
		 void **parents, void **ret_request)
{
	(void)tags;
	return receive(receiver, n, data[0], bytes[0], registrations[0],
		       ask_profiler(parents ? parents[0] : NULL), ret_request);
}

static int irecv_v9(void *receiver, int n, void **data, size_t *bytes, int *tags,
		    void **registrations, void **ret_request)
{
	(void)tags;
	return receive(receiver, n, data[0], bytes[0], registrations[0], flow_take_step(),
		       ret_request);
}

static int irecv_v8(void *receiver, int n, void **data, int *bytes, int *tags, void **registrations,
		    void **ret_request)
{
	(void)tags;
	return receive(receiver, n, data[0], (size_t)bytes[0], registrations[0], flow_take_step(),
		       ret_request);
}

static int iflush(void *receiver, int n, void **data, int *bytes, void **registrations,
		  void **ret_request)
{
	(void)receiver;
	(void)n;
	(void)data;
	(void)bytes;
	(void)registrations;
	*ret_request = NULL; /* the host's memory needs none */
	return PLUGIN_OK;
}

static int test(void *request, int *ret_done, int *ret_bytes)
{
	size_t bytes;

	*ret_done = request_test(request, &bytes);
	if (*ret_done && ret_bytes)
		*ret_bytes = (int)bytes;
	return PLUGIN_OK;
}

/* --- the tables --------------------------------------------------------------------------- */

#define ALIKE                                                                                \
	.name = PLUGIN_NAME, .devices = devices, .accept = accept,                           \
	.register_memory = register_memory, .register_dmabuf = register_dmabuf,              \
	.deregister = deregister, .iflush = iflush, .test = test, .close_sender = close_end, \
	.close_receiver = close_end, .close_listener = close_listener

EXPORT struct net_plugin_v8 ncclNetPlugin_v8 = {
	ALIKE,
	.isend = isend_v8,
	.irecv = irecv_v8,
	.init = start_v8,
	.get_properties = properties_v8,
	.listen = listen,
	.connect = connect_v8,
};
EXPORT struct net_plugin_v9 ncclNetPlugin_v9 = {
	ALIKE,
	.isend = isend_v9,
	.irecv = irecv_v9,
	.init = start_v8,
	.get_properties = devices_properties,
	.listen = listen,
	.connect = connect_v8,
};
EXPORT struct net_plugin_v10 ncclNetPlugin_v10 = {
	ALIKE,
	.isend = isend,
	.irecv = irecv,
	.init = start,
	.get_properties = devices_properties,
	.listen = listen,
	.connect = connect_v10,
};
EXPORT struct net_plugin_v11 ncclNetPlugin_v11 = {
	ALIKE,
	.isend = isend,
	.irecv = irecv,
	.init = init_v11,
	.get_properties = properties_v11,
	.listen = listen_v11,
	.connect = connect_v11,
	.finalize = finalize,
};
