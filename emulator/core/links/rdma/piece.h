/* Inside links/rdma: the pieces that the stream of frames is cut into (see rdma.c), and the ids of
 * the work requests that carry them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rdma_region;

#define RDMA_WINDOW 64                     /* pieces under way in one direction; power of two */
#define RDMA_SLOT_BYTES 8192               /* of one SEND, with its piece header */
#define RDMA_CTL 4                         /* SENDs without data that may be under way */
#define RDMA_CTL_FLAG UINT32_C(0x80000000) /* in the immediate: carries no data */
#define RDMA_SEQ_MASK UINT32_C(0x7fffffff)

#define RDMA_OFFER_FLAG UINT32_C(0x80000000) /* in released: the piece is an offer */

/* In front of every SEND: how far its sender has read. */
struct rdma_piece {
	uint32_t released; /* low bits of the number of pieces that were read */
	uint32_t ctl_seen; /* control SENDs received */
};

/* Behind it, instead of bytes of the stream: where they are to be read. */
struct rdma_offer {
	uint64_t addr;
	uint32_t rkey;
	uint32_t bytes;
};

/* Ids of work requests: a kind, and a slot (receives) or a place in the send queue. */
enum rdma_wr { RDMA_WR_RECV = 1, RDMA_WR_DATA, RDMA_WR_CTL, RDMA_WR_PROBE, RDMA_WR_READ };
#define RDMA_WR_KIND_SHIFT 56 /* below it the index, which never gets that far */
static inline uint64_t rdma_wr_id(enum rdma_wr kind, uint64_t index)
{
	return (uint64_t)kind << RDMA_WR_KIND_SHIFT | index;
}
static inline enum rdma_wr rdma_wr_kind(uint64_t id)
{
	return (enum rdma_wr)(id >> RDMA_WR_KIND_SHIFT);
}
static inline uint64_t rdma_wr_index(uint64_t id)
{
	return id & ((UINT64_C(1) << RDMA_WR_KIND_SHIFT) - 1);
}

struct rdma_tx {
	uint32_t bytes;    /* of the stream of frames */
	uint64_t sq_index; /* in its queue pair */
	uint8_t qp;
	bool is_lent;               /* from memory of the owner: not done before it is complete */
	bool is_offered;            /* ... nor before the peer has read it */
	struct rdma_region *region; /* in use until it is complete */
	uint64_t ring_end;          /* ring bytes used up to and with this piece */
};

struct rdma_rx {
	bool is_there, is_write, is_offer;
	uint16_t slot;
	uint32_t bytes;
};

static inline uint32_t rdma_least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}
