/* A communicator's traffic: its flows and ops. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "traffic/conn.h"
#include "traffic/depends.h"
#include "traffic/flow.h"
#include "traffic/op.h"
#include "traffic/pace.h"
#include "traffic/traffic.h"

struct traffic {
	struct traffic_sink sink;
	void *owner;
	struct traffic_bodies *bodies; /* borrowed; NULL: none are exchanged */
	struct traffic_comm *comms;
	struct pace pace;
	uint32_t n_receives; /* flows: room in pace */
	uint64_t n_flows;    /* so far */
	uint64_t n_advances;
	uint64_t kept_bytes, max_bytes;
	struct traffic_counts counts;
};

struct traffic_comm {
	struct traffic *of;
	struct traffic_comm *prev, *next;
	void *tag;
	struct depends depends;
	uint32_t *member; /* [n_ranks] number among real ranks, or NODES_NONE; owned */
	uint32_t n_members;
	uint64_t (*passed)[2]; /* [n_members] all collectives below this have passed, all sends;
				  owned */
	struct traffic_body **sums; /* [real nodes] what is being summed; owned */
	struct op *ops;
	struct flow *flows; /* the last of each direction of a connection */
	struct conn *conns;
	uint64_t kept_bytes;   /* of ops, flows and lists of messages */
	uint64_t coming_bytes; /* of bodies that were announced and have not arrived */
	struct flow *last;     /* that was looked for; NULL */
	bool is_dead;
};

bool traffic_comm_is_real(const struct traffic_comm *c, uint32_t rank);
/* NULL: not there */
struct op *traffic_comm_find_op(struct traffic_comm *c, uint32_t rank, uint64_t seq);
struct op *traffic_comm_get_op(struct traffic_comm *c, uint32_t rank,
			       uint64_t seq); /* NULL: no memory */
struct op_member *traffic_comm_member(const struct traffic_comm *c, struct op *op, uint32_t rank);
struct flow *traffic_comm_find_flow(struct traffic_comm *c, const struct traffic_at *at,
				    bool is_send);
/* What was last in that direction of the connection. */
struct flow *traffic_comm_find_last(struct traffic_comm *c, const struct flow_key *key);
/* A send or receive that is through, and which no other flow refers to. */
void traffic_comm_drop_flow(struct traffic_comm *c, struct flow *f);
/* Forgets @op, if it has passed everywhere and all of its messages are through. */
void traffic_comm_release_op(struct traffic_comm *c, struct op *op);
/* Nothing more is sent. Return: @r. */
int traffic_comm_die(struct traffic_comm *c, int r);
/* @n bytes more (less: negative) are kept for it. */
void traffic_comm_keep(struct traffic_comm *c, int64_t n_bytes);
/* Before a body of @bytes, or something else (0), is kept for @c: if all communicators had more
 * than there may be, the one with the most fails. Return: 0; -ENOBUFS with the sentence: it is @c.
 */
int traffic_comm_make_room(struct traffic_comm *c, uint64_t bytes, struct err *err);
