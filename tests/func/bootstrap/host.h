/* The responder on a thread of its own, as nboxd and nbox oracle host it, and communicators at it
 * with clients for their real ranks, each on a thread. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/serve/serve.h"
#include "client.h"

#define HOST_RANKS_MAX 64 /* real ones of a communicator */

struct host {
	struct event_base *base;
	struct bootstrap_serve *serve;
	struct event *calls;
	int call_fds[2];
	pthread_t thread;
	uint8_t address[NCCL_ADDRESS_BYTES];
	/* Set with a failure, and by a new communicator no more: real ranks are aborted by it,
	 * since NCCL itself waits for ever where it accepts a connection. */
	_Atomic bool has_failed;
	_Atomic unsigned n_failed, n_refused, n_children;
	char failed[512], refused[512]; /* the last of each; read them when the host is stopped, or
					 * by host_call() */
	/* what virtual ranks vote, by rank of the parent; set before the split */
	int32_t (*color)(uint32_t rank), (*key)(uint32_t rank);
	struct bootstrap_comm *last_child;
};

/* @address: where it listens, "::1"; NULL: an address of the loopback of this process alone, where
 * ports of connections that have just ended, which are many, hinder nobody. Return: 0; -1: there is
 * no such address here. */
int host_start(struct host *h, const char *address, const struct bootstrap_serve_limits *limits);
void host_stop(struct host *h);
/* Runs @fn on the host's thread, and waits for it. */
void host_call(struct host *h, void (*fn)(struct host *h, void *ctx), void *ctx);

/* Where ranks stand: node by node, or dealt out in turn; which nodes are real. */
struct host_places {
	uint32_t n_ranks, node_size;
	bool is_dealt;
	uint32_t n_real_nodes, real_node[4];
};

/* A communicator. */
struct host_comm {
	struct host *h;
	struct said_world w;
	uint32_t *node, *template; /* owned */
	uint32_t real[HOST_RANKS_MAX], n_real;
	uint8_t *ids; /* owned */
	uint32_t n_ids;
	struct bootstrap_comm *comm;
};

int host_comm_make(struct host *h, const struct nccl_records *records, const struct host_places *p,
		   uint32_t n_ids, uint64_t seed, struct host_comm *ret);
/* @node and @template of a communicator that splits made: those of @parent's @ranks. */
int host_comm_child(const struct host_comm *parent, const uint32_t *ranks, uint32_t n,
		    uint64_t seed, struct host_comm *ret);
void host_comm_free(struct host_comm *c);
/* Ends it at the host, too. */
void host_comm_end(struct host_comm *c);

/* Runs @fn for each real rank, on threads. Return: 0; -1: at least one failed: the sentence of the
 * first. */
int host_run(struct host_comm *c, int (*fn)(struct host_comm *c, struct client *r, void *ctx),
	     void *ctx);
