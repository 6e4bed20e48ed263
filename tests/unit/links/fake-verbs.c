/* See fake-verbs.h. Work requests are carried out when they are posted. */
#include "fake-verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "links/rdma-hello.h"

#define QPS 256
#define RECVS 2048
#define CQES 65536

struct fake_faults fake_faults;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int n_alive, n_rnr;

/* --- pipes: one byte an event ------------------------------------------------------- */

static void ring(int fd)
{
	if (write(fd, "x", 1) != 1)
		abort();
}

static bool take(int fd)
{
	char c;

	return read(fd, &c, 1) == 1;
}

static int make_pipe(int fds[2])
{
	return pipe2(fds, O_CLOEXEC | O_NONBLOCK);
}

/* --- the device ------------------------------------------------------------------------ */

static struct ibv_device devices[2] = {{.name = "fake0"}, {.name = "fake1"}};
static struct ibv_context contexts[2] = {{.device = &devices[0], .async_fd = -1},
					 {.device = &devices[1], .async_fd = -1}};
static int async_writer; /* of the first device; nothing happens to the second */
static struct ibv_async_event async_events[64];
static unsigned int n_async, n_async_read;

static void open_device_once(void)
{
	int fds[2];

	for (int i = 1; i >= 0; i--) {
		if (contexts[i].async_fd >= 0)
			return;
		if (make_pipe(fds))
			abort();
		contexts[i].async_fd = fds[0];
		async_writer = fds[1];
	}
}

static struct ibv_device **get_device_list(int *n)
{
	struct ibv_device **list = calloc(3, sizeof(*list));

	list[0] = &devices[0];
	if (fake_faults.has_rails)
		list[1] = &devices[1];
	if (n)
		*n = fake_faults.has_rails ? 2 : 1;
	return list;
}

static void free_device_list(struct ibv_device **list)
{
	free(list);
}

static const char *get_device_name(struct ibv_device *d)
{
	return d->name;
}

static struct ibv_context *open_device(struct ibv_device *d)
{
	open_device_once();
	return &contexts[d - devices];
}

static int close_device(struct ibv_context *c)
{
	(void)c;
	return 0;
}

static int query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	(void)c;
	memset(a, 0, sizeof(*a));
	a->phys_port_cnt = 1;
	return 0;
}

static int query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *a = (struct ibv_port_attr *)(void *)attr;

	(void)port;
	a->state = c == &contexts[1] && fake_faults.rail_is_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	a->gid_tbl_len = 3;
	return 0;
}

/* link-local, none, 127.0.0.1 or that of the rail */
static int query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *g)
{
	static const union ibv_gid gids[3] = {{{0xfe, 0x80}}, {{0}},
					      {{[10] = 0xff, 0xff, 127, 0, 0, 1}}};

	(void)port;
	*g = gids[index];
	if (index == 2 && fake_faults.has_rails)
		memcpy(g->raw + 12, (const uint8_t[]){198, 51, 100, c == &contexts[1] ? 2 : 1}, 4);
	return 0;
}

/* --- the host's networks ---------------------------------------------------------------- */

static struct sockaddr_in net_addr[3];
static struct ifaddrs net[3];

/* 127.0.0.1/8 first; addresses without a network mask are met, too */
static int get_networks(struct ifaddrs **ret)
{
	static const uint32_t addr[3] = {0x7f000001, 0xc6336401, 0xc6336402};
	static struct sockaddr_in mask[3];
	static struct ifaddrs bare;

	for (int i = 0; i < 3; i++) {
		net_addr[i] = (struct sockaddr_in){.sin_family = AF_INET,
						   .sin_addr.s_addr = htonl(addr[i])};
		mask[i] = (struct sockaddr_in){.sin_family = AF_INET,
					       .sin_addr.s_addr = htonl(i ? 0xffffff00 : 0xff000000)};
		net[i] = (struct ifaddrs){.ifa_flags = IFF_UP,
					  .ifa_addr = (struct sockaddr *)&net_addr[i],
					  .ifa_netmask = (struct sockaddr *)&mask[i],
					  .ifa_next = i < 2 ? &net[i + 1] : NULL};
	}
	bare.ifa_next = fake_faults.has_rails ? net : NULL;
	*ret = &bare;
	return 0;
}

