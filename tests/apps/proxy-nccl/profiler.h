/* NCCL's plug-in of profilers, versions 1 (2.23), 2 (2.24, 2.25), 3 (2.26), 4 (2.27), 5 (2.28) and
 * 6 (2.29, 2.30), as NCCL calls it: written from NCCL's documentation by itself, so that a mistake
 * in libnbox's own declarations shows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "nccl-plugin/plugin.h"

enum profiled {
	PROFILED_GROUP = 1 << 0,
	PROFILED_COLL = 1 << 1,
	PROFILED_P2P = 1 << 2,
	PROFILED_PROXY_OP = 1 << 3,
	PROFILED_PROXY_STEP = 1 << 4,
	PROFILED_NET = 1 << 7,
};

enum profiled_state {
	/* of an op, before version 3 */
	STATE_SEND_POSTED = 0,
	STATE_SEND_REMOTE_WAIT = 1,
	STATE_SEND_TRANSMITTED = 2,
	STATE_SEND_DONE = 3,
	STATE_RECV_POSTED = 4,
	STATE_RECV_RECEIVED = 5,
	STATE_RECV_TRANSMITTED = 6,
	STATE_RECV_DONE = 7,
	/* of a step */
	STATE_SEND_GPU_WAIT = 8,
	STATE_SEND_WAIT = 9,
	STATE_RECV_WAIT = 10,
	STATE_RECV_FLUSH_WAIT = 11,
	STATE_RECV_GPU_WAIT = 12,
	STATE_OP_IN_PROGRESS = 19,
	STATE_SEND_PEER_WAIT = 20,
};

struct proxy_op_event {
	pid_t pid;
	uint8_t channel;
	int peer, n_steps, chunk_bytes, is_send;
};

struct net_event {
	int64_t id;
	void *data;
};

/* Version 4 on, and 5 with parent_group; the type was a byte before 5, which is the same memory. */
struct event_v5 {
	uint64_t type;
	void *parent;
	int rank;
	union {
		struct {
			uint64_t seq;
			const char *function;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *dtype;
			uint8_t n_channels, n_warps;
			const char *algorithm, *protocol;
			void *parent_group;
		} coll;
		struct {
			const char *function;
			void *buffer;
			const char *dtype;
			size_t count;
			int peer;
			uint8_t n_channels;
			void *parent_group;
		} p2p;
		struct proxy_op_event proxy_op;
		struct {
			int step;
		} proxy_step;
		struct net_event net;
		unsigned char room[128]; /* version 6 has larger ones, that are never told here */
	};
};

struct event_v3 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t comm, seq;
			const char *function;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *dtype;
			uint8_t n_channels_max, n_warps;
			const char *algorithm, *protocol;
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
		struct proxy_op_event proxy_op;
		struct {
			int step;
		} proxy_step;
		struct net_event net;
	};
};

/* As version 3 but for the calls; steps and sends of the proxy are alike in all. */
struct event_v2 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t comm, seq;
			const char *function;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *dtype;
			size_t traffic_bytes;
			uint8_t n_channels_max, n_warps;
			const char *algorithm, *protocol;
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
		struct proxy_op_event proxy_op;
	};
};

struct event_v1 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t comm, seq;
			uint8_t function;
			const void *send;
			void *recv;
			size_t count;
			int root;
			uint8_t dtype;
			uint32_t redop;
			size_t traffic_bytes;
			uint8_t n_channels_max, n_warps, algorithm, protocol;
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
		struct proxy_op_event proxy_op;
	};
};

union state_args {
	size_t bytes;
	struct {
		size_t bytes;
		int steps;
	} v3;
	int appended;
	void *data;
};

struct profiler_v5 {
	const char *name;
	int (*init)(void **ret_context, uint64_t comm, int *mask, const char *comm_name,
		    int n_nodes, int n_ranks, int rank, plugin_log_fn log);
	int (*start)(void *context, void **ret_event, void *event);
	int (*stop)(void *event);
	int (*state)(void *event, int state, union state_args *args);
	int (*finalize)(void *context);
};

struct profiler_v4 {
	const char *name;
	int (*init)(void **ret_context, int *mask, const char *comm_name, uint64_t comm,
		    int n_nodes, int n_ranks, int rank, plugin_log_fn log);
	int (*start)(void *context, void **ret_event, void *event);
	int (*stop)(void *event);
	int (*state)(void *event, int state, union state_args *args);
	int (*finalize)(void *context);
};

struct profiler_v3 { /* and 1, 2 */
	const char *name;
	int (*init)(void **ret_context, int *mask);
	int (*start)(void *context, void **ret_event, void *event);
	int (*stop)(void *event);
	int (*state)(void *event, int state, union state_args *args);
	int (*finalize)(void *context);
};
