/* The states of an rdma link, which one may follow which, and the end of a link in one sentence.
 * rdma_set_state() is the only function that changes a state.
 *
 *   connecting: idle → resolving → routing → asked → up
 *   accepting:  idle → accepted → up
 *   the end:    accepted or up → broken or left → ended; broken → left; any state → ended */
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

bool rdma_set_state(struct rdma_link *l, enum rdma_state s)
{
	if (!(followers[l->state] >> s & 1))
		return false;
	l->state = s;
	l->is_blocked = false;
	l->state_tick = l->rx_tick = l->hub->ticks;
	l->n_silent = 0;
	return true;
}

char *rdma_name(const struct rdma_link *l, char *buf, size_t size)
{
	const struct ibv_qp *qp = l->qps[l->bad_qp].qp;
	char number[24] = "";

	if (!l->dev) { /* still looking for one */
		snprintf(buf, size, "the way to %s", l->link.peer);
		return buf;
	}

	if (qp)
		snprintf(number, sizeof(number), ", QP %u", qp->qp_num);
	snprintf(buf, size, "device %s port %u%s to %s", l->dev->name, l->port, number,
		 l->link.peer);
	return buf;
}

void rdma_drop_qps(struct rdma_link *l)
{
	for (uint32_t i = 0; i < l->n_qps; i++)
		if (l->qps[i].qp)
			rdma_dev_drop_qp(l->dev, &l->qps[i]);
}

/* Makes the sentence before it drops the queue pairs, whose facts are in it. */
void rdma_fail(struct rdma_link *l, int code, const char *fmt, ...)
{
	char name[ERR_TEXT_MAX / 2], what[ERR_TEXT_MAX];
	va_list ap;

	if (l->state == RDMA_ENDED)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(l->why, sizeof(l->why), "%.230s: %.270s", rdma_name(l, name, sizeof(name)), what);
	l->code = code;
	rdma_set_state(l, RDMA_ENDED);
	/* from now on the device neither reads lent memory nor writes into ours */
	rdma_drop_qps(l);
}
