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

#include "base/err.h"
#include "player/io.h"
#include "schedule/schedule.h"

struct player;

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

/* The posted message has arrived whole. Messages of a connection come in order. May call io's post
 * and send. Return: 0; PLAYER_UNEXPECTED: nothing changed; negative errno of a callback: the op is
 * lost. */
int player_received(struct player *p, uint32_t peer, uint16_t lane, uint64_t index,
		    struct err *err);
/* A send's bytes may be reused. Return: as above. */
int player_sent(struct player *p, uint32_t peer, uint16_t lane, uint64_t index, struct err *err);
bool player_done(const struct player *p);       /* all received, all sent, all stored */
uint64_t player_n_sent(const struct player *p); /* by player_sent() */
uint64_t player_n_received(const struct player *p);
/* "thread 0 step 3 of 14 waits for message 3 from rank 7": for timeouts. */
void player_describe(const struct player *p, char *buf, uint32_t size);
