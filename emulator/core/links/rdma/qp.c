/* See qp.h.
 *
 * The memory is one area, registered twice: the ring, which alone the peer may write, and the
 * slots of SENDs. The ring may lie in memory of a GPU (gpu.h), which the CPU never reads. Each
 * queue pair has a receive for each piece that the window lets the peer send over it; the first
 * one also has those of control SENDs. So a receive is never missing. */
#include "links/rdma/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SQ_SLACK 16 /* probes and such */

static uint32_t slots_of(const struct rdma_link *l, uint32_t qp)
{
	return RDMA_WINDOW / l->n_qps + (RDMA_WINDOW % l->n_qps != 0) + (qp ? 0 : RDMA_CTL);
}

static uint32_t slots_before(const struct rdma_link *l, uint32_t qp)
{
	return qp ? slots_of(l, 0) + (qp - 1) * slots_of(l, 1) : 0;
}

static uint32_t send_depth(void)
{
	return RDMA_WINDOW + RDMA_CTL + SQ_SLACK;
}

static uint32_t completions(const struct rdma_link *l)
{
	return l->n_qps * send_depth() + slots_before(l, l->n_qps);
}

/* --- memory ------------------------------------------------------------------------- */

static int make_memory(struct rdma_link *l, struct err *err)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const struct verbs *v = l->hub->v;
	size_t ring = l->hub->options.ring_bytes, in_area = l->ring_gpu.from ? 0 : ring, slots;
	int r;

	l->n_rx_slots = slots_before(l, l->n_qps);
	slots = (size_t)(l->n_rx_slots + RDMA_WINDOW + RDMA_CTL) * RDMA_SLOT_BYTES;
	l->area_bytes = in_area + slots;
	l->area = mmap(NULL, l->area_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (l->area == MAP_FAILED) {
		l->area = NULL;
		return err_set(err, ENOMEM, "no memory for the ring of an rdma link");
	}
	l->ring = l->area;
	l->rx_slots = l->ring + in_area;
	l->tx_slots = l->rx_slots + (size_t)l->n_rx_slots * RDMA_SLOT_BYTES;
	if (l->ring_gpu.from) {
		r = rdma_gpu_get(&l->ring_gpu, v, l->dev->pd, ring, access, err);
		if (r)
			return r;
		l->ring = l->ring_gpu.mem.base;
	} else {
		l->ring_mr = v->reg_mr(l->dev->pd, l->ring, ring, access);
		if (!l->ring_mr)
			return rdma_memory_error(err, errno, ring);
	}
	l->slot_mr = v->reg_mr(l->dev->pd, l->rx_slots, slots, IBV_ACCESS_LOCAL_WRITE);
	return l->slot_mr ? 0 : rdma_memory_error(err, errno, slots);
}

static void dereg(struct rdma_link *l, struct ibv_mr **mr)
{
	if (*mr)
		l->hub->v->dereg_mr(*mr);
	*mr = NULL;
}

/* --- queue pairs ---------------------------------------------------------------------- */

static int make_qp(struct rdma_link *l, uint32_t i, struct err *err)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = l->dev->cq,
		.recv_cq = l->dev->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = send_depth(),
			.max_recv_wr = slots_of(l, i),
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = l->hub->options.inline_bytes},
	};
	struct rdma_qp *q = &l->qps[i];

	q->link = l;
	q->index = i;
	q->qp = l->hub->v->create_qp(l->dev->pd, &attr);
	if (!q->qp && attr.cap.max_inline_data) {
		/* too much for the device: send nothing inline */
		attr.cap.max_inline_data = 0;
		q->qp = l->hub->v->create_qp(l->dev->pd, &attr);
	}
	if (!q->qp && errno == ENOMEM)
		return rdma_memory_error(err, ENOMEM, (size_t)send_depth() * 256);
	if (!q->qp)
		return err_set(err, errno, "device %s gives no queue pair: %s", l->dev->name,
			       strerror(errno));
	if (i == 0 || attr.cap.max_inline_data < l->inline_bytes)
		l->inline_bytes = attr.cap.max_inline_data;
	rdma_dev_add_qp(l->dev, q);
	return 0;
}

