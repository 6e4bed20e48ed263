/* Inside links/rdma: an rdma link, its states, and its end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "links/kind.h"
#include "links/rdma/dev.h"
#include "links/rdma/gpu.h"
#include "links/rdma/hello.h"
#include "links/rdma/hub.h"
#include "links/rdma/piece.h"

enum rdma_state {
	RDMA_IDLE,
	RDMA_RESOLVING, /* connecting: librdmacm looks for the device that reaches the address */
	RDMA_ROUTING,   /* connecting: ... and for the route */
	RDMA_ASKED,     /* connecting: the request is out */
	RDMA_ACCEPTED,  /* accepting: the peer has yet to confirm, or to send a piece */
	RDMA_UP,
	RDMA_BROKEN, /* a work request failed; the next round of the link finds out why */
	RDMA_LEFT,   /* the peer has left; the next round of the link ends it */
	RDMA_ENDED,  /* nothing moves; received pieces can still be read */
	RDMA_STATES
};

struct rdma_link {
	struct link link;
	struct rdma_hub *hub;
	struct rdma_dev *dev;
	struct rdma_cm_id *id;
	struct rdma_link *prev, *next; /* of the hub */
	enum rdma_state state;
	bool is_blocked; /* the last post() found no room, and nothing has changed since */
	uint64_t state_tick,
		rx_tick; /* tick of the last change of state; tick of the last sign of life */
	int code;        /* why it ended; 0: the peer went in good order */
	char why[ERR_TEXT_MAX];
	uint32_t port;           /* of the device */
	uint64_t port_down_tick; /* 0: it is up */
	uint32_t n_probes;       /* under way */
	uint32_t n_silent;       /* ticks since a sign of life was asked for */
	struct ibv_wc bad;       /* RDMA_BROKEN: the first completion that says why */
	uint8_t bad_qp;          /* ... on this queue pair */

	/* Memory: the ring is the peer's to write; slots are for SENDs, both ways. */
	void *area; /* the slots and, if it is the host's, the ring */
	size_t area_bytes;
	struct rdma_gpu ring_gpu; /* the ring, if it is a GPU's */
	struct rdma_gpu lent_gpu; /* what link_send_gpu() sends */
	struct ibv_mr *ring_mr, *slot_mr;
	uint8_t *ring, *rx_slots, *tx_slots;
	uint32_t n_rx_slots, inline_bytes;

	struct rdma_qp qps[RDMA_QPS_MAX];
	uint32_t n_qps;
	struct rdma_hello peer;
	bool reads; /* both ends' devices do: bodies can be offered */

	/* Sending; pieces are counted from 0 over the link's life. */
	uint32_t tx_window, tx_slot_bytes;
	uint64_t tx_next;     /* to be sent next */
	uint64_t tx_done;     /* its memory is the owner's again */
	uint64_t tx_freed;    /* its slot is free again */
	uint64_t tx_released; /* read by the peer */
	uint64_t tx_ring_sent, tx_ring_freed;
	uint64_t tx_offered;          /* behind the last offer */
	uint32_t ctl_sent, ctl_acked; /* over the link's life */
	struct rdma_tx tx[RDMA_WINDOW];

	/* Receiving. */
	uint64_t rx_next; /* the next piece in order */
	uint64_t rx_read; /* pieces that were read and given back */
	uint64_t rx_told; /* as far as the peer knows */
	uint64_t rx_ring_read, rx_ring_told, rx_ring_got;
	uint32_t rx_offset; /* bytes of piece rx_read that the owner has had */
	uint32_t rx_asked;  /* ... of it that a READ brings from there on */
	bool is_reading;    /* that READ is not complete */
	bool owes_word;     /* an offer was read, and the peer waits to hear it */
	uint32_t ctl_seen, ctl_told;
	struct rdma_rx rx[RDMA_WINDOW];
};

static inline struct rdma_link *rdma_of(const struct link *base)
{
	/* the cast drops const; callers with a const link only read */
	return container_of((uintptr_t)base, struct rdma_link, link);
}

/* Puts @l into state @s. Return: whether the table of state.c allows it; if not, nothing
 * changes.
 */
bool rdma_set_state(struct rdma_link *l, enum rdma_state s);
/* Ends the link with @code (0: in good order); the sentence begins with device, port,
 * queue pair and peer. The first call counts. */
void rdma_fail(struct rdma_link *l, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* "device rxe0 port 1, QP 17 to rdma:10.0.0.1:4000": of the queue pair that failed, else the first.
 */
char *rdma_name(const struct rdma_link *l, char *buf, size_t size);
void rdma_drop_qps(struct rdma_link *l);
