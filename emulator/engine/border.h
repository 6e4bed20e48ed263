/* The border of an op: only the connections that touch a real rank, with the
 * interior of E folded into dependencies between them. Message i of in-connection
 * c (towards a real rank) may be released when, for each dependency (o, shift) of
 * c, message i - shift of out-connection o (from a real rank) has arrived;
 * i < shift needs nothing. Size follows the real ranks, not the world, not the
 * bytes. Immutable. */
#pragma once

#include <stdint.h>

#include "base/bitmap.h"
#include "schedule/schedule.h"

struct border_conn {
	uint32_t src, dst; /* comm ranks */
	uint16_t lane;
	uint64_t n_messages;
	uint64_t first_bit; /* of this connection's messages in the op's bitmaps */
	uint64_t bytes;     /* SENDRECV: of all its messages together; else 0 */
};

struct border_dep {
	uint32_t out; /* index into out */
	uint64_t shift;
};

struct border {
	/* owned; in: to real ranks, out: from real ranks; by source, destination, lane */
	struct border_conn *in, *out;
	uint32_t n_in, n_out;
	uint32_t *dep_start; /* n_in + 1 */
	struct border_dep *dep;
	uint64_t n_in_messages, n_out_messages;
	uint64_t p2p_chunk_bytes; /* SENDRECV; else 0 */
};

/**
 * border_make - @real: one bit a comm rank
 * A message between two real ranks is an out-connection of the one and an
 * in-connection of the other, that depends on it with shift 0. COLL_SENDRECV has
 * no schedule here: see border_make_p2p(). A dependency on a message of the same
 * connection that is before the one named is implied: connections keep order.
 *
 * Costs memory and time for the connections of real ranks only; trees also a walk
 * from each real rank to the root.
 *
 * Return: 0; -EINVAL when @real is not of the schedule's size; -ENOMEM.
 */
int border_make(const struct sched *s, const struct bitmap *real, struct border *ret,
		struct err *err);

/* @calls[i]: the calls of real rank ranks[i], n_calls[i] of them. Calls between
 * real ranks must match (-EPROTO with the sentence); virtual ranks do as asked.
 * -EINVAL: a call that cannot be (no such peer, a send to oneself without a
 * receive); -ENOMEM. */
int border_make_p2p(const uint32_t *ranks, uint32_t n, const struct sched_p2p *const *calls,
		    const uint32_t *n_calls, uint64_t chunk_bytes, const struct bitmap *real,
		    struct border *ret, struct err *err);
void border_deinit(struct border *b);

/* Bytes of message @index of a connection of @b; @s: the op's schedule, or NULL for
 * SENDRECV. */
uint64_t border_message_bytes(const struct border *b, const struct sched *s,
			      const struct border_conn *c, uint64_t index);

/* Index of a connection, or -1. O(log n). */
int64_t border_find_in(const struct border *b, uint32_t src, uint32_t dst, uint16_t lane);
int64_t border_find_out(const struct border *b, uint32_t src, uint32_t dst, uint16_t lane);
