/* How the two ends of an rdma link meet: librdmacm, driven by its events. Each end shows
 * a hello (rdma-hello.h) in the private data of the connection; who does not is refused.
 * Queue pairs are made and moved through their states here and in rdma-qp.c, not by
 * librdmacm, so that a link can have several and its options are its own.
 *
 *   connecting: address → route → request → (its answer) → up
 *   accepting:  request → accepted → established, or the first piece → up */
#include "links/rdma/connect.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "links/address.h"
#include "links/rdma/address.h"
#include "links/rdma/error.h"
#include "links/rdma/qp.h"
#include "links/rdma/rdma.h"
#include "links/rdma/receive.h"
#include "links/wait.h"

#define RESOLVE_MS \
	10000 /* each of address and route; on a busy machine the kernel is late to look */

/* --- the request and its answer ------------------------------------------------------- */

static void fill_param(const struct rdma_link *r, const struct rdma_hello *hello,
		       struct rdma_conn_param *p)
{
	*p = (struct rdma_conn_param){
		.private_data = hello,
		.private_data_len = sizeof(*hello),
		.retry_count = (uint8_t)r->hub->options.retry_count,
		.rnr_retry_count = 6,
		.qp_num = r->qps[0].qp->qp_num,
	};
}

static void take_hello(struct rdma_link *r, const struct rdma_hello *h)
{
	r->peer = *h;
	r->tx_window = h->window < RDMA_WINDOW ? h->window : RDMA_WINDOW;
	r->tx_slot_bytes = h->slot_bytes < RDMA_SLOT_BYTES ? h->slot_bytes : RDMA_SLOT_BYTES;
}

static int ask(struct rdma_link *r, struct err *err)
{
	struct rdma_conn_param param;
	struct rdma_hello hello;
	int rc = rdma_link_setup(r, err);

	if (rc)
		return rc;
	rdma_link_hello(r, &hello);
	fill_param(r, &hello, &param);
	if (r->hub->v->cm_connect(r->id, &param))
		return err_set(err, errno, "the request cannot be sent: %s", strerror(errno));
	rdma_set_state(r, RDMA_ASKED);
	return 0;
}

static int on_answer(struct rdma_link *r, const struct rdma_cm_event *e, struct err *err)
{
	struct rdma_hello hello;
	int rc = rdma_hello_check(e->param.conn.private_data, e->param.conn.private_data_len,
				  &hello, err);

	if (rc)
		return rc;
	if (hello.n_qps != r->n_qps)
		return err_set(err, EPROTO, "it answered with %u queue pairs, not %u", hello.n_qps,
			       r->n_qps);
	take_hello(r, &hello);
	rc = rdma_link_to_rts(r, err);
	if (rc)
		return rc;
	if (r->hub->v->cm_establish(r->id))
		return err_set(err, errno, "the connection cannot be confirmed: %s",
			       strerror(errno));
	rdma_set_state(r, RDMA_UP);
	return 0;
}

static int on_refused(const struct rdma_cm_event *e, struct err *err)
{
	/* 28: by the consumer, who says why; 8: nobody listens at that port */
	if (e->status == 28)
		return err_set(err, ECONNREFUSED, "%s",
			       rdma_refuse_text(e->param.conn.private_data,
						e->param.conn.private_data_len));
	if (e->status == 8)
		return err_set(err, ECONNREFUSED, "nobody listens there");
	return err_set(err, ECONNREFUSED,
		       "the request was refused (reason %d of the connection manager)", e->status);
}

/* Of all events but a refusal: a negative errno. */
static const char *status_text(const struct rdma_cm_event *e)
{
	return strerror(e->status < 0 ? -e->status : e->status);
}

