/* See send.h: cuts frames into pieces (see rdma.c), posts pieces as work requests, and tells
 * which bytes are done. Only the owner's thread calls it. */
#include "links/rdma/send.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "links/rdma/region.h"

/* A READ costs a round trip more than a WRITE, and saves the peer a copy. */
#define OFFER_MIN (UINT32_C(32) << 10)
#define OFFER_MAX (UINT32_C(1) << 30)

/* Links call it a link_memory. */
static struct rdma_region *region_of(struct link_memory *m)
{
	return (struct rdma_region *)(void *)m;
}

/* --- posting ------------------------------------------------------------------------- */

/* Whether the peer's device has answered that @t arrived. */
static bool is_complete(const struct rdma_link *l, const struct rdma_tx *t)
{
	return l->qps[t->qp].sq_done > t->sq_index;
}

bool rdma_has_queue_room(const struct rdma_qp *q)
{
	return q->sq_posted - q->sq_done < RDMA_WINDOW + RDMA_CTL;
}

static struct rdma_piece *tx_slot(const struct rdma_link *l, uint32_t i)
{
	return (struct rdma_piece *)(void *)(l->tx_slots + (size_t)i * RDMA_SLOT_BYTES);
}

/* Fills what says how far we have read; with it the peer knows. */
static void fill_piece(struct rdma_link *l, struct rdma_piece *p)
{
	p->released = (uint32_t)l->rx_read & RDMA_SEQ_MASK;
	p->ctl_seen = l->ctl_seen;
	l->rx_told = l->rx_read;
	l->rx_ring_told = l->rx_ring_read;
	l->owes_word = false;
	l->ctl_told = l->ctl_seen;
}

static int post(struct rdma_link *l, struct rdma_qp *q, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int r;

	r = l->hub->v->post_send(q->qp, wr, &bad);
	if (r) {
		rdma_fail(l, -EIO, "a send cannot be posted: %s", strerror(r < 0 ? errno : r));
		return -EIO;
	}
	q->sq_posted++;
	return 0;
}

/* Posts a SEND of the first @bytes of a slot, its piece header included. */
static int post_slot(struct rdma_link *l, struct rdma_qp *q, uint32_t slot, uint32_t bytes,
		     uint64_t wr_id, uint32_t imm, unsigned int flags)
{
	struct ibv_sge sge = {(uintptr_t)tx_slot(l, slot), bytes, l->slot_mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags =
					 flags | (bytes <= l->inline_bytes ? IBV_SEND_INLINE : 0u),
				 .imm_data = htonl(imm)};

	return post(l, q, &wr);
}

void rdma_probe(struct rdma_link *l, struct rdma_qp *q)
{
	struct ibv_send_wr wr = {.wr_id = rdma_wr_id(RDMA_WR_PROBE, q->sq_posted),
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {l->peer.ring_addr, l->peer.ring_rkey}};

	if (!post(l, q, &wr))
		l->n_probes++;
}

int rdma_read_offer(struct rdma_link *l, const struct rdma_offer *from, struct link_memory *m,
		    void *dst)
{
	struct rdma_qp *q = &l->qps[0];
	struct ibv_sge sge = {(uintptr_t)dst, from->bytes, region_of(m)->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = rdma_wr_id(RDMA_WR_READ, q->sq_posted),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {from->addr, from->rkey}};

	return post(l, q, &wr);
}

/* Piece @t, from @sge, to @ring_at of the ring. */
static int post_write(struct rdma_link *l, const struct rdma_tx *t, struct ibv_sge *sge,
		      uint32_t ring_at)
{
	struct rdma_qp *q = &l->qps[t->qp];
	struct ibv_send_wr wr = {.wr_id = rdma_wr_id(RDMA_WR_DATA, q->sq_posted),
				 .sg_list = sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
				 .imm_data = htonl((uint32_t)l->tx_next & RDMA_SEQ_MASK),
				 .wr.rdma = {l->peer.ring_addr + ring_at, l->peer.ring_rkey}};

	return post(l, q, &wr);
}

/* --- the stream into pieces -------------------------------------------------------------- */

/* The entry of the next piece; NULL: it must wait. */
static struct rdma_tx *next_piece(struct rdma_link *l)
{
	uint32_t qp = (uint32_t)(l->tx_next % l->n_qps);

	if (l->tx_next - l->tx_freed >= l->tx_window || !rdma_has_queue_room(&l->qps[qp]))
		return NULL;
	l->tx[l->tx_next % RDMA_WINDOW] = (struct rdma_tx){
		.qp = (uint8_t)qp,
		.sq_index = l->qps[qp].sq_posted,
		.ring_end = l->tx_ring_sent,
	};
	return &l->tx[l->tx_next % RDMA_WINDOW];
}

static bool goes_by_offer(const struct rdma_link *l, const struct link_seg *s)
{
	return s->is_offered && l->reads && s->bytes >= OFFER_MIN;
}

