/* The receiving side of an rdma link: completions into pieces, those in order (see
 * rdma.c), and their bytes to who reads. What the peer says is checked here; who breaks
 * the rules loses the link. Of the owner's thread only. */
#include "links/rdma/receive.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "links/rdma/qp.h"

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

static void on_piece(struct rdma_link *r, const struct rdma_qp *q, uint32_t number,
		     const struct rdma_rx *piece)
{
	uint64_t seq = r->rx_next + ((number - (uint32_t)r->rx_next) & RDMA_SEQ_MASK);
	struct rdma_rx *at = &r->rx[seq % RDMA_WINDOW];

	if (seq >= r->rx_read + RDMA_WINDOW || at->is_there || seq % r->n_qps != q->index) {
		rdma_fail(r, -EPROTO, "the peer broke the rules: piece %u where %u comes next",
			  number, (uint32_t)r->rx_next & RDMA_SEQ_MASK);
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
	struct rdma_rx piece = {.is_there = true,
				.slot = (uint16_t)wc->wr_id,
				.bytes = wc->byte_len};
	struct rdma_link *r = q->link;
	uint32_t imm = ntohl(wc->imm_data);
	struct rdma_piece head;

	r->rx_tick = r->hub->ticks;
	rdma_set_state(r, RDMA_UP); /* an accepted one, whatever became of the last word */
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
			rdma_fail(r, -EPROTO,
				  "the peer broke the rules: it read more than we sent");
			return;
		}
	}
	if (!(imm & RDMA_CTL_FLAG)) {
		on_piece(r, q, imm, &piece);
		return;
	}
	r->ctl_seen++;
	rdma_repost(r, piece.slot);
}

void rdma_on_completion(struct rdma_qp *q, const struct ibv_wc *wc)
{
	struct rdma_link *r = q->link;

	if (r->state == RDMA_ENDED)
		return;
	r->is_blocked = false; /* or so we hope */
	if (wc->status != IBV_WC_SUCCESS) {
		if (rdma_set_state(r, RDMA_BROKEN) || r->bad.status == IBV_WC_WR_FLUSH_ERR) {
			r->bad = *wc;
			r->bad_qp = (uint8_t)q->index;
		}
		return;
	}
	if (rdma_wr_kind(wc->wr_id) == RDMA_WR_RECV) {
		on_receive(q, wc);
		return;
	}
	q->sq_done = rdma_wr_index(wc->wr_id) + 1;
	if (rdma_wr_kind(wc->wr_id) == RDMA_WR_PROBE) {
		r->n_probes--;
		r->rx_tick = r->hub->ticks;
	}
}
/* --- what was read ----------------------------------------------------------------------- */

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

			part = rdma_least(n - i, ring - at);
			memcpy((char *)dst + i, r->ring + at, part);
		}
	else
		memcpy(dst,
		       r->rx_slots + (size_t)p->slot * RDMA_SLOT_BYTES + sizeof(struct rdma_piece) +
			       r->rx_offset,
		       n);
}

ssize_t rdma_read(struct link *l, void *dst, size_t n)
{
	struct rdma_link *r = rdma_of(l);
	size_t got = 0;

	while (got < n && r->rx_read < r->rx_next) {
		struct rdma_rx *p = &r->rx[r->rx_read % RDMA_WINDOW];
		uint32_t part = p->bytes - r->rx_offset;

		if (dst && p->is_write && r->ring_gpu.from) {
			rdma_fail(
				r, -EPROTO,
				"the peer broke the rules: it wrote what is no body of a message into "
				"memory of the GPU");
			return got ? (ssize_t)got : r->code;
		}
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
