/* See hub.h: the channel of the connection manager with the requests that came over it, the
 * devices (dev.h), a timer. All descriptors hang in one epoll descriptor, which a sleeper polls.
 * While nobody sleeps, the hub looks at the descriptors only now and then. */
#include "links/rdma/hub.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "links/rdma/hello.h"

#define LOOK_ROUNDS 64
#define LOOK_NS (5 * NS_PER_MS)

long rdma_tick_ms = 1000;

/* --- life ------------------------------------------------------------------------- */

static void hub_free(struct rdma_hub *h);

static void hub_freep(struct rdma_hub **h)
{
	if (*h)
		hub_free(*h);
}

/* Return: whether the kernel has an RDMA device; the name of one. */
static bool kernel_device(char *ret, size_t size)
{
	DIR *dir = opendir("/sys/class/infiniband");
	struct dirent *e = NULL;

	while (dir && (e = readdir(dir)) && e->d_name[0] == '.')
		;
	if (e)
		snprintf(ret, size, "%.63s", e->d_name);
	if (dir)
		closedir(dir);
	return e != NULL;
}

/* librdmacm knows no device: there is none, or libibverbs has no provider for it. */
static int no_channel(struct err *err, int code)
{
	bool is_none = code == ENODEV || code == ENOENT;
	char device[64];

	if (is_none && kernel_device(device, sizeof(device)))
		return err_set(
			err, code,
			"rdma cannot be used here: the kernel has device %s, libibverbs does not: "
			"its provider is missing (package ibverbs-providers), or /dev/infiniband "
			"is (module ib_uverbs; in a container, --device); `nbox doctor` looks closer",
			device);
	return err_set(
		err, code,
		"rdma cannot be used here: %s (are the kernel modules rdma_ucm and ib_uverbs "
		"loaded?); `nbox doctor` looks closer",
		is_none ? "no RDMA device was found" : strerror(code));
}

int rdma_hub_new(const struct rdma_options *o, const struct rdma_hub_sink *sink,
		 struct rdma_hub **ret, struct err *err)
{
	const struct itimerspec tick = {{rdma_tick_ms / 1000, rdma_tick_ms % 1000 * 1000000},
					{rdma_tick_ms / 1000, rdma_tick_ms % 1000 * 1000000}};
	CLEANUP(hub_freep) struct rdma_hub *h = NULL;
	const struct verbs *v;
	int r = verbs_get(&v, err);

	if (r)
		return r;
	h = calloc(1, sizeof(*h));
	if (!h)
		return err_set(err, ENOMEM, "no memory");
	h->v = v;
	h->sink = sink;
	h->options = *o;
	h->n_users = 1;
	h->last_request = &h->requests;
	h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	h->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	h->request_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (h->epoll_fd < 0 || h->timer_fd < 0 || h->request_fd < 0 ||
	    timerfd_settime(h->timer_fd, 0, &tick, NULL))
		return err_set(err, errno, "no descriptors for an rdma link: %s", strerror(errno));
	h->cm = v->cm_create_event_channel();
	if (!h->cm)
		return no_channel(err, errno);
	r = rdma_watch(h->epoll_fd, h->timer_fd, &h->timer_fd);
	r = r ? r : rdma_watch(h->epoll_fd, h->cm->fd, h->cm);
	r = r ? r : rdma_watch(h->epoll_fd, h->request_fd, &h->request_fd);
	if (r)
		return err_set(err, -r, "epoll: %s", strerror(-r));
	*ret = steal_ptr(h);
	return 0;
}

int rdma_hub_new_id(struct rdma_hub *h, void *context, struct rdma_cm_id **ret, struct err *err)
{
	struct rdma_cm_id *id;

	if (h->v->cm_create_id(h->cm, &id, context, RDMA_PS_TCP))
		return err_set(err, errno, "no connection id: %s", strerror(errno));
	*ret = id;
	return 0;
}

void rdma_hub_drop_id(struct rdma_hub *h, struct rdma_cm_id *id)
{
	h->v->cm_destroy_id(id);
}

static void drop_requests(struct rdma_hub *h)
{
	const struct rdma_refuse refuse = {RDMA_HELLO_MAGIC, RDMA_HELLO_VERSION,
					   RDMA_REFUSED_RESOURCES};
	struct rdma_request *q;

	for (;;) {
		rdma_hub_take_request(h, &q);
		if (!q)
			return;
		h->v->cm_reject(q->id, &refuse, sizeof(refuse));
		rdma_hub_drop_id(h, q->id);
		free(q);
	}
}

static void hub_free(struct rdma_hub *h)
{
	struct rdma_dev *d;

	if (h->cm)
		drop_requests(h);
	while ((d = h->devs)) {
		h->devs = d->next;
		rdma_dev_free(d);
	}
	if (h->cm)
		h->v->cm_destroy_event_channel(h->cm);
	closep(&h->timer_fd);
	closep(&h->request_fd);
	closep(&h->epoll_fd);
	free(h);
}

void rdma_hub_leave(struct rdma_hub *h)
{
	if (h && --h->n_users == 0)
		hub_free(h);
}