static bool goes_by_write(const struct rdma_link *l, const struct link_seg *s)
{
	if (s->is_gpu) /* the CPU cannot copy it */
		return true;
	return s->is_lent && s->bytes > l->tx_slot_bytes - sizeof(struct rdma_piece) &&
	       (s->is_message || !(l->peer.flags & RDMA_HELLO_RING_BLIND));
}

/* Says in @sge where piece @t of lent body @s lies, and makes its length fit. */
static int find_source(struct rdma_link *l, const struct link_seg *s, struct rdma_tx *t,
		       struct ibv_sge *sge, struct err *err)
{
	const struct rdma_gpu *g = &l->lent_gpu;
	uint64_t at;
	int r;

	if (s->is_gpu) {
		at = ((uintptr_t)s->base - (uintptr_t)g->mem.base) % g->mem.bytes;
		if (sge->length > g->mem.bytes - at)
			sge->length = (uint32_t)(g->mem.bytes - at);
		sge->addr = (uintptr_t)g->mem.base + at;
		sge->lkey = g->mr->lkey;
		return 0;
	}
	if (s->memory) {
		t->region = region_of(s->memory);
		t->region->n_users++;
	} else {
		r = rdma_region_get(&l->dev->regions, s->base, s->bytes, &t->region, err);
		if (r)
			return r;
	}
	sge->addr = (uintptr_t)s->base;
	sge->lkey = t->region->mr->lkey;
	return 0;
}

static void drop_source(struct rdma_link *l, struct rdma_tx *t)
{
	if (t->region)
		rdma_region_put(&l->dev->regions, t->region, !l->link.lends_passing);
	t->region = NULL;
}

/* Part of one lent body. Return: bytes; 0: no room; negative errno. */
static ssize_t write_piece(struct rdma_link *l, const struct link_seg *s)
{
	uint32_t ring = l->peer.ring_bytes, at = (uint32_t)l->tx_ring_sent & (ring - 1);
	uint32_t room = ring - (uint32_t)(l->tx_ring_sent - l->tx_ring_freed);
	uint32_t want = rdma_least(s->bytes < ring / 8 ? (uint32_t)s->bytes : ring / 8, ring - at);
	struct ibv_sge sge = {.length = want};
	struct rdma_tx *t = next_piece(l);
	struct err err;
	int r;

	if (!t || room < want)
		return 0;
	r = find_source(l, s, t, &sge, &err);
	if (r) {
		rdma_fail(l, r, "%s", err.text);
		return r;
	}
	t->bytes = sge.length;
	t->is_lent = true;
	r = post_write(l, t, &sge, at);
	if (r) {
		drop_source(l, t);
		return r;
	}
	l->tx_ring_sent += t->bytes;
	t->ring_end = l->tx_ring_sent;
	l->tx_next++;
	return (ssize_t)t->bytes;
}

/* A lent body that the peer reads, or much of it. Return: as write_piece(). */
static ssize_t offer_piece(struct rdma_link *l, const struct link_seg *s)
{
	struct ibv_sge sge = {.length = s->bytes < OFFER_MAX ? (uint32_t)s->bytes : OFFER_MAX};
	uint32_t slot = (uint32_t)(l->tx_next % RDMA_WINDOW);
	struct rdma_piece *head = tx_slot(l, slot);
	struct rdma_tx *t = next_piece(l);
	struct err err;
	int r;

	if (!t)
		return 0;
	r = find_source(l, s, t, &sge, &err);
	if (r) {
		rdma_fail(l, r, "%s", err.text);
		return r;
	}
	if (!t->region->is_readable) { /* registered before there was such a peer */
		drop_source(l, t);
		return write_piece(l, s);
	}
	fill_piece(l, head);
	head->released |= RDMA_OFFER_FLAG;
	memcpy(head + 1, &(struct rdma_offer){(uintptr_t)s->base, t->region->mr->rkey, sge.length},
	       sizeof(struct rdma_offer));
	r = post_slot(l, &l->qps[t->qp], slot, sizeof(*head) + sizeof(struct rdma_offer),
		      rdma_wr_id(RDMA_WR_DATA, t->sq_index), (uint32_t)l->tx_next & RDMA_SEQ_MASK,
		      IBV_SEND_SOLICITED | IBV_SEND_SIGNALED);
	if (r) {
		drop_source(l, t);
		return r;
	}
	t->bytes = sge.length;
	t->is_lent = t->is_offered = true;
	l->tx_offered = ++l->tx_next;
	return (ssize_t)t->bytes;
}

