/* The states of an rdma link, which one may follow which, and the end of a link in one sentence.
 * rdma_set_state() is the only function that changes a state.
 *
 *   connecting: idle → resolving → routing → asked → up
 *   accepting:  idle → accepted → up
 *   the end:    up → broken, left → ended; each state may end at once */
#include "links/rdma/state.h"

#include <stdarg.h>
#include <stdio.h>

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

bool rdma_set_state(struct rdma_link *r, enum rdma_state s)
{
	if (!(followers[r->state] >> s & 1))
		return false;
	r->state = s;
	r->is_blocked = false;
	r->state_tick = r->rx_tick = r->hub->ticks;
	r->n_silent = 0;
	return true;
}

char *rdma_name(const struct rdma_link *r, char *buf, size_t size)
{
	const struct ibv_qp *qp = r->qps[r->bad_qp].qp;
	char number[24] = "";

	if (!r->dev) { /* still looking for one */
		snprintf(buf, size, "the way to %s", r->link.peer);
		return buf;
	}

	if (qp)
		snprintf(number, sizeof(number), ", QP %u", qp->qp_num);
	snprintf(buf, size, "device %s port %u%s to %s", r->dev->name, r->port, number,
		 r->link.peer);
	return buf;
}

void rdma_drop_qps(struct rdma_link *r)
{
	for (uint32_t i = 0; i < r->n_qps; i++)
		if (r->qps[i].qp)
			rdma_dev_drop_qp(r->dev, &r->qps[i]);
}

/* The sentence first: its words may come from what goes now. */
void rdma_fail(struct rdma_link *r, int code, const char *fmt, ...)
{
	char name[ERR_TEXT_MAX / 2], what[ERR_TEXT_MAX];
	va_list ap;

	if (r->state == RDMA_ENDED)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(r->why, sizeof(r->why), "%.230s: %.270s", rdma_name(r, name, sizeof(name)), what);
	r->code = code;
	rdma_set_state(r, RDMA_ENDED);
	/* nothing reads from lent memory, and nobody writes into ours, from now on */
	rdma_drop_qps(r);
}
