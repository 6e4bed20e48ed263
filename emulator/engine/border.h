/* The border of an op: the connections that touch a real rank. What happens among the virtual ranks
 * is folded into dependencies between those connections: message i of in-connection c (towards a
 * real rank) may be released when, for each dependency (o, shift) of c, message i - shift of
 * out-connection o (from a real rank) has arrived; a message with i < shift needs nothing. The size
 * of a border follows the number of real ranks, not the world and not the bytes. Immutable. */
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

void border_deinit(struct border *b);

/* Bytes of message @index of a connection of @b; @s: the op's schedule, or NULL for
 * SENDRECV. */
uint64_t border_message_bytes(const struct border *b, const struct sched *s,
			      const struct border_conn *c, uint64_t index);

/* Index of a connection, or -1. O(log n). */
int64_t border_find_in(const struct border *b, uint32_t src, uint32_t dst, uint16_t lane);
int64_t border_find_out(const struct border *b, uint32_t src, uint32_t dst, uint16_t lane);
/* The same in any @conns that are in order of border_conn_compare(). */
int64_t border_conns_find(const struct border_conn *conns, uint32_t n, uint32_t src, uint32_t dst,
			  uint16_t lane);
int border_conn_compare(const struct border_conn *c, uint32_t src, uint32_t dst, uint16_t lane);
