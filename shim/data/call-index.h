/* Finds calls of one group: the k-th send to, or receive from, a rank of a communicator; the
 * broadcast from a root. The sends and receives are in a hash table over the list of calls, so that
 * an all-to-all of a thousand calls is not searched a thousand times. */
#pragma once

#include "shim/data/call.h"

struct call_index {
	const struct call *calls; /* borrowed: all of the group */
	uint32_t n_calls;
	uint32_t *heads; /* owned; number of the last call with that hash + 1 */
	uint32_t mask;
};

/* Numbers the sends and receives (call->nth) and indexes them. Return: 0 or -ENOMEM. */
int call_index_init(struct call_index *x, struct call *calls, uint32_t n);
void call_index_deinit(struct call_index *x);
/* The @k-th such call, from 0; NULL: there is none. */
const struct call *call_index_find(const struct call_index *x, const struct comm *c, bool is_send,
				   uint32_t peer, uint32_t k);
/* The broadcast from @root of @call's size: an all-gather of uneven parts is a group of one
 * broadcast from every rank. NULL: there is none. */
const struct call *call_index_broadcast(const struct call_index *x, const struct call *call,
					uint32_t root);
