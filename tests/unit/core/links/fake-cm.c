/* The fake connection manager. See fake-verbs.h. */
#include "fake-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "links/rdma/hello.h"

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

struct rdma_event_channel *fake_cm_create_event_channel(void)
{
	struct cm_channel *c;
	int fds[2];

	if (fake_faults.channel_errno) {
		errno = fake_faults.channel_errno;
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (fake_pipe(fds))
		abort();
	c->c.fd = fds[0];
	c->writer = fds[1];
	c->last = &c->list;
	return &c->c;
}

void fake_cm_destroy_event_channel(struct rdma_event_channel *ch)
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
	fake_ring(c->writer);
}

int fake_cm_get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **ret)
{
	struct cm_channel *c = container_of(ch, struct cm_channel, c);
	struct cm_event *e = NULL;

	pthread_mutex_lock(&fake_lock);
	while (!e && fake_take(c->c.fd)) {
		e = c->list;
		if (e)
			c->list = e->next;
		if (!c->list)
			c->last = &c->list;
	}
	pthread_mutex_unlock(&fake_lock);
	if (!e) {
		errno = EAGAIN;
		return -1;
	}
	*ret = &e->e;
	return 0;
}

int fake_cm_ack_cm_event(struct rdma_cm_event *e)
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
	fake_alive++;
	return id;
}

int fake_cm_create_id(struct rdma_event_channel *ch, struct rdma_cm_id **ret, void *ctx,
		      enum rdma_port_space ps)
{
	(void)ps;
	pthread_mutex_lock(&fake_lock);
	*ret = &new_id(ch, ctx)->id;
	pthread_mutex_unlock(&fake_lock);
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

int fake_cm_destroy_id(struct rdma_cm_id *rid)
{
	struct cm_id *id = to_id(rid), **at;
	struct cm_channel *c = container_of(rid->channel, struct cm_channel, c);
	struct cm_event **e, *gone;

	pthread_mutex_lock(&fake_lock);
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
	fake_alive--;
	pthread_mutex_unlock(&fake_lock);
	free(id);
	return 0;
}

int fake_cm_bind_addr(struct rdma_cm_id *rid, struct sockaddr *a)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)a;
	struct cm_id *id = to_id(rid), *other;
	uint32_t net = ntohl(in->sin_addr.s_addr) >> 8;
	int r = 0;

	if (fake_faults.bind_errno) {
		errno = fake_faults.bind_errno;
		return -1;
	}
	/* networks for examples: of nobody, and of a card without RDMA */
	if (in->sin_family == AF_INET && (net == 0xcb0071 || net == 0xc00002)) {
		errno = net == 0xc00002 ? ENODEV : EADDRNOTAVAIL;
		return -1;
	}
	pthread_mutex_lock(&fake_lock);
	id->port = ntohs(in->sin_port) ? ntohs(in->sin_port) : next_port++;
	for (other = ids; other; other = other->next)
		if (other != id && other->listens && other->port == id->port) {
			errno = EADDRINUSE;
			r = -1;
		}
	rid->verbs = fake_cm_context(0);
	memcpy(&rid->route.addr.src_addr, a, sizeof(*in));
	((struct sockaddr_in *)(void *)&rid->route.addr.src_addr)->sin_port = htons(id->port);
	pthread_mutex_unlock(&fake_lock);
	return r;
}

int fake_cm_listen(struct rdma_cm_id *id, int backlog)
{
	(void)backlog;
	to_id(id)->listens = true;
	return 0;
}

