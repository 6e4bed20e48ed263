/* One TCP connection between the machine (bootstrap.h) and a real rank: bytes in, bytes out, its
 * end.
 *
 * The machine may not be called from inside its sink, so what the sink asks for is only noted: the
 * link goes to a queue (link_queue()), which the loop works off in its next turn. Links are freed
 * there, by the clock and by a link that comes, and in no call of the machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/serve/port.h"
#include "bootstrap/serve/told.h"

#define LINK_PIECE_BYTES (64 * 1024) /* at most as many bytes are kept for a link */
#define LINK_MAGIC_BYTES 8

struct event;

struct serve_link {
	struct bootstrap_serve *serve; /* borrowed */
	struct bootstrap_conn *conn;   /* the machine's; NULL: a guest */
	/* A link that is still to come in at a port of its own owns the port. A guest has come in
	 * at it, and becomes the link when it has said its magic; it borrows the port. */
	struct serve_port *port;
	int fd;                       /* owned; -1: not open yet, or closed */
	struct event *on_in, *on_out; /* owned */
	uint8_t *rest;                /* owned; what the socket has not taken yet */
	size_t at_rest, n_rest;
	uint8_t magic[LINK_MAGIC_BYTES]; /* of a guest, as far as it has come */
	size_t n_heard;                  /* bytes that came, counted until it is no longer silent */
	bool is_dialling;
	bool is_silent, is_queued; /* stands in that list */
	bool is_hung_up, is_hung_up_now;
	bool is_at_eof;
	uint64_t silent_until_ns;
	struct serve_link *prev, *next, *prev_silent, *next_silent, *prev_queued, *next_queued;
};

/* What all of them have in common. */
struct bootstrap_serve {
	struct port_env env;
	struct bootstrap *machine; /* owned */
	struct bootstrap_serve_limits limits;
	struct bootstrap_told told;
	void *told_ctx;
	struct serve_port *ports;   /* owned; those that were asked for */
	struct serve_link *links;   /* owned */
	struct serve_link *silent;  /* of them, oldest first: have not said what they want */
	struct serve_link *queued;  /* of them */
	unsigned n_open;            /* sockets of links */
	struct event *turn, *clock; /* owned */
	uint8_t scratch[LINK_PIECE_BYTES];
};

/* As in struct port_env; @serve: struct bootstrap_serve. */
void link_taken(void *serve, struct serve_port *port, int fd,
		const uint8_t from[NCCL_ADDRESS_BYTES]);
void link_refused(void *serve, const char *from, const char *why);
/* The link for @conn, which is to come in at @port (consumed with success). Return: 0; -ENOMEM. */
int link_await(struct bootstrap_serve *s, struct bootstrap_conn *conn, struct serve_port *port);
/* Opens one. Return: 0; -errno with the sentence. */
int link_dial(struct bootstrap_serve *s, struct bootstrap_conn *conn,
	      const uint8_t address[NCCL_ADDRESS_BYTES], struct err *err);
/* It has something to do in the loop's next turn. */
void link_queue(struct serve_link *l);
/* Works off the queue. */
void links_turn(struct bootstrap_serve *s);
/* Ends those that have been silent for too long. */
void links_tick(struct bootstrap_serve *s);
/* Has links_tick() called then (CLOCK_MONOTONIC). */
void links_arm(struct bootstrap_serve *s, uint64_t until_ns);
/* Frees all, without a word to the machine. */
void links_close(struct bootstrap_serve *s);
