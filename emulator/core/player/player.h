/* Plays one rank's side of a schedule over connections. One piece, two users:
 * the shim's progress thread against nboxd (no data: descriptors or dummy
 * bytes), and host NCCL against other ranks (real bytes, reductions).
 *
 * A state machine without threads, clocks or sockets: it asks its owner to post
 * receives and to send, and is told when they are done. Not thread-safe; the
 * owner calls it from one thread. No allocation after player_start(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "schedule/schedule.h"

struct player;

/* Lent by the owner. Both: Return 0, or negative errno, which ends the op. They
 * may not call back into the player. */
struct player_io {
	/* Send @bytes at @src as message @index of (us -> peer, lane). @src stays
	 * valid until player_sent(). NULL when the player has no data. */
	int (*send)(void *owner, uint32_t peer, uint16_t lane, uint64_t index, const void *src,
		    uint64_t bytes);
	/* Message @index of (peer -> us, lane) goes to @dst, NULL when the player has
	 * no data. Posted in order, up to four steps ahead in each thread. */
	int (*post)(void *owner, uint32_t peer, uint16_t lane, uint64_t index, void *dst,
		    uint64_t bytes);
};

/* What to do with the bytes; NULL in player_start() for a player without data. */
struct player_data {
	const void *input;
	void *output; /* may equal input where the kind allows it in place */
	/* dst = a (op) b, @bytes long; dst may be a or b */
	void (*reduce)(const struct player_data *d, void *dst, const void *a, const void *b,
		       uint64_t bytes);
	/* Own input before it takes part (PreMulSum); NULL: as it is */
	void (*pre)(const struct player_data *d, void *dst, const void *src, uint64_t bytes);
	/* A finished reduction (avg); NULL: as it is */
	void (*post)(const struct player_data *d, void *buf, uint64_t bytes);
	void *ctx;
};

/**
 * player_start - begins an op
 * @s: borrowed until player_free()
 * @rank: our comm rank
 * @data: borrowed; NULL: only messages are counted
 * @io, @owner: borrowed
 *
 * Return: 0; negative errno.
 */
int player_start(struct player **ret, const struct sched *s, uint32_t rank,
		 const struct player_data *data, const struct player_io *io, void *owner);
/* NULL allowed; returns NULL. Sends that are not player_sent() may still read our
 * memory: with data, an op that failed is freed only when its owner has dropped them. */
struct player *player_free(struct player *p);

/* PLAYER_UNEXPECTED: not a message this op waits for now; the sentence says
 * which one it does wait for. */
enum { PLAYER_UNEXPECTED = 1 };

/* The message that was posted has arrived whole; those of a connection in order.
 * May call io's post and send. Return: 0; PLAYER_UNEXPECTED, and nothing changed;
 * negative errno of a callback: the op is lost. */
int player_received(struct player *p, uint32_t peer, uint16_t lane, uint64_t index,
		    struct err *err);
/* A send's bytes may be reused. Return: as above. */
int player_sent(struct player *p, uint32_t peer, uint16_t lane, uint64_t index, struct err *err);
bool player_done(const struct player *p);       /* all received, all sent, all stored */
uint64_t player_n_sent(const struct player *p); /* as told by player_sent() */
uint64_t player_n_received(const struct player *p);
/* "thread 0 step 3 of 14 waits for message 3 from rank 7": for timeouts. */
void player_describe(const struct player *p, char *buf, uint32_t size);
