/* All that a real rank sends to another on a channel by sends and receives, whatever the op: the
 * k-th message sent is the k-th received. The ops of the two are numbered by each for itself. */
#pragma once

#include "traffic/flow.h"

struct conn {
	struct conn_key {
		uint32_t src, dst, channel;
	} key;
	UT_hash_handle hh;
	/* in the order in which they were declared; those that are not through */
	struct flow *sends, *last_send, *receives, *last_receive;
};

struct conn *conn_get(struct conn **all, uint32_t src, uint32_t dst, uint32_t channel); /* NULL: no
											   memory */
void conns_free(struct conn **all);
void conn_add(struct conn *c, struct flow *f);
void conn_drop(struct conn *c, const struct flow *f); /* the first of its direction */
