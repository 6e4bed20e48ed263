/* See error.h: what the statuses of completions and the events of devices mean, and what to do
 * about them. */
#include "links/rdma/error.h"

#include <errno.h>

static const struct {
	enum ibv_wc_status status;
	int code;
	const char *name, *advice;
} statuses[] = {
	{IBV_WC_LOC_LEN_ERR, EPROTO, "LOC_LEN_ERR", "a message was longer than its buffer"},
	{IBV_WC_LOC_QP_OP_ERR, EIO, "LOC_QP_OP_ERR", "the device could not carry out the request"},
	{IBV_WC_LOC_PROT_ERR, EFAULT, "LOC_PROT_ERR",
	 "memory that was sent from is not registered any more: it was unmapped under the link"},
	{IBV_WC_MW_BIND_ERR, EIO, "MW_BIND_ERR", ""},
	{IBV_WC_BAD_RESP_ERR, EPROTO, "BAD_RESP_ERR", "the other end's answer makes no sense"},
	{IBV_WC_LOC_ACCESS_ERR, EFAULT, "LOC_ACCESS_ERR", "the other end wrote where it may not"},
	{IBV_WC_REM_INV_REQ_ERR, EPROTO, "REM_INV_REQ_ERR", "the other end refused the request"},
	{IBV_WC_REM_ACCESS_ERR, EACCES, "REM_ACCESS_ERR",
	 "the other end's memory is not there (any more), or not ours to write"},
	{IBV_WC_REM_OP_ERR, EREMOTEIO, "REM_OP_ERR", "the other end could not carry it out"},
	{IBV_WC_RETRY_EXC_ERR, ETIMEDOUT, "RETRY_EXC_ERR",
	 "the other end does not answer: its host or port is down, the network loses packets (RoCE "
	 "wants a lossless class: NBOX_IB_TC), or NBOX_IB_TIMEOUT is too short"},
	{IBV_WC_RNR_RETRY_EXC_ERR, EPROTO, "RNR_RETRY_EXC_ERR",
	 "the other end had no receive posted: it broke the rules of the window"},
	{IBV_WC_REM_ABORT_ERR, ECONNABORTED, "REM_ABORT_ERR", "the other end aborted"},
	{IBV_WC_FATAL_ERR, EIO, "FATAL_ERR", "the device failed"},
	{IBV_WC_RESP_TIMEOUT_ERR, ETIMEDOUT, "RESP_TIMEOUT_ERR", "the other end does not answer"},
	{IBV_WC_WR_FLUSH_ERR, ECONNRESET, "WR_FLUSH_ERR",
	 "the queue pair was stopped by an error or by the other end"},
};

static size_t row_of(enum ibv_wc_status s)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(statuses) && statuses[i].status != s; i++)
		;
	return i;
}

void rdma_fail_status(struct rdma_link *l, const struct ibv_wc *wc)
{
	size_t i = row_of(wc->status);
	const char *down = l->port_down_tick ? "the port is down; " : "";

	if (i == ARRAY_SIZE(statuses))
		rdma_fail(l, -EIO, "%swork completed with status %d (%s, vendor 0x%x)", down,
			  wc->status, l->hub->v->wc_status_str(wc->status), wc->vendor_err);
	else
		rdma_fail(l, -statuses[i].code, "%sIBV_WC_%s (vendor 0x%x): %s", down,
			  statuses[i].name, wc->vendor_err, statuses[i].advice);
}

/* --- events of a device ------------------------------------------------------------- */

static void port_event(struct rdma_dev *d, uint32_t port, bool is_down)
{
	struct rdma_link *l;

	for (l = d->hub->links; l; l = l->next)
		if (l->dev == d && l->port == port)
			l->port_down_tick = is_down ? d->hub->ticks + 1 : 0;
}

static void all_fail(struct rdma_dev *d, int code, const char *what)
{
	struct rdma_link *l;

	for (l = d->hub->links; l; l = l->next)
		if (l->dev == d)
			rdma_fail(l, code, "%s", what);
}

static void qp_event(struct rdma_dev *d, const struct ibv_async_event *e)
{
	struct rdma_link *l;

	for (l = d->hub->links; l; l = l->next)
		for (uint32_t i = 0; i < l->n_qps; i++)
			if (l->qps[i].qp && l->qps[i].qp == e->element.qp) {
				l->bad_qp = (uint8_t)i;
				rdma_fail(l, -EIO, "%s", d->hub->v->event_type_str(e->event_type));
			}
}

void rdma_on_device_event(struct rdma_dev *d, const struct ibv_async_event *e)
{
	switch ((int)e->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		d->is_gone = true;
		all_fail(d, -ENODEV, "the device failed or was removed (IBV_EVENT_DEVICE_FATAL)");
		break;
	case IBV_EVENT_CQ_ERR:
		all_fail(d, -EIO, "the completion queue overran (IBV_EVENT_CQ_ERR)");
		break;
	case IBV_EVENT_PORT_ERR:
		port_event(d, (uint32_t)e->element.port_num, true);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		port_event(d, (uint32_t)e->element.port_num, false);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		qp_event(d, e);
		break;
	default: /* addresses and partitions: an established connection does not care */
		break;
	}
}

void rdma_on_device_failure(struct rdma_dev *d, const char *what, const char *status)
{
	struct rdma_link *l;

	for (l = d->hub->links; l; l = l->next)
		if (l->dev == d)
			rdma_fail(l, -EIO,
				  "%s (%s): the device or its driver fails, see the kernel's log",
				  what, status);
}

void rdma_on_device_removal(struct rdma_hub *h, const struct ibv_device *device)
{
	for (struct rdma_link *l = h->links; l; l = l->next)
		if (l->dev && l->dev->ctx->device == device)
			rdma_fail(l, -ENODEV,
				  "the device was removed (RDMA_CM_EVENT_DEVICE_REMOVAL)");
}
