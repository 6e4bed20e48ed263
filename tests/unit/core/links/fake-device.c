/* Fake devices, their ports and GIDs, protection domains and events. See fake-verbs.h. */
#include "fake-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static struct ibv_device devices[2] = {{.name = "fake0"}, {.name = "fake1"}};

/* An opened device. As with the real library, events of the device reach all contexts, and events
 * of a queue or queue pair only the context that made it. */
struct context {
	struct ibv_context c;
	int writer;
	int lifeline; /* the other end of the command descriptor */
	struct ibv_async_event events[64];
	unsigned int n, n_read;
	struct context *next;
};

static struct context *contexts;
static struct context cm_contexts[2]; /* the connection manager's, for good */

static void init_context(struct context *c, struct ibv_device *d)
{
	int fds[2];

	if (fake_pipe(fds))
		abort();
	c->c.device = d;
	c->c.async_fd = fds[0];
	c->writer = fds[1];
	if (fake_pipe(fds))
		abort();
	c->lifeline = fds[0];
	c->c.cmd_fd = fds[1];
	c->next = contexts;
	contexts = c;
}

struct ibv_context *fake_cm_context(unsigned int i)
{
	if (!cm_contexts[i].c.device)
		init_context(&cm_contexts[i], &devices[i]);
	return &cm_contexts[i].c;
}

static bool is_second(const struct ibv_context *c)
{
	return c->device == &devices[1];
}

struct ibv_device **fake_get_device_list(int *n)
{
	struct ibv_device **list = calloc(3, sizeof(*list));

	list[0] = &devices[0];
	if (fake_faults.has_rails)
		list[1] = &devices[1];
	if (n)
		*n = fake_faults.has_rails ? 2 : 1;
	return list;
}

void fake_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *fake_get_device_name(struct ibv_device *d)
{
	return d->name;
}

struct ibv_context *fake_open_device(struct ibv_device *d)
{
	struct context *c = fake_faults.open_errno ? NULL : calloc(1, sizeof(*c));

	if (!c) {
		errno = fake_faults.open_errno;
		return NULL;
	}
	pthread_mutex_lock(&fake_lock);
	init_context(c, d);
	fake_alive++;
	pthread_mutex_unlock(&fake_lock);
	return &c->c;
}

int fake_close_device(struct ibv_context *ctx)
{
	struct context *c = container_of(ctx, struct context, c), **at;

	pthread_mutex_lock(&fake_lock);
	for (at = &contexts; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	fake_alive--;
	pthread_mutex_unlock(&fake_lock);
	close(c->c.async_fd);
	close(c->writer);
	close(c->c.cmd_fd);
	close(c->lifeline);
	free(c);
	return 0;
}

int fake_lifeline(struct ibv_context *c)
{
	return container_of(c, struct context, c)->lifeline;
}

int fake_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	(void)c;
	memset(a, 0, sizeof(*a));
	a->phys_port_cnt = 1;
	a->max_qp_rd_atom = a->max_qp_init_rd_atom = fake_faults.has_no_read ? 0 : 16;
	return 0;
}

int fake_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *a = (struct ibv_port_attr *)(void *)attr;

	(void)port;
	a->state = is_second(c) && fake_faults.rail_is_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	a->gid_tbl_len = fake_faults.is_infiniband ? 1 : fake_faults.has_roce_v1 ? 4 : 3;
	a->link_layer =
		fake_faults.is_infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
	return 0;
}

/* Of InfiniBand: the subnet's prefix and the number of the port. */
union ibv_gid fake_port_gid(unsigned int device)
{
	union ibv_gid g = {
		{0xfe, 0x80, [8] = 0x24, 0x8a, 7, 3, 0, 0xbc, 0x26, (uint8_t)(0x10 + device)}};

	if (fake_faults.has_subnet_prefix) {
		g.raw[1] = 0xc0;
		g.raw[7] = 1;
	}
	return g;
}

/* link-local, none, 127.0.0.1 or that of the rail; the same again */
int fake_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *g)
{
	static const union ibv_gid gids[4] = {{{0xfe, 0x80}},
					      {{0}},
					      {{[10] = 0xff, 0xff, 127, 0, 0, 1}},
					      {{[10] = 0xff, 0xff, 127, 0, 0, 1}}};

	(void)port;
	if (fake_faults.is_infiniband) {
		*g = fake_port_gid(is_second(c));
		return 0;
	}
	*g = gids[index];
	if (index >= 2 && fake_faults.has_rails)
		memcpy(g->raw + 12, (const uint8_t[]){198, 51, 100, is_second(c) ? 2 : 1}, 4);
	return 0;
}

struct ibv_pd *fake_alloc_pd(struct ibv_context *c)
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

int fake_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

int fake_get_async_event(struct ibv_context *ctx, struct ibv_async_event *e)
{
	struct context *c = container_of(ctx, struct context, c);
	int r = -1;

	pthread_mutex_lock(&fake_lock);
	if (fake_take(ctx->async_fd)) {
		*e = c->events[c->n_read++ % 64];
		r = 0;
	} else {
		errno = EAGAIN;
	}
	pthread_mutex_unlock(&fake_lock);
	return r;
}

void fake_ack_async_event(struct ibv_async_event *e)
{
	(void)e;
}

void fake_async_locked(const struct ibv_async_event *e, struct ibv_context *only)
{
	for (struct context *c = contexts; c; c = c->next)
		if (only ? &c->c == only : !is_second(&c->c)) {
			c->events[c->n++ % 64] = *e;
			fake_ring(c->writer);
		}
}

void fake_async(enum ibv_event_type type)
{
	struct ibv_async_event e = {.event_type = type};
	struct ibv_context *only = NULL;
	struct ibv_qp *qp;

	pthread_mutex_lock(&fake_lock);
	qp = fake_newest_qp();
	if (type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_ACCESS_ERR) {
		e.element.qp = qp;
		only = qp->context;
	} else if (type == IBV_EVENT_CQ_ERR) {
		e.element.cq = qp->send_cq;
		only = qp->context;
	} else {
		e.element.port_num = 1;
	}
	fake_async_locked(&e, only);
	pthread_mutex_unlock(&fake_lock);
}

const char *fake_event_type_str(enum ibv_event_type t)
{
	(void)t;
	return "an event";
}

const char *fake_wc_status_str(enum ibv_wc_status s)
{
	(void)s;
	return "a status";
}
