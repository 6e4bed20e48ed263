/* What the rdma links of one thread share: the channel of the connection manager, and for
 * each device a completion queue, its channel and the device's own events. All
 * descriptors hang in one epoll descriptor, which is what a sleeper polls.
 *
 * The order before a sleep is the one that loses no wake-up: read the events of the
 * completion channel, acknowledge them, ask for the next, poll the queue once more.
 * While nobody sleeps no descriptor is looked at, but now and then. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "links/rdma-private.h"

#define BATCH 32
#define POLLS_MAX 64 /* batches in one go */
#define LOOK_ROUNDS 64
#define LOOK_NS (5 * NS_PER_MS)
#define CQ_ENTRIES 512 /* at first */

long rdma_tick_ms = 1000;

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

/* The tag is what became ready. */
static int watch(struct rdma_hub *h, int fd, void *tag)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = tag};
	int rc = set_nonblocking(fd);

	if (rc)
		return rc;
	return epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

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

/* librdmacm knows no device: there is none, or libibverbs has nothing to drive it with. */
static int no_channel(struct err *err, int code)
{
	bool is_none = code == ENODEV || code == ENOENT;
	char device[64];

	if (is_none && kernel_device(device, sizeof(device)))
		return err_set(err, code,
			       "rdma cannot be used here: the kernel has device %s, libibverbs does not: "
			       "its provider is missing (package ibverbs-providers), or /dev/infiniband "
			       "is (module ib_uverbs; in a container, --device); `nbox doctor` looks closer",
			       device);
	return err_set(err, code,
		       "rdma cannot be used here: %s (are the kernel modules rdma_ucm and ib_uverbs "
		       "loaded?); `nbox doctor` looks closer",
		       is_none ? "no RDMA device was found" : strerror(code));
}

int rdma_hub_new(const struct rdma_options *o, struct rdma_hub **ret, struct err *err)
{
	const struct itimerspec tick = {
		{rdma_tick_ms / 1000, rdma_tick_ms % 1000 * 1000000},
		{rdma_tick_ms / 1000, rdma_tick_ms % 1000 * 1000000}};
	CLEANUP(hub_freep) struct rdma_hub *h = NULL;
	const struct verbs *v;
	int rc = verbs_get(&v, err);

	if (rc)
		return rc;
	h = calloc(1, sizeof(*h));
	if (!h)
		return err_set(err, ENOMEM, "no memory");
	rdma_counts.made[RDMA_HUBS]++;
	h->v = v;
	h->options = *o;
	h->n_users = 1;
	h->last_request = &h->requests;
	h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	h->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	h->request_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (h->epoll_fd < 0 || h->timer_fd < 0 || h->request_fd < 0 || timerfd_settime(h->timer_fd, 0, &tick, NULL))
		return err_set(err, errno, "no descriptors for an rdma link: %s", strerror(errno));
	h->cm = v->cm_create_event_channel();
	if (!h->cm)
		return no_channel(err, errno);
	rc = watch(h, h->timer_fd, &h->timer_fd);
	rc = rc ? rc : watch(h, h->cm->fd, h->cm);
	rc = rc ? rc : watch(h, h->request_fd, &h->request_fd);
	if (rc)
		return err_set(err, -rc, "epoll: %s", strerror(-rc));
	*ret = steal_ptr(h);
	return 0;
}

static void dev_free(struct rdma_dev *d)
{
	const struct verbs *v = d->hub->v;

	rdma_regions_free(d);
	if (d->cq) {
		v->destroy_cq(d->cq);
		rdma_counts.gone[RDMA_CQS]++;
	}
	if (d->channel)
		v->destroy_comp_channel(d->channel);
	if (d->pd)
		v->dealloc_pd(d->pd);
	if (d->ctx)
		v->close_device(d->ctx);
	free(d);
}

int rdma_hub_new_id(struct rdma_hub *h, void *context, struct rdma_cm_id **ret, struct err *err)
{
	struct rdma_cm_id *id;

	if (h->v->cm_create_id(h->cm, &id, context, RDMA_PS_TCP))
		return err_set(err, errno, "no connection id: %s", strerror(errno));
	rdma_counts.made[RDMA_IDS]++;
	*ret = id;
	return 0;
}

