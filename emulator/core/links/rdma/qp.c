/* The memory and the queue pairs of an rdma link.
 *
 * Memory: one area, registered twice: the ring, which alone the peer may write, and
 * the slots of SENDs. The ring may be memory of a GPU (rdma-gpu.c), which nobody here reads. A
 * queue pair has a receive for each piece that the window lets the peer send over it, and the first
 * one those of control SENDs: so none is ever missing. */
#include "links/rdma/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SQ_SLACK 16 /* probes and such */

static uint32_t slots_of(const struct rdma_link *r, uint32_t qp)
{
	return RDMA_WINDOW / r->n_qps + (RDMA_WINDOW % r->n_qps != 0) + (qp ? 0 : RDMA_CTL);
}

static uint32_t slots_before(const struct rdma_link *r, uint32_t qp)
{
	return qp ? slots_of(r, 0) + (qp - 1) * slots_of(r, 1) : 0;
}

static uint32_t send_depth(void)
{
	return RDMA_WINDOW + RDMA_CTL + SQ_SLACK;
}

static uint32_t completions(const struct rdma_link *r)
{
	return r->n_qps * send_depth() + slots_before(r, r->n_qps);
}

/* --- memory ------------------------------------------------------------------------- */

static int make_memory(struct rdma_link *r, struct err *err)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const struct verbs *v = r->hub->v;
	size_t ring = r->hub->options.ring_bytes, in_area = r->ring_gpu.from ? 0 : ring, slots;
	int rc;

	r->n_rx_slots = slots_before(r, r->n_qps);
	slots = (size_t)(r->n_rx_slots + RDMA_WINDOW + RDMA_CTL) * RDMA_SLOT_BYTES;
	r->area_bytes = in_area + slots;
	r->area = mmap(NULL, r->area_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (r->area == MAP_FAILED) {
		r->area = NULL;
		return err_set(err, ENOMEM, "no memory for the ring of an rdma link");
	}
	r->ring = r->area;
	r->rx_slots = r->ring + in_area;
	r->tx_slots = r->rx_slots + (size_t)r->n_rx_slots * RDMA_SLOT_BYTES;
	if (r->ring_gpu.from) {
		rc = rdma_gpu_get(&r->ring_gpu, v, r->dev->pd, ring, access, err);
		if (rc)
			return rc;
		r->ring = r->ring_gpu.mem.base;
	} else {
		r->ring_mr = v->reg_mr(r->dev->pd, r->ring, ring, access);
		if (!r->ring_mr)
			return rdma_memory_error(err, errno, ring);
	}
	r->slot_mr = v->reg_mr(r->dev->pd, r->rx_slots, slots, IBV_ACCESS_LOCAL_WRITE);
	return r->slot_mr ? 0 : rdma_memory_error(err, errno, slots);
}

static void dereg(struct rdma_link *r, struct ibv_mr **mr)
{
	if (*mr)
		r->hub->v->dereg_mr(*mr);
	*mr = NULL;
}

/* --- queue pairs ---------------------------------------------------------------------- */

static int make_qp(struct rdma_link *r, uint32_t i, struct err *err)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = r->dev->cq,
		.recv_cq = r->dev->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = send_depth(),
			.max_recv_wr = slots_of(r, i),
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = r->hub->options.inline_bytes},
	};
	struct rdma_qp *q = &r->qps[i];

	q->link = r;
	q->index = i;
	q->qp = r->hub->v->create_qp(r->dev->pd, &attr);
	if (!q->qp && attr.cap.max_inline_data) {
		/* more than the device can: then nothing inline */
		attr.cap.max_inline_data = 0;
		q->qp = r->hub->v->create_qp(r->dev->pd, &attr);
	}
	if (!q->qp && errno == ENOMEM)
		return rdma_memory_error(err, ENOMEM, (size_t)send_depth() * 256);
	if (!q->qp)
		return err_set(err, errno, "device %s gives no queue pair: %s", r->dev->name,
			       strerror(errno));
	if (i == 0 || attr.cap.max_inline_data < r->inline_bytes)
		r->inline_bytes = attr.cap.max_inline_data;
	rdma_dev_add_qp(r->dev, q);
	return 0;
}

static int modify(struct rdma_link *r, struct rdma_qp *q, struct ibv_qp_attr *attr, int mask,
		  const char *state, struct err *err)
{
	int rc = r->hub->v->modify_qp(q->qp, attr, mask);

	if (!rc)
		return 0;
	rc = rc < 0 ? errno : rc;
	return err_set(err, rc, "device %s: a queue pair cannot be made %s: %s", r->dev->name,
		       state, strerror(rc));
}

static int get_attr(struct rdma_link *r, enum ibv_qp_state state, struct ibv_qp_attr *ret,
		    int *ret_mask, struct err *err)
{
	memset(ret, 0, sizeof(*ret));
	ret->qp_state = state;
	if (!r->hub->v->cm_init_qp_attr(r->id, ret, ret_mask))
		return 0;
	return err_set(err, errno, "device %s: the connection manager gives no attributes: %s",
		       r->dev->name, strerror(errno));
}

