/* A flow: messages of an op on a channel between a real rank and a peer, one way. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "traffic/pace.h"
#include "traffic/slots.h"
#include "traffic/table.h"
#include "traffic/traffic.h"

/* What NCCL has no more of, from 2.23 to 2.30. */
#define FLOW_CHANNELS_MAX 64 /* its MAXCHANNELS */
/* Receives that are posted beyond what has come: a word of bits; its NCCL_STEPS is 8. */
#define FLOW_WANTS_MAX 64

struct flow_key {
	/* one direction of a connection of NCCL's, on which one flow is under way at a time */
	uint32_t rank, peer;
	uint16_t channel, is_send;
	uint32_t is_direct; /* sends and receives have connections of their own */
	uint64_t seq;       /* which of them */
};
#define FLOW_CONNECTION_BYTES offsetof(struct flow_key, seq)

/* What messages to a real node are made of: the messages of one flow, or the sum of several. */
struct flow_source {
	struct flow_edge {
		uint32_t node, peer_node; /* of the flow, whose nodes these are */
		struct flow *flow;        /* NULL: not declared so far */
	} * edges;                        /* owned */
	uint32_t n;
	uint32_t n_users; /* receives that want the sum */
	uint32_t refs;    /* receives that have it, and its lane */
	/* Reduce with its root on the real node before: where the rank that would send is the root,
	 * there is no flow. Whether it is, is not known. */
	bool may_lack;
	struct slots sums;
};

/* What is told of messages' sizes, for identities: by (index % 2) where a step of a ring is two
 * messages. The largest of a loop, once two have come that cannot both be its short end. */
struct flow_sizes {
	uint64_t bytes[2], loop[2];
	bool is_known[2];
};

struct flow {
	struct flow_key key;
	UT_hash_handle hh;
	struct traffic_flow is;
	struct traffic_comm *comm;
	struct op *op;
	struct lane *lane; /* NULL: direct */
	struct conn *conn; /* direct, of two real ranks; else NULL */
	struct flow *prev_in_op, *next_in_op, *next_in_lane, *next_in_conn;

	uint64_t done; /* so many have arrived, or were sent: they do so in order */

	bool is_bound;   /* the op's kind is known, and so all below */
	uint64_t loop;   /* messages of a loop of a ring; all, in others */
	uint64_t shift;  /* of the message between this node and the next real one */
	uint32_t slices; /* messages of a step */
	bool is_ring;    /* whose chunks go round: AllReduce, AllGather, ReduceScatter */

	/* a send */
	uint32_t users;      /* of each message, where the shift allows */
	uint64_t taken;      /* by the receives of a conn */
	struct slots slots;  /* only where there are bodies */
	uint64_t n_sized[2]; /* of this loop, not empty */
	struct flow_sizes own;

	/* a receive */
	uint64_t wanted; /* bit i: the receive of message done + i is posted */
	struct pace_item pace;
	struct flow_source *source; /* NULL: all begins at virtual ranks */
	const struct flow *waits_for;
	bool went_without; /* a flow that may lack */
	uint64_t ready_at; /* the advance before which its next message became ready */
};

/* The message that message @index of a receive is, or that this one of a send becomes.
 * FLOW_NO_MESSAGE: none. */
#define FLOW_NO_MESSAGE UINT64_MAX
uint64_t flow_depends_on(const struct flow *receive, uint64_t index);
uint32_t flow_users(const struct flow *send, uint64_t index);

/* A message of @send, of @bytes, was seen. */
void flow_see_size(struct flow *send, uint64_t index, uint64_t bytes, struct flow_sizes *s);

struct flow_source *flow_source_new(uint32_t n,
				    uint32_t n_users); /* one reference; NULL: no memory */
void flow_source_unref(struct flow_source *s);         /* NULL is allowed */
void flow_free(struct flow *f);                        /* it is in no list any more */
uint64_t flow_bytes(const struct flow *f);             /* that it takes, without bodies */

struct flow_key flow_key(const struct traffic_at *at, bool is_send, bool is_direct);
/* "op 3 (AllReduce), channel 1, rank 0 <- 7": where errors happened. Return: @buf. */
#define FLOW_NAME_MAX 96
const char *flow_name(const struct flow_key *k, char buf[FLOW_NAME_MAX]);