void rdma_hub_drop_id(struct rdma_hub *h, struct rdma_cm_id *id)
{
	h->v->cm_destroy_id(id);
	rdma_counts.gone[RDMA_IDS]++;
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
		dev_free(d);
	}
	if (h->cm)
		h->v->cm_destroy_event_channel(h->cm);
	closep(&h->timer_fd);
	closep(&h->request_fd);
	closep(&h->epoll_fd);
	rdma_counts.gone[RDMA_HUBS]++;
	free(h);
}

void rdma_hub_leave(struct rdma_hub *h)
{
	if (h && --h->n_users == 0)
		hub_free(h);
}

/* --- devices ------------------------------------------------------------------------ */

static void dev_freep(struct rdma_dev **d)
{
	if (*d)
		dev_free(*d);
}

/* Opened once more, not librdmacm's context: that is the process's, and an event of the device
 * goes to one reader of a context only. */
static int dev_new(struct rdma_hub *h, struct ibv_device *device, struct rdma_dev **ret,
		   struct err *err)
{
	CLEANUP(dev_freep) struct rdma_dev *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return err_set(err, ENOMEM, "no memory");
	d->hub = h;
	strncpy(d->name, h->v->get_device_name(device), sizeof(d->name) - 1);
	d->ctx = h->v->open_device(device);
	if (!d->ctx)
		return err_set(err, errno ? errno : ENODEV, "device %s cannot be opened: %s", d->name,
			       strerror(errno ? errno : ENODEV));
	d->pd = h->v->alloc_pd(d->ctx);
	d->channel = d->pd ? h->v->create_comp_channel(d->ctx) : NULL;
	d->cq = d->channel ? h->v->create_cq(d->ctx, CQ_ENTRIES, NULL, d->channel, 0) : NULL;
	if (!d->cq)
		return err_set(err, errno ? errno : ENOMEM, "device %s gives no %s: %s", d->name,
			       !d->pd ? "protection domain" : !d->channel ? "completion channel"
									  : "completion queue",
			       strerror(errno));
	rdma_counts.made[RDMA_CQS]++;
	d->cq_entries = CQ_ENTRIES;
	rc = watch(h, d->channel->fd, d);
	/* the tag of the device's own events: its context */
	rc = rc ? rc : watch(h, d->ctx->async_fd, d->ctx);
	if (rc)
		return err_set(err, -rc, "epoll: %s", strerror(-rc));
	*ret = steal_ptr(d);
	return 0;
}

int rdma_hub_device(struct rdma_hub *h, struct ibv_context *ctx, uint32_t entries,
		    struct rdma_dev **ret, struct err *err)
{
	struct rdma_dev *d;
	uint32_t more;
	int rc;

	for (d = h->devs; d && (d->is_gone || d->ctx->device != ctx->device); d = d->next)
		;
	if (!d) {
		rc = dev_new(h, ctx->device, &d, err);
		if (rc)
			return rc;
		d->next = h->devs;
		h->devs = d;
	}
	for (more = d->cq_entries; more < d->cq_used + entries;)
		more *= 2;
	if (more > d->cq_entries) {
		rc = h->v->resize_cq(d->cq, (int)more);
		if (rc)
			return err_set(err, rc < 0 ? errno : rc,
				       "device %s: no room for another link in the completion queue "
				       "(%u entries, %u needed): %s",
				       d->name, d->cq_entries, d->cq_used + entries,
				       strerror(rc < 0 ? errno : rc));
		d->cq_entries = more;
	}
	d->cq_used += entries;
	*ret = d;
	return 0;
}

void rdma_dev_is_gone(struct rdma_hub *h, const struct ibv_device *device)
{
	for (struct rdma_dev *d = h->devs; d; d = d->next)
		if (d->ctx->device == device)
			d->is_gone = true;
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
		dev_free(d);
	}
}

static struct rdma_qp **bucket(struct rdma_dev *d, uint32_t number)
{
	return &d->qps[number % RDMA_QP_BUCKETS];
}

void rdma_dev_add_qp(struct rdma_dev *d, struct rdma_qp *q)
{
	struct rdma_qp **b = bucket(d, q->qp->qp_num);

	q->next = *b;
	*b = q;
}

void rdma_dev_remove_qp(struct rdma_dev *d, struct rdma_qp *q)
{
	struct rdma_qp **at = bucket(d, q->qp->qp_num);

	while (*at && *at != q)
		at = &(*at)->next;
	if (*at)
		*at = q->next;
}

/* --- completions ---------------------------------------------------------------------- */

