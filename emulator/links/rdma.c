/* RDMA links: reliable connections of libibverbs, set up by librdmacm.
 *
 * The frames of a link are one stream of bytes, cut into pieces that are numbered from
 * 0. A piece goes in one of two ways:
 *
 *   SEND       up to a slot: headers, small frames, several of them at once. Inline
 *              where the device can, else from a registered slot; into a slot that the
 *              peer has posted. In front of it stands what its sender has read so far.
 *   WRITE with large bodies: straight from the owner's memory, registered through a
 *   immediate  cache, into the peer's ring, which is filled in the order of the numbers.
 *
 * The immediate data of both is the piece's number: it names the place of the bytes in
 * the stream, hence the frame whose header said which op and message it is. Piece n goes
 * over queue pair n modulo their count, and the receiver puts them in order again.
 *
 * Flow: at most RDMA_WINDOW pieces and the ring's bytes may be under way; reading gives
 * them back, and the peer is told with the next SEND, or, when a quarter is due, with one
 * of its own that has no data ("control"). Those have receives of their own, and an end
 * may always send one that returns something: see the argument at tell(). So a receive
 * is always posted, and "receiver not ready" cannot happen.
 *
 * Copies: a sender copies what goes by SEND (less than a slot). A receiver copies a body
 * once, from ring or slot to the place that on_header named; a body that is discarded is
 * never touched.
 *
 * Sleep: incoming pieces are "solicited"; own completions wake a sleeper only while lent
 * memory waits for them. So a ping-pong of small frames costs one wake-up a turn.
 *
 * What it does not do: encrypt, or defend the ring against the peer that it was given
 * to; the bytes in it are copied out before anyone looks at them. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "links/rdma-private.h"

#define LINGER_NS (200 * NS_PER_MS)
#define IDLE_TICKS 5     /* then the peer is asked for a sign of life */
#define ESTABLISH_TICKS 10
#define PORT_DOWN_TICKS 2

