/* Finds the point-to-point calls of one launch: the k-th send to, or receive from, a
 * rank of a communicator. A hash table over the list of calls, so that an all-to-all of
 * a thousand calls is not searched a thousand times. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct call;
struct comm;

struct p2p_index {
	const struct call *calls; /* borrowed: all of the launch */
	uint32_t n_calls;
	uint32_t *heads; /* owned; number of the last call with that hash + 1 */
	uint32_t mask;
};

/* Numbers the calls (call->nth) and indexes them. Return: 0 or -ENOMEM. */
int p2p_index_init(struct p2p_index *x, struct call *calls, uint32_t n);
void p2p_index_deinit(struct p2p_index *x);
/* The @k-th such call, from 0; NULL: there is none. */
const struct call *p2p_index_find(const struct p2p_index *x, const struct comm *c, bool is_send,
				  uint32_t peer, uint32_t k);
