/* NCCL's own messages, where NCCL itself runs at the virtual size: its proxies on the real ranks
 * send and receive, this room is the other end. What NCCL's proxy says that it will send or receive
 * in an op on a channel is a *flow*; the flows of an op are the border of its DAG, and what happens
 * among virtual ranks is folded into dependencies between them, by the algorithm:
 *
 *   ring    AllReduce, AllGather, ReduceScatter: message j that enters a real node is message
 *           j - h * slices that left the real node before it on the ring, after the h virtual ranks
 *           between; a smaller j begins at a virtual rank
 *   chain   Broadcast, Reduce (NCCL's ring, one way): the same without the shift, as far as the
 *           root, or the rank after it, is not in between
 *   tree    AllReduce, NCCL's double binary tree over nodes: up: what the next real nodes below
 *           send up; down: what the next real node above sends down, or, where there is none, the
 *           sum of what the next real nodes below the root send up
 *   direct  sends and receives: nothing; between two real ranks the message itself
 *
 * A message to a real rank goes out when its proxy has posted the receive, the messages that it
 * depends on are there, and its time has come: message i of n at (i + 1) / n of the way from the
 * op's start to its end at that rank (between two real ranks: at the sender, while the receiver's
 * are unknown; while both are, at once). Its bytes are those of what it depends on (in trees the
 * sum), or else the identity. Messages arrive and go in the order of their flow, so a number says
 * how many have; of a receive a bitmap says which are wanted. Whatever does not fit is an error
 * that names op, channel, message and ranks.
 *
 * Pure: no socket, clock or thread; time comes in as a number. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bitmap.h"
#include "base/err.h"
#include "traffic/body.h"

struct traffic;      /* all of an nboxd */
struct traffic_comm; /* a communicator's */

/* One end of a flow, as its real rank says it. */
struct traffic_at {
	uint64_t seq;        /* of the op, as in frames: WIRE_SEQ_P2P */
	uint32_t rank, peer; /* the real rank that speaks or is spoken to; the other end */
	uint16_t channel;
};

struct traffic_message {
	struct traffic_at at;
	uint64_t index;
	uint64_t bytes;            /* 0: no bodies are exchanged, or an empty message */
	struct traffic_body *body; /* borrowed, take a reference; NULL: @bytes of no meaning */
	bool is_identity;
	bool reads; /* as in its flow */
};

struct traffic_sink {
	/* A message to a real rank; inside traffic_advance(), which the sink may not call. @tag: of
	 * traffic_comm_make(). */
	void (*send)(void *owner, void *tag, const struct traffic_message *m);
	/* The communicator's traffic is wrong, or no memory is left: nothing more comes of it; call
	 * traffic_comm_end() later, not from here. */
	void (*failed)(void *owner, void *tag, const char *sentence);
};

/* @bodies: borrowed; NULL: messages have none. @max_bytes: where more is kept, of bodies and of
 * what is known of flows, the communicator with the most fails. Return: 0; -ENOMEM. */
int traffic_new(const struct traffic_sink *sink, void *owner, struct traffic_bodies *bodies,
		uint64_t max_bytes, struct traffic **ret);
struct traffic *traffic_free(struct traffic *t); /* NULL allowed; returns NULL */

/**
 * traffic_comm_make - a communicator of NCCL at the virtual size
 * @node: [n_ranks], copied: on which node each rank stands; nodes are numbered by NCCL in the order
 * in which ranks name them first
 * @real: of n_ranks bits, copied; a node is real as a whole or not at all
 *
 * Return: 0; -EINVAL with the sentence (a node that is real in part); -ENOMEM.
 */
int traffic_comm_make(struct traffic *t, uint32_t n_ranks, const uint32_t *node,
		      const struct bitmap *real, void *tag, struct traffic_comm **ret,
		      struct err *err);
/* How many channels NCCL's search found for trees, before it doubled them: channel c is of tree
 * (c / n) % 2. Before the first flow of a tree; without it those fail. */