/* As much as a slot takes, up to the next body that goes by WRITE. */
static ssize_t send_piece(struct rdma_link *l, const struct link_seg *s, int n_seg)
{
	uint32_t most = l->tx_slot_bytes - (uint32_t)sizeof(struct rdma_piece), used = 0, part;
	struct rdma_tx *t = next_piece(l);
	uint32_t slot = (uint32_t)(l->tx_next % RDMA_WINDOW);
	unsigned int flags = IBV_SEND_SOLICITED;
	uint8_t *to;
	int i, r;

	if (!t)
		return 0;
	to = (uint8_t *)(tx_slot(l, slot) + 1);
	for (i = 0; i < n_seg && used < most; i++) {
		if (goes_by_write(l, &s[i])) {
			flags = 0; /* the body wakes the peer */
			break;
		}
		part = s[i].bytes < most - used ? (uint32_t)s[i].bytes : most - used;
		memcpy(to + used, s[i].base, part);
		used += part;
	}
	/* so that entries come back: a completion says that all before it are done */
	if (l->tx_next / l->n_qps % (RDMA_WINDOW / 8) == 0)
		flags |= IBV_SEND_SIGNALED;
	t->bytes = used;
	fill_piece(l, tx_slot(l, slot));
	r = post_slot(l, &l->qps[t->qp], slot, used + (uint32_t)sizeof(struct rdma_piece),
		      rdma_wr_id(RDMA_WR_DATA, t->sq_index), (uint32_t)l->tx_next & RDMA_SEQ_MASK,
		      flags);
	if (r)
		return r;
	l->tx_next++;
	return used;
}

ssize_t rdma_post(struct link *base, struct link_seg *s, int n_seg)
{
	struct rdma_link *l = rdma_of(base);
	ssize_t total = 0, n, left;

	if (l->state == RDMA_ENDED)
		return -EPIPE;
	l->is_blocked = l->state != RDMA_UP;
	while (n_seg && l->state == RDMA_UP) {
		n = goes_by_offer(l, s)   ? offer_piece(l, s)
		    : goes_by_write(l, s) ? write_piece(l, s)
					  : send_piece(l, s, n_seg);
		if (n <= 0) {
			l->is_blocked = true;
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

/* Lent bytes are done when complete, offered ones when the peer has read them, copied ones at once;
 * always in order. */
uint64_t rdma_done(struct link *base)
{
	struct rdma_link *l = rdma_of(base);
	uint64_t bytes = 0;
	struct rdma_tx *t;

	for (; l->tx_done < l->tx_next; l->tx_done++) {
		t = &l->tx[l->tx_done % RDMA_WINDOW];
		if (t->is_offered ? l->tx_done >= l->tx_released : t->is_lent && !is_complete(l, t))
			break;
		drop_source(l, t);
		bytes += t->bytes;
	}
	for (; l->tx_freed < l->tx_done && l->tx_freed < l->tx_released; l->tx_freed++)
		if (!is_complete(l, &l->tx[l->tx_freed % RDMA_WINDOW]))
			break;
	return bytes;
}

int rdma_register(struct link *base, const void *p, uint64_t bytes, struct link_memory **ret,
		  struct err *err)
{
	struct rdma_link *l = rdma_of(base);
	struct rdma_region *g;
	int r;

	if (!l->dev)
		return err_set(err, EPIPE, "the link is not connected");
	r = rdma_region_own(&l->dev->regions, p, bytes, &g, err);
	if (!r)
		*ret = (struct link_memory *)(void *)g;
	return r;
}

void rdma_unregister(struct link *base, struct link_memory *m)
{
	struct rdma_link *l = rdma_of(base);

	rdma_region_put(&l->dev->regions, region_of(m), false);
}

int rdma_lend_gpu(struct link *base, const struct link_gpu *gpu, uint64_t bytes, struct err *err)
{
	struct rdma_link *l = rdma_of(base);
	int r;

	if (!l->dev)
		return err_set(err, EPIPE, "the link is not connected");
	l->lent_gpu.from = gpu;
	r = rdma_gpu_get(&l->lent_gpu, l->hub->v, l->dev->pd, bytes, IBV_ACCESS_LOCAL_WRITE, err);
	if (!r)
		base->lent_gpu = l->lent_gpu.mem.base;
	return r;
}

/* --- words without data ----------------------------------------------------------------- */

/* Tells the peer how far we have read, when it may need to know. That is always possible when it
 * matters. Proof: an end that has no control SEND left has sent RDMA_CTL of them since the peer's
 * last word, so the peer owes it one. The peer has one left, unless it has sent RDMA_CTL since our
 * last word, which is older than those. Half of RDMA_CTL control SENDs are answered by one, so two
 * idle ends fall silent. */
void rdma_tell(struct rdma_link *l)
{
	uint32_t slot;

	if (l->state != RDMA_UP || l->ctl_sent - l->ctl_acked >= RDMA_CTL ||
	    !rdma_has_queue_room(&l->qps[0]))
		return;
	if (!l->owes_word && l->rx_read - l->rx_told < RDMA_WINDOW / 4 &&
	    l->rx_ring_read - l->rx_ring_told < l->hub->options.ring_bytes / 4 &&
	    l->ctl_seen - l->ctl_told < RDMA_CTL / 2)
		return;
	slot = RDMA_WINDOW + l->ctl_sent % RDMA_CTL;
	fill_piece(l, tx_slot(l, slot));
	if (!post_slot(l, &l->qps[0], slot, sizeof(struct rdma_piece),
		       rdma_wr_id(RDMA_WR_CTL, l->qps[0].sq_posted), RDMA_CTL_FLAG,
		       IBV_SEND_SOLICITED | IBV_SEND_SIGNALED))
		l->ctl_sent++;
}
