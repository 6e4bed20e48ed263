/* See rdma.h: how rdma links work, and their rounds, sleep and end. Sending and receiving are in
 * send.c and receive.c.
 *
 * The frames of a link are one stream of bytes, cut into pieces that are numbered from 0. Each end
 * has slots, small registered buffers for SENDs, and a ring, a large registered buffer that the
 * peer writes bodies into. The owner of a link is its user: nboxd, or a worker. A piece goes in one
 * of three ways:
 *
 *   SEND       up to a slot: headers, small frames, several of them at once. Inline if it
 *              is short enough, else from one of our slots; into a slot that the peer has
 *              posted. It begins with how far its sender has read.
 *   WRITE      with immediate: large bodies, straight from the owner's memory, registered
 *              through a cache, into the peer's ring, which is filled in the order of the
 *              numbers.
 *   offer      a SEND that says where a large body lies. The peer's device READs it to where it
 *              goes.
 *
 * The immediate data of each is the piece's number (31 bits), which says where the piece lies in
 * the stream. Which op and message its bytes are of says the frame's header, earlier in the stream.
 * Piece n goes over queue pair n modulo their count, and the receiver puts the pieces in order
 * again.
 *
 * Flow: at most RDMA_WINDOW pieces and the ring's bytes may be under way. The receiver
 * returns pieces and ring bytes by reading them. It tells the sender so with its next SEND; when a
 * quarter of the window is due, by a SEND without data ("control"). Each end
 * keeps a receive posted for every piece and every control SEND that the peer may have under way,
 * so "receiver not ready" cannot happen. rdma_tell() has the proof that an end can always send what
 * it must return.
 *
 * Copies: a sender copies what goes by SEND (less than a slot). A receiver copies a body once,
 * from ring or slot to the place that on_header named, one that was offered not at all. It never
 * touches a body that is discarded.
 *
 * Memory of a GPU: bodies may be sent from it, always by WRITE, and the ring may lie in it. Into
 * such a ring the peer may write only bodies of MESSAGE frames, which the ring's owner discards.
 * The hello says so, and a peer that writes anything else loses the link.
 *
 * Sleep: incoming pieces are "solicited", so they wake a sleeper. The sleeper's own completions
 * wake it only while frames wait in the send queue, for room or for lent memory. So a ping-pong of
 * small frames costs one wake-up a turn.
 *
 * What it does not do: encrypt, or make a lost connection again. It cannot keep the peer from
 * writing into the ring at any time, so bytes are first copied out of it, then looked at. */
#include "links/rdma/rdma.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "links/rdma/error.h"
#include "links/rdma/qp.h"
#include "links/rdma/receive.h"
#include "links/rdma/send.h"
#include "links/wait.h"

#define LINGER_NS (200 * NS_PER_MS) /* plus the ack timeout */
#define LINGER_MAX_NS (2 * NS_PER_S)
#define IDLE_TICKS 5 /* then ask the peer for a sign of life */
#define ESTABLISH_TICKS 15
#define PORT_DOWN_TICKS 2

/* --- rounds and sleep -------------------------------------------------------------------- */

/* Ends a link if polling found it broken, or found that its peer has left. */
static void settle(struct rdma_link *l)
{
	if (l->state == RDMA_BROKEN) { /* perhaps because the peer has left */
		rdma_hub_look(l->hub);
		rdma_hub_poll(l->hub);
	}
	if (l->state == RDMA_LEFT)
		rdma_fail(l, 0, "the peer closed the connection (RDMA_CM_EVENT_DISCONNECTED)");
	else if (l->state == RDMA_BROKEN)
		rdma_fail_status(l, &l->bad);
}

static void rdma_begin(struct link *base)
{
	struct rdma_link *l = rdma_of(base);

	rdma_hub_glance(l->hub);
	rdma_hub_poll(l->hub);
	settle(l);
}

static void rdma_end(struct link *base)
{
	rdma_tell(rdma_of(base));
}

static bool rdma_arm(struct link *base, bool want_read, bool want_write)
{
	struct rdma_link *l = rdma_of(base);

	if (l->hub->options.is_busy_polling)
		return false;
	if (l->state == RDMA_ENDED)
		return !want_read;
	l->hub->is_armed = true;
	if (!l->dev) /* only the connection manager has something to say */
		return true;
	/* there may be room, and no post() has taken these frames yet: do not sleep */
	if (want_write && !l->is_blocked && link_untaken(base))
		return false;
	if (!rdma_dev_arm(l->dev, want_write || l->is_reading))
		return false;
	return !(l->state > RDMA_UP || (want_read && l->rx_read < l->rx_next && !l->is_reading));
}

static int rdma_fd(const struct link *base)
{
	return rdma_of(base)->hub->epoll_fd;
}

/* What a forked child closes. The descriptors of libibverbs are among it: a copy of them would keep
 * the queue pairs alive. */
static int rdma_all_fds(const struct link *base, int *fds, int most)
{
	const struct rdma_hub *h = rdma_of(base)->hub;
	const struct rdma_dev *d;
	int n = 0;

	const int own[] = {h->epoll_fd, h->timer_fd, h->request_fd, h->cm->fd};

	for (size_t i = 0; i < ARRAY_SIZE(own) && n < most; i++)
		fds[n++] = own[i];
	for (d = h->devs; d && n + 3 <= most; d = d->next) {
		fds[n++] = d->channel->fd;
		fds[n++] = d->ctx->async_fd;
		fds[n++] = d->ctx->cmd_fd;
	}
	return n;
}

