/* A net in memory, with nbox's bootstrap on one side of each connection and, on the other, ranks
 * that run as coroutines and may block. Bytes move in pieces of random size, through pipes of a few
 * bytes. The net calls bootstrap.h as its header says, and no more: what was not woken is not
 * asked. */
#pragma once

#include <ucontext.h>

#include "bootstrap/bootstrap.h"
#include "rng.h"

struct play;
struct player;

struct pipe {
	uint8_t *bytes;
	size_t at, n;
	bool is_closed;
};

struct wire {
	struct play *play;
	struct bootstrap_conn *conn; /* NULL: closed by nbox */
	struct pipe to_rank, to_nbox;
	unsigned id;
	bool is_open, is_refused, is_told, may_in, may_out;
	int hang; /* 1: when all is sent, 2: now */
	struct wire *next_waiting;
};

struct listener {
	unsigned id;
	bool is_closed;
	struct wire *waiting; /* connections to accept, in order */
};

typedef void player_fn(struct player *p);

struct player {
	struct play *play;
	player_fn *run;
	void *arg;
	uint32_t rank;
	ucontext_t context;
	void *stack;
	bool is_done;
	char failed[256]; /* "" */
};

struct play {
	struct bootstrap *b;
	struct rng rng;
	size_t chunk_max, pipe_max;
	struct wire *wires[16384];
	unsigned n_wires;
	struct listener *listeners[16384];
	unsigned n_listeners;
	struct player *players[64];
	unsigned n_players;
	struct player *now;
	ucontext_t back;
	bool has_moved;
	void **allocated;
	size_t n_allocated, allocated_max;
	/* what the sink was told */
	unsigned n_failed, n_refused, n_children, n_records[5];
	char sentence[512];
	struct bootstrap_comm *children[256];
	int (*votes)(struct play *play, struct bootstrap_comm *parent, int32_t *color, int32_t *key,
		     struct err *err);
	void *test;
	int dials_left; /* then dial() says no; -1: never */
};

struct play *play_new(uint64_t seed);
void play_free(struct play *play);
void *play_alloc(struct play *play, size_t n); /* zeros, until play_free() */
struct player *play_add(struct play *play, player_fn *run, void *arg, uint32_t rank);
/* Until nothing moves any more. Return: have all players come to their end, without a failure? */
bool play_run(struct play *play);
/* Says on stderr what is not at its end. */
void play_explain(struct play *play);

/* For players. player_fail() does not come back, but is not marked so: a sanitizer would look for
 * the end of the stack. */
__attribute__((format(printf, 2, 3))) void player_fail(struct player *p, const char *fmt, ...);
void player_wait(struct player *p);
struct listener *player_listen(struct player *p, uint8_t ret_address[NCCL_ADDRESS_BYTES]);
void player_close_listener(struct player *p, struct listener *l);
struct wire *player_connect(struct player *p, const uint8_t address[NCCL_ADDRESS_BYTES]);
struct wire *player_accept(struct player *p, struct listener *l);
/* Some of @n bytes, without waiting. Return: how many; -1: at its end. */
long player_try_send(struct player *p, struct wire *w, const void *bytes, size_t n);
long player_try_recv(struct player *p, struct wire *w, void *bytes, size_t n);
void player_send(struct player *p, struct wire *w, const void *bytes, size_t n);
void player_recv(struct player *p, struct wire *w, void *bytes, size_t n);
bool player_is_at_end(struct player *p, struct wire *w); /* waits for a byte or the end */
void player_close(struct player *p, struct wire *w);
/* The address that nbox gives for a port. */
void play_port(unsigned port, uint8_t ret_address[NCCL_ADDRESS_BYTES]);