static struct rdma_link *to_rdma(const struct link *l)
{
	/* the callers know whether theirs is const */
	return container_of((uintptr_t)l, struct rdma_link, link);
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* --- posting ------------------------------------------------------------------------- */

bool rdma_is_complete(const struct rdma_link *r, const struct rdma_tx *t)
{
	return t->is_over || (int32_t)(r->qps[t->qp].sq_done - t->sq_index) > 0;
}

static bool has_queue_room(const struct rdma_qp *q)
{
	return q->sq_posted - q->sq_done < RDMA_WINDOW + RDMA_CTL;
}

static struct rdma_piece *tx_slot(const struct rdma_link *r, uint32_t i)
{
	return (struct rdma_piece *)(void *)(r->tx_slots + (size_t)i * RDMA_SLOT_BYTES);
}

/* Fills what says how far we have read; with it the peer knows. */
static void fill_piece(struct rdma_link *r, struct rdma_piece *p)
{
	p->released = (uint32_t)r->rx_read & RDMA_SEQ_MASK;
	p->ctl_seen = r->ctl_seen;
	r->rx_told = r->rx_read;
	r->rx_ring_told = r->rx_ring_read;
	r->ctl_told = r->ctl_seen;
}

static int post(struct rdma_link *r, struct rdma_qp *q, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int rc;

	rc = r->hub->v->post_send(q->qp, wr, &bad);
	if (rc) {
		rdma_fail(r, -EIO, "a send cannot be posted: %s", strerror(rc < 0 ? errno : rc));
		return -EIO;
	}
	q->sq_posted++;
	return 0;
}

/* A SEND of a slot of which @bytes are used, its piece header included. */
static int post_slot(struct rdma_link *r, struct rdma_qp *q, uint32_t slot, uint32_t bytes,
		     uint64_t wr_id, uint32_t imm, unsigned int flags)
{
	struct ibv_sge sge = {(uintptr_t)tx_slot(r, slot), bytes, r->slot_mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags = flags | (bytes <= r->inline_bytes ? IBV_SEND_INLINE : 0u),
				 .imm_data = htonl(imm)};

	return post(r, q, &wr);
}

/* A WRITE of nothing: completes when the peer's device has answered all before it. */
static int post_probe(struct rdma_link *r, struct rdma_qp *q)
{
	struct ibv_send_wr wr = {.wr_id = rdma_wr_id(RDMA_WR_PROBE, q->sq_posted),
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {r->peer.ring_addr, r->peer.ring_rkey}};

	return post(r, q, &wr);
}

static int post_write(struct rdma_link *r, const struct rdma_tx *t, uint32_t seq)
{
	struct rdma_qp *q = &r->qps[t->qp];
	struct ibv_sge sge = {(uintptr_t)t->src, t->bytes, t->region->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = rdma_wr_id(RDMA_WR_DATA, q->sq_posted),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
				 .imm_data = htonl(seq & RDMA_SEQ_MASK),
				 .wr.rdma = {r->peer.ring_addr + t->ring_at, r->peer.ring_rkey}};

	return post(r, q, &wr);
}

/* A piece that a lost connection may have taken with it. */
int rdma_post_again(struct rdma_link *r, struct rdma_tx *t, uint64_t seq)
{
	struct rdma_qp *q = &r->qps[t->qp];
	uint32_t slot = (uint32_t)(seq % RDMA_WINDOW);

	t->sq_index = q->sq_posted;
	if (t->is_write)
		return post_write(r, t, (uint32_t)seq);
	fill_piece(r, tx_slot(r, slot));
	return post_slot(r, q, slot, t->bytes + (uint32_t)sizeof(struct rdma_piece),
			 rdma_wr_id(RDMA_WR_DATA, t->sq_index), (uint32_t)seq & RDMA_SEQ_MASK,
			 IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
}

/* --- the stream into pieces -------------------------------------------------------------- */

/* The entry of the next piece; NULL: it must wait. */
static struct rdma_tx *next_piece(struct rdma_link *r)
{
	uint32_t qp = (uint32_t)(r->tx_next % r->n_qps);

	if (r->tx_next - r->tx_freed >= r->tx_window || !has_queue_room(&r->qps[qp]))
		return NULL;
	r->tx[r->tx_next % RDMA_WINDOW] = (struct rdma_tx){
		.qp = (uint8_t)qp,
		.sq_index = r->qps[qp].sq_posted,
		.ring_end = r->tx_ring_sent,
	};
	return &r->tx[r->tx_next % RDMA_WINDOW];
}

static bool goes_by_write(const struct rdma_link *r, const struct link_seg *s)
{
	return s->is_lent && s->bytes > r->tx_slot_bytes - sizeof(struct rdma_piece);
}

/* Part of one lent body. Return: bytes; 0: no room; negative errno. */
static ssize_t write_piece(struct rdma_link *r, const struct link_seg *s)
{
	uint32_t ring = r->peer.ring_bytes, at = (uint32_t)r->tx_ring_sent & (ring - 1);
	uint32_t room = ring - (uint32_t)(r->tx_ring_sent - r->tx_ring_freed);
	uint32_t want = s->bytes < ring / 8 ? (uint32_t)s->bytes : ring / 8;
	struct rdma_tx *t = next_piece(r);
	struct err err;
	int rc;

	want = min_u32(want, ring - at);
	if (!t || room < want)
		return 0;
	rc = rdma_region_get(r->dev, s->base, s->bytes, &t->region, &err);
	if (rc) {
		rdma_fail(r, rc, "%s", err.text);
		return rc;
	}
	t->bytes = want;
	t->is_lent = t->is_write = true;
	t->src = s->base;
	t->ring_at = at;
	rc = post_write(r, t, (uint32_t)r->tx_next);
	if (rc) {
		rdma_region_put(r, t->region);
		t->region = NULL;
		return rc;
	}
	r->tx_ring_sent += want;
	t->ring_end = r->tx_ring_sent;
	r->tx_next++;
	return (ssize_t)want;
}

/* Over several queue pairs a piece may have arrived and one before it not. Where that one
 * may have to come again, so may all behind it: then nothing is done before what was
 * before it is complete. */
static bool keeps_all(const struct rdma_link *r)
{
	return r->n_qps > 1 && r->hub->options.reconnect;
}

/* As much as a slot takes, up to the next body that goes by WRITE. */
static ssize_t send_piece(struct rdma_link *r, const struct link_seg *s, int n_seg)
{
	uint32_t most = r->tx_slot_bytes - (uint32_t)sizeof(struct rdma_piece), used = 0, part;
	struct rdma_tx *t = next_piece(r);
	uint32_t slot = (uint32_t)(r->tx_next % RDMA_WINDOW);
	unsigned int flags = IBV_SEND_SOLICITED;
	uint8_t *to;
	int i, rc;

	if (!t)
		return 0;
	to = (uint8_t *)(tx_slot(r, slot) + 1);
	for (i = 0; i < n_seg && used < most; i++) {
		if (goes_by_write(r, &s[i])) {
			flags = 0; /* the body wakes the peer */
			break;
		}
		part = s[i].bytes < most - used ? (uint32_t)s[i].bytes : most - used;
		memcpy(to + used, s[i].base, part);
		used += part;
	}
	/* so that entries come back: a completion says that all before it are done */
	if (r->tx_next / r->n_qps % (RDMA_WINDOW / 8) == 0 || keeps_all(r))
		flags |= IBV_SEND_SIGNALED;
	t->bytes = used;
	fill_piece(r, tx_slot(r, slot));
	rc = post_slot(r, &r->qps[t->qp], slot, used + (uint32_t)sizeof(struct rdma_piece),
		       rdma_wr_id(RDMA_WR_DATA, t->sq_index), (uint32_t)r->tx_next & RDMA_SEQ_MASK,
		       flags);
	if (rc)
		return rc;
	r->tx_next++;
	return used;
}

static ssize_t rdma_post(struct link *l, struct link_seg *s, int n_seg)
{
	struct rdma_link *r = to_rdma(l);
	ssize_t total = 0, n, left;

	if (r->state == RDMA_ENDED)
		return -EPIPE;
	r->is_blocked = r->state != RDMA_UP || r->must_resend;
	while (n_seg && r->state == RDMA_UP && !r->must_resend) {
		n = goes_by_write(r, s) ? write_piece(r, s) : send_piece(r, s, n_seg);
		if (n <= 0) {
			r->is_blocked = true;
			return total ? total : n;
		}
		total += n;
		for (left = n; n_seg && (uint64_t)left >= s->bytes; s++, n_seg--)
			left -= (ssize_t)s->bytes;
		if (left) {
			s->base = (const char *)s->base + left;
			s->bytes -= (uint64_t)left;
		}
	}
	return total;
}

/* Lent bytes are done when complete, copied ones at once; always in order. */
static uint64_t rdma_done(struct link *l)
{
	struct rdma_link *r = to_rdma(l);
	uint64_t bytes = 0;
	struct rdma_tx *t;

	for (; r->tx_done < r->tx_next; r->tx_done++) {
		t = &r->tx[r->tx_done % RDMA_WINDOW];
		if ((t->is_lent || keeps_all(r)) && !rdma_is_complete(r, t))
			break;
		if (t->region)
			rdma_region_put(r, t->region);
		t->region = NULL;
		bytes += t->bytes;
	}
	for (; r->tx_freed < r->tx_done && r->tx_freed < r->tx_released; r->tx_freed++)
		if (!rdma_is_complete(r, &r->tx[r->tx_freed % RDMA_WINDOW]))
			break;
	return bytes;
}

/* --- what comes in --------------------------------------------------------------------- */

static bool take_released(struct rdma_link *r, const struct rdma_piece *p)
{
	uint32_t more = (p->released - (uint32_t)r->tx_released) & RDMA_SEQ_MASK;
	uint32_t ctl = p->ctl_seen - r->ctl_acked;

	/* pieces of several queue pairs overtake each other: old news are no news */
	if (more <= r->tx_next - r->tx_released) {
		r->tx_released += more;
		if (more)
			r->tx_ring_freed = r->tx[(r->tx_released - 1) % RDMA_WINDOW].ring_end;
	} else if (RDMA_SEQ_MASK - more > RDMA_WINDOW) {
		return false;
	}
	if (ctl <= r->ctl_sent - r->ctl_acked)
		r->ctl_acked += ctl;
	else if ((int32_t)ctl > 0)
		return false;
	return true;
}

static void on_control(struct rdma_link *r, uint32_t imm, uint16_t slot)
{
	if (imm & RDMA_CTL_BYE) { /* nothing more comes: not counted, not given back */
		r->has_bye = true;
		return;
	}
	r->ctl_seen++;
	rdma_repost(r, slot);
}

static void on_piece(struct rdma_link *r, const struct rdma_qp *q, uint32_t number,
		     const struct rdma_rx *piece)
{
	uint64_t seq = r->rx_next + ((number - (uint32_t)r->rx_next) & RDMA_SEQ_MASK);
	struct rdma_rx *at = &r->rx[seq % RDMA_WINDOW];

	if (seq >= r->rx_read + RDMA_WINDOW || at->is_there || seq % r->n_qps != q->index) {
		rdma_fail(r, -EPROTO,
			  "the peer broke the rules: piece %u where %u comes next", number,
			  (uint32_t)r->rx_next & RDMA_SEQ_MASK);
		return;
	}
	*at = *piece;
	while (r->rx_next < r->rx_read + RDMA_WINDOW && r->rx[r->rx_next % RDMA_WINDOW].is_there) {
		at = &r->rx[r->rx_next % RDMA_WINDOW];
		if (at->is_write)
			r->rx_ring_got += at->bytes;
		r->rx_next++;
	}
	if (r->rx_ring_got - r->rx_ring_read > r->hub->options.ring_bytes)
		rdma_fail(r, -EPROTO, "the peer broke the rules: more bytes than the ring has");
}

static void on_receive(struct rdma_qp *q, const struct ibv_wc *wc)
{
	struct rdma_rx piece = {.is_there = true, .slot = (uint16_t)wc->wr_id, .bytes = wc->byte_len};
	struct rdma_link *r = q->link;
	uint32_t imm = ntohl(wc->imm_data);
	struct rdma_piece head;

	r->rx_tick = r->hub->ticks;
	if (r->state == RDMA_ACCEPTED) /* it is up, whatever became of the last word */
		r->state = RDMA_UP;
	piece.is_write = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || piece.slot >= r->n_rx_slots ||
	    (piece.is_write ? piece.bytes == 0 || imm & RDMA_CTL_FLAG
			    : piece.bytes < sizeof(head) || piece.bytes > RDMA_SLOT_BYTES)) {
		rdma_fail(r, -EPROTO, "the peer broke the rules: a message of %u bytes%s",
			  piece.bytes, wc->wc_flags & IBV_WC_WITH_IMM ? "" : " without a number");
		return;
	}
	if (!piece.is_write) {
		memcpy(&head, r->rx_slots + (size_t)piece.slot * RDMA_SLOT_BYTES, sizeof(head));
		piece.bytes -= (uint32_t)sizeof(head);
		if (!take_released(r, &head)) {
			rdma_fail(r, -EPROTO, "the peer broke the rules: it read more than we sent");
			return;
		}
	}
	if (imm & RDMA_CTL_FLAG)
		on_control(r, imm, piece.slot);
	else
		on_piece(r, q, imm, &piece);
}

/* Errors wait: an end in good order looks like one until its event has been read. */
void rdma_on_completion(struct rdma_qp *q, const struct ibv_wc *wc)
{
	struct rdma_link *r = q->link;

	if (r->state == RDMA_ENDED)
		return;
	r->is_blocked = false; /* or so we hope */
	if (wc->status != IBV_WC_SUCCESS && r->state == RDMA_LOST)
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		if (!r->has_bad || r->bad.status == IBV_WC_WR_FLUSH_ERR) {
			r->bad = *wc;
			r->bad_qp = (uint8_t)q->index;
		}
		r->has_bad = true;
		return;
	}
	if (wc->wr_id >> 32 == RDMA_WR_RECV) {
		on_receive(q, wc);
		return;
	}
	q->sq_done = (uint32_t)wc->wr_id + 1;
	if (wc->wr_id >> 32 == RDMA_WR_PROBE) {
		r->n_probes--;
		r->rx_tick = r->hub->ticks;
	}
}

