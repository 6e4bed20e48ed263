/* Inside links/rdma: the states of an rdma link and the moves between them. */
#pragma once

#include <stdbool.h>

enum rdma_state {
	RDMA_IDLE,
	RDMA_RESOLVING, /* connecting: librdmacm looks for the device that reaches the address */
	RDMA_ROUTING,   /* connecting: ... and for the route */
	RDMA_ASKED,     /* connecting: the request is out */
	RDMA_ACCEPTED,  /* accepting: the peer has yet to confirm, or to send a piece */
	RDMA_UP,
	RDMA_BROKEN, /* a work request failed; the next round of the link finds out why */
	RDMA_LEFT,   /* the peer has left; the next round of the link ends it */
	RDMA_ENDED,  /* nothing moves any more; what has come can still be read */
	RDMA_STATES
};

/* Return: whether a link may go from state @from to state @to. */
bool rdma_state_allows(enum rdma_state from, enum rdma_state to);
