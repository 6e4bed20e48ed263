/* Fake queue pairs and the wire between them. A work request is carried out when it is posted, or
 * fails as fake_faults says. See fake-verbs.h. */
#include "fake-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define QPS 256
#define RECVS 2048

struct held {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	unsigned char bytes[8192]; /* inline and sent slots may change */
};

struct pair {
	struct ibv_qp qp;
	uint32_t dest, inline_most;
	uint8_t reads, is_read_from; /* at once */
	unsigned int place; /* n-th of its owner's, as far as the fake can tell: by number */
	struct ibv_recv_wr recv[RECVS];
	struct ibv_sge recv_sge[RECVS];
	uint64_t recv_head, recv_tail;
	uint32_t send_most, recv_most;
	struct held held[128];
	unsigned int n_held;
};

static struct pair *pairs[QPS];
static uint32_t next_qp;
unsigned int fake_n_rnr;
struct fake_seen fake_seen;

static struct pair *find_pair(uint32_t number)
{
	struct pair *p = pairs[number % QPS];

	return p && p->qp.qp_num == number ? p : NULL;
}

struct ibv_qp *fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct pair *p;
	uint32_t most = fake_faults.inline_most ? fake_faults.inline_most : 512;

	if (fake_faults.create_qp_errno || a->cap.max_inline_data > most) {
		errno = fake_faults.create_qp_errno ? fake_faults.create_qp_errno : EINVAL;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	pthread_mutex_lock(&fake_lock);
	do
		next_qp++;
	while (pairs[next_qp % QPS] || next_qp % QPS == 0);
	p->qp = (struct ibv_qp){.context = pd->context,
				.pd = pd,
				.send_cq = a->send_cq,
				.recv_cq = a->recv_cq,
				.qp_num = next_qp};
	p->inline_most = a->cap.max_inline_data;
	fake_seen.inline_bytes = a->cap.max_inline_data;
	p->recv_most = a->cap.max_recv_wr;
	pairs[next_qp % QPS] = p;
	fake_alive++;
	pthread_mutex_unlock(&fake_lock);
	return &p->qp;
}

int fake_destroy_qp(struct ibv_qp *qp)
{
	pthread_mutex_lock(&fake_lock);
	pairs[qp->qp_num % QPS] = NULL;
	fake_alive--;
	pthread_mutex_unlock(&fake_lock);
	free(container_of(qp, struct pair, qp));
	return 0;
}

int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	struct pair *p = container_of(qp, struct pair, qp);

	pthread_mutex_lock(&fake_lock);
	if (mask & IBV_QP_STATE)
		qp->state = a->qp_state;
	if (mask & IBV_QP_DEST_QPN)
		p->dest = a->dest_qp_num;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		p->reads = a->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		p->is_read_from = a->max_dest_rd_atomic;
	if (mask & IBV_QP_PATH_MTU)
		fake_seen.mtu = a->path_mtu;
	if (mask & IBV_QP_AV)
		fake_seen.ah = a->ah_attr;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		fake_seen.rnr_timer = a->min_rnr_timer;
	if (mask & IBV_QP_TIMEOUT)
		fake_seen.timeout = a->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		fake_seen.retries = a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		fake_seen.rnr_retries = a->rnr_retry;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct pair *p = container_of(qp, struct pair, qp);

	pthread_mutex_lock(&fake_lock);
	if (p->recv_head - p->recv_tail >= p->recv_most) {
		pthread_mutex_unlock(&fake_lock);
		*bad = wr;
		return ENOMEM;
	}
	p->recv[p->recv_head % RECVS] = *wr;
	p->recv_sge[p->recv_head++ % RECVS] = wr->sg_list[0];
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* The queue pair stops: this one with its status, all that is posted is flushed. */
static void stop(struct pair *p, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {.wr_id = wr_id,
			    .status = status,
			    .qp_num = p->qp.qp_num,
			    .vendor_err = 7};

	p->qp.state = IBV_QPS_ERR;
	fake_complete(p->qp.send_cq, &wc, true);
	wc.status = IBV_WC_WR_FLUSH_ERR;
	for (; p->recv_tail != p->recv_head; p->recv_tail++) {
		wc.wr_id = p->recv[p->recv_tail % RECVS].wr_id;
		fake_complete(p->qp.recv_cq, &wc, true);
	}
}