static void free_networks(struct ifaddrs *list)
{
	(void)list;
}

static struct ibv_pd *alloc_pd(struct ibv_context *c)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	if (fake_faults.alloc_pd_errno) {
		free(pd);
		errno = fake_faults.alloc_pd_errno;
		return NULL;
	}
	pd->context = c;
	return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

static int get_async_event(struct ibv_context *c, struct ibv_async_event *e)
{
	int rc = -1;

	pthread_mutex_lock(&lock);
	if (take(c->async_fd)) {
		*e = async_events[n_async_read++ % 64];
		rc = 0;
	} else {
		errno = EAGAIN;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static void ack_async_event(struct ibv_async_event *e)
{
	(void)e;
}

static void async_locked(enum ibv_event_type type, struct ibv_qp *qp)
{
	struct ibv_async_event e = {.event_type = type};

	if (qp)
		e.element.qp = qp;
	else
		e.element.port_num = 1;
	async_events[n_async++ % 64] = e;
	ring(async_writer);
}

/* --- memory ------------------------------------------------------------------------------ */

struct region {
	struct ibv_mr mr;
	int access;
	struct region *next;
};

static struct region *regions;
static uint32_t next_key = 0x1000;

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *p, size_t n, int access)
{
	struct region *r;

	if (fake_faults.reg_errno && n >= fake_faults.reg_bytes) {
		errno = fake_faults.reg_errno;
		return NULL;
	}
	r = calloc(1, sizeof(*r));
	pthread_mutex_lock(&lock);
	r->mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = p, .length = n};
	r->mr.lkey = r->mr.rkey = next_key += 7;
	r->access = access;
	r->next = regions;
	regions = r;
	n_alive++;
	pthread_mutex_unlock(&lock);
	return &r->mr;
}

static int dereg_mr(struct ibv_mr *mr)
{
	struct region **at;

	pthread_mutex_lock(&lock);
	for (at = &regions; *at && &(*at)->mr != mr; at = &(*at)->next)
		;
	if (!*at)
		abort();
	*at = (*at)->next;
	n_alive--;
	pthread_mutex_unlock(&lock);
	free(container_of(mr, struct region, mr));
	return 0;
}

static bool may_touch(uint32_t key, uint64_t addr, uint64_t n, int access)
{
	struct region *r;

	for (r = regions; r; r = r->next)
		if (r->mr.lkey == key && (r->access & access) == access &&
		    addr >= (uintptr_t)r->mr.addr && addr + n <= (uintptr_t)r->mr.addr + r->mr.length)
			return true;
	return false;
}

/* --- completion queues -------------------------------------------------------------------- */

struct channel {
	struct ibv_comp_channel c;
	int writer;
	struct ibv_cq *cq;
};

struct queue {
	struct ibv_cq cq;
	struct channel *channel;
	uint32_t size;
	uint64_t head, tail;
	enum { UNARMED, SOLICITED, ALL } armed;
	struct ibv_wc wc[CQES];
};

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *c)
{
	struct channel *ch = calloc(1, sizeof(*ch));
	int fds[2];

	if (make_pipe(fds))
		abort();
	ch->c.context = c;
	ch->c.fd = fds[0];
	ch->writer = fds[1];
	return &ch->c;
}

static int destroy_comp_channel(struct ibv_comp_channel *c)
{
	struct channel *ch = container_of(c, struct channel, c);

	close(ch->c.fd);
	close(ch->writer);
	free(ch);
	return 0;
}

static struct ibv_cq *create_cq(struct ibv_context *c, int n, void *ctx,
				struct ibv_comp_channel *ch, int vector)
{
	struct queue *q = calloc(1, sizeof(*q));

	(void)vector;
	q->cq.context = c;
	q->cq.cq_context = ctx;
	q->channel = container_of(ch, struct channel, c);
	q->channel->cq = &q->cq;
	q->size = (uint32_t)n;
	pthread_mutex_lock(&lock);
	n_alive++;
	pthread_mutex_unlock(&lock);
	return &q->cq;
}

static int resize_cq(struct ibv_cq *cq, int n)
{
	if (fake_faults.cq_most && (uint32_t)n > fake_faults.cq_most)
		return EINVAL;
	container_of(cq, struct queue, cq)->size = (uint32_t)n;
	return 0;
}

