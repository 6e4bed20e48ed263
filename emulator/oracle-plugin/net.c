/* NCCL's network, of all versions: it agrees to every connection and carries nothing. NCCL is given
 * pointers to things that it hands back and never looks into, so nothing is allocated. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "nccl-plugin/net.h"
#include "oracle-plugin/devices.h"
#include "oracle-plugin/oracle-plugin.h"

#define EXPORT __attribute__((visibility("default")))

/* any thread counts, any reads; nothing else depends on them */
static struct {
	_Atomic uint64_t n_inits, n_listens, n_connects, n_accepts, n_registrations, n_refused;
	_Atomic int64_t n_open, n_registered;
} counts;
static _Atomic(plugin_log_fn) logger; /* set by init, which all calls but the setters follow */
static char listener, sender, receiver, registration;

#define COUNT(what, by) atomic_fetch_add_explicit(&counts.what, by, memory_order_relaxed)

static int start(plugin_log_fn log)
{
	atomic_store_explicit(&logger, log, memory_order_release);
	COUNT(n_inits, 1);
	return PLUGIN_OK;
}

static int refuse(const char *what)
{
	plugin_log_fn log = atomic_load_explicit(&logger, memory_order_acquire);

	COUNT(n_refused, 1);
	if (log)
		log(PLUGIN_LEVEL_WARN, PLUGIN_NET, __FILE__, __LINE__,
		    "NET/" NBOX_ORACLE_NET
		    ": %s: nbox oracle moves no data. It asks NCCL what it would do; a collective "
		    "was launched for real",
		    what);
	return PLUGIN_INVALID_USAGE;
}

static int init(plugin_log_fn log)
{
	return start(log);
}

static int init_v10(plugin_log_fn log, plugin_event_fn event)
{
	(void)event;
	return start(log);
}

static int init_v11(void **ret_context, uint64_t comm, struct net_config *config, plugin_log_fn log,
		    plugin_event_fn event)
{
	(void)comm;
	(void)config;
	(void)event;
	*ret_context = &sender; /* NCCL may test it */
	return start(log);
}

static int finalize(void *context)
{
	(void)context;
	return PLUGIN_OK;
}

static int devices(int *ret_n)
{
	*ret_n = devices_count();
	return PLUGIN_OK;
}

static int properties_v8(int device, struct net_properties_v8 *ret)
{
	struct net_properties_v9 p;
	int r = devices_properties(device, &p);

	if (r != PLUGIN_OK)
		return r;
	*ret = (struct net_properties_v8){
		.name = p.name,
		.pci_path = p.pci_path,
		.guid = p.guid,
		.memory = p.memory,
		.registrations_are_global = p.registrations_are_global,
		.speed_mbps = p.speed_mbps,
		.port = p.port,
		.latency_us = p.latency_us,
		.n_comms_max = p.n_comms_max,
		.n_receives_max = p.n_receives_max,
	};
	return PLUGIN_OK;
}

static int properties_v11(int device, struct net_properties_v11 *ret)
{
	ret->n_requests_max = 1;
	return devices_properties(device, &ret->v9);
}

static int make_fused(int *ret_device, struct net_fused *of)
{
	return devices_fuse(of, ret_device);
}

static int open_end(char *end, void **ret)
{
	COUNT(n_open, 1);
	*ret = end;
	return PLUGIN_OK;
}

static int listen(int device, void *ret_handle, void **ret_listener)
{
	memset(ret_handle, 0, NET_HANDLE_BYTES);
	snprintf(ret_handle, NET_HANDLE_BYTES, NBOX_ORACLE_NET " %d", device); /* for dumps */
	COUNT(n_listens, 1);
	return open_end(&listener, ret_listener);
}

static int listen_v11(void *context, int device, void *ret_handle, void **ret_listener)
{
	(void)context;
	return listen(device, ret_handle, ret_listener);
}

static int connect(int device, void *handle, void **ret_sender, void **offload)
{
	(void)device;
	(void)handle;
	(void)offload;
	COUNT(n_connects, 1);
	return open_end(&sender, ret_sender);
}

static int connect_v10(int device, struct net_config *config, void *handle, void **ret_sender,
		       void **offload)
{
	(void)config;
	return connect(device, handle, ret_sender, offload);
}

static int connect_v11(void *context, int device, void *handle, void **ret_sender, void **offload)
{
	(void)context;
	return connect(device, handle, ret_sender, offload);
}

static int accept(void *from, void **ret_receiver, void **offload)
{
	(void)from;
	(void)offload;
	COUNT(n_accepts, 1);
	return open_end(&receiver, ret_receiver);
}

static int close_end(void *end)
{
	(void)end;
	COUNT(n_open, -1);
	return PLUGIN_OK;
}

