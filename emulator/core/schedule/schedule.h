/* A schedule: the immutable DAG of an op's messages, held as a rule, not as a
 * list. Any message of any rank is computed in O(1), so that a world of 65,536
 * ranks costs no memory.
 *
 * Each rank runs one or more *threads*: sequences of steps that are executed in
 * order and independently of the rank's other threads. A step may receive up to
 * SCHED_FAN messages, combines them with the rank's own input, and may send the
 * result to up to SCHED_FAN peers. A message is named by its connection (source,
 * destination, lane) and its number on it, counted from 0: both ends count the
 * same. That gives the DAG: a message's predecessors are the receives of its
 * step or, when it has none, those of the latest earlier step of its thread that
 * has some; and on its connection, the message before it.
 *
 * Algorithms:
 *   ring    AllReduce, AllGather, ReduceScatter, Broadcast, Reduce: r -> r+1
 *   tree    AllReduce: NCCL's double binary tree over nodes, chain inside a node
 *   chain   Broadcast, Reduce: pipeline along root, root+1, ...
 *   direct  AllToAll, Gather, Scatter, SendRecv: each pair its own messages
 * Closed forms of the message counts: facts of NCCL 2.28 (ring AllReduce
 * 2(n-1)*slices a loop and direction, ...), see test-schedule.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "schedule/coll.h"

enum sched_algo { SCHED_RING, SCHED_TREE, SCHED_DIRECT, SCHED_CHAIN, SCHED_ALGOS };

const char *sched_algo_name(uint32_t algo);
int sched_algo_parse(const char *name); /* -1 when unknown */

#define SCHED_FAN 3 /* a tree rank has at most two tree children and one chain child */
#define SCHED_CHUNK_DEFAULT (UINT64_C(1) << 20)
#define SCHED_MAX_RANKS 65536
#define SCHED_MAX_CHANNELS 1024
#define SCHED_MAX_BYTES (UINT64_C(1) << 46) /* of a call; so that no product overflows */

/* One call of ncclSend or ncclRecv. The k-th send of a to b and the k-th receive
 * of b from a are one connection, with lane k. Calls without bytes are skipped at
 * both ends; a send to oneself is copied to the receive from oneself. */
struct sched_p2p {
	uint32_t peer;
	bool is_send;
	uint64_t bytes;
	uint64_t off; /* of the call's buffer: STEP_INPUT (send) or STEP_OUTPUT offsets */

	/* made by sched_init() */
	uint16_t lane;
	uint32_t pair;   /* the receive that belongs to a send to oneself */
	uint32_t sorted; /* entry i: the i-th call in order of direction, peer, lane */
};

/* A value; copy it freely. Fill the upper part, then sched_init(). */
struct sched {
	enum coll_kind kind;
	enum sched_algo algo;
	uint32_t n_ranks;
	uint32_t root;
	uint32_t ranks_per_node; /* 1: every rank its own node; must divide n_ranks */
	uint32_t n_channels;     /* >= 1 */
	uint32_t elem_bytes;
	uint64_t bytes;       /* count * elem_bytes of the call */
	uint64_t chunk_bytes; /* most bytes of one step; 0: SCHED_CHUNK_DEFAULT */
	uint32_t slices;      /* messages a step is cut into; 0: 1 */
	/* COLL_SENDRECV: the calls of the one rank that asks; borrowed, completed by
	 * sched_init(). Channels and slices do not apply; other ranks may not be asked
	 * about. */
	struct sched_p2p *p2p;
	uint32_t n_p2p;
	uint32_t p2p_rank; /* that rank */

	/* made by sched_init(); meaning private to schedule/ */
	uint64_t loop_bytes, n_loops; /* of channel 0, which has most */
	uint64_t channel_bytes;
	uint64_t step_bytes;
	uint32_t grain, n_slices;
};

/* Checks the request and derives the rest; the upper part stays as it was, so that
 * a copy can be changed and made again. Return: 0; -EINVAL with a sentence
 * (algorithm does not do this kind, root out of range, ...); -ENOMEM (SENDRECV). */
int sched_init(struct sched *s, struct err *err);

/* The algorithm a kind runs with when nobody chose one. */
enum sched_algo sched_default_algo(enum coll_kind kind);

enum sched_flags {
	STEP_INPUT = 1 << 0,  /* own input at in_off takes part */
	STEP_REDUCE = 1 << 1, /* received messages are reduced (with the input) */
	STEP_OUTPUT = 1 << 2, /* the result is stored to the output at out_off */
	STEP_FINAL = 1 << 3,  /* a reduction is complete: apply avg / post-scale */
};

struct sched_step {
	uint32_t n_recv, n_send;
	uint32_t recv[SCHED_FAN], send[SCHED_FAN]; /* peers, comm ranks */
	uint16_t recv_lane, send_lane;
	/* Numbers of the messages on their connections: of all receives, of all
	 * sends. In a ring send_index = recv_index + slices, elsewhere they are equal. */
	uint64_t recv_index, send_index;
	uint64_t in_off, out_off, bytes; /* bytes may be 0: the message is sent all the same */
	uint32_t flags;
};

uint32_t sched_n_threads(const struct sched *s, uint32_t rank);
uint64_t sched_n_steps(const struct sched *s, uint32_t rank, uint32_t thread);
void sched_step(const struct sched *s, uint32_t rank, uint32_t thread, uint64_t step,
		struct sched_step *ret);
/* No step of any rank has more bytes. For buffers. */
uint64_t sched_max_step_bytes(const struct sched *s);

/* The thread of @dst that receives the messages of a connection, and that of @src
 * that sends them. O(1) (SENDRECV: O(log calls)). UINT32_MAX: no such connection. */
uint32_t sched_recv_thread(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane);
uint32_t sched_send_thread(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane);

/* A connection that ends or starts at @rank. */
struct sched_conn {
	uint32_t src, dst;
	uint16_t lane;
	uint64_t n_messages;
};

/* The connections of one rank that have messages: the incoming ones, then the
 * outgoing ones. *ret_conns is the caller's to free(). Return: 0 or -ENOMEM. */
int sched_conns(const struct sched *s, uint32_t rank, struct sched_conn **ret_conns,
		uint32_t *ret_n_in, uint32_t *ret_n_out);

/* How many messages a connection has; 0 when there is no such connection. O(1). */
uint64_t sched_conn_messages(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane);

/* Bytes of message @index on the connection; 0 when there is none. O(1). */
uint64_t sched_message_bytes(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane,
			     uint64_t index);

/* All messages of the op, over all ranks (SENDRECV: to and from the rank that asks). */
uint64_t sched_total_messages(const struct sched *s);

/* Trees of SCHED_TREE: lane and thread of a direction, and the rank above (-1 for the
 * root) in tree 0 or 1. Channels differ in nothing else. */
enum { SCHED_UP, SCHED_DOWN };
static inline uint32_t sched_tree_lane(uint32_t channel, uint32_t tree, uint32_t direction)
{
	return (channel * 2 + tree) * 2 + direction;
}
int64_t sched_tree_parent(const struct sched *s, uint32_t rank, uint32_t tree);

/* NCCL's double binary tree over n nodes: parent (-1 for the root) and children
 * (-1 for none) of @node in tree 0 or 1. */
void sched_dtree(uint32_t n_nodes, uint32_t node, int tree, int32_t *ret_parent,
		 int32_t ret_child[2]);