static int destroy_cq(struct ibv_cq *cq)
{
	pthread_mutex_lock(&lock);
	n_alive--;
	pthread_mutex_unlock(&lock);
	free(container_of(cq, struct queue, cq));
	return 0;
}

static void complete(struct ibv_cq *cq, const struct ibv_wc *wc, bool is_solicited)
{
	struct queue *q = container_of(cq, struct queue, cq);

	if (q->head - q->tail >= q->size) {
		async_locked(IBV_EVENT_CQ_ERR, NULL);
		return;
	}
	q->wc[q->head++ % CQES] = *wc;
	if (q->armed == ALL || (q->armed == SOLICITED && (is_solicited || wc->status))) {
		q->armed = UNARMED;
		ring(q->channel->writer);
	}
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct queue *q = container_of(cq, struct queue, cq);
	int i;

	if (fake_faults.poll_most && n > fake_faults.poll_most)
		n = fake_faults.poll_most;
	pthread_mutex_lock(&lock);
	for (i = 0; i < n && q->tail != q->head; i++)
		wc[i] = q->wc[q->tail++ % CQES];
	pthread_mutex_unlock(&lock);
	return i;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct queue *q = container_of(cq, struct queue, cq);

	pthread_mutex_lock(&lock);
	if (!solicited_only)
		q->armed = ALL;
	else if (q->armed == UNARMED)
		q->armed = SOLICITED;
	pthread_mutex_unlock(&lock);
	return 0;
}

static int get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **ctx)
{
	struct channel *ch = container_of(c, struct channel, c);

	if (!take(c->fd)) {
		errno = EAGAIN;
		return -1;
	}
	*cq = ch->cq;
	*ctx = NULL;
	return 0;
}

static void ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}

/* --- queue pairs --------------------------------------------------------------------------- */

struct held {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	unsigned char bytes[8192]; /* inline and sent slots may change */
};

struct pair {
	struct ibv_qp qp;
	uint32_t dest, inline_most;
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

static struct pair *find_pair(uint32_t number)
{
	struct pair *p = pairs[number % QPS];

	return p && p->qp.qp_num == number ? p : NULL;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct pair *p;
	uint32_t most = fake_faults.inline_most ? fake_faults.inline_most : 512;

	if (fake_faults.create_qp_errno || a->cap.max_inline_data > most) {
		errno = fake_faults.create_qp_errno ? fake_faults.create_qp_errno : EINVAL;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	pthread_mutex_lock(&lock);
	do
		next_qp++;
	while (pairs[next_qp % QPS] || next_qp % QPS == 0);
	p->qp = (struct ibv_qp){.context = pd->context, .pd = pd, .send_cq = a->send_cq,
				.recv_cq = a->recv_cq, .qp_num = next_qp};
	p->inline_most = a->cap.max_inline_data;
	p->recv_most = a->cap.max_recv_wr;
	pairs[next_qp % QPS] = p;
	n_alive++;
	pthread_mutex_unlock(&lock);
	return &p->qp;
}

static int destroy_qp(struct ibv_qp *qp)
{
	pthread_mutex_lock(&lock);
	pairs[qp->qp_num % QPS] = NULL;
	n_alive--;
	pthread_mutex_unlock(&lock);
	free(container_of(qp, struct pair, qp));
	return 0;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	struct pair *p = container_of(qp, struct pair, qp);

	pthread_mutex_lock(&lock);
	if (mask & IBV_QP_STATE)
		qp->state = a->qp_state;
	if (mask & IBV_QP_DEST_QPN)
		p->dest = a->dest_qp_num;
	pthread_mutex_unlock(&lock);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct pair *p = container_of(qp, struct pair, qp);

	pthread_mutex_lock(&lock);
	if (p->recv_head - p->recv_tail >= p->recv_most) {
		pthread_mutex_unlock(&lock);
		*bad = wr;
		return ENOMEM;
	}
	p->recv[p->recv_head % RECVS] = *wr;
	p->recv_sge[p->recv_head++ % RECVS] = wr->sg_list[0];
	pthread_mutex_unlock(&lock);
	return 0;
}

/* The queue pair stops: this one with its status, all that is posted is flushed. */
static void stop(struct pair *p, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {.wr_id = wr_id, .status = status, .qp_num = p->qp.qp_num, .vendor_err = 7};

	p->qp.state = IBV_QPS_ERR;
	complete(p->qp.send_cq, &wc, true);
	wc.status = IBV_WC_WR_FLUSH_ERR;
	for (; p->recv_tail != p->recv_head; p->recv_tail++) {
		wc.wr_id = p->recv[p->recv_tail % RECVS].wr_id;
		complete(p->qp.recv_cq, &wc, true);
	}
}

static enum ibv_wc_status carry_out(struct pair *p, struct pair *to, const struct ibv_send_wr *wr,
				    const void *bytes, uint32_t n)
{
	bool is_send = wr->opcode == IBV_WR_SEND_WITH_IMM;
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS, .byte_len = n, .imm_data = wr->imm_data,
			    .wc_flags = IBV_WC_WITH_IMM};
	struct ibv_sge *sge;