static short rdma_poll_events(const struct link *base, bool want_read, bool want_write)
{
	(void)base;
	(void)want_read;
	(void)want_write;
	return POLLIN;
}

static const char *rdma_why(const struct link *base)
{
	return rdma_of(base)->why;
}

/* After how many ticks a device ought to have given up a peer that does not answer. A try takes up
 * to 4 x 4.096 us x 2^timeout. Some devices never give up: soft-RoCE reads 7 retries as endless. */
static uint64_t answer_ticks(const struct rdma_options *o)
{
	return 5 + ((((uint64_t)o->retry_count + 1) << o->timeout) * 4 * 4096 >> 10) / 1000000;
}

/* The ticks that were seen are counted, not the time: this process may have been stopped. */
static void look_for_life(struct rdma_link *l)
{
	if (l->hub->ticks - l->rx_tick < IDLE_TICKS) {
		l->n_silent = 0;
		return;
	}
	if (!l->n_probes && rdma_has_queue_room(&l->qps[0]))
		rdma_probe(l, &l->qps[0]);
	if (l->n_silent++ > answer_ticks(&l->hub->options))
		rdma_fail(
			l, -ETIMEDOUT,
			"the other end has not answered for %u s: its host or port is down, or the "
			"network loses packets; this device keeps trying (soft-RoCE takes "
			"NBOX_IB_RETRY_CNT=7 for endless)",
			l->n_silent - 1 + IDLE_TICKS);
}

static void tick(struct rdma_link *l)
{
	uint64_t now = l->hub->ticks;

	if (l->state == RDMA_ACCEPTED && now - l->state_tick > ESTABLISH_TICKS)
		rdma_fail(l, -ETIMEDOUT, "the connection was accepted, but the peer never said so");
	if (l->state != RDMA_UP)
		return;
	if (l->port_down_tick && now - (l->port_down_tick - 1) > PORT_DOWN_TICKS)
		rdma_fail(l, -ENETDOWN, "the port is down (IBV_EVENT_PORT_ERR)");
	else
		look_for_life(l);
}

void rdma_on_tick(struct rdma_hub *h)
{
	for (struct rdma_link *l = h->links; l; l = l->next)
		tick(l);
}

/* --- life -------------------------------------------------------------------------------- */

static bool is_all_out(const struct rdma_link *l)
{
	for (uint32_t i = 0; i < l->n_qps; i++)
		if (l->qps[i].sq_posted != l->qps[i].sq_done)
			return false;
	return l->tx_released >= l->tx_offered;
}

/* Copied bytes count as sent, but a queue pair that is destroyed takes them with it. So wait
 * until the peer's device has answered all, but no longer than LINGER_NS and one ack timeout. */
static void linger(struct rdma_link *l)
{
	const uint64_t again_ns =
		UINT64_C(4096)
		<< l->hub->options.timeout; /* the device sends once more what was lost */
	uint64_t due_ns =
		clock_now_ns() + LINGER_NS + (again_ns < LINGER_MAX_NS ? again_ns : LINGER_MAX_NS);

	for (uint32_t i = 0; i < l->n_qps && l->state == RDMA_UP; i++)
		if (l->qps[i].sq_posted != l->qps[i].sq_done)
			rdma_probe(l, &l->qps[i]);
	while (l->state == RDMA_UP && !is_all_out(l) && clock_now_ns() < due_ns) {
		if (rdma_dev_arm(l->dev, true) && !is_all_out(l))
			link_wait_fd(l->hub->epoll_fd, POLLIN, due_ns);
		rdma_hub_look(l->hub);
		rdma_hub_poll(l->hub);
	}
}

static void rdma_free(struct link *base)
{
	struct rdma_link *l = rdma_of(base);

	linger(l);
	rdma_link_free(l);
}

static bool rdma_reads(const struct link *base)
{
	return rdma_of(base)->reads;
}

static const struct link_ops rdma_ops = {
	.kind = "rdma",
	.post = rdma_post,
	.done = rdma_done,
	.read = rdma_read,
	.begin = rdma_begin,
	.end = rdma_end,
	.arm = rdma_arm,
	.fd = rdma_fd,
	.all_fds = rdma_all_fds,
	.poll_events = rdma_poll_events,
	.why = rdma_why,
	.lend_gpu = rdma_lend_gpu,
	.register_memory = rdma_register,
	.unregister_memory = rdma_unregister,
	.reads = rdma_reads,
	.free = rdma_free,
};

int rdma_link_new(struct rdma_hub *h, const struct link_events *ev, void *owner,
		  struct rdma_link **ret)
{
	struct rdma_link *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	link_init(&l->link, &rdma_ops, ev, owner);
	l->hub = h;
	l->n_qps = h->options.qps;
	l->state_tick = l->rx_tick = h->ticks;
	h->n_users++;
	l->next = h->links;
	if (l->next)
		l->next->prev = l;
	h->links = l;
	*ret = l;
	return 0;
}

void rdma_link_free(struct rdma_link *l)
{
	struct rdma_hub *h = l->hub;

	if (l->id && l->state != RDMA_ENDED)
		h->v->cm_disconnect(l->id);
	rdma_link_unset(l);
	if (l->id)
		rdma_hub_drop_id(h, l->id);
	if (l->next)
		l->next->prev = l->prev;
	if (l->prev)
		l->prev->next = l->next;
	else
		h->links = l->next;
	free(l);
	rdma_hub_leave(h);
}