/* What was found out while polling, made true: errors, and the end. */
static void settle(struct rdma_link *r)
{
	if (r->has_bad && r->state != RDMA_ENDED && !r->is_disconnected) {
		rdma_hub_look(r->hub);
		rdma_hub_poll(r->hub);
	}
	if (r->state != RDMA_ENDED && r->state != RDMA_LOST) {
		if (r->is_disconnected && r->hub->options.reconnect && !r->has_bye) {
			rdma_lose(r, -ECONNRESET, "the peer's end of the connection is gone");
		} else if (r->is_disconnected) {
			r->state = RDMA_ENDED;
			r->code = 0; /* an earlier loss was made good */
			rdma_link_drop_qps(r);
		} else if (r->has_bad) {
			rdma_fail_status(r, &r->qps[r->bad_qp], &r->bad);
		}
	}
	rdma_resume_step(r);
}

static void release(struct rdma_link *r, struct rdma_rx *p)
{
	p->is_there = false;
	if (p->is_write)
		r->rx_ring_read += p->bytes;
	r->rx_read++;
	r->rx_offset = 0;
	if (r->state != RDMA_ENDED)
		rdma_repost(r, p->slot);
}

/* Part of a piece: a SEND lies in its slot, a WRITE in the ring from its place on. */
static void copy_out(struct rdma_link *r, const struct rdma_rx *p, void *dst, uint32_t n)
{
	uint32_t ring = r->hub->options.ring_bytes;

	if (!dst)
		return;
	if (p->is_write)
		/* writers never wrap inside a piece, but a peer could lie about its length */
		for (uint32_t i = 0, part; i < n; i += part) {
			uint32_t at = (uint32_t)(r->rx_ring_read + r->rx_offset + i) & (ring - 1);

			part = min_u32(n - i, ring - at);
			memcpy((char *)dst + i, r->ring + at, part);
		}
	else
		memcpy(dst,
		       r->rx_slots + (size_t)p->slot * RDMA_SLOT_BYTES + sizeof(struct rdma_piece) +
			       r->rx_offset,
		       n);
}