/* --- devices ------------------------------------------------------------------------ */

int rdma_hub_device(struct rdma_hub *h, struct ibv_context *ctx, uint32_t entries,
		    struct rdma_dev **ret, struct err *err)
{
	struct rdma_dev *d;
	int r;

	for (d = h->devs; d && (d->is_gone || d->ctx->device != ctx->device); d = d->next)
		;
	if (!d) {
		r = rdma_dev_new(h->v, ctx->device, h->epoll_fd, &h->sink->dev, &d, err);
		if (r)
			return r;
		d->hub = h;
		d->regions.most_bytes = h->options.memory_bytes;
		d->next = h->devs;
		h->devs = d;
	}
	r = rdma_dev_reserve(d, entries, err);
	if (r)
		return r;
	*ret = d;
	return 0;
}

static void mark_gone(struct rdma_hub *h, const struct ibv_device *device)
{
	for (struct rdma_dev *d = h->devs; d; d = d->next)
		if (d->ctx->device == device)
			d->is_gone = true;
	h->sink->on_removal(h, device);
}

/* Some drivers cannot remove a device while somebody has it open. */
static void drop_gone_devices(struct rdma_hub *h)
{
	struct rdma_dev **at = &h->devs, *d;

	while ((d = *at)) {
		if (!d->is_gone || d->cq_used) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		rdma_dev_free(d);
	}
}

bool rdma_hub_poll(struct rdma_hub *h)
{
	bool any = false;

	for (struct rdma_dev *d = h->devs; d; d = d->next)
		any |= rdma_dev_poll(d);
	return any;
}

/* --- other events ------------------------------------------------------------------------- */

static void read_cm(struct rdma_hub *h)
{
	struct rdma_cm_event *e;

	while (!h->v->cm_get_cm_event(h->cm, &e)) {
		struct rdma_cm_id *id = e->id;
		struct rdma_request *q = NULL;

		if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			q = calloc(1, sizeof(*q));
			if (q) {
				q->id = id;
				q->n_data = e->param.conn.private_data_len;
				if (q->n_data > sizeof(q->data))
					q->n_data = sizeof(q->data);
				if (q->n_data)
					memcpy(q->data, e->param.conn.private_data, q->n_data);
				*h->last_request = q;
				h->last_request = &q->next;
				/* the reader of this event may be a link; the listener accepts */
				eventfd_write(h->request_fd, 1);
			}
			h->v->cm_ack_cm_event(e);
			id->context = NULL; /* not the listener's */
			if (!q)
				rdma_hub_drop_id(h, id);
			continue;
		}
		if (id->context)
			h->sink->on_cm_event(id->context, e);
		else if (id == h->listening && e->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
			if (id->verbs)
				mark_gone(h, id->verbs->device);
			h->is_removed = true;
			eventfd_write(h->request_fd, 1);
		}
		h->v->cm_ack_cm_event(e);
	}
}

static void read_timer(struct rdma_hub *h)
{
	uint64_t n;

	if (read(h->timer_fd, &n, sizeof(n)) != sizeof(n))
		return;
	h->ticks++; /* one tick, also after a stop of minutes: what came meanwhile is still to be
		       read */
	h->sink->on_tick(h);
	drop_gone_devices(h);
}

void rdma_hub_look(struct rdma_hub *h)
{
	struct epoll_event ready[8];
	struct rdma_dev *d;
	int i, n;

	h->is_armed = false;
	h->rounds = 0;
	n = epoll_wait(h->epoll_fd, ready, 8, 0);
	for (i = 0; i < n; i++) {
		void *tag = ready[i].data.ptr;

		if (tag == h->cm)
			read_cm(h);
		else if (tag == &h->timer_fd)
			read_timer(h);
		for (d = h->devs; d; d = d->next) {
			if (tag == d)
				rdma_dev_read_channel(d);
			else if (tag == d->ctx)
				rdma_dev_read_events(d);
		}
	}
}

void rdma_hub_glance(struct rdma_hub *h)
{
	uint64_t now_ns;

	if (h->is_armed) {
		rdma_hub_look(h);
		return;
	}
	if (++h->rounds < LOOK_ROUNDS)
		return;
	h->rounds = 0;
	now_ns = clock_now_ns();
	if (now_ns < h->look_ns)
		return;
	h->look_ns = now_ns + LOOK_NS;
	rdma_hub_look(h);
}

void rdma_hub_take_request(struct rdma_hub *h, struct rdma_request **ret)
{
	struct rdma_request *q = h->requests;
	eventfd_t unused;

	if (q) {
		h->requests = q->next;
		if (!h->requests) {
			h->last_request = &h->requests;
			eventfd_read(h->request_fd, &unused);
		}
	}
	*ret = q;
}

bool rdma_hub_take_removal(struct rdma_hub *h)
{
	eventfd_t unused;

	if (!h->is_removed)
		return false;
	h->is_removed = false;
	drop_requests(h);
	eventfd_read(h->request_fd, &unused);
	return true;
}
