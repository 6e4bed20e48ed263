/* The states of an rdma link: which one may follow which. rdma_set_state() is the only
 * function that moves a link.
 *
 *   connecting: idle → resolving → routing → asked → up
 *   accepting:  idle → accepted → up
 *   the end:    up → broken, left → ended; each state may end at once */
#include "links/rdma/private.h"

#define TO(state) (1u << RDMA_##state)

static const unsigned int followers[RDMA_STATES] = {
	[RDMA_IDLE] = TO(RESOLVING) | TO(ACCEPTED) | TO(ENDED),
	[RDMA_RESOLVING] = TO(ROUTING) | TO(ENDED),
	[RDMA_ROUTING] = TO(ASKED) | TO(ENDED),
	[RDMA_ASKED] = TO(UP) | TO(ENDED),
	[RDMA_ACCEPTED] = TO(UP) | TO(BROKEN) | TO(LEFT) | TO(ENDED),
	[RDMA_UP] = TO(BROKEN) | TO(LEFT) | TO(ENDED),
	[RDMA_BROKEN] = TO(LEFT) | TO(ENDED),
	[RDMA_LEFT] = TO(ENDED),
	[RDMA_ENDED] = 0,
};

bool rdma_state_allows(enum rdma_state from, enum rdma_state to)
{
	return followers[from] >> to & 1;
}

bool rdma_set_state(struct rdma_link *r, enum rdma_state s)
{
	if (!rdma_state_allows(r->state, s))
		return false;
	r->state = s;
	r->is_blocked = false;
	r->state_tick = r->rx_tick = r->hub->ticks;
	r->n_silent = 0;
	return true;
}
