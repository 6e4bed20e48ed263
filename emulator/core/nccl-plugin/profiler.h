/* NCCL's plug-in of profilers, versions 1 to 6, as far as nbox listens: NCCL 2.23 takes
 * ncclProfiler_v1, 2.24 and 2.25 v2, 2.26 v3, 2.27 v4, 2.28 v5, 2.29 and 2.30 v6. All functions
 * return enum plugin_result, which NCCL looks at after init only.
 *
 * Events and their parents: GROUP > COLL, P2P > PROXY_OP > PROXY_STEP > NET; a handle that start
 * gives comes back as parent and to stop, and NCCL never looks into it. Up to version 4 a COLL or
 * P2P is told only where its GROUP has a handle. COLL and P2P are started and stopped by the thread
 * that launches, around the hand-over to the proxy; PROXY_OP by the proxy's thread, perhaps after
 * its parent's stop: from 2.27 on as the proxy takes it, before as it begins. A PROXY_STEP begins
 * before its isend or irecv, perhaps several times before irecv, and NET inside of them, where the
 * network calls NCCL's plugin_event_fn. Versions 1 and 2 have no NET and give networks no parent,
 * and the parent of version 3's NET is another PROXY_STEP, or none, once an op has memory of an
 * earlier one: NCCL 2.26 does not set back by which it finds it. With them the last event on the
 * thread before an isend is PROFILER_SEND_BEGINS, before an irecv the PROXY_STEP. Version 1 counts
 * steps of the connection, where a message may have several. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nccl-plugin/plugin.h"

enum profiler_event {
	PROFILER_GROUP = 1 << 0,
	PROFILER_COLL = 1 << 1,
	PROFILER_P2P = 1 << 2,
	PROFILER_PROXY_OP = 1 << 3,
	PROFILER_PROXY_STEP = 1 << 4,
	PROFILER_NET = 1 << 7,
};

/* What record is told of a PROXY_OP, of versions 1 to 3. */
enum profiler_state { PROFILER_SEND_BEGINS = 1 };
struct profiler_progress {
	size_t bytes;
	int steps; /* with those of the message that is about to be sent */
};

/* What a network tells through plugin_event_fn; others end or change an event. */
enum { PROFILER_NET_START };

/* one end of a connection in a COLL or P2P */
struct profiler_proxy_op {
	int pid; /* of the process that launched it */
	uint8_t channel;
	int peer;    /* rank in the communicator */
	int n_steps; /* messages */
	int chunk_bytes;
	int is_send;
};
struct profiler_proxy_step {
	int step; /* number of the message */
};
struct profiler_net {
	int64_t id; /* as the network gave them */
	void *data;
};

struct profiler_event_v1 {
	uint8_t type; /* one of enum profiler_event */
	void *parent;
	int rank; /* in the communicator */
	union {
		struct {
			const char *name; /* of the communicator */
			uint64_t comm;    /* hash of its id */
			uint64_t number;
			uint8_t function; /* of enum plugin_function, then SendRecv, Send, Recv */
			const void *send;
			void *recv;
			size_t count; /* bytes in AllGather and Broadcast */
			int root;
			uint8_t dtype; /* ncclDataType_t */
			uint32_t redop;
			size_t traffic_bytes;
			uint8_t n_channels_max;
			uint8_t n_warps;
			uint8_t algorithm, protocol; /* of plugin.h */
			int is_collnet, is_nvls;
		} coll;
		struct {
			const char *name;
			uint64_t comm;
			uint8_t function;
			void *buffer;
			uint8_t dtype;
			size_t count;
			int peer;
		} p2p;
		struct profiler_proxy_op op;     /* steps of the connection, and bytes of one */
		struct profiler_proxy_step step; /* likewise */
	};
};

struct profiler_event_v2 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t comm;
			uint64_t number;
			const char *function; /* "AllReduce" */
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *dtype; /* "ncclFloat32"; "Unknown" for some */
			size_t traffic_bytes;
			uint8_t n_channels_max;
			uint8_t n_warps;
			const char *algorithm; /* "RING" */
			const char *protocol;  /* "LL128" */
		} coll;
		struct {
			const char *name;
			uint64_t comm;
			const char *function; /* "Send", "Recv" */
			void *buffer;
			const char *dtype;
			size_t count;
			int peer;
		} p2p;
		struct profiler_proxy_op op;
		struct profiler_proxy_step step;
	};
};

struct profiler_event_v3 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t comm;
			uint64_t number;
			const char *function;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *dtype;
			uint8_t n_channels_max;
			uint8_t n_warps;
			const char *algorithm;
			const char *protocol;
		} coll;
		struct {
			const char *name;
			uint64_t comm;
			const char *function;
			void *buffer;
			const char *dtype;
			size_t count;
			int peer;
		} p2p;
		struct profiler_proxy_op op;
		struct profiler_proxy_step step;
		struct profiler_net net;
	};
};

struct profiler_event_v4 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			uint64_t number;
			const char *function;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *dtype;
			uint8_t n_channels;
			uint8_t n_warps;
			const char *algorithm;
			const char *protocol;
		} coll;
		struct {
			const char *function;
			void *buffer;
			const char *dtype;
			size_t count;
			int peer;
			uint8_t n_channels;
		} p2p;
		struct profiler_proxy_op op;
		struct profiler_proxy_step step;
		struct profiler_net net;
	};
};

/* Of version 6, too, which has more kinds of events. */
struct profiler_event_v5 {
	uint64_t type;
	void *parent;
	int rank;
	union {
		struct {
			uint64_t number;
			const char *function;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *dtype;
			uint8_t n_channels;
			uint8_t n_warps;
			const char *algorithm;
			const char *protocol;
			void *group;
		} coll;
		struct {
			const char *function;
			void *buffer;
			const char *dtype;
			size_t count;
			int peer;
			uint8_t n_channels;
			void *group;
		} p2p;
		struct profiler_proxy_op op;
		struct profiler_proxy_step step;
		struct profiler_net net;
	};
};

#define PROFILER_EVENTS(version)                                                             \
	int (*start)(void *context, void **ret_handle, struct profiler_event_v##version *e); \
	int (*stop)(void *handle);                                                           \
	int (*record)(void *handle, int state, void *args);                                  \
	int (*finalize)(void *context)

/* Once a communicator, which events of COLL and P2P name. @mask: NCCL's only one: which enum
 * profiler_event are wanted. */
#define PROFILER_INIT int (*init)(void **ret_context, int *mask)

struct profiler_plugin_v1 {
	const char *name;
	PROFILER_INIT;
	PROFILER_EVENTS(1);
};

struct profiler_plugin_v2 {
	const char *name;
	PROFILER_INIT;
	PROFILER_EVENTS(2);
};

struct profiler_plugin_v3 {
	const char *name;
	PROFILER_INIT;
	PROFILER_EVENTS(3);
};

struct profiler_plugin_v4 {
	const char *name;
	int (*init)(void **ret_context, int *mask, const char *name, uint64_t comm, int n_nodes,
		    int n_ranks, int rank, plugin_log_fn log);
	PROFILER_EVENTS(4);
};

struct profiler_plugin_v5 { /* of version 6, too */
	const char *name;
	int (*init)(void **ret_context, uint64_t comm, int *mask, const char *name, int n_nodes,
		    int n_ranks, int rank, plugin_log_fn log);
	PROFILER_EVENTS(5);
};
