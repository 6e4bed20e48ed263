/* Inside links/: the private data of the connection manager, in which two ends of an rdma link
 * show each other who they are before the first frame. The bytes may be a stranger's, so all of
 * them are checked. Native byte order, as in wire/wire.h; the magic shows it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define RDMA_HELLO_MAGIC UINT32_C(0x72646e62) /* "bndr" */
#define RDMA_HELLO_VERSION 3                  /* 1: without flags; 2: without READ */
#define RDMA_QPS_MAX 4
#define RDMA_WINDOW_MIN 8
#define RDMA_WINDOW_MAX 1024
#define RDMA_SLOT_MIN 512
#define RDMA_RING_MIN (UINT32_C(64) << 10)
#define RDMA_RING_MAX (UINT32_C(1) << 30)

/* Nothing but bodies of MESSAGE frames may be written into the ring: its owner cannot
 * look at what lies there. All else comes by SEND. */
#define RDMA_HELLO_RING_BLIND 1
/* Its device can READ, and be read from. If both can, large bodies may be offered. */
#define RDMA_HELLO_READS 2

/* 56 bytes: all that a request of the connection manager can carry. */
struct rdma_hello {
	uint32_t magic;
	uint8_t version;
	uint8_t flags; /* RDMA_HELLO_... */
	uint8_t n_qps;
	uint8_t kind;       /* 0: a new link; there is no other kind */
	uint64_t unused;    /* 0 */
	uint64_t ring_addr; /* where the other end writes bodies: power of two, rkey */
	uint32_t ring_rkey;
	uint32_t ring_bytes;
	uint16_t window;      /* pieces that may be under way to this end */
	uint16_t slot_bytes;  /* most bytes of one SEND to this end */
	uint32_t also_unused; /* 0 */
	uint32_t qpn[RDMA_QPS_MAX];
};
_Static_assert(sizeof(struct rdma_hello) == 56, "private data of a request has 56 bytes");

/* Why an end was turned away. */
enum rdma_refusal {
	RDMA_REFUSED_GARBAGE = 1, /* no hello of nbox */
	RDMA_REFUSED_VERSION,
	RDMA_REFUSED_RESOURCES, /* see the log of the other end */
	RDMA_REFUSALS
};

struct rdma_refuse {
	uint32_t magic;
	uint16_t version;
	uint16_t reason; /* enum rdma_refusal */
};

/* Return: 0; -EPROTO with the sentence; -EPROTONOSUPPORT: another version. @n may be
 * more than was sent: connection managers pad with zeros. */
int rdma_hello_check(const void *data, size_t n, struct rdma_hello *ret, struct err *err);
/* What a refusal says. Return: a sentence; never NULL, whatever the bytes are. */
const char *rdma_refuse_text(const void *data, size_t n);
