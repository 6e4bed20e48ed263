/* Devices, their ports and GIDs, protection domains, events of a device. See fake-verbs.h. */
#include "fake-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_device devices[2] = {{.name = "fake0"}, {.name = "fake1"}};
struct ibv_context fake_contexts[2] = {{.device = &devices[0], .async_fd = -1},
					 {.device = &devices[1], .async_fd = -1}};
static int async_writer; /* of the first device; nothing happens to the second */
static struct ibv_async_event async_events[64];
static unsigned int n_async, n_async_read;

void fake_open_devices(void)
{
	int fds[2];

	for (int i = 1; i >= 0; i--) {
		if (fake_contexts[i].async_fd >= 0)
			return;
		if (fake_pipe(fds))
			abort();
		fake_contexts[i].async_fd = fds[0];
		async_writer = fds[1];
	}
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
	fake_open_devices();
	return &fake_contexts[d - devices];
}

int fake_close_device(struct ibv_context *c)
{
	(void)c;
	return 0;
}

int fake_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	(void)c;
	memset(a, 0, sizeof(*a));
	a->phys_port_cnt = 1;
	return 0;
}

int fake_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *a = (struct ibv_port_attr *)(void *)attr;

	(void)port;
	a->state = c == &fake_contexts[1] && fake_faults.rail_is_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	a->gid_tbl_len = 3;
	return 0;
}

/* link-local, none, 127.0.0.1 or that of the rail */
int fake_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *g)
{
	static const union ibv_gid gids[3] = {{{0xfe, 0x80}}, {{0}},
					      {{[10] = 0xff, 0xff, 127, 0, 0, 1}}};

	(void)port;
	*g = gids[index];
	if (index == 2 && fake_faults.has_rails)
		memcpy(g->raw + 12, (const uint8_t[]){198, 51, 100, c == &fake_contexts[1] ? 2 : 1}, 4);
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

int fake_get_async_event(struct ibv_context *c, struct ibv_async_event *e)
{
	int rc = -1;

	pthread_mutex_lock(&fake_lock);
	if (fake_take(c->async_fd)) {
		*e = async_events[n_async_read++ % 64];
		rc = 0;
	} else {
		errno = EAGAIN;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

void fake_ack_async_event(struct ibv_async_event *e)
{
	(void)e;
}

void fake_async_locked(enum ibv_event_type type, struct ibv_qp *qp)
{
	struct ibv_async_event e = {.event_type = type};

	if (qp)
		e.element.qp = qp;
	else
		e.element.port_num = 1;
	async_events[n_async++ % 64] = e;
	fake_ring(async_writer);
}

void fake_async(enum ibv_event_type type)
{
	struct ibv_qp *qp = fake_newest_qp();
	bool is_of_qp = type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_ACCESS_ERR;

	pthread_mutex_lock(&fake_lock);
	fake_async_locked(type, is_of_qp ? qp : NULL);
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