/* Return: how many; a queue pair that is gone leaves some behind for nobody. */
static int poll_batch(struct rdma_dev *d)
{
	struct ibv_wc wc[BATCH];
	struct rdma_qp *q;
	int i, n = d->hub->v->poll_cq(d->cq, BATCH, wc);

	for (i = 0; i < n; i++) {
		for (q = *bucket(d, wc[i].qp_num); q && q->qp->qp_num != wc[i].qp_num; q = q->next)
			;
		if (q)
			rdma_on_completion(q, &wc[i]);
	}
	return n;
}

static void fail_all(struct rdma_dev *d, const char *what, const char *status)
{
	struct rdma_link *r;

	for (r = d->hub->links; r; r = r->next)
		if (r->dev == d)
			rdma_fail(r, -EIO,
				  "%s (%s): the device or its driver fails, see the kernel's log", what,
				  status);
}

static bool dev_poll(struct rdma_dev *d)
{
	int i, n = BATCH;
	bool any = false;

	for (i = 0; i < POLLS_MAX && n == BATCH; i++) {
		n = poll_batch(d);
		any |= n > 0;
	}
	if (n < 0) {
		char status[32];

		snprintf(status, sizeof(status), "ibv_poll_cq: %d", n);
		fail_all(d, "the completion queue cannot be read any more", status);
	}
	return any;
}

bool rdma_hub_poll(struct rdma_hub *h)
{
	bool any = false;

	for (struct rdma_dev *d = h->devs; d; d = d->next)
		any |= dev_poll(d);
	return any;
}

/* --- sleeping --------------------------------------------------------------------------- */

static void read_channel(struct rdma_dev *d)
{
	unsigned int n = 0;
	struct ibv_cq *cq;
	void *unused;

	/* each request gives one event at most: mostly no read that would find nothing */
	while (!d->hub->v->get_cq_event(d->channel, &cq, &unused)) {
		n++;
		d->armed = NOT_ARMED;
		if (d->n_notifies && --d->n_notifies == 0)
			break;
	}
	if (n)
		d->hub->v->ack_cq_events(d->cq, n);
	if (d->armed == NOT_ARMED)
		d->n_notifies = 0;
}

bool rdma_dev_arm(struct rdma_dev *d, bool for_all)
{
	int want = for_all ? ARMED_FOR_ALL : ARMED_FOR_PEER;

	d->hub->is_armed = true;
	if ((int)d->armed < want) {
		int rc = d->hub->v->req_notify_cq(d->cq, !for_all);

		if (rc) {
			char status[96];

			snprintf(status, sizeof(status), "ibv_req_notify_cq: %s",
				 strerror(rc < 0 ? errno : rc));
			fail_all(d, "it takes no request for events", status);
			return false;
		}
		d->n_notifies++;
		d->armed = for_all ? ARMED_FOR_ALL : ARMED_FOR_PEER;
	}
	return !dev_poll(d);
}

/* --- other events ------------------------------------------------------------------------- */

static void read_cm(struct rdma_hub *h)
{
	struct rdma_cm_event *e;

	while (!h->v->cm_get_cm_event(h->cm, &e)) {
		struct rdma_cm_id *id = e->id;
		struct rdma_request *q = NULL;

		if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			rdma_counts.made[RDMA_IDS]++;
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
				/* whoever reads this event may not be who accepts */
				eventfd_write(h->request_fd, 1);
			}
			h->v->cm_ack_cm_event(e);
			id->context = NULL; /* not the listener's */
			if (!q)
				rdma_hub_drop_id(h, id);
			continue;
		}
		if (id->context)
			rdma_on_cm_event(id->context, e);
		else if (id == h->listening && e->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
			if (id->verbs)
				rdma_dev_is_gone(h, id->verbs->device);
			h->is_removed = true;
			eventfd_write(h->request_fd, 1);
		}
		h->v->cm_ack_cm_event(e);
	}
}

static void read_device(struct rdma_hub *h, struct rdma_dev *d)
{
	struct ibv_async_event e;

	while (!h->v->get_async_event(d->ctx, &e)) {
		rdma_on_device_event(d, &e);
		h->v->ack_async_event(&e);
	}
}

static void read_timer(struct rdma_hub *h)
{
	struct rdma_link *r, *next;
	uint64_t n;

	if (read(h->timer_fd, &n, sizeof(n)) != sizeof(n))
		return;
	h->ticks += n;
	for (r = h->links; r; r = next) {
		next = r->next;
		rdma_on_tick(r);
	}
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
				read_channel(d);
			else if (tag == d->ctx)
				read_device(h, d);
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
