/* See call-index.h. */
#include "shim/data/call-index.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t slot_of(const struct call_index *x, const struct comm *c, bool is_send,
			uint32_t peer)
{
	uint64_t key = (uint64_t)(uintptr_t)c / 64 + ((uint64_t)peer << 1 | is_send);

	return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & x->mask;
}

static bool is_like(const struct call *call, const struct comm *c, bool is_send, uint32_t peer)
{
	return call->comm == c && call->is_send == is_send && call->root == peer;
}

int call_index_init(struct call_index *x, struct call *calls, uint32_t n)
{
	uint32_t slots = 16;

	while (slots < n)
		slots *= 2;
	x->calls = calls;
	x->n_calls = n;
	x->mask = slots - 1;
	x->heads = calloc(slots, sizeof(*x->heads));
	if (!x->heads)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct call *call = &calls[i];
		uint32_t slot, j;

		if (call->kind != COLL_SENDRECV || call->is_onesided)
			continue;
		slot = slot_of(x, call->comm, call->is_send, call->root);
		/* the newest one like it comes first */
		for (j = x->heads[slot]; j; j = calls[j - 1].next_like)
			if (is_like(&calls[j - 1], call->comm, call->is_send, call->root))
				break;
		call->nth = j ? calls[j - 1].nth + 1 : 0;
		call->next_like = x->heads[slot];
		x->heads[slot] = i + 1;
	}
	return 0;
}

void call_index_deinit(struct call_index *x)
{
	free(x->heads);
	x->heads = NULL;
}

const struct call *call_index_find(const struct call_index *x, const struct comm *c, bool is_send,
				   uint32_t peer, uint32_t k)
{
	for (uint32_t j = x->heads[slot_of(x, c, is_send, peer)]; j; j = x->calls[j - 1].next_like)
		if (is_like(&x->calls[j - 1], c, is_send, peer) && x->calls[j - 1].nth == k)
			return &x->calls[j - 1];
	return NULL;
}

const struct call *call_index_broadcast(const struct call_index *x, const struct call *call,
					uint32_t root)
{
	for (uint32_t i = 0; i < x->n_calls; i++)
		if (x->calls[i].comm == call->comm && x->calls[i].kind == COLL_BROADCAST &&
		    x->calls[i].root == root && x->calls[i].bytes == call->bytes)
			return &x->calls[i];
	return NULL;
}
