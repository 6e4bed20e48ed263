/* A lost connection made again (NBOX_IB_RECONNECT): when the network did not answer for a
 * while, a port was down, or the peer's end is gone without its word of parting. Who had
 * connected connects again, with the link's number; who had accepted waits for it.
 *
 * Nothing is lost or doubled: pieces have numbers. The hello of each end says which piece
 * it expects next. What is before that has arrived; the sender forgets it, whatever became
 * of the acknowledgements. The rest is posted again, from the slots and the lent memory
 * that it was sent from, which are kept until a piece is known to be there, and to the same
 * places of the ring. What arrived after a gap is thrown away and comes again.
 *
 * While a port is known to be down the connection manager is left alone: its messages could
 * not go. (soft-RoCE's never sends again after one that could not, whoever sent it: its
 * queue pair 1 stays in error. There a port that was down does not come back for new
 * connections, nor for rping.) */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "links/rdma/private.h"

#define ATTEMPT_TICKS 5 /* of one attempt */
#define WAIT_TICKS 5    /* beyond an attempt a second, for who waits */

/* A connection that is made and lost again without a piece or a second between is one more
 * attempt that failed: what breaks it each time is no cable. */
static bool was_of_use(const struct rdma_link *r)
{
	return r->state == RDMA_UP && !r->must_resend &&
	       (r->tx_freed > r->tx_at_up || r->rx_next > r->rx_at_up ||
		r->hub->ticks - r->state_tick > 1);
}

void rdma_lose(struct rdma_link *r, int code, const char *fmt, ...)
{
	uint32_t most = r->hub->options.reconnect;
	char what[ERR_TEXT_MAX / 2], name[ERR_TEXT_MAX / 2];
	va_list ap;

	if (r->state == RDMA_ENDED || r->state == RDMA_LOST)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (!most) {
		rdma_fail(r, code, "%s", what);
		return;
	}
	if (was_of_use(r))
		r->n_attempts = 0;
	if (!r->is_acceptor && r->n_attempts >= most) {
		rdma_fail(r, code, "lost, and %u attempts to connect again failed, the last: %s",
			  r->n_attempts, what);
		return;
	}
	snprintf(r->why, sizeof(r->why), "%.230s: %.270s", rdma_name(r, name, sizeof(name)), what);
	r->code = code;
	r->state = RDMA_LOST;
	r->state_tick = r->hub->ticks;
	r->must_stop = true;
	/* the first attempt at once, the next ones with the ticks */
	r->must_try = !r->is_acceptor && r->n_attempts == 0;
}

static bool is_port_down(const struct rdma_link *r)
{
	return r->dev && r->dev->ports_down & rdma_port_bit(r->port);
}

/* All but the id: saying good-bye to a port that is down must wait. */
static void stop(struct rdma_link *r)
{
	r->state = RDMA_LOST;
	rdma_link_stop_qps(r);
	for (uint64_t seq = r->rx_next; seq < r->rx_read + RDMA_WINDOW; seq++)
		r->rx[seq % RDMA_WINDOW].is_there = false;
	r->ctl_sent = r->ctl_acked = r->ctl_seen = r->ctl_told = 0;
	/* the last word may be lost: say it again */
	r->rx_told = r->rx_read > RDMA_WINDOW / 4 ? r->rx_read - RDMA_WINDOW / 4 : 0;
	r->n_probes = 0;
	r->port_down_tick = 0;
	r->has_bad = r->is_disconnected = r->must_stop = false;
	r->bad_qp = 0;
	r->is_again = r->must_resend = true;
	r->must_part = r->id;
}

static void part(struct rdma_link *r)
{
	r->must_part = false;
	if (!r->id)
		return;
	r->hub->v->cm_disconnect(r->id);
	rdma_hub_drop_id(r->hub, r->id);
	r->id = NULL;
}

/* Not from inside an event of the connection: its id could not go. */
void rdma_resume_stop(struct rdma_link *r)
{
	stop(r);
	part(r);
}

static void attempt(struct rdma_link *r)
{
	struct err err;
	int rc;

	r->must_try = false;
	r->n_attempts++;
	rc = is_port_down(r) ? err_set(&err, ENETDOWN, "the port is down")
			     : rdma_begin_connect(r, &err);
	if (rc) {
		r->state = RDMA_RESOLVING; /* so that it counts as lost anew */
		rdma_lose(r, rc, "%s", err.text);
	}
}

int rdma_resume_check(struct rdma_link *r, const struct rdma_hello *h, struct err *err)
{
	uint64_t next = r->tx_released + ((h->rx_next - (uint32_t)r->tx_released) & RDMA_SEQ_MASK);

	if (h->kind != RDMA_HELLO_RESUME || h->n_qps != r->n_qps ||
	    h->ring_bytes != r->peer.ring_bytes || h->window != r->peer.window ||
	    h->slot_bytes != r->peer.slot_bytes || h->flags != r->peer.flags)
		return err_set(err, EPROTO, "it is another one than it was");
	if (next > r->tx_next)
		return err_set(err, EPROTO, "the peer says it has pieces that were never sent");
	for (uint64_t seq = r->tx_freed; seq < r->tx_next; seq++) {
		struct rdma_tx *t = &r->tx[seq % RDMA_WINDOW];

		/* the counters of the queue pairs begin anew: no mistaking old for new */
		t->is_over = seq < next;
		t->sq_index = RDMA_NOT_POSTED;
	}
	return 0;
}

static void resend(struct rdma_link *r)
{
	r->must_resend = false;
	r->tx_at_up = r->tx_freed;
	r->rx_at_up = r->rx_next;
	r->n_resumed++;
	for (uint64_t seq = r->tx_freed; seq < r->tx_next && r->state == RDMA_UP; seq++)
		if (!r->tx[seq % RDMA_WINDOW].is_over)
			rdma_post_again(r, &r->tx[seq % RDMA_WINDOW], seq);
}

bool rdma_resume_has_step(const struct rdma_link *r)
{
	return r->state == RDMA_LOST
		       ? r->must_stop || r->must_try || (r->must_part && !is_port_down(r))
		       : r->state == RDMA_UP && r->must_resend;
}

void rdma_resume_step(struct rdma_link *r)
{
	if (r->state == RDMA_LOST && r->must_stop)
		stop(r);
	if (r->state == RDMA_LOST && r->must_part && !is_port_down(r))
		part(r);
	if (r->state == RDMA_LOST && r->must_try)
		attempt(r);
	if (r->state == RDMA_UP && r->must_resend)
		resend(r);
}

void rdma_resume_tick(struct rdma_link *r)
{
	uint64_t waited = r->hub->ticks - r->state_tick;
	char why[ERR_TEXT_MAX];

	if (r->state == RDMA_LOST && !r->is_acceptor) {
		r->must_try = true;
	} else if (r->state == RDMA_LOST && waited > WAIT_TICKS + r->hub->options.reconnect) {
		/* what was lost was said with the names of then */
		snprintf(why, sizeof(why), "%s", r->why);
		snprintf(r->why, sizeof(r->why), "%.475s; it did not come back in time", why);
		r->state = RDMA_ENDED;
		rdma_link_drop_qps(r);
	} else if (r->is_again && waited > ATTEMPT_TICKS && r->state > RDMA_IDLE &&
		   r->state < RDMA_UP) {
		rdma_lose(r, -ETIMEDOUT, "no answer");
	}
}
