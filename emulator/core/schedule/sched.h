/* The data of a schedule: the request, one step of a thread, one connection. schedule.h says what
 * they mean and what can be asked of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "schedule/coll.h"

enum sched_algo { SCHED_RING, SCHED_TREE, SCHED_DIRECT, SCHED_CHAIN, SCHED_ALGOS };

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

/* What NCCL itself took for a call, in its own numbers (nccl-plugin/plugin.h). */
struct sched_took {
	uint32_t algorithm, protocol;
	uint32_t n_channels; /* 0: not known */
};

/* A value: copy it freely. The caller fills the upper part, sched_init() the rest. */
struct sched {
	enum coll_kind kind;
	enum sched_algo algo;
	uint32_t n_ranks;
	uint32_t root;
	uint32_t ranks_per_node; /* 1: every rank its own node; the last node may have fewer */
	uint32_t n_rails;        /* NICs that channels leave a node by: rails.h; 0: 1 */
	uint32_t n_channels;     /* >= 1 */
	uint32_t elem_bytes;
	uint64_t bytes;         /* count * elem_bytes of the call */
	uint64_t chunk_bytes;   /* most bytes of one step, of a tree's half of it; 0:
				   SCHED_CHUNK_DEFAULT */
	uint32_t slices;        /* messages a step is cut into; 0: 1 */
	struct sched_took took; /* for a scheduler of the engine's; nothing here looks at it */
	/* Of the call, that a channel has, or each tree of a channel: first all first trees, then
	 * the second ones, which may be left without. Whole elements; 0: even shares. */
	uint64_t lane_bytes;
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

/* A connection that ends or starts at @rank. */
struct sched_conn {
	uint32_t src, dst;
	uint16_t lane;
	uint64_t n_messages;
};