static ssize_t rdma_read(struct link *l, void *dst, size_t n)
{
	struct rdma_link *r = to_rdma(l);
	size_t got = 0;

	while (got < n && r->rx_read < r->rx_next) {
		struct rdma_rx *p = &r->rx[r->rx_read % RDMA_WINDOW];
		uint32_t part = p->bytes - r->rx_offset;

		if (part > n - got)
			part = (uint32_t)(n - got);
		copy_out(r, p, dst ? (char *)dst + got : NULL, part);
		got += part;
		r->rx_offset += part;
		if (r->rx_offset == p->bytes)
			release(r, p);
	}
	if (got || r->state != RDMA_ENDED)
		return (ssize_t)got;
	return r->code ? r->code : IO_END;
}

/* --- rounds and sleep -------------------------------------------------------------------- */

/* Says how far we have read when the peer may need to know. It may always be said when
 * it is worth something: an end that has no control SEND left has sent RDMA_CTL since the
 * peer's last word, so the peer owes it one, and has one left itself, unless it too has
 * sent RDMA_CTL since our last word, which is older than those. Half of RDMA_CTL control
 * SENDs are answered by one, so two idle ends fall silent. */
static void tell(struct rdma_link *r)
{
	uint32_t slot = RDMA_WINDOW + r->ctl_sent % RDMA_CTL;

	if (r->state != RDMA_UP || r->ctl_sent - r->ctl_acked >= RDMA_CTL ||
	    !has_queue_room(&r->qps[0]))
		return;
	if (r->rx_read - r->rx_told < RDMA_WINDOW / 4 &&
	    r->rx_ring_read - r->rx_ring_told < r->hub->options.ring_bytes / 4 &&
	    r->ctl_seen - r->ctl_told < RDMA_CTL / 2)
		return;
	fill_piece(r, tx_slot(r, slot));
	if (!post_slot(r, &r->qps[0], slot, sizeof(struct rdma_piece),
		       rdma_wr_id(RDMA_WR_CTL, r->qps[0].sq_posted), RDMA_CTL_FLAG,
		       IBV_SEND_SOLICITED | IBV_SEND_SIGNALED))
		r->ctl_sent++;
}

