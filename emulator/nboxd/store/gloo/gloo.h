/* What nboxd must know of gloo to stand in for ranks that do not exist: addresses in the
 * store, frames on a connection, and when a virtual rank may send in a barrier. Pure.
 *
 * An address is what a rank sets as .../cpu//0/<rank>: u64 length and host name, u64 136,
 * a sockaddr_storage and an i64, then, unless connections are lazy, one i64 a peer: what
 * that peer writes first on its connection. A lazy peer writes its own rank. The side
 * whose (address, port as two raw bytes) is greater connects.
 *
 * A frame is six u64: bytes in all, opcode, slot, offset, length, remote offset. The
 * sender says SEND_READY, the receiver RECV_READY; then DATA follows. The slot's highest byte
 * tells the collective. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "nboxd/store/buffer.h"
#include "nboxd/store/protocol.h"

enum gloo_opcode { GLOO_BOUND_DATA, GLOO_DATA, GLOO_SEND_READY, GLOO_RECV_READY, GLOO_OPCODES };

struct gloo_frame {
	uint64_t n_bytes, opcode, slot, offset, length, roffset;
};
#define GLOO_LENGTH_MAX (16u << 20)
/* Looks at a frame of which @n bytes have come; @bytes are its six numbers at least, if so many
 * have. ret->n_bytes are the whole frame: its body (of DATA) stands behind the six numbers. Return:
 * 1 it is whole; 0 more is needed; -EPROTO. */
int gloo_frame_look(const uint8_t *bytes, size_t n, struct gloo_frame *ret);

enum gloo_kind {
	GLOO_P2P,
	GLOO_GATHER,
	GLOO_ALLGATHER,
	GLOO_REDUCE,
	GLOO_ALLREDUCE,
	GLOO_SCATTER,
	GLOO_BROADCAST,
	GLOO_BARRIER,
	GLOO_ALLTOALL,
	GLOO_KINDS
};
enum gloo_kind gloo_kind(uint64_t slot);
const char *gloo_kind_name(enum gloo_kind kind);

struct gloo_address {
	struct sockaddr_storage sockaddr; /* AF_INET or AF_INET6 */
	uint32_t n_peers;                 /* ids that follow; 0: lazy */
};
/* Return: 0; -EPROTO. */
int gloo_address_parse(struct store_bytes b, struct gloo_address *ret);
/* The address of virtual rank @rank; @n_peers 0: lazy, else peer i shall write
 * rank x n_peers + i. Return: 0; -ENOMEM. */
int gloo_address_write(const struct sockaddr_storage *a, uint32_t rank, uint32_t n_peers,
		       struct buffer *ret);

/* Which ranks of a group are real, and which of their messages have come in a barrier. */
struct gloo_barrier {
	uint32_t n_ranks;
	bool (*is_real)(void *ctx, uint32_t rank);
	bool (*has_come)(void *ctx, uint32_t from, uint32_t to);
	void *ctx;
};
/**
 * gloo_barrier_may_send - whether virtual rank @from would send to @to by now
 *
 * In step k rank r sends to r + 2^k and receives from r - 2^k, and goes on when both are
 * done. A virtual rank does so at once. (Dissemination barrier, Hensgen, Finkel, Manber
 * 1988.)
 *
 * Return: 1; 0; -EINVAL @to is not one that @from sends to in a group of this size; -ENOMEM.
 */
int gloo_barrier_may_send(const struct gloo_barrier *b, uint32_t from, uint32_t to);