static int step(struct rdma_link *r, const struct rdma_cm_event *e, struct err *err)
{
	const struct verbs *v = r->hub->v;

	switch ((int)e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (v->cm_resolve_route(r->id, RESOLVE_MS))
			return err_set(err, errno, "no route: %s", strerror(errno));
		rdma_set_state(r, RDMA_ROUTING);
		return 0;
	case RDMA_CM_EVENT_ADDR_ERROR:
		return err_set(err, EHOSTUNREACH,
			       "no RDMA device of this host reaches that address "
			       "(RDMA_CM_EVENT_ADDR_ERROR: %s); `nbox doctor` lists them",
			       status_text(e));
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return ask(r, err);
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return err_set(err, EHOSTUNREACH,
			       "no route to that address (RDMA_CM_EVENT_ROUTE_ERROR: %s)",
			       status_text(e));
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return r->state == RDMA_ASKED ? on_answer(r, e, err) : 0;
	case RDMA_CM_EVENT_UNREACHABLE:
		return err_set(err, ETIMEDOUT,
			       "no answer to the request (RDMA_CM_EVENT_UNREACHABLE: %s)",
			       status_text(e));
	case RDMA_CM_EVENT_REJECTED:
		return on_refused(e, err);
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return err_set(err, EPROTO,
			       "the connection could not be made (RDMA_CM_EVENT_CONNECT_ERROR: %s)",
			       status_text(e));
	case RDMA_CM_EVENT_ESTABLISHED:
		if (r->state == RDMA_ACCEPTED)
			rdma_set_state(r, RDMA_UP);
		return 0;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (r->dev)
			r->dev->is_gone = true;
		return err_set(err, ENODEV,
			       "the device was removed (RDMA_CM_EVENT_DEVICE_REMOVAL)");
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_set_state(r, RDMA_LEFT);
		return 0;
	default: /* TIMEWAIT_EXIT, ADDR_CHANGE: of no consequence */
		return 0;
	}
}

static void on_cm_event(struct rdma_link *r, const struct rdma_cm_event *e)
{
	struct err err;
	int rc;

	if (r->state == RDMA_ENDED)
		return;
	rc = step(r, e, &err);
	if (rc)
		rdma_fail(r, rc, "%s", err.text);
}

const struct rdma_hub_sink rdma_links = {
	.dev =
		{
			.on_completion = rdma_on_completion,
			.on_event = rdma_on_device_event,
			.on_failure = rdma_on_device_failure,
		},
	.on_cm_event = on_cm_event,
	.on_tick = rdma_on_tick,
	.on_removal = rdma_on_device_removal,
};

/* --- connecting ------------------------------------------------------------------------- */