	(void)p;
	if (!to || to->qp.state < IBV_QPS_RTR || to->qp.state > IBV_QPS_SQE)
		return IBV_WC_RETRY_EXC_ERR;
	if (!is_send && n && !may_touch(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, n,
					IBV_ACCESS_REMOTE_WRITE))
		return IBV_WC_REM_ACCESS_ERR;
	if (!is_send && n)
		memcpy((void *)(uintptr_t)wr->wr.rdma.remote_addr, bytes, n);
	if (wr->opcode == IBV_WR_RDMA_WRITE)
		return IBV_WC_SUCCESS;
	if (to->recv_tail == to->recv_head) {
		n_rnr++;
		return IBV_WC_RNR_RETRY_EXC_ERR;
	}
	sge = &to->recv_sge[to->recv_tail % RECVS];
	if (is_send && (n > sge->length || !may_touch(sge->lkey, sge->addr, n, IBV_ACCESS_LOCAL_WRITE)))
		return IBV_WC_REM_INV_REQ_ERR;
	if (is_send)
		memcpy((void *)(uintptr_t)sge->addr, bytes, n);
	wc.wr_id = to->recv[to->recv_tail++ % RECVS].wr_id;
	wc.opcode = is_send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
	wc.qp_num = to->qp.qp_num;
	complete(to->qp.recv_cq, &wc, wr->send_flags & IBV_SEND_SOLICITED);
	return IBV_WC_SUCCESS;
}

static void execute(struct pair *p, const struct ibv_send_wr *wr, const void *bytes, uint32_t n)
{
	struct ibv_wc wc = {.wr_id = wr->wr_id, .qp_num = p->qp.qp_num};
	enum ibv_wc_status s;

	if (p->qp.state == IBV_QPS_ERR) {
		wc.status = IBV_WC_WR_FLUSH_ERR;
		complete(p->qp.send_cq, &wc, true);
		return;
	}
	if (fake_faults.is_cut)
		s = IBV_WC_RETRY_EXC_ERR;
	else if (fake_faults.send_number && --fake_faults.send_number == 0) {
		s = fake_faults.send_status;
		fake_faults.send_number = fake_faults.send_every;
		if (fake_faults.send_arrives)
			carry_out(p, find_pair(p->dest), wr, bytes, n);
	} else
		s = carry_out(p, find_pair(p->dest), wr, bytes, n);
	if (s != IBV_WC_SUCCESS)
		stop(p, wr->wr_id, s);
	else if (wr->send_flags & IBV_SEND_SIGNALED)
		complete(p->qp.send_cq, &wc, false);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct pair *p = container_of(qp, struct pair, qp);
	struct ibv_sge none = {0}, *sge = wr->num_sge ? wr->sg_list : &none;
	struct ibv_send_wr copy = *wr;
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (fake_faults.imm_number && --fake_faults.imm_number == 0)
		copy.imm_data = htonl(fake_faults.imm);
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR) {
		rc = EINVAL;
	} else if (wr->send_flags & IBV_SEND_INLINE ? sge->length > p->inline_most
						    : sge->length && !may_touch(sge->lkey, sge->addr,
										sge->length, 0)) {
		rc = EINVAL;
	} else if (fake_faults.hold_odd_qps && qp->qp_num % 2 && p->n_held < 128) {
		struct held *h = &p->held[p->n_held++];

		h->wr = copy;
		h->sge = *sge;
		if (sge->length <= sizeof(h->bytes)) {
			memcpy(h->bytes, (void *)(uintptr_t)sge->addr, sge->length);
			h->sge.addr = 0;
		}
	} else {
		execute(p, &copy, (void *)(uintptr_t)sge->addr, sge->length);
	}
	pthread_mutex_unlock(&lock);
	if (rc)
		*bad = wr;
	return rc;
}

