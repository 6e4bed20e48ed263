/* A device as the links of one hub use it: its context, one completion queue for all their queue
 * pairs, the channel that wakes a sleeper, and what the device says of itself.
 *
 * The order before a sleep is the one that loses no wake-up: read the events of the
 * completion channel, acknowledge them, ask for the next, poll the queue once more. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "links/rdma/private.h"

#define BATCH 32
#define POLLS_MAX 64   /* batches in one go */
#define CQ_ENTRIES 512 /* at first */

/* --- life ------------------------------------------------------------------------- */

void rdma_dev_free(struct rdma_dev *d)
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

static void dev_freep(struct rdma_dev **d)
{
	if (*d)
		rdma_dev_free(*d);
}

/* Opened once more, not librdmacm's context: that is the process's, and an event of the device
 * goes to one reader of a context only. */
int rdma_dev_new(struct rdma_hub *h, struct ibv_device *device, struct rdma_dev **ret,
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
		return err_set(err, errno ? errno : ENODEV, "device %s cannot be opened: %s",
			       d->name, strerror(errno ? errno : ENODEV));
	d->pd = h->v->alloc_pd(d->ctx);
	d->channel = d->pd ? h->v->create_comp_channel(d->ctx) : NULL;
	d->cq = d->channel ? h->v->create_cq(d->ctx, CQ_ENTRIES, NULL, d->channel, 0) : NULL;
	if (!d->cq)
		return err_set(err, errno ? errno : ENOMEM, "device %s gives no %s: %s", d->name,
			       !d->pd        ? "protection domain"
			       : !d->channel ? "completion channel"
					     : "completion queue",
			       strerror(errno));
	rdma_counts.made[RDMA_CQS]++;
	d->cq_entries = CQ_ENTRIES;
	rc = rdma_hub_watch(h, d->channel->fd, d);
	/* the tag of the device's own events: its context */
	rc = rc ? rc : rdma_hub_watch(h, d->ctx->async_fd, d->ctx);
	if (rc)
		return err_set(err, -rc, "epoll: %s", strerror(-rc));
	*ret = steal_ptr(d);
	return 0;
}

int rdma_dev_reserve(struct rdma_dev *d, uint32_t entries, struct err *err)
{
	uint32_t more = d->cq_entries;
	int rc;

	while (more < d->cq_used + entries)
		more *= 2;
	if (more > d->cq_entries) {
		rc = d->hub->v->resize_cq(d->cq, (int)more);
		if (rc)
			return err_set(
				err, rc < 0 ? errno : rc,
				"device %s: no room for another link in the completion queue "
				"(%u entries, %u needed): %s",
				d->name, d->cq_entries, d->cq_used + entries,
				strerror(rc < 0 ? errno : rc));
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
				  "%s (%s): the device or its driver fails, see the kernel's log",
				  what, status);
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
		fail_all(d, "the completion queue cannot be read any more", status);
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
	return !rdma_dev_poll(d);
}

void rdma_dev_read_events(struct rdma_dev *d)
{
	const struct verbs *v = d->hub->v;
	struct ibv_async_event e;

	while (!v->get_async_event(d->ctx, &e)) {
		rdma_on_device_event(d, &e);
		v->ack_async_event(&e);
	}
}