static enum ibv_wc_status carry_out(struct pair *p, struct pair *to, const struct ibv_send_wr *wr,
				    const void *bytes, uint32_t n)
{
	bool is_send = wr->opcode == IBV_WR_SEND_WITH_IMM;
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS,
			    .byte_len = n,
			    .imm_data = wr->imm_data,
			    .wc_flags = IBV_WC_WITH_IMM};
	struct ibv_sge *sge;

	if (!to || to->qp.state < IBV_QPS_RTR || to->qp.state > IBV_QPS_SQE)
		return IBV_WC_RETRY_EXC_ERR;
	if (wr->opcode == IBV_WR_RDMA_READ) {
		if (!fake_may_touch(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, n,
				    IBV_ACCESS_REMOTE_READ) ||
		    p->reads != 1 || to->is_read_from != 1)
			return IBV_WC_REM_ACCESS_ERR;
		/* where a WRITE's bytes come from, a READ's go to */
		memcpy((void *)(uintptr_t)bytes, fake_bytes(wr->wr.rdma.remote_addr), n);
		fake_seen.n_reads++;
		return IBV_WC_SUCCESS;
	}
	if (!is_send && n &&
	    !fake_may_touch(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, n, IBV_ACCESS_REMOTE_WRITE))
		return IBV_WC_REM_ACCESS_ERR;
	if (!is_send && n)
		memcpy(fake_bytes(wr->wr.rdma.remote_addr), bytes, n);
	if (wr->opcode == IBV_WR_RDMA_WRITE)
		return IBV_WC_SUCCESS;
	if (to->recv_tail == to->recv_head) {
		fake_n_rnr++;
		return IBV_WC_RNR_RETRY_EXC_ERR;
	}
	sge = &to->recv_sge[to->recv_tail % RECVS];
	if (is_send &&
	    (n > sge->length || !fake_may_touch(sge->lkey, sge->addr, n, IBV_ACCESS_LOCAL_WRITE)))
		return IBV_WC_REM_INV_REQ_ERR;
	if (is_send)
		memcpy((void *)(uintptr_t)sge->addr, bytes, n);
	wc.wr_id = to->recv[to->recv_tail++ % RECVS].wr_id;
	wc.opcode = is_send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
	wc.qp_num = to->qp.qp_num;
	fake_complete(to->qp.recv_cq, &wc, wr->send_flags & IBV_SEND_SOLICITED);
	return IBV_WC_SUCCESS;
}

static void execute(struct pair *p, const struct ibv_send_wr *wr, const void *bytes, uint32_t n)
{
	struct ibv_wc wc = {.wr_id = wr->wr_id, .qp_num = p->qp.qp_num};
	enum ibv_wc_status s;

	if (p->qp.state == IBV_QPS_ERR) {
		wc.status = IBV_WC_WR_FLUSH_ERR;
		fake_complete(p->qp.send_cq, &wc, true);
		return;
	}
	if (fake_faults.is_vanishing)
		return;
	if (fake_faults.is_cut)
		s = IBV_WC_RETRY_EXC_ERR;
	else if (fake_faults.send_number && --fake_faults.send_number == 0) {
		s = fake_faults.send_status;
	} else
		s = carry_out(p, find_pair(p->dest), wr, bytes, n);
	if (s != IBV_WC_SUCCESS)
		stop(p, wr->wr_id, s);
	else if (wr->send_flags & IBV_SEND_SIGNALED)
		fake_complete(p->qp.send_cq, &wc, false);
}

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct pair *p = container_of(qp, struct pair, qp);
	struct ibv_sge none = {0}, *sge = wr->num_sge ? wr->sg_list : &none;
	struct ibv_send_wr copy = *wr;
	int r = 0;

	pthread_mutex_lock(&fake_lock);
	if (fake_faults.imm_number && --fake_faults.imm_number == 0)
		copy.imm_data = htonl(fake_faults.imm);
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR) {
		r = EINVAL;
	} else if (wr->send_flags & IBV_SEND_INLINE
			   ? sge->length > p->inline_most
			   : sge->length && !fake_may_touch(sge->lkey, sge->addr, sge->length, 0)) {
		r = EINVAL;
	} else if (fake_faults.hold_odd_qps && qp->qp_num % 2 && p->n_held < 128) {
		struct held *h = &p->held[p->n_held++];

		h->wr = copy;
		h->sge = *sge;
		if (!sge->length) {
			h->sge.addr = 0;
		} else if (sge->length <= sizeof(h->bytes)) {
			memcpy(h->bytes, fake_bytes(sge->addr), sge->length);
			h->sge.addr = 0;
		}
	} else {
		execute(p, &copy, fake_bytes(sge->addr), sge->length);
	}
	pthread_mutex_unlock(&fake_lock);
	if (r)
		*bad = wr;
	return r;
}

void fake_release_held(void)
{
	pthread_mutex_lock(&fake_lock);
	for (int i = 0; i < QPS; i++) {
		struct pair *p = pairs[i];

		for (unsigned int k = 0; p && k < p->n_held; k++)
			execute(p, &p->held[k].wr,
				p->held[k].sge.addr ? fake_bytes(p->held[k].sge.addr)
						    : p->held[k].bytes,
				p->held[k].sge.length);
		if (p)
			p->n_held = 0;
	}
	pthread_mutex_unlock(&fake_lock);
}

struct ibv_qp *fake_newest_qp(void)
{
	struct pair *p = find_pair(next_qp);

	return p ? &p->qp : NULL;
}

unsigned int fake_rnr(void)
{
	return fake_n_rnr;
}