void fake_release_held(void)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < QPS; i++) {
		struct pair *p = pairs[i];

		for (unsigned int k = 0; p && k < p->n_held; k++)
			execute(p, &p->held[k].wr,
				p->held[k].sge.addr ? (void *)(uintptr_t)p->held[k].sge.addr
						    : p->held[k].bytes,
				p->held[k].sge.length);
		if (p)
			p->n_held = 0;
	}
	pthread_mutex_unlock(&lock);
}

void fake_async(enum ibv_event_type type)
{
	struct pair *p = find_pair(next_qp);
	bool is_of_qp = type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_ACCESS_ERR;

	pthread_mutex_lock(&lock);
	async_locked(type, is_of_qp && p ? &p->qp : NULL);
	pthread_mutex_unlock(&lock);
}

/* --- the connection manager ------------------------------------------------------------------ */

struct cm_event {
	struct rdma_cm_event e;
	uint8_t data[256];
	struct cm_event *next;
};

struct cm_channel {
	struct rdma_event_channel c;
	int writer;
	struct cm_event *list, **last;
};

struct cm_id {
	struct rdma_cm_id id;
	struct cm_id *peer;
	uint32_t qp_num, peer_qp;
	uint16_t port;
	bool listens, is_connected;
	struct cm_id *next;
};

static struct cm_id *ids;
static uint16_t next_port = 20000;

static struct cm_id *to_id(struct rdma_cm_id *id)
{
	return container_of(id, struct cm_id, id);
}

static struct rdma_event_channel *create_event_channel(void)
{
	struct cm_channel *c;
	int fds[2];

	if (fake_faults.channel_errno) {
		errno = fake_faults.channel_errno;
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (make_pipe(fds))
		abort();
	c->c.fd = fds[0];
	c->writer = fds[1];
	c->last = &c->list;
	return &c->c;
}

static void destroy_event_channel(struct rdma_event_channel *ch)
{
	struct cm_channel *c = container_of(ch, struct cm_channel, c);

	close(c->c.fd);
	close(c->writer);
	free(c);
}

static void tell(struct cm_id *id, enum rdma_cm_event_type type, int status, const void *data,
		 size_t n)
{
	struct cm_channel *c = container_of(id->id.channel, struct cm_channel, c);
	struct cm_event *e = calloc(1, sizeof(*e));

	e->e.id = &id->id;
	e->e.event = type;
	e->e.status = status;
	if (n)
		memcpy(e->data, data, n);
	/* managers pad with zeros */
	e->e.param.conn.private_data = n ? e->data : NULL;
	e->e.param.conn.private_data_len = n ? (uint8_t)(n < 196 ? 196 : n) : 0;
	*c->last = e;
	c->last = &e->next;
	ring(c->writer);
}

static int get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **ret)
{
	struct cm_channel *c = container_of(ch, struct cm_channel, c);
	struct cm_event *e = NULL;

	pthread_mutex_lock(&lock);
	while (!e && take(c->c.fd)) {
		e = c->list;
		if (e)
			c->list = e->next;
		if (!c->list)
			c->last = &c->list;
	}
	pthread_mutex_unlock(&lock);
	if (!e) {
		errno = EAGAIN;
		return -1;
	}
	*ret = &e->e;
	return 0;
}

static int ack_cm_event(struct rdma_cm_event *e)
{
	free(container_of(e, struct cm_event, e));
	return 0;
}

static struct cm_id *new_id(struct rdma_event_channel *ch, void *ctx)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	id->id.channel = ch;
	id->id.context = ctx;
	id->id.ps = RDMA_PS_TCP;
	id->next = ids;
	ids = id;
	n_alive++;
	return id;
}

