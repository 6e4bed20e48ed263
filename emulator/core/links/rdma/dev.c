/* See dev.h: the device's context, one completion queue for all queue pairs of the hub's links,
 * the channel that wakes a sleeper, and the device's own events.
 *
 * The order before a sleep loses no wake-up: read the events of the completion channel,
 * acknowledge them, ask for the next, poll the queue once more. */
#include "links/rdma/dev.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"

#define BATCH 32
#define POLLS_MAX 64   /* batches in one go */
#define CQ_ENTRIES 512 /* at first */

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

int rdma_watch(int epoll_fd, int fd, void *tag)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = tag};
	int r = set_nonblocking(fd);

	if (r)
		return r;
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

/* --- life ------------------------------------------------------------------------- */

void rdma_dev_free(struct rdma_dev *d)
{
	const struct verbs *v = d->v;

	rdma_regions_free(&d->regions);
	if (d->cq)
		v->destroy_cq(d->cq);
	if (d->channel)
		v->destroy_comp_channel(d->channel);
	if (d->pd)
		v->dealloc_pd(d->pd);
	if (d->ctx)
		v->close_device(d->ctx);
	free(d);
}

static void dev_freep(struct rdma_dev **d)
{
	if (*d)
		rdma_dev_free(*d);
}

/* Opened once more, not librdmacm's context: that is the process's, and an event of the device
 * goes to one reader of a context only. */
int rdma_dev_new(const struct verbs *v, struct ibv_device *device, int epoll_fd,
		 const struct rdma_dev_sink *sink, struct rdma_dev **ret, struct err *err)
{
	CLEANUP(dev_freep) struct rdma_dev *d = calloc(1, sizeof(*d));
	struct ibv_device_attr attr;
	int r;

	if (!d)
		return err_set(err, ENOMEM, "no memory");
	d->v = v;
	d->sink = sink;
	strncpy(d->name, v->get_device_name(device), sizeof(d->name) - 1);
	d->ctx = v->open_device(device);
	if (!d->ctx)
		return err_set(err, errno ? errno : ENODEV, "device %s cannot be opened: %s",
			       d->name, strerror(errno ? errno : ENODEV));
	d->pd = v->alloc_pd(d->ctx);
	d->channel = d->pd ? v->create_comp_channel(d->ctx) : NULL;
	d->cq = d->channel ? v->create_cq(d->ctx, CQ_ENTRIES, NULL, d->channel, 0) : NULL;
	if (!d->cq)
		return err_set(err, errno ? errno : ENOMEM, "device %s gives no %s: %s", d->name,
			       !d->pd        ? "protection domain"
			       : !d->channel ? "completion channel"
					     : "completion queue",
			       strerror(errno));
	d->can_read = !v->query_device(d->ctx, &attr) && attr.max_qp_rd_atom > 0 &&
		      attr.max_qp_init_rd_atom > 0;
	d->cq_entries = CQ_ENTRIES;
	d->regions.v = v;
	d->regions.pd = d->pd;
	d->regions.access = IBV_ACCESS_LOCAL_WRITE;
	r = rdma_watch(epoll_fd, d->channel->fd, d);
	/* the tag of the device's own events: its context */
	r = r ? r : rdma_watch(epoll_fd, d->ctx->async_fd, d->ctx);
	if (r)
		return err_set(err, -r, "epoll: %s", strerror(-r));
	*ret = steal_ptr(d);
	return 0;
}

int rdma_dev_reserve(struct rdma_dev *d, uint32_t entries, struct err *err)
{
	uint32_t more = d->cq_entries;
	int r;

	while (more < d->cq_used + entries)
		more *= 2;
	if (more > d->cq_entries) {
		r = d->v->resize_cq(d->cq, (int)more);
		if (r)
			return err_set(
				err, r < 0 ? errno : r,
				"device %s: no room for another link in the completion queue "
				"(%u entries, %u needed): %s",
				d->name, d->cq_entries, d->cq_used + entries,
				strerror(r < 0 ? errno : r));
		d->cq_entries = more;
	}
	d->cq_used += entries;
	return 0;
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

void rdma_dev_drop_qp(struct rdma_dev *d, struct rdma_qp *q)
{
	struct rdma_qp **at = bucket(d, q->qp->qp_num);

	while (*at && *at != q)
		at = &(*at)->next;
	if (*at)
		*at = q->next;
	d->v->destroy_qp(q->qp);
	q->qp = NULL;
}

/* --- completions ---------------------------------------------------------------------- */

/* Return: how many. Completions of a queue pair that is gone are dropped. */
static int poll_batch(struct rdma_dev *d)
{
	struct ibv_wc wc[BATCH];
	struct rdma_qp *q;
	int i, n = d->v->poll_cq(d->cq, BATCH, wc);

	for (i = 0; i < n; i++) {
		for (q = *bucket(d, wc[i].qp_num); q && q->qp->qp_num != wc[i].qp_num; q = q->next)
			;
		if (q)
			d->sink->on_completion(q, &wc[i]);
	}
	return n;
}

bool rdma_dev_poll(struct rdma_dev *d)
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
		d->sink->on_failure(d, "the completion queue cannot be read any more", status);
	}
	return any;
}

/* --- events --------------------------------------------------------------------------- */

void rdma_dev_read_channel(struct rdma_dev *d)
{
	unsigned int n = 0;
	struct ibv_cq *cq;
	void *unused;

	/* each request gives one event at most: mostly no read that would find nothing */
	while (!d->v->get_cq_event(d->channel, &cq, &unused)) {
		n++;
		d->armed = NOT_ARMED;
		if (d->n_notifies && --d->n_notifies == 0)
			break;
	}
	if (n)
		d->v->ack_cq_events(d->cq, n);
	if (d->armed == NOT_ARMED)
		d->n_notifies = 0;
}

bool rdma_dev_arm(struct rdma_dev *d, bool for_all)
{
	int want = for_all ? ARMED_FOR_ALL : ARMED_FOR_PEER;

	if ((int)d->armed < want) {
		int r = d->v->req_notify_cq(d->cq, !for_all);

		if (r) {
			char status[96];

			snprintf(status, sizeof(status), "ibv_req_notify_cq: %s",
				 strerror(r < 0 ? errno : r));
			d->sink->on_failure(d, "it takes no request for events", status);
			return false;
		}
		d->n_notifies++;
		d->armed = for_all ? ARMED_FOR_ALL : ARMED_FOR_PEER;
	}
	return !rdma_dev_poll(d);
}

void rdma_dev_read_events(struct rdma_dev *d)
{
	const struct verbs *v = d->v;
	struct ibv_async_event e;

	while (!v->get_async_event(d->ctx, &e)) {
		d->sink->on_event(d, &e);
		v->ack_async_event(&e);
	}
}
