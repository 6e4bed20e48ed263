/* NCCL's plug-in of networks, versions 8 to 11: NCCL 2.21 to 2.23 take ncclNetPlugin_v8, 2.24
 * and 2.25 v9, 2.26 and 2.27 v10, 2.28 to 2.30 v11. All functions return enum plugin_result.
 *
 * Who calls: init, devices, get_properties and make_fused the thread that makes a communicator; the
 * others the proxy's threads of each communicator. connect and accept may answer OK with no
 * communicator, and isend and irecv with no request: NCCL calls again. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "nccl-plugin/plugin.h"

#define NET_HANDLE_BYTES 128 /* that listen fills; a peer's connect gets them */
#define NET_BYTES_MAX ((size_t)1 << 40)
#define NET_FUSED_MAX 4 /* devices of a card that NCCL takes for one */

/* memory that a device reads and writes by itself */
enum net_memory { NET_MEMORY_HOST = 1, NET_MEMORY_CUDA = 2, NET_MEMORY_DMABUF = 4 };

struct net_fused {
	int n_devices;
	int devices[NET_FUSED_MAX];
};

struct net_properties_v8 {
	char *name;     /* as in NCCL_TOPO_FILE's <net>; strings stay the plug-in's */
	char *pci_path; /* in /sys; NULL: at the first CPU */
	uint64_t guid;
	int memory; /* of enum net_memory */
	int registrations_are_global;
	int speed_mbps;
	int port;
	float latency_us;
	int n_comms_max;
	int n_receives_max; /* in one irecv */
	int offload;        /* 0: none */
	int offload_version;
};

struct net_properties_v9 { /* of version 10, too */
	char *name;
	char *pci_path;
	uint64_t guid;
	int memory;
	int registrations_are_global;
	int must_flush;
	int speed_mbps;
	int port;
	float latency_us;
	int n_comms_max;
	int n_receives_max;
	int offload;
	int offload_version;
	struct net_fused fused; /* itself alone, where it is none */
	size_t p2p_bytes_max;
	size_t collective_bytes_max;
};

struct net_properties_v11 {
	struct net_properties_v9 v9;
	int n_requests_max; /* in one request */
};

struct net_config {
	int traffic_class; /* -1: none */
};

struct net_flows {
	int32_t n_peers_max, n_peers_min, n_flows_max, n_flows_min; /* -1: not known */
};

/* What the next transfers are for: bits by the numbers of plugin.h. */
struct net_attributes {
	struct net_flows send, receive;
	uint32_t functions, algorithms, protocols;
};

/* What all versions have alike. Communicators: @receiver of accept, @sender of connect. */
#define NET_REGISTERS                                                                             \
	int (*register_memory)(void *comm, void *data, size_t bytes, int memory, void **ret);     \
	int (*register_dmabuf)(void *comm, void *data, size_t bytes, int memory, uint64_t offset, \
			       int fd, void **ret);                                               \
	int (*deregister)(void *comm, void *registration)
#define NET_COMPLETES                                                                         \
	int (*iflush)(void *receiver, int n, void **data, int *bytes, void **registrations,   \
		      void **ret_request);                                                    \
	int (*test)(void *request, int *ret_done, int *ret_bytes);                            \
	int (*close_sender)(void *sender);                                                    \
	int (*close_receiver)(void *receiver);                                                \
	int (*close_listener)(void *listener);                                                \
	int (*device_registration)(void *comm, void *registration, void **ret); /* or NULL */ \
	int (*receive_consumed)(void *receiver, int n, void *request)           /* or NULL */

struct net_plugin_v8 {
	const char *name; /* as in NCCL_NET */
	int (*init)(plugin_log_fn log);
	int (*devices)(int *ret_n);
	int (*get_properties)(int device, struct net_properties_v8 *ret);
	int (*listen)(int device, void *ret_handle, void **ret_listener);
	int (*connect)(int device, void *handle, void **ret_sender, void **offload);
	int (*accept)(void *listener, void **ret_receiver, void **offload);
	NET_REGISTERS;
	int (*isend)(void *sender, void *data, int bytes, int tag, void *registration,
		     void **ret_request);
	int (*irecv)(void *receiver, int n, void **data, int *bytes, int *tags,
		     void **registrations, void **ret_request);
	NET_COMPLETES;
};

struct net_plugin_v9 {
	const char *name;
	int (*init)(plugin_log_fn log);
	int (*devices)(int *ret_n);
	int (*get_properties)(int device, struct net_properties_v9 *ret);
	int (*listen)(int device, void *ret_handle, void **ret_listener);
	int (*connect)(int device, void *handle, void **ret_sender, void **offload);
	int (*accept)(void *listener, void **ret_receiver, void **offload);
	NET_REGISTERS;
	int (*isend)(void *sender, void *data, size_t bytes, int tag, void *registration,
		     void **ret_request);
	int (*irecv)(void *receiver, int n, void **data, size_t *bytes, int *tags,
		     void **registrations, void **ret_request);
	NET_COMPLETES;
	int (*make_fused)(int *ret_device, struct net_fused *of); /* or NULL: NCCL fuses none */
};

struct net_plugin_v10 {
	const char *name;
	int (*init)(plugin_log_fn log, plugin_event_fn event); /* once a process, as before */
	int (*devices)(int *ret_n);
	int (*get_properties)(int device, struct net_properties_v9 *ret);
	int (*listen)(int device, void *ret_handle, void **ret_listener);
	int (*connect)(int device, struct net_config *config, void *handle, void **ret_sender,
		       void **offload);
	int (*accept)(void *listener, void **ret_receiver, void **offload);
	NET_REGISTERS;
	int (*isend)(void *sender, void *data, size_t bytes, int tag, void *registration,
		     void *parent, void **ret_request);
	int (*irecv)(void *receiver, int n, void **data, size_t *bytes, int *tags,
		     void **registrations, void **parents, void **ret_request);
	NET_COMPLETES;
	int (*make_fused)(int *ret_device, struct net_fused *of);
};

struct net_plugin_v11 {
	const char *name;
	/* once a communicator; @comm: the same number at all its ranks */
	int (*init)(void **ret_context, uint64_t comm, struct net_config *config, plugin_log_fn log,
		    plugin_event_fn event);
	int (*devices)(int *ret_n);
	int (*get_properties)(int device, struct net_properties_v11 *ret);
	int (*listen)(void *context, int device, void *ret_handle, void **ret_listener);
	int (*connect)(void *context, int device, void *handle, void **ret_sender, void **offload);
	int (*accept)(void *listener, void **ret_receiver, void **offload);
	NET_REGISTERS;
	int (*isend)(void *sender, void *data, size_t bytes, int tag, void *registration,
		     void *parent, void **ret_request);
	int (*irecv)(void *receiver, int n, void **data, size_t *bytes, int *tags,
		     void **registrations, void **parents, void **ret_request);
	NET_COMPLETES;
	int (*make_fused)(int *ret_device, struct net_fused *of);
	int (*finalize)(void *context);
	int (*set_attributes)(void *context, struct net_attributes *a); /* or NULL */
};
