/* See receive.h: turns completions into pieces, puts the pieces in order (see rdma.c) and gives
 * their bytes to the reader. It checks all that the peer says; a peer that breaks the rules loses
 * the link. Only the owner's thread calls it. */
#include "links/rdma/receive.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "links/rdma/qp.h"
#include "links/rdma/send.h"

/* --- what comes in --------------------------------------------------------------------- */

static bool take_released(struct rdma_link *l, const struct rdma_piece *p)
{
	uint32_t more = (p->released - (uint32_t)l->tx_released) & RDMA_SEQ_MASK;
	uint32_t ctl = p->ctl_seen - l->ctl_acked;

	/* a piece may have overtaken this one on another queue pair: older counts are ignored */
	if (more <= l->tx_next - l->tx_released) {
		l->tx_released += more;
		if (more)
			l->tx_ring_freed = l->tx[(l->tx_released - 1) % RDMA_WINDOW].ring_end;
	} else if (RDMA_SEQ_MASK - more > RDMA_WINDOW) {
		return false;
	}
	if (ctl <= l->ctl_sent - l->ctl_acked)
		l->ctl_acked += ctl;
	else if ((int32_t)ctl > 0)
		return false;
	return true;
}

static void on_piece(struct rdma_link *l, const struct rdma_qp *q, uint32_t number,
		     const struct rdma_rx *piece)
{
	uint64_t seq = l->rx_next + ((number - (uint32_t)l->rx_next) & RDMA_SEQ_MASK);
	struct rdma_rx *at = &l->rx[seq % RDMA_WINDOW];

	if (seq >= l->rx_read + RDMA_WINDOW || at->is_there || seq % l->n_qps != q->index) {
		rdma_fail(l, -EPROTO, "the peer broke the rules: piece %u where %u comes next",
			  number, (uint32_t)l->rx_next & RDMA_SEQ_MASK);
		return;
	}
	*at = *piece;
	while (l->rx_next < l->rx_read + RDMA_WINDOW && l->rx[l->rx_next % RDMA_WINDOW].is_there) {
		at = &l->rx[l->rx_next % RDMA_WINDOW];
		if (at->is_write)
			l->rx_ring_got += at->bytes;
		l->rx_next++;
	}
	if (l->rx_ring_got - l->rx_ring_read > l->hub->options.ring_bytes)
		rdma_fail(l, -EPROTO, "the peer broke the rules: more bytes than the ring has");
}

static struct rdma_offer offer_of(const struct rdma_link *l, const struct rdma_rx *p)
{
	struct rdma_offer o;

	memcpy(&o, l->rx_slots + (size_t)p->slot * RDMA_SLOT_BYTES + sizeof(struct rdma_piece),
	       sizeof(o));
	return o;
}

/* An offer stands for the bytes that are to be read. */
static bool take_offer(const struct rdma_link *l, struct rdma_rx *p)
{
	p->is_offer = true;
	if (!l->reads || p->bytes != sizeof(struct rdma_offer))
		return false;
	p->bytes = offer_of(l, p).bytes;
	return p->bytes > 0;
}

static void on_receive(struct rdma_qp *q, const struct ibv_wc *wc)
{
	struct rdma_rx piece = {.is_there = true,
				.slot = (uint16_t)wc->wr_id,
				.bytes = wc->byte_len};
	struct rdma_link *l = q->link;
	uint32_t imm = ntohl(wc->imm_data);
	struct rdma_piece head;

	l->rx_tick = l->hub->ticks;
	rdma_set_state(l, RDMA_UP); /* a piece proves it, even before the event ESTABLISHED */
	piece.is_write = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || piece.slot >= l->n_rx_slots ||
	    (piece.is_write ? piece.bytes == 0 || imm & RDMA_CTL_FLAG
			    : piece.bytes < sizeof(head) || piece.bytes > RDMA_SLOT_BYTES)) {
		rdma_fail(l, -EPROTO, "the peer broke the rules: a message of %u bytes%s",
			  piece.bytes, wc->wc_flags & IBV_WC_WITH_IMM ? "" : " without a number");
		return;
	}
	if (!piece.is_write) {
		memcpy(&head, l->rx_slots + (size_t)piece.slot * RDMA_SLOT_BYTES, sizeof(head));
		piece.bytes -= (uint32_t)sizeof(head);
		if (!take_released(l, &head)) {
			rdma_fail(l, -EPROTO,
				  "the peer broke the rules: it read more than we sent");
			return;
		}
	}
	if (!(imm & RDMA_CTL_FLAG)) {
		if (!piece.is_write && head.released & RDMA_OFFER_FLAG && !take_offer(l, &piece))
			rdma_fail(l, -EPROTO, "the peer broke the rules: an offer that is none");
		else
			on_piece(l, q, imm, &piece);
		return;
	}
	l->ctl_seen++;
	rdma_repost(l, piece.slot);
}