static void rdma_begin(struct link *l)
{
	struct rdma_link *r = to_rdma(l);

	rdma_hub_glance(r->hub);
	rdma_hub_poll(r->hub);
	settle(r);
}

static void rdma_end(struct link *l)
{
	tell(to_rdma(l));
}

static bool rdma_arm(struct link *l, bool want_read, bool want_write)
{
	struct rdma_link *r = to_rdma(l);

	if (r->hub->options.is_busy_polling)
		return false;
	if (r->state == RDMA_ENDED)
		return !want_read;
	if (r->is_again && r->state != RDMA_UP && want_write)
		want_write = false; /* nothing can go yet */
	if (!r->dev) { /* only the connection manager has something to say */
		r->hub->is_armed = true;
		return true;
	}
	/* what was queued and not tried since something changed */
	if (want_write && !r->is_blocked && link_untaken(l))
		return false;
	if (!rdma_dev_arm(r->dev, want_write))
		return false;
	return !((r->has_bad && r->state != RDMA_LOST) || (r->is_disconnected && r->state != RDMA_LOST) ||
		 rdma_resume_has_step(r) || (want_read && r->rx_read < r->rx_next));
}

static int rdma_fd(const struct link *l)
{
	return to_rdma(l)->hub->epoll_fd;
}

