/* A real rank as NCCL's bootstrap knows it: it checks in at the root, joins the ring, and talks to
 * other ranks, in the order and with the socket calls of NCCL (bootstrap.cc, socket.cc,
 * transport.cc). It looks at all that it is told (said.h). The calls block, so each rank has a
 * thread of its own.
 *
 * All return 0, or -1 with the sentence in wire_error(). */
#pragma once

#include "said.h"

struct client_parked { /* a message that came before it was asked for */
	struct client_parked *next;
	int32_t rank, tag;
	int fd;
};

struct client {
	const struct said_world *w; /* borrowed */
	uint32_t rank;
	uint64_t magic;
	uint64_t until_ns;  /* what it waits for comes by then */
	bool keeps_nothing; /* looks at nothing that it is told but addresses: for benchmarks */
	/* It goes on behind the first record of an all-gather when this is set. NULL: at once. */
	const _Atomic bool *held_until;
	uint8_t at[NCCL_ADDRESS_BYTES]; /* whose host it listens at */
	int ring_listen, peer_listen;   /* before NCCL 2.23 one and the same */
	int root_listen;                /* until the root has answered */
	uint64_t root_magic;
	int next, prev; /* in the ring */
	uint8_t ring_address[NCCL_ADDRESS_BYTES], peer_address[NCCL_ADDRESS_BYTES];
	uint8_t *peers;               /* [n_ranks][NCCL_ADDRESS_BYTES], owned */
	struct client_parked *parked; /* list, owned */
};

static inline bool client_is_old(const struct client *c) /* NCCL before 2.23 */
{
	return c->w->records->n_contacts == 3;
}

/* With which ranks transports are set up, and of how many channels. */
struct client_edges {
	const uint8_t *n_send, *n_recv; /* [n_ranks] */
	int graph;                      /* 0 ring, 1 tree, -1: sends and receives */
};

void client_new(struct client *c, const struct said_world *w, uint32_t rank,
		const uint8_t at[NCCL_ADDRESS_BYTES], uint64_t until_ns);
void client_free(struct client *c); /* closes all, as a process that ends */

/* The parts of ncclCommInitRank, in their order. @ids: [n_ids][NCCL_ID_BYTES]. */
int client_check_in(struct client *c, const uint8_t *ids, uint32_t n_ids);
int client_answer(struct client *c, uint8_t ret_next[NCCL_ADDRESS_BYTES]); /* the root's */
int client_ring(struct client *c, const uint8_t next[NCCL_ADDRESS_BYTES]); /* both neighbours */
int client_contacts(struct client *c);
int client_peers(struct client *c);
int client_node(struct client *c); /* an all-gather among the real ranks of its node */
int client_graph(struct client *c);
/* All of them. */
int client_init(struct client *c, const uint8_t *ids, uint32_t n_ids);

/* ncclTransportP2pSetup (transport.c). */
int client_transports(struct client *c, const struct client_edges *e);
/* The next all-gather, of any record. *@ret_all: of all ranks, to free. */
int client_all_gather(struct client *c, const uint8_t *own, size_t bytes, uint8_t **ret_all);
/* An all-gather of @bytes that virtual ranks copy. */
int client_gather(struct client *c, size_t bytes);
int client_barrier(struct client *c, int32_t tag);
/* The votes of an ncclCommSplit. @color, @key: [n_ranks], of all ranks: what it has to hear. */
int client_vote(struct client *parent, const int32_t *color, const int32_t *key);
/* Joins a child; @child: client_new(). @parent_ranks: [child's n_ranks]. @is_shared: with
 * splitShare. */
int client_join(struct client *parent, struct client *child, const uint32_t *parent_ranks,
		uint64_t magic, bool is_shared);
/* Nothing is left that came unasked. */
int client_destroy(struct client *c);

/* Messages between ranks (message.c). */
int client_send(struct client *c, uint32_t to, int32_t tag, const void *bytes, int32_t n);
int client_recv(struct client *c, uint32_t from, int32_t tag, void *bytes, int32_t n);
/* A connection for them. Return: it, or -1. Those that come for others wait in @parked. */
int client_open(struct client *c, uint32_t to, int32_t tag);
int client_accept(struct client *c, uint32_t from, int32_t tag);