void rdma_on_completion(struct rdma_qp *q, const struct ibv_wc *wc)
{
	struct rdma_link *l = q->link;

	if (l->state == RDMA_ENDED)
		return;
	l->is_blocked = false; /* this may have made room: the next post() tries */
	if (wc->status != IBV_WC_SUCCESS) {
		if (rdma_set_state(l, RDMA_BROKEN) || l->bad.status == IBV_WC_WR_FLUSH_ERR) {
			l->bad = *wc;
			l->bad_qp = (uint8_t)q->index;
		}
		return;
	}
	if (rdma_wr_kind(wc->wr_id) == RDMA_WR_RECV) {
		on_receive(q, wc);
		return;
	}
	q->sq_done = rdma_wr_index(wc->wr_id) + 1;
	if (rdma_wr_kind(wc->wr_id) == RDMA_WR_READ) {
		l->is_reading = false;
		l->rx_tick = l->hub->ticks;
	}
	if (rdma_wr_kind(wc->wr_id) == RDMA_WR_PROBE) {
		l->n_probes--;
		l->rx_tick = l->hub->ticks;
	}
}

/* --- what was read ----------------------------------------------------------------------- */

static void release(struct rdma_link *l, struct rdma_rx *p)
{
	p->is_there = false;
	l->owes_word |= p->is_offer;
	if (p->is_write)
		l->rx_ring_read += p->bytes;
	l->rx_read++;
	l->rx_offset = 0;
	if (l->state != RDMA_ENDED)
		rdma_repost(l, p->slot);
}

/* Part of a piece: a SEND lies in its slot, a WRITE in the ring from its place on. */
static void copy_out(struct rdma_link *l, const struct rdma_rx *p, void *dst, uint32_t n)
{
	uint32_t ring = l->hub->options.ring_bytes;

	if (!dst)
		return;
	if (p->is_write)
		/* writers never wrap inside a piece, but a peer could lie about its length */
		for (uint32_t i = 0, part; i < n; i += part) {
			uint32_t at = (uint32_t)(l->rx_ring_read + l->rx_offset + i) & (ring - 1);

			part = rdma_least(n - i, ring - at);
			memcpy((char *)dst + i, l->ring + at, part);
		}
	else
		memcpy(dst,
		       l->rx_slots + (size_t)p->slot * RDMA_SLOT_BYTES + sizeof(struct rdma_piece) +
			       l->rx_offset,
		       n);
}

/* The next bytes of an offer, at most @n, by READ. Return: how many have come to @dst; 0: none so
 * far; negative errno: the link has ended. */
static int fetch(struct rdma_link *l, const struct rdma_rx *p, void *dst, uint32_t n)
{
	struct rdma_offer o = offer_of(l, p);

	if (l->state == RDMA_ENDED)
		return -EPIPE;
	if (l->rx_asked)
		return l->is_reading ? 0 : (int)l->rx_asked;
	if (!l->link.rx_memory) {
		rdma_fail(l, -EPROTO,
			  "the peer broke the rules: it offers what is no body of a message that "
			  "goes into registered memory");
		return -EPROTO;
	}
	if (!rdma_has_queue_room(&l->qps[0]))
		return 0;
	o.addr += l->rx_offset;
	o.bytes = n;
	if (rdma_read_offer(l, &o, l->link.rx_memory, dst))
		return -EIO;
	l->rx_asked = n;
	l->is_reading = true;
	return 0;
}

ssize_t rdma_read(struct link *base, void *dst, size_t n)
{
	struct rdma_link *l = rdma_of(base);
	size_t got = 0;

	while (got < n && l->rx_read < l->rx_next) {
		struct rdma_rx *p = &l->rx[l->rx_read % RDMA_WINDOW];
		uint32_t part = p->bytes - l->rx_offset;

		if (dst && p->is_write && l->ring_gpu.from) {
			rdma_fail(
				l, -EPROTO,
				"the peer broke the rules: it wrote what is no body of a message into "
				"memory of the GPU");
			return got ? (ssize_t)got : l->code;
		}
		if (part > n - got)
			part = (uint32_t)(n - got);
		if (dst && p->is_offer) {
			int come = fetch(l, p, (char *)dst + got, part);

			if (come <= 0)
				break;
			part = (uint32_t)come;
			l->rx_asked = 0;
		} else {
			copy_out(l, p, dst ? (char *)dst + got : NULL, part);
		}
		got += part;
		l->rx_offset += part;
		if (l->rx_offset == p->bytes)
			release(l, p);
	}
	if (got || l->state != RDMA_ENDED)
		return (ssize_t)got;
	return l->code ? l->code : IO_END;
}