static int create_id(struct rdma_event_channel *ch, struct rdma_cm_id **ret, void *ctx,
		     enum rdma_port_space ps)
{
	(void)ps;
	pthread_mutex_lock(&lock);
	*ret = &new_id(ch, ctx)->id;
	pthread_mutex_unlock(&lock);
	return 0;
}

static void part(struct cm_id *id)
{
	struct cm_id *peer = id->peer;

	if (!peer)
		return;
	id->peer = peer->peer = NULL;
	if (id->is_connected || peer->is_connected)
		tell(peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
}

static int destroy_id(struct rdma_cm_id *rid)
{
	struct cm_id *id = to_id(rid), **at;
	struct cm_channel *c = container_of(rid->channel, struct cm_channel, c);
	struct cm_event **e, *gone;

	pthread_mutex_lock(&lock);
	part(id);
	for (e = &c->list; *e;) {
		if ((*e)->e.id != rid) {
			e = &(*e)->next;
			continue;
		}
		gone = *e;
		*e = gone->next;
		free(gone);
	}
	c->last = e;
	for (at = &ids; *at != id; at = &(*at)->next)
		;
	*at = id->next;
	n_alive--;
	pthread_mutex_unlock(&lock);
	free(id);
	return 0;
}

static int bind_addr(struct rdma_cm_id *rid, struct sockaddr *a)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)a;
	struct cm_id *id = to_id(rid), *other;
	int rc = 0;

	pthread_mutex_lock(&lock);
	id->port = ntohs(in->sin_port) ? ntohs(in->sin_port) : next_port++;
	for (other = ids; other; other = other->next)
		if (other != id && other->listens && other->port == id->port) {
			errno = EADDRINUSE;
			rc = -1;
		}
	memcpy(&rid->route.addr.src_addr, a, sizeof(*in));
	((struct sockaddr_in *)(void *)&rid->route.addr.src_addr)->sin_port = htons(id->port);
	pthread_mutex_unlock(&lock);
	return rc;
}

static int fake_listen(struct rdma_cm_id *id, int backlog)
{
	(void)backlog;
	to_id(id)->listens = true;
	return 0;
}

static int resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int ms)
{
	struct sockaddr_in *from = (struct sockaddr_in *)(void *)src;

	(void)ms;
	pthread_mutex_lock(&lock);
	open_device_once();
	id->verbs = &contexts[from && from->sin_addr.s_addr == htonl(0xc6336402)];
	id->port_num = 1;
	memcpy(&id->route.addr.dst_addr, dst, sizeof(struct sockaddr_in));
	tell(to_id(id), RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0);
	pthread_mutex_unlock(&lock);
	return 0;
}

static int resolve_route(struct rdma_cm_id *id, int ms)
{
	(void)ms;
	pthread_mutex_lock(&lock);
	tell(to_id(id), RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
	pthread_mutex_unlock(&lock);
	return 0;
}

static int init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	*mask = IBV_QP_STATE;
	if (a->qp_state == IBV_QPS_RTR) {
		a->dest_qp_num = to_id(id)->peer_qp;
		a->path_mtu = IBV_MTU_4096;
	}
	return 0;
}