void traffic_comm_set_trees(struct traffic_comm *c, uint32_t n_channels);
void traffic_comm_end(struct traffic_comm *c); /* NULL is allowed */

/* What a flow is: struct wire_flow's fields. */
struct traffic_flow {
	bool is_send;
	uint32_t algorithm; /* enum plugin_algorithm, or WIRE_NCCL_DIRECT */
	uint32_t protocol;  /* enum plugin_protocol */
	uint32_t n_channels;
	uint64_t n_messages, message_bytes;
	bool reads; /* WIRE_FLOW_READS */
};
/* All these: Return: 0; -EPROTO or -ENOBUFS with the sentence, for the one who aborts the
 * communicator; -ENOMEM. They send nothing: traffic_advance() does. The sink's failed() may come of
 * another communicator, which has too much. */
int traffic_flow(struct traffic_comm *c, const struct traffic_at *at, const struct traffic_flow *f,
		 struct err *err);
int traffic_want(struct traffic_comm *c, const struct traffic_at *at, uint64_t index,
		 struct err *err);
/* Before a message's body is taken in: whether it is the next of its flow, no longer than it may
 * be, and there is room for it, which counts as the communicator's from now on. *ret_body: a
 * reference, for traffic_arrived(); NULL: no bytes are to be kept. */
int traffic_expect(struct traffic_comm *c, const struct traffic_at *at, uint64_t index,
		   uint64_t bytes, struct traffic_body **ret_body, struct err *err);
/* A message from a real rank. @body: of traffic_expect(); consumed, also with an error. */
int traffic_arrived(struct traffic_comm *c, const struct traffic_at *at, uint64_t index,
		    struct traffic_body *body, struct err *err);

/* What the job called, and when it begins and ends at real rank @rank. */
struct traffic_call {
	uint32_t kind, dtype, redop; /* enum coll_kind, coll_dtype, coll_redop */
	uint32_t root;
	uint64_t bytes; /* count x element */
	uint64_t start_ns, end_ns;
};
int traffic_call(struct traffic_comm *c, uint32_t rank, uint64_t seq,
		 const struct traffic_call *call, struct err *err);
/* Its end has moved. What is due after @now_ns moves in proportion. Unknown ops pass. */
void traffic_move(struct traffic_comm *c, uint32_t rank, uint64_t seq, uint64_t now_ns,
		  uint64_t end_ns);
/* The op has passed in the rank's stream. NCCL's kernel may be over before its proxy: flows may
 * still come, what it has sent comes, and so do receives of messages that are empty, which kernels
 * do not wait for; those go at once. Then all of it is forgotten. */
void traffic_passed(struct traffic_comm *c, uint32_t rank, uint64_t seq);

/* Sends all that can go at @now_ns. Return: when to call again, UINT64_MAX: after one of the calls
 * above. */
uint64_t traffic_advance(struct traffic *t, uint64_t now_ns);

/* Since the start, for the summary and the status. */
struct traffic_counts {
	uint64_t n_arrived, n_sent;         /* messages from and to real ranks */
	uint64_t arrived_bytes, sent_bytes; /* of bodies */
	uint64_t n_identity;                /* of those sent: what no real rank's data came into */
	uint64_t n_summed;                  /* of those sent: sums of several */
	uint64_t n_ops;                     /* passed, once for each real rank */
	uint64_t n_late;  /* sent later than due, since what they needed came so late */
	uint64_t late_ns; /* ... by so much in all */
	uint64_t n_never; /* in either direction when their communicator ended, though the op had
			     passed */
	/* now */
	uint64_t n_flows;   /* whose messages are not all through */
	uint64_t n_waiting; /* receives that NCCL has posted and that were not answered */
};
void traffic_count(const struct traffic *t, struct traffic_counts *ret);
/* What @c waits for: "op 3, channel 1: message 4 of 14 to rank 0 waits for message 2 from rank 7".
 * "" when nothing is under way. Return: @buf. */
char *traffic_waits(const struct traffic_comm *c, char *buf, size_t size);
