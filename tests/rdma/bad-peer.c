/* See bad-peer.h. */
#include "bad-peer.h"

#include <stdint.h>

#include "links/rdma/hello.h"
#include "links/rdma/verbs.h"

#define QPS_MAX 64

static const struct verbs *real;
static struct verbs table;
static enum bad_trick trick;
static struct {
	struct ibv_qp *qp;
	bool is_deaf;
} qps[QPS_MAX];
static unsigned int n_qps, first_qp;

static int bad_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct rdma_conn_param p = *param;
	struct rdma_hello hello = *(const struct rdma_hello *)param->private_data;

	if (trick == BAD_MAGIC)
		hello.magic ^= 1;
	if (trick == BAD_VERSION)
		hello.version = 99;
	if (trick == BAD_RKEY)
		hello.ring_rkey ^= 0x5a;
	p.private_data = &hello;
	return real->cm_connect(id, &p);
}

static int bad_establish(struct rdma_cm_id *id)
{
	return trick == BAD_NO_CONFIRM ? 0 : real->cm_establish(id);
}

static struct ibv_qp *bad_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = real->create_qp(pd, attr);

	if (qp && n_qps < QPS_MAX) {
		qps[n_qps].is_deaf = trick == BAD_NO_RECEIVES;
		qps[n_qps++].qp = qp;
	}
	return qp;
}

static int bad_destroy_qp(struct ibv_qp *qp)
{
	for (unsigned int i = 0; i < n_qps; i++)
		if (qps[i].qp == qp)
			qps[i].qp = NULL; /* the next one may have its address */
	return real->destroy_qp(qp);
}

static int bad_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	for (unsigned int i = 0; i < n_qps; i++)
		if (qps[i].qp == qp && qps[i].is_deaf)
			return 0;
	return real->post_recv(qp, wr, bad);
}

bool bad_peer_init(void)
{
	struct err err;

	if (verbs_get(&real, &err))
		return false;
	table = *real;
	table.cm_connect = bad_connect;
	table.cm_establish = bad_establish;
	table.create_qp = bad_create_qp;
	table.destroy_qp = bad_destroy_qp;
	table.post_recv = bad_post_recv;
	verbs_replace(&table);
	return true;
}

void bad_peer_set(enum bad_trick t)
{
	unsigned int n = 0;

	trick = t;
	for (unsigned int i = 0; i < n_qps; i++)
		if (qps[i].qp)
			qps[n++] = qps[i];
	first_qp = n_qps = n;
}

void bad_peer_fall_silent(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	for (unsigned int i = first_qp; i < n_qps; i++)
		if (qps[i].qp)
			real->modify_qp(qps[i].qp, &attr, IBV_QP_STATE);
}