static int open_id(struct rdma_link *r, struct err *err)
{
	struct rdma_hub *h = r->hub;
	uint8_t tos = (uint8_t)h->options.traffic_class;

	int rc = rdma_hub_new_id(h, r, &r->id, err);

	if (rc)
		return rc;
	/* what cannot be set here is set on the queue pair */
	if (h->options.traffic_class >= 0)
		h->v->cm_set_option(r->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
	return 0;
}

static int begin_connect(struct rdma_link *r, struct sockaddr *to, struct err *err)
{
	struct rdma_hub *h = r->hub;
	struct sockaddr_storage from; /* family 0: the route decides */
	int rc = rdma_source_address(&h->options, to, &from, err);

	rc = rc < 0 ? rc : open_id(r, err);
	if (rc < 0)
		return rc;
	if (h->v->cm_resolve_addr(r->id, from.ss_family ? (struct sockaddr *)&from : NULL, to,
				  RESOLVE_MS))
		return err_set(err, errno, "the address cannot be resolved: %s", strerror(errno));
	rdma_set_state(r, RDMA_RESOLVING);
	return 0;
}

static int connect_to(struct rdma_link *r, struct sockaddr *to, uint64_t due_ns, struct err *err)
{
	char name[ERR_TEXT_MAX / 2];
	int rc = begin_connect(r, to, err);

	while (!rc && r->state < RDMA_UP) {
		rc = link_wait_fd(r->hub->epoll_fd, POLLIN, due_ns);
		if (rc)
			return err_set(
				err, -rc, "%s: %s", rdma_name(r, name, sizeof(name)),
				rc != -ETIMEDOUT ? strerror(-rc)
				: r->state == RDMA_ASKED
					? "the request is not answered in time: nboxd is stopped or "
					  "overloaded, or its host or network is down"
					: "the connection manager finds no way in time");
		rdma_hub_look(r->hub);
	}
	if (!rc && r->state == RDMA_ENDED)
		return err_set(err, r->code ? -r->code : ECONNRESET, "%s", r->why);
	return rc;
}

static int connect_one(struct rdma_hub *h, const struct addrinfo *ai, uint64_t due_ns,
		       const struct link_gpu *gpu, const struct link_events *ev, void *owner,
		       struct link **ret, struct err *err)
{
	struct rdma_link *r;
	int rc = rdma_link_new(h, ev, owner, &r);

	if (rc)
		return err_set(err, ENOMEM, "no memory for a link");
	link_addr_name("rdma", ai->ai_addr, r->link.peer, sizeof(r->link.peer));
	r->ring_gpu.from = gpu;
	r->link.discards_messages = gpu != NULL;
	rc = connect_to(r, ai->ai_addr, due_ns, err);
	if (rc) {
		rdma_link_free(r);
		return rc;
	}
	*ret = &r->link;
	return 0;
}

int rdma_connect_link(const struct link_addr *a, uint64_t due_ns, const struct link_gpu *gpu,
		      const struct link_events *ev, void *owner, struct link **ret, struct err *err)
{
	struct addrinfo *list = NULL, *ai;
	struct rdma_options o;
	struct rdma_hub *h = NULL;
	int rc = rdma_options_get(&o, err);

	rc = rc ? rc : rdma_hub_new(&o, &rdma_links, &h, err);
	if (rc)
		return rc;
	rc = link_addr_resolve(a, 0, &list, err);
	if (!rc)
		rc = -EADDRNOTAVAIL;
	for (ai = list; ai && rc && rc != -ETIMEDOUT; ai = ai->ai_next)
		rc = connect_one(h, ai, due_ns, gpu, ev, owner, ret, err);
	if (list)
		freeaddrinfo(list);
	rdma_hub_leave(h); /* the link keeps it */
	return rc;
}

/* --- accepting ---------------------------------------------------------------------------- */

static void refuse(struct rdma_hub *h, struct rdma_cm_id *id, enum rdma_refusal reason)
{
	const struct rdma_refuse refuse = {RDMA_HELLO_MAGIC, RDMA_HELLO_VERSION, (uint16_t)reason};

	h->v->cm_reject(id, &refuse, sizeof(refuse));
}

static int accept_hello(struct rdma_link *r, const struct rdma_hello *hello, struct err *err)
{
	struct rdma_conn_param param;
	struct rdma_hello answer;
	int rc;

	r->n_qps = hello->n_qps;
	take_hello(r, hello);
	rc = rdma_link_setup(r, err);
	rc = rc ? rc : rdma_link_to_rts(r, err);
	if (rc)
		return rc;
	rdma_link_hello(r, &answer);
	fill_param(r, &answer, &param);
	if (r->hub->v->cm_accept(r->id, &param))
		return err_set(err, errno, "%s cannot be accepted: %s", r->link.peer,
			       strerror(errno));
	rdma_set_state(r, RDMA_ACCEPTED);
	return 0;
}

int rdma_accept_request(struct rdma_hub *h, struct rdma_request *q, const struct link_events *ev,
			void *owner, struct link **ret, struct err *err)
{
	char name[ERR_TEXT_MAX / 2];
	struct rdma_hello hello;
	struct rdma_link *r;
	int rc = rdma_hello_check(q->data, q->n_data, &hello, err);

	if (rc)
		refuse(h, q->id,
		       rc == -EPROTONOSUPPORT ? RDMA_REFUSED_VERSION : RDMA_REFUSED_GARBAGE);
	if (!rc && rdma_link_new(h, ev, owner, &r))
		rc = err_set(err, ENOMEM, "no memory for a link");
	if (rc) {
		rdma_hub_drop_id(h, q->id);
		return rc;
	}
	r->id = q->id;
	r->id->context = r;
	link_addr_name("rdma", &r->id->route.addr.dst_addr, r->link.peer, sizeof(r->link.peer));
	rc = accept_hello(r, &hello, err);
	if (!rc) {
		*ret = &r->link;
		return 0;
	}
	refuse(h, r->id, RDMA_REFUSED_RESOURCES);
	err_prefix(err, rc, "%s", rdma_name(r, name, sizeof(name)));
	rdma_set_state(r, RDMA_ENDED);
	rdma_link_free(r);
	return rc;
}
