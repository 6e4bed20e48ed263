/* The messages of ops: sends them for the players, and receives them. A queue keeps what arrived
 * and what was sent until message_step() hands it to the players, since a player's callbacks may
 * not call back into it. All on the progress thread. */
#pragma once

#include "player/player.h"
#include "shim/progress/op.h"

/* What players send and receive through; the owner is the op. */
extern const struct player_io message_io;

/* What the ops' owner is told. */
struct message_events {
	void (*delivered)(struct op *op); /* its player has got one more */
	/* @r: -EBADMSG: the player does not expect it; another negative errno */
	void (*failed)(struct op *op, int r, const char *why);
};

/* A message for @op came. Return: 0, or negative errno with the sentence. */
int message_received(struct op *op, const struct wire_hdr *h, struct err *err);
/* Where the body of a message for @op goes; @op: NULL: nobody wants it. NULL: no memory. */
void *message_body(const struct op *op, const struct wire_hdr *h);
/* The link has sent a body. */
void message_sent(uint64_t cookie, const struct message_events *ev);
/* Hands queued deliveries to the players. Return: whether there were any. */
bool message_step(const struct message_events *ev);
/* Drops queued deliveries to @op, which was killed: its record is about to be given away. */
void message_forget(const struct op *op);
