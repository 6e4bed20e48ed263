/* Messages under way between NCCL and nboxd. NCCL's proxy begins a request and looks at it; what
 * happens to it happens on the progress thread:
 *
 *   send    MESSAGE, with NCCL's own buffer as its body; done when the link has taken that
 *   receive WANT; done when MESSAGE has come and its bytes lie in NCCL's buffer
 *
 * FLOW goes out before the first of a flow. Where the communicator has failed, or the link is lost,
 * all are done at once, receives as if the identity had come. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/plugin/flow.h"
#include "shim/plugin/region.h"
#include "shim/progress/traffic.h"

#define REQUESTS_MAX 32 /* of one end of a connection, NCCL's NCCL_NET_MAX_REQUESTS */

extern const struct traffic_events transfer_events;

struct request {
	/* Constant from begin to done. */
	struct end *of;
	struct comm *comm; /* a reference */
	struct flow *flow;
	uint64_t index;
	void *data;
	size_t bytes; /* a receive: at most */
	struct region *region;
	uint32_t protocol;
	uint64_t step;          /* a receive: of the connection */
	uint64_t message_bytes; /* none of the flow has more */

	_Atomic bool is_done;
	size_t got; /* before is_done */

	/* Of whoever has it: the list of those that were begun; the progress thread. */
	struct request *next, **to_self;
	bool is_lent, is_landing;
};

/* An end of a connection of NCCL. */
struct end {
	struct request requests[REQUESTS_MAX];
	uint32_t in_use; /* bits; the proxy's thread */
	uint32_t n_registered;
	bool has_peer; /* a sender to a virtual rank: @peer */
	uint32_t peer;
	uint64_t step; /* a receiver: the least that its next message can have */
	_Atomic uint32_t n_busy;
	_Atomic bool is_closing;
};

/* NULL: no memory. */
struct end *end_new(void);
/* NCCL is about to free @region (NULL: what it has): ends receives there, and waits for bodies from
 * and to there that a link has, for some seconds at most. */
void end_settle(struct end *e, const struct region *region);
void end_free(struct end *e); /* settled */

/* The proxy's thread. A free request of @e; NULL: none. */
struct request *request_get(struct end *e);
/* Fields are set, but of, is_done. */
void request_begin(struct request *r);
/* Return: whether it is done: then it is free, and *ret_bytes (or NULL) what came. */
bool request_test(struct request *r, size_t *ret_bytes);