/* With those of libibverbs, which would keep the queue pairs alive. */
static int rdma_all_fds(const struct link *l, int *fds, int most)
{
	const struct rdma_hub *h = to_rdma(l)->hub;
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

static short rdma_poll_events(const struct link *l, bool want_read, bool want_write)
{
	(void)l;
	(void)want_read;
	(void)want_write;
	return POLLIN;
}

static const char *rdma_why(const struct link *l)
{
	return to_rdma(l)->why;
}

/* Once a second or so. */
void rdma_on_tick(struct rdma_link *r)
{
	uint64_t now = r->hub->ticks;

	if (r->state == RDMA_ACCEPTED && now - r->state_tick > ESTABLISH_TICKS)
		(r->is_again ? rdma_lose : rdma_fail)(
			r, -ETIMEDOUT, "the connection was accepted, but the peer never said so");
	rdma_resume_tick(r);
	if (r->state != RDMA_UP)
		return;
	if (r->port_down_tick && now - (r->port_down_tick - 1) > PORT_DOWN_TICKS)
		rdma_lose(r, -ENETDOWN, "the port is down (IBV_EVENT_PORT_ERR)");
	else if (now - r->rx_tick >= IDLE_TICKS && !r->n_probes && has_queue_room(&r->qps[0]) &&
		 !post_probe(r, &r->qps[0]))
		r->n_probes++;
}

/* --- life -------------------------------------------------------------------------------- */

static bool is_all_out(const struct rdma_link *r)
{
	for (uint32_t i = 0; i < r->n_qps; i++)
		if (r->qps[i].sq_posted != r->qps[i].sq_done)
			return false;
	return true;
}

/* Copied bytes count as sent, but a queue pair that is destroyed takes them with it. The
 * answer of the peer's device is waited for: a round trip, and a bound for one that has
 * vanished. */
static void linger(struct rdma_link *r)
{
	uint64_t due_ns = clock_now_ns() + LINGER_NS;

	/* a connection that is just being made again: its pieces are still here */
	while (r->hub->options.reconnect && r->state != RDMA_ENDED && r->tx_next != r->tx_freed &&
	       (r->state != RDMA_UP || r->must_resend) && clock_now_ns() < due_ns) {
		link_wait_fd(r->hub->epoll_fd, POLLIN, clock_now_ns() + NS_PER_MS);
		rdma_hub_look(r->hub);
		rdma_hub_poll(r->hub);
		settle(r);
	}
	if (r->state == RDMA_UP && r->hub->options.reconnect && !r->has_bad && !r->is_disconnected) {
		fill_piece(r, tx_slot(r, RDMA_WINDOW + RDMA_CTL));
		post_slot(r, &r->qps[0], RDMA_WINDOW + RDMA_CTL, sizeof(struct rdma_piece),
			  rdma_wr_id(RDMA_WR_CTL, r->qps[0].sq_posted), RDMA_CTL_FLAG | RDMA_CTL_BYE,
			  IBV_SEND_SOLICITED | IBV_SEND_SIGNALED);
	}
	for (uint32_t i = 0; i < r->n_qps && r->state == RDMA_UP; i++)
		if (r->qps[i].sq_posted != r->qps[i].sq_done && !post_probe(r, &r->qps[i]))
			r->n_probes++;
	while (r->state == RDMA_UP && !r->has_bad && !r->is_disconnected && !is_all_out(r) &&
	       clock_now_ns() < due_ns) {
		if (rdma_dev_arm(r->dev, true) && !is_all_out(r))
			link_wait_fd(r->hub->epoll_fd, POLLIN, due_ns);
		rdma_hub_look(r->hub);
		rdma_hub_poll(r->hub);
	}
}

static void rdma_free(struct link *l)
{
	struct rdma_link *r = to_rdma(l);

	linger(r);
	rdma_link_free(r);
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
	.free = rdma_free,
};

int rdma_link_new(struct rdma_hub *h, const struct link_events *ev, void *owner,
		  struct rdma_link **ret)
{
	struct rdma_link *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	link_init(&r->link, &rdma_ops, ev, owner);
	r->hub = h;
	r->n_qps = h->options.qps;
	r->state_tick = r->rx_tick = h->ticks;
	h->n_users++;
	r->next = h->links;
	if (r->next)
		r->next->prev = r;
	h->links = r;
	*ret = r;
	return 0;
}

void rdma_link_free(struct rdma_link *r)
{
	struct rdma_hub *h = r->hub;

	if (r->id && r->state != RDMA_ENDED)
		h->v->cm_disconnect(r->id);
	rdma_link_unset(r);
	if (r->id) {
		h->v->cm_destroy_id(r->id);
		rdma_counts.gone[RDMA_IDS]++;
	}
	if (r->next)
		r->next->prev = r->prev;
	if (r->prev)
		r->prev->next = r->next;
	else
		h->links = r->next;
	free(r);
	rdma_hub_leave(h);
}