static int fake_connect(struct rdma_cm_id *rid, struct rdma_conn_param *p)
{
	struct cm_id *id = to_id(rid), *l, *child;
	uint16_t port = ntohs(((struct sockaddr_in *)(void *)&rid->route.addr.dst_addr)->sin_port);
	uint8_t data[64] = {0};

	pthread_mutex_lock(&lock);
	for (l = ids; l && !(l->listens && l->port == port); l = l->next)
		;
	memcpy(data, p->private_data, p->private_data_len);
	if (fake_faults.corrupt_hello)
		data[0] ^= 0xff;
	if (fake_faults.hello_version)
		((struct rdma_hello *)(void *)data)->version = (uint16_t)fake_faults.hello_version;
	id->qp_num = p->qp_num;
	if (fake_faults.drop_answer) {
		;
	} else if (fake_faults.is_cut) {
		tell(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0);
	} else if (!l) {
		tell(id, RDMA_CM_EVENT_REJECTED, 8, NULL, 0);
	} else {
		child = new_id(l->id.channel, l->id.context);
		child->id.verbs = &contexts[0];
		child->id.port_num = 1;
		child->id.route.addr.dst_addr.sa_family = AF_INET;
		child->peer = id;
		child->peer_qp = p->qp_num;
		id->peer = child;
		tell(child, RDMA_CM_EVENT_CONNECT_REQUEST, 0, data, p->private_data_len);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int fake_accept(struct rdma_cm_id *rid, struct rdma_conn_param *p)
{
	struct cm_id *id = to_id(rid);
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (id->peer) {
		id->peer->peer_qp = p->qp_num;
		tell(id->peer, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, p->private_data,
		     p->private_data_len);
	} else {
		errno = ENOTCONN;
		rc = -1;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static int fake_reject(struct rdma_cm_id *rid, const void *data, uint8_t n)
{
	struct cm_id *id = to_id(rid);

	pthread_mutex_lock(&lock);
	if (id->peer) {
		tell(id->peer, RDMA_CM_EVENT_REJECTED, 28, data, n);
		id->peer->peer = NULL;
		id->peer = NULL;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int establish(struct rdma_cm_id *rid)
{
	struct cm_id *id = to_id(rid);

	pthread_mutex_lock(&lock);
	id->is_connected = true;
	if (id->peer && !fake_faults.drop_establish) {
		id->peer->is_connected = true;
		tell(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int fake_disconnect(struct rdma_cm_id *id)
{
	pthread_mutex_lock(&lock);
	part(to_id(id));
	pthread_mutex_unlock(&lock);
	return 0;
}

static __be16 get_src_port(struct rdma_cm_id *id)
{
	return htons(to_id(id)->port);
}

static int set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t n)
{
	(void)id;
	(void)level;
	(void)name;
	(void)value;
	(void)n;
	return 0;
}

static const char *wc_status_str(enum ibv_wc_status s)
{
	(void)s;
	return "a status";
}

static const char *event_type_str(enum ibv_event_type t)
{
	(void)t;
	return "an event";
}

static const char *event_str(enum rdma_cm_event_type t)
{
	(void)t;
	return "an event";
}

static int fork_init(void)
{
	return 0;
}

void fake_reset(void)
{
	memset(&fake_faults, 0, sizeof(fake_faults));
	n_rnr = 0;
}

unsigned int fake_leaks(void)
{
	return n_alive;
}

unsigned int fake_rnr(void)
{
	return n_rnr;
}

const struct verbs fake_verbs = {
	.fork_init = fork_init,
	.get_device_list = get_device_list,
	.free_device_list = free_device_list,
	.get_device_name = get_device_name,
	.open_device = open_device,
	.close_device = close_device,
	.query_device = query_device,
	.query_port = query_port,
	.query_gid = query_gid,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.reg_mr = reg_mr,
	.dereg_mr = dereg_mr,
	.create_comp_channel = create_comp_channel,
	.destroy_comp_channel = destroy_comp_channel,
	.create_cq = create_cq,
	.resize_cq = resize_cq,
	.destroy_cq = destroy_cq,
	.get_cq_event = get_cq_event,
	.ack_cq_events = ack_cq_events,
	.create_qp = create_qp,
	.modify_qp = modify_qp,
	.destroy_qp = destroy_qp,
	.get_async_event = get_async_event,
	.ack_async_event = ack_async_event,
	.wc_status_str = wc_status_str,
	.event_type_str = event_type_str,
	.cm_create_event_channel = create_event_channel,
	.cm_destroy_event_channel = destroy_event_channel,
	.cm_create_id = create_id,
	.cm_destroy_id = destroy_id,
	.cm_bind_addr = bind_addr,
	.cm_listen = fake_listen,
	.cm_resolve_addr = resolve_addr,
	.cm_resolve_route = resolve_route,
	.cm_init_qp_attr = init_qp_attr,
	.cm_connect = fake_connect,
	.cm_establish = establish,
	.cm_accept = fake_accept,
	.cm_reject = fake_reject,
	.cm_disconnect = fake_disconnect,
	.cm_get_cm_event = get_cm_event,
	.cm_ack_cm_event = ack_cm_event,
	.cm_event_str = event_str,
	.cm_get_src_port = get_src_port,
	.cm_set_option = set_option,
	.post_send = post_send,
	.post_recv = post_recv,
	.poll_cq = poll_cq,
	.req_notify_cq = req_notify_cq,
	.getifaddrs = get_networks,
	.freeifaddrs = free_networks,
};
