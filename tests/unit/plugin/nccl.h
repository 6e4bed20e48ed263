/* NCCL's proxy, as far as a network and a profiler see it: one direction of a connection, on which
 * an op has messages. Its profiler's events and calls of the network come in NCCL's order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nccl-plugin/net.h"
#include "nccl-plugin/profiler.h"

extern struct net_plugin_v8 ncclNetPlugin_v8;
extern struct net_plugin_v9 ncclNetPlugin_v9;
extern struct net_plugin_v10 ncclNetPlugin_v10;
extern struct net_plugin_v11 ncclNetPlugin_v11;
extern struct profiler_plugin_v1 ncclProfiler_v1;
extern struct profiler_plugin_v2 ncclProfiler_v2;
extern struct profiler_plugin_v3 ncclProfiler_v3;
extern struct profiler_plugin_v4 ncclProfiler_v4;
extern struct profiler_plugin_v5 ncclProfiler_v5, ncclProfiler_v6;

#define N_SLOTS 8

/* Which of NCCL's versions it is: of its profiler, 1 to 6; the network is 8, 9, 10, 10, 11, 11. */
struct nccl {
	int version;
	void *profiler; /* context */
	void *net;
	char logged[512];
	int result;      /* of both inits */
	uint64_t number; /* of the communicator */
	int rank;
};
void nccl_init(struct nccl *n, int version, uint64_t number, int rank, int n_ranks,
	       const char *name);
extern struct nccl *nccl_now; /* whose log and profiler it is; one at a time */
void nccl_log(int level, unsigned long subsystems, const char *file, int line, const char *format,
	      ...) __attribute__((format(printf, 5, 6)));

/* A collective or a send or receive; its handle. */
struct nccl_call {
	const char *function;
	const void *send;
	void *recv; /* or what is sent */
	size_t count;
	int root;
	const char *dtype, *algorithm, *protocol;
	int n_channels;
};
void *nccl_start_call(struct nccl *n, const struct nccl_call *c);

struct connection {
	struct nccl *nccl;
	bool is_send;
	void *end;
	unsigned char *buffer[PLUGIN_N_PROTOCOLS]; /* owned */
	size_t bytes[PLUGIN_N_PROTOCOLS];
	void *registered[PLUGIN_N_PROTOCOLS];
	uint64_t step;
};
void connection_open(struct connection *c, struct nccl *n, bool is_send, bool is_p2p);
void connection_close(struct connection *c);

/* An op's messages on a connection. */
struct proxy_op {
	struct connection *on;
	void *handle;
	bool is_untold; /* as with NCCL 2.27: see flow_may_ask() */
	int protocol, n, slice_steps;
	uint64_t base;
	uint64_t posted, done; /* messages */
	uint64_t told;         /* those whose steps have begun: up to version 3 sends run ahead */
	void *steps[N_SLOTS];
	void *requests[N_SLOTS];
};
void proxy_start(struct proxy_op *op, struct connection *on, void *call, int protocol, int channel,
		 int peer, int n, int slice_steps);
unsigned char *proxy_buffer(const struct proxy_op *op, uint64_t message);
uint64_t proxy_step(const struct proxy_op *op, uint64_t message); /* of the connection */
/* Posts the next message of @bytes. Return: of isend or irecv; no request: *ret_is_posted false. */
int proxy_post(struct proxy_op *op, size_t bytes, bool *ret_is_posted);
/* Return: whether the oldest message is done. */
bool proxy_test(struct proxy_op *op, int *ret_bytes);
void proxy_stop(struct proxy_op *op);