static int modify(struct rdma_link *l, struct rdma_qp *q, struct ibv_qp_attr *attr, int mask,
		  const char *state, struct err *err)
{
	int r = l->hub->v->modify_qp(q->qp, attr, mask);

	if (!r)
		return 0;
	r = r < 0 ? errno : r;
	return err_set(err, r, "device %s: a queue pair cannot be made %s: %s", l->dev->name, state,
		       strerror(r));
}

static int get_attr(struct rdma_link *l, enum ibv_qp_state state, struct ibv_qp_attr *ret,
		    int *ret_mask, struct err *err)
{
	memset(ret, 0, sizeof(*ret));
	ret->qp_state = state;
	if (!l->hub->v->cm_init_qp_attr(l->id, ret, ret_mask))
		return 0;
	return err_set(err, errno, "device %s: the connection manager gives no attributes: %s",
		       l->dev->name, strerror(errno));
}

int rdma_repost(struct rdma_link *l, uint16_t slot)
{
	struct ibv_sge sge = {(uintptr_t)l->rx_slots + (size_t)slot * RDMA_SLOT_BYTES,
			      RDMA_SLOT_BYTES, l->slot_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = rdma_wr_id(RDMA_WR_RECV, slot),
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;
	uint32_t qp = 0;

	while (slot >= slots_before(l, qp + 1))
		qp++;
	if (!l->qps[qp].qp)
		return -EPIPE;
	if (!l->hub->v->post_recv(l->qps[qp].qp, &wr, &bad))
		return 0;
	rdma_fail(l, -EIO, "a receive cannot be posted: %s", strerror(errno));
	return -EIO;
}

int rdma_link_setup(struct rdma_link *l, struct err *err)
{
	struct ibv_qp_attr attr;
	int mask = 0, r;
	uint32_t i;

	l->port = l->id->port_num;
	r = rdma_hub_device(l->hub, l->id->verbs, completions(l), &l->dev, err);
	if (!r)
		r = make_memory(l, err);
	for (i = 0; i < l->n_qps && !r; i++)
		r = make_qp(l, i, err);
	if (!r)
		r = get_attr(l, IBV_QPS_INIT, &attr, &mask, err);
	if (r)
		return r;
	attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       (l->dev->can_read ? IBV_ACCESS_REMOTE_READ : 0);
	for (i = 0; i < l->n_qps && !r; i++)
		r = modify(l, &l->qps[i], &attr, mask | IBV_QP_ACCESS_FLAGS, "ready (INIT)", err);
	for (i = 0; i < l->n_rx_slots && !r; i++)
		if (rdma_repost(l, (uint16_t)i))
			r = err_set(err, EIO, "%s", l->why);
	return r;
}

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	return bytes >= 4096   ? IBV_MTU_4096
	       : bytes >= 2048 ? IBV_MTU_2048
	       : bytes >= 1024 ? IBV_MTU_1024
	       : bytes >= 512  ? IBV_MTU_512
			       : IBV_MTU_256;
}

/* The connection manager takes a GID of the address, which may have several (RoCE v1 and v2). A
 * user who chose an index gets that GID or an error. Inside a subnet of InfiniBand no GID is used.
 */
static int use_gid(struct rdma_link *l, struct ibv_ah_attr *ah, struct err *err)
{
	int want = l->hub->options.gid_index, is = ah->grh.sgid_index;
	union ibv_gid theirs, ours;

	if (want < 0 || !ah->is_global || is == want)
		return 0;
	if (l->hub->v->query_gid(l->dev->ctx, (uint8_t)l->port, is, &theirs) ||
	    l->hub->v->query_gid(l->dev->ctx, (uint8_t)l->port, want, &ours) ||
	    memcmp(&theirs, &ours, sizeof(ours)) != 0)
		return err_set(
			err, EADDRNOTAVAIL,
			"GID %d was asked for (NBOX_IB_GID_INDEX), and the connection is over GID %d, "
			"which is another address; `nbox doctor` lists them",
			want, is);
	ah->grh.sgid_index = (uint8_t)want;
	return 0;
}