static int register_memory(void *comm, void *data, size_t bytes, int memory, void **ret)
{
	(void)comm;
	(void)data;
	(void)bytes;
	(void)memory;
	COUNT(n_registrations, 1);
	COUNT(n_registered, 1);
	*ret = &registration;
	return PLUGIN_OK;
}

static int register_dmabuf(void *comm, void *data, size_t bytes, int memory, uint64_t offset,
			   int fd, void **ret)
{
	(void)offset;
	(void)fd;
	return register_memory(comm, data, bytes, memory, ret);
}

static int deregister(void *comm, void *which)
{
	(void)comm;
	(void)which;
	COUNT(n_registered, -1);
	return PLUGIN_OK;
}

static int isend_v8(void *to, void *data, int bytes, int tag, void *which, void **ret_request)
{
	(void)to;
	(void)data;
	(void)bytes;
	(void)tag;
	(void)which;
	(void)ret_request;
	return refuse("isend");
}

static int isend_v9(void *to, void *data, size_t bytes, int tag, void *which, void **ret_request)
{
	(void)bytes;
	return isend_v8(to, data, 0, tag, which, ret_request);
}

static int isend_v10(void *to, void *data, size_t bytes, int tag, void *which, void *parent,
		     void **ret_request)
{
	(void)bytes;
	(void)parent;
	return isend_v8(to, data, 0, tag, which, ret_request);
}

static int irecv_v8(void *from, int n, void **data, int *bytes, int *tags, void **which,
		    void **ret_request)
{
	(void)from;
	(void)n;
	(void)data;
	(void)bytes;
	(void)tags;
	(void)which;
	(void)ret_request;
	return refuse("irecv");
}

static int irecv_v9(void *from, int n, void **data, size_t *bytes, int *tags, void **which,
		    void **ret_request)
{
	(void)bytes;
	return irecv_v8(from, n, data, NULL, tags, which, ret_request);
}

static int irecv_v10(void *from, int n, void **data, size_t *bytes, int *tags, void **which,
		     void **parents, void **ret_request)
{
	(void)bytes;
	(void)parents;
	return irecv_v8(from, n, data, NULL, tags, which, ret_request);
}

static int iflush(void *from, int n, void **data, int *bytes, void **which, void **ret_request)
{
	(void)from;
	(void)n;
	(void)data;
	(void)bytes;
	(void)which;
	(void)ret_request;
	return refuse("iflush");
}

static int test(void *request, int *ret_done, int *ret_bytes)
{
	(void)request;
	(void)ret_done;
	(void)ret_bytes;
	return refuse("test");
}

#define ALIKE                                                                                \
	.name = NBOX_ORACLE_NET, .devices = devices, .accept = accept,                       \
	.register_memory = register_memory, .register_dmabuf = register_dmabuf,              \
	.deregister = deregister, .iflush = iflush, .test = test, .close_sender = close_end, \
	.close_receiver = close_end, .close_listener = close_end

EXPORT struct net_plugin_v8 ncclNetPlugin_v8 = {
	ALIKE,
	.init = init,
	.get_properties = properties_v8,
	.listen = listen,
	.connect = connect,
	.isend = isend_v8,
	.irecv = irecv_v8,
};

EXPORT struct net_plugin_v9 ncclNetPlugin_v9 = {
	ALIKE,
	.init = init,
	.get_properties = devices_properties,
	.listen = listen,
	.connect = connect,
	.isend = isend_v9,
	.irecv = irecv_v9,
};

EXPORT struct net_plugin_v10 ncclNetPlugin_v10 = {
	ALIKE,
	.init = init_v10,
	.get_properties = devices_properties,
	.listen = listen,
	.connect = connect_v10,
	.isend = isend_v10,
	.irecv = irecv_v10,
};

EXPORT struct net_plugin_v11 ncclNetPlugin_v11 = {
	ALIKE,
	.init = init_v11,
	.get_properties = properties_v11,
	.listen = listen_v11,
	.connect = connect_v11,
	.isend = isend_v10,
	.irecv = irecv_v10,
	.finalize = finalize,
};

EXPORT int nbox_oracle_set_devices(const struct nbox_oracle_device *d, size_t n,
				   enum nbox_oracle_fusing fusing)
{
	int r = devices_set(d, n);

	/* NCCL fuses where there is a function for it; it looks when it makes a communicator */
	if (r == 0)
		ncclNetPlugin_v9.make_fused = ncclNetPlugin_v10.make_fused =
			ncclNetPlugin_v11.make_fused =
				fusing == NBOX_ORACLE_FUSED ? make_fused : NULL;
	return r;
}

#define READ(what) .what = atomic_load_explicit(&counts.what, memory_order_relaxed)

EXPORT void nbox_oracle_counts(struct nbox_oracle_counts *ret)
{
	*ret = (struct nbox_oracle_counts){
		READ(n_inits),         READ(n_listens), READ(n_connects), READ(n_accepts),
		READ(n_registrations), READ(n_refused), READ(n_open),     READ(n_registered),
	};
}