int fake_cm_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int ms)
{
	struct sockaddr_in *from = (struct sockaddr_in *)(void *)src;

	(void)ms;
	pthread_mutex_lock(&fake_lock);
	id->verbs = fake_cm_context(from && from->sin_addr.s_addr == htonl(0xc6336402));
	id->port_num = 1;
	memcpy(&id->route.addr.dst_addr, dst, sizeof(struct sockaddr_in));
	if (fake_faults.cm_event == RDMA_CM_EVENT_ADDR_ERROR)
		tell(to_id(id), fake_faults.cm_event, fake_faults.cm_status, NULL, 0);
	else
		tell(to_id(id), RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_cm_resolve_route(struct rdma_cm_id *id, int ms)
{
	(void)ms;
	pthread_mutex_lock(&fake_lock);
	if (fake_faults.cm_event == RDMA_CM_EVENT_ROUTE_ERROR)
		tell(to_id(id), fake_faults.cm_event, fake_faults.cm_status, NULL, 0);
	else
		tell(to_id(id), RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_cm_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	*mask = IBV_QP_STATE;
	if (a->qp_state == IBV_QPS_RTR) {
		a->dest_qp_num = to_id(id)->peer_qp;
		a->path_mtu = fake_faults.path_mtu ? fake_faults.path_mtu : IBV_MTU_4096;
		a->ah_attr.is_global = !fake_faults.is_infiniband;
		a->ah_attr.grh.sgid_index = 2; /* fake_query_gid() */
		*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MAX_DEST_RD_ATOMIC;
	}
	if (a->qp_state == IBV_QPS_RTS)
		*mask |= IBV_QP_MAX_QP_RD_ATOMIC;
	return 0;
}

int fake_cm_connect(struct rdma_cm_id *rid, struct rdma_conn_param *p)
{
	struct cm_id *id = to_id(rid), *l, *child;
	uint16_t port = ntohs(((struct sockaddr_in *)(void *)&rid->route.addr.dst_addr)->sin_port);
	_Alignas(8) uint8_t data[64] = {0};

	pthread_mutex_lock(&fake_lock);
	for (l = ids; l && !(l->listens && l->port == port); l = l->next)
		;
	memcpy(data, p->private_data, p->private_data_len);
	if (fake_faults.corrupt_hello)
		data[0] ^= 0xff;
	if (fake_faults.hello_version)
		((struct rdma_hello *)(void *)data)->version = (uint8_t)fake_faults.hello_version;
	if (fake_faults.edit_hello)
		fake_faults.edit_hello((struct rdma_hello *)(void *)data, false);
	id->qp_num = p->qp_num;
	if (fake_faults.drop_answer) {
		;
	} else if (fake_faults.cm_event == RDMA_CM_EVENT_CONNECT_ERROR ||
		   fake_faults.cm_event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		tell(id, fake_faults.cm_event, fake_faults.cm_status, NULL, 0);
	} else if (fake_faults.is_cut) {
		tell(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0);
	} else if (!l) {
		tell(id, RDMA_CM_EVENT_REJECTED, 8, NULL, 0);
	} else {
		child = new_id(l->id.channel, l->id.context);
		child->id.verbs = fake_cm_context(0);
		child->id.port_num = 1;
		child->id.route.addr.dst_addr.sa_family = AF_INET;
		child->peer = id;
		child->peer_qp = p->qp_num;
		id->peer = child;
		tell(child, RDMA_CM_EVENT_CONNECT_REQUEST, 0, data, p->private_data_len);
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_cm_accept(struct rdma_cm_id *rid, struct rdma_conn_param *p)
{
	struct cm_id *id = to_id(rid);
	struct rdma_hello answer;
	int r = 0;

	memcpy(&answer, p->private_data, sizeof(answer));
	if (fake_faults.edit_hello)
		fake_faults.edit_hello(&answer, true);
	pthread_mutex_lock(&fake_lock);
	if (id->peer) {
		id->peer->peer_qp = p->qp_num;
		tell(id->peer, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, &answer, sizeof(answer));
	} else {
		errno = ENOTCONN;
		r = -1;
	}
	pthread_mutex_unlock(&fake_lock);
	return r;
}

int fake_cm_reject(struct rdma_cm_id *rid, const void *data, uint8_t n)
{
	struct cm_id *id = to_id(rid);

	pthread_mutex_lock(&fake_lock);
	if (id->peer) {
		tell(id->peer, RDMA_CM_EVENT_REJECTED, 28, data, n);
		id->peer->peer = NULL;
		id->peer = NULL;
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_cm_establish(struct rdma_cm_id *rid)
{
	struct cm_id *id = to_id(rid);

	pthread_mutex_lock(&fake_lock);
	id->is_connected = true;
	if (id->peer && !fake_faults.drop_establish) {
		id->peer->is_connected = true;
		tell(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_cm_disconnect(struct rdma_cm_id *id)
{
	pthread_mutex_lock(&fake_lock);
	part(to_id(id));
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

__be16 fake_cm_get_src_port(struct rdma_cm_id *id)
{
	return htons(to_id(id)->port);
}

int fake_cm_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t n)
{
	(void)id;
	(void)level;
	(void)name;
	(void)value;
	(void)n;
	return 0;
}

void fake_cm_tell_all(enum rdma_cm_event_type type, int status)
{
	pthread_mutex_lock(&fake_lock);
	for (struct cm_id *id = ids; id; id = id->next)
		tell(id, type, status, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
}

const char *fake_cm_event_str(enum rdma_cm_event_type t)
{
	(void)t;
	return "an event";
}