/* All queue pairs of a link use the path that the connection manager found for one;
 * they differ in their numbers only. */
static int to_rtr(struct rdma_link *l, struct err *err)
{
	const struct rdma_options *o = &l->hub->options;
	struct ibv_qp_attr attr;
	int mask = 0, r = get_attr(l, IBV_QPS_RTR, &attr, &mask, err);

	if (o->mtu && mtu_of(o->mtu) < attr.path_mtu)
		attr.path_mtu = mtu_of(o->mtu);
	if (o->traffic_class >= 0)
		attr.ah_attr.grh.traffic_class = (uint8_t)o->traffic_class;
	r = r ? r : use_gid(l, &attr.ah_attr, err);
	l->reads = l->dev->can_read && (l->peer.flags & RDMA_HELLO_READS);
	if (l->reads)
		l->dev->regions.access |= IBV_ACCESS_REMOTE_READ;
	attr.max_dest_rd_atomic = l->reads; /* one READ at a time */
	attr.min_rnr_timer = 12;            /* 0.64 ms; only a broken peer meets it */
	for (uint32_t i = 0; i < l->n_qps && !r; i++) {
		attr.dest_qp_num = l->peer.qpn[i];
		r = modify(l, &l->qps[i], &attr, mask | IBV_QP_MIN_RNR_TIMER | IBV_QP_DEST_QPN,
			   "ready to receive (RTR)", err);
	}
	return r;
}

int rdma_link_to_rts(struct rdma_link *l, struct err *err)
{
	const struct rdma_options *o = &l->hub->options;
	struct ibv_qp_attr attr;
	int mask = 0, r = to_rtr(l, err);

	r = r ? r : get_attr(l, IBV_QPS_RTS, &attr, &mask, err);
	if (r)
		return r;
	attr.max_rd_atomic = l->reads;
	attr.timeout = (uint8_t)o->timeout;
	attr.retry_cnt = (uint8_t)o->retry_count;
	attr.rnr_retry = 6; /* 7 would be for ever */
	mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	for (uint32_t i = 0; i < l->n_qps && !r; i++)
		r = modify(l, &l->qps[i], &attr, mask, "ready to send (RTS)", err);
	return r;
}

void rdma_link_unset(struct rdma_link *l)
{
	rdma_drop_qps(l);
	for (uint64_t seq = l->tx_done; seq < l->tx_next; seq++) {
		struct rdma_tx *t = &l->tx[seq % RDMA_WINDOW];

		if (t->region)
			rdma_region_put(&l->dev->regions, t->region, !l->link.lends_passing);
		t->region = NULL;
	}
	rdma_gpu_put(&l->ring_gpu, l->hub->v);
	rdma_gpu_put(&l->lent_gpu, l->hub->v);
	dereg(l, &l->ring_mr);
	dereg(l, &l->slot_mr);
	if (l->area)
		munmap(l->area, l->area_bytes);
	l->area = NULL;
	if (l->dev)
		l->dev->cq_used -= completions(l);
	l->dev = NULL;
}

void rdma_link_hello(const struct rdma_link *l, struct rdma_hello *ret)
{
	*ret = (struct rdma_hello){
		.magic = RDMA_HELLO_MAGIC,
		.version = RDMA_HELLO_VERSION,
		.n_qps = (uint8_t)l->n_qps,
		.ring_addr = (uintptr_t)l->ring,
		.flags = (l->ring_gpu.from ? RDMA_HELLO_RING_BLIND : 0) |
			 (l->dev->can_read ? RDMA_HELLO_READS : 0),
		.ring_rkey = l->ring_gpu.from ? l->ring_gpu.mr->rkey : l->ring_mr->rkey,
		.ring_bytes = l->hub->options.ring_bytes,
		.window = RDMA_WINDOW,
		.slot_bytes = RDMA_SLOT_BYTES,
	};
	for (uint32_t i = 0; i < l->n_qps; i++)
		ret->qpn[i] = l->qps[i].qp->qp_num;
}