int rdma_repost(struct rdma_link *r, uint16_t slot)
{
	struct ibv_sge sge = {(uintptr_t)r->rx_slots + (size_t)slot * RDMA_SLOT_BYTES,
			      RDMA_SLOT_BYTES, r->slot_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = rdma_wr_id(RDMA_WR_RECV, slot),
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;
	uint32_t qp = 0;

	while (slot >= slots_before(r, qp + 1))
		qp++;
	if (!r->qps[qp].qp)
		return -EPIPE;
	if (!r->hub->v->post_recv(r->qps[qp].qp, &wr, &bad))
		return 0;
	rdma_fail(r, -EIO, "a receive cannot be posted: %s", strerror(errno));
	return -EIO;
}

int rdma_link_setup(struct rdma_link *r, struct err *err)
{
	struct ibv_qp_attr attr;
	int mask = 0, rc;
	uint32_t i;

	r->port = r->id->port_num;
	rc = rdma_hub_device(r->hub, r->id->verbs, completions(r), &r->dev, err);
	if (!rc)
		rc = make_memory(r, err);
	for (i = 0; i < r->n_qps && !rc; i++)
		rc = make_qp(r, i, err);
	if (!rc)
		rc = get_attr(r, IBV_QPS_INIT, &attr, &mask, err);
	if (rc)
		return rc;
	attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	for (i = 0; i < r->n_qps && !rc; i++)
		rc = modify(r, &r->qps[i], &attr, mask | IBV_QP_ACCESS_FLAGS, "ready (INIT)", err);
	for (i = 0; i < r->n_rx_slots && !rc; i++)
		if (rdma_repost(r, (uint16_t)i))
			rc = err_set(err, EIO, "%s", r->why);
	return rc;
}

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	return bytes >= 4096   ? IBV_MTU_4096
	       : bytes >= 2048 ? IBV_MTU_2048
	       : bytes >= 1024 ? IBV_MTU_1024
	       : bytes >= 512  ? IBV_MTU_512
			       : IBV_MTU_256;
}

/* The connection manager takes a GID of the address; of one address there may be several (RoCE v1
 * and v2). Whoever chose an index gets that one or an error, never another. Inside a subnet of
 * InfiniBand none is used. */
static int use_gid(struct rdma_link *r, struct ibv_ah_attr *ah, struct err *err)
{
	int want = r->hub->options.gid_index, is = ah->grh.sgid_index;
	union ibv_gid theirs, ours;

	if (want < 0 || !ah->is_global || is == want)
		return 0;
	if (r->hub->v->query_gid(r->dev->ctx, (uint8_t)r->port, is, &theirs) ||
	    r->hub->v->query_gid(r->dev->ctx, (uint8_t)r->port, want, &ours) ||
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
static int to_rtr(struct rdma_link *r, struct err *err)
{
	const struct rdma_options *o = &r->hub->options;
	struct ibv_qp_attr attr;
	int mask = 0, rc = get_attr(r, IBV_QPS_RTR, &attr, &mask, err);

	if (o->mtu && mtu_of(o->mtu) < attr.path_mtu)
		attr.path_mtu = mtu_of(o->mtu);
	if (o->traffic_class >= 0)
		attr.ah_attr.grh.traffic_class = (uint8_t)o->traffic_class;
	rc = rc ? rc : use_gid(r, &attr.ah_attr, err);
	attr.min_rnr_timer = 12; /* 0.64 ms; only a broken peer meets it */
	for (uint32_t i = 0; i < r->n_qps && !rc; i++) {
		attr.dest_qp_num = r->peer.qpn[i];
		rc = modify(r, &r->qps[i], &attr, mask | IBV_QP_MIN_RNR_TIMER | IBV_QP_DEST_QPN,
			    "ready to receive (RTR)", err);
	}
	return rc;
}

int rdma_link_to_rts(struct rdma_link *r, struct err *err)
{
	const struct rdma_options *o = &r->hub->options;
	struct ibv_qp_attr attr;
	int mask = 0, rc = to_rtr(r, err);

	rc = rc ? rc : get_attr(r, IBV_QPS_RTS, &attr, &mask, err);
	if (rc)
		return rc;
	attr.timeout = (uint8_t)o->timeout;
	attr.retry_cnt = (uint8_t)o->retry_count;
	attr.rnr_retry = 6; /* 7 would be for ever */
	mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	for (uint32_t i = 0; i < r->n_qps && !rc; i++)
		rc = modify(r, &r->qps[i], &attr, mask, "ready to send (RTS)", err);
	return rc;
}

void rdma_link_unset(struct rdma_link *r)
{
	rdma_drop_qps(r);
	for (uint64_t seq = r->tx_done; seq < r->tx_next; seq++) {
		struct rdma_tx *t = &r->tx[seq % RDMA_WINDOW];

		if (t->region)
			rdma_region_put(&r->dev->regions, t->region, !r->link.lends_passing);
		t->region = NULL;
	}
	rdma_gpu_put(&r->ring_gpu, r->hub->v);
	rdma_gpu_put(&r->lent_gpu, r->hub->v);
	dereg(r, &r->ring_mr);
	dereg(r, &r->slot_mr);
	if (r->area)
		munmap(r->area, r->area_bytes);
	r->area = NULL;
	if (r->dev)
		r->dev->cq_used -= completions(r);
	r->dev = NULL;
}

void rdma_link_hello(const struct rdma_link *r, struct rdma_hello *ret)
{
	*ret = (struct rdma_hello){
		.magic = RDMA_HELLO_MAGIC,
		.version = RDMA_HELLO_VERSION,
		.n_qps = (uint8_t)r->n_qps,
		.ring_addr = (uintptr_t)r->ring,
		.flags = r->ring_gpu.from ? RDMA_HELLO_RING_BLIND : 0,
		.ring_rkey = r->ring_gpu.from ? r->ring_gpu.mr->rkey : r->ring_mr->rkey,
		.ring_bytes = r->hub->options.ring_bytes,
		.window = RDMA_WINDOW,
		.slot_bytes = RDMA_SLOT_BYTES,
	};
	for (uint32_t i = 0; i < r->n_qps; i++)
		ret->qpn[i] = r->qps[i].qp->qp_num;
}
