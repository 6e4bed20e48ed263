/* The sending side of an rdma link: frames into pieces (see rdma.c), pieces into work
 * requests, and what is done of them. A piece is kept until the peer has read it: the
 * connection may have to be made again. Of the owner's thread only. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "links/rdma/private.h"

/* --- posting ------------------------------------------------------------------------- */

bool rdma_is_complete(const struct rdma_link *r, const struct rdma_tx *t)
{
	return t->is_over || r->qps[t->qp].sq_done > t->sq_index;
}

bool rdma_has_queue_room(const struct rdma_qp *q)
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
				 .send_flags =
					 flags | (bytes <= r->inline_bytes ? IBV_SEND_INLINE : 0u),
				 .imm_data = htonl(imm)};

	return post(r, q, &wr);
}

void rdma_probe(struct rdma_link *r, struct rdma_qp *q)
{
	struct ibv_send_wr wr = {.wr_id = rdma_wr_id(RDMA_WR_PROBE, q->sq_posted),
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {r->peer.ring_addr, r->peer.ring_rkey}};

	if (!post(r, q, &wr))
		r->n_probes++;
}

static int post_write(struct rdma_link *r, const struct rdma_tx *t, uint32_t seq)
{
	struct rdma_qp *q = &r->qps[t->qp];
	struct ibv_sge sge = {(uintptr_t)t->src, t->bytes, t->lkey};
	struct ibv_send_wr wr = {.wr_id = rdma_wr_id(RDMA_WR_DATA, q->sq_posted),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
				 .imm_data = htonl(seq & RDMA_SEQ_MASK),
				 .wr.rdma = {r->peer.ring_addr + t->ring_at, r->peer.ring_rkey}};

	return post(r, q, &wr);
}

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

	if (r->tx_next - r->tx_freed >= r->tx_window || !rdma_has_queue_room(&r->qps[qp]))
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
	if (s->is_gpu) /* nobody here could copy it */
		return true;
	return s->is_lent && s->bytes > r->tx_slot_bytes - sizeof(struct rdma_piece) &&
	       (s->is_message || !(r->peer.flags & RDMA_HELLO_RING_BLIND));
}

/* Says where piece @t of lent body @s lies, and makes *@want fit. */
static int find_source(struct rdma_link *r, const struct link_seg *s, struct rdma_tx *t,
		       uint32_t *want, struct err *err)
{
	const struct rdma_gpu *g = &r->lent_gpu;
	uint64_t at;
	int rc;

	if (s->is_gpu) {
		at = ((uintptr_t)s->base - (uintptr_t)g->mem.base) % g->mem.bytes;
		if (*want > g->mem.bytes - at)
			*want = (uint32_t)(g->mem.bytes - at);
		t->src = (const char *)g->mem.base + at;
		t->lkey = g->mr->lkey;
		return 0;
	}
	rc = rdma_region_get(r->dev, s->base, s->bytes, &t->region, err);
	if (rc)
		return rc;
	t->src = s->base;
	t->lkey = t->region->mr->lkey;
	return 0;
}

static void drop_source(struct rdma_link *r, struct rdma_tx *t)
{
	if (t->region)
		rdma_region_put(r, t->region);
	t->region = NULL;
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

	want = rdma_least(want, ring - at);
	if (!t || room < want)
		return 0;
	rc = find_source(r, s, t, &want, &err);
	if (rc) {
		rdma_fail(r, rc, "%s", err.text);
		return rc;
	}
	t->bytes = want;
	t->is_lent = t->is_write = true;
	t->ring_at = at;
	rc = post_write(r, t, (uint32_t)r->tx_next);
	if (rc) {
		drop_source(r, t);
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

ssize_t rdma_post(struct link *l, struct link_seg *s, int n_seg)
{
	struct rdma_link *r = rdma_of(l);
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
uint64_t rdma_done(struct link *l)
{
	struct rdma_link *r = rdma_of(l);
	uint64_t bytes = 0;
	struct rdma_tx *t;

	for (; r->tx_done < r->tx_next; r->tx_done++) {
		t = &r->tx[r->tx_done % RDMA_WINDOW];
		if ((t->is_lent || keeps_all(r)) && !rdma_is_complete(r, t))
			break;
		drop_source(r, t);
		bytes += t->bytes;
	}
	for (; r->tx_freed < r->tx_done && r->tx_freed < r->tx_released; r->tx_freed++)
		if (!rdma_is_complete(r, &r->tx[r->tx_freed % RDMA_WINDOW]))
			break;
	return bytes;
}

/* --- words without data ----------------------------------------------------------------- */

/* A SEND that carries no data: with @flags, and what we have read. */
static int post_control(struct rdma_link *r, uint32_t slot, uint32_t flags)
{
	fill_piece(r, tx_slot(r, slot));
	return post_slot(r, &r->qps[0], slot, sizeof(struct rdma_piece),
			 rdma_wr_id(RDMA_WR_CTL, r->qps[0].sq_posted), RDMA_CTL_FLAG | flags,
			 IBV_SEND_SOLICITED | IBV_SEND_SIGNALED);
}

/* Says how far we have read when the peer may need to know. It may always be said when
 * it is worth something: an end that has no control SEND left has sent RDMA_CTL since the
 * peer's last word, so the peer owes it one, and has one left itself, unless it too has
 * sent RDMA_CTL since our last word, which is older than those. Half of RDMA_CTL control
 * SENDs are answered by one, so two idle ends fall silent. */
void rdma_tell(struct rdma_link *r)
{
	if (r->state != RDMA_UP || r->ctl_sent - r->ctl_acked >= RDMA_CTL ||
	    !rdma_has_queue_room(&r->qps[0]))
		return;
	if (r->rx_read - r->rx_told < RDMA_WINDOW / 4 &&
	    r->rx_ring_read - r->rx_ring_told < r->hub->options.ring_bytes / 4 &&
	    r->ctl_seen - r->ctl_told < RDMA_CTL / 2)
		return;
	if (!post_control(r, RDMA_WINDOW + r->ctl_sent % RDMA_CTL, 0))
		r->ctl_sent++;
}

void rdma_bye(struct rdma_link *r)
{
	post_control(r, RDMA_WINDOW + RDMA_CTL, RDMA_CTL_BYE);
}
