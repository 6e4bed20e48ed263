/* See connect.h: how the two ends of an rdma link meet, driven by the events of librdmacm. Each
 * end shows a hello (hello.h) in the private data of the connection, and refuses a peer without
 * one. This file and qp.c make the queue pairs and move them through their states, not librdmacm,
 * so that a link can have several queue pairs with options of its own. */
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

static void fill_param(const struct rdma_link *l, const struct rdma_hello *hello,
		       struct rdma_conn_param *p)
{
	*p = (struct rdma_conn_param){
		.private_data = hello,
		.private_data_len = sizeof(*hello),
		.responder_resources = l->dev->can_read,
		.initiator_depth = l->dev->can_read,
		.retry_count = (uint8_t)l->hub->options.retry_count,
		.rnr_retry_count = 6,
		.qp_num = l->qps[0].qp->qp_num,
	};
}

static void take_hello(struct rdma_link *l, const struct rdma_hello *h)
{
	l->peer = *h;
	l->tx_window = h->window < RDMA_WINDOW ? h->window : RDMA_WINDOW;
	l->tx_slot_bytes = h->slot_bytes < RDMA_SLOT_BYTES ? h->slot_bytes : RDMA_SLOT_BYTES;
}

static int ask(struct rdma_link *l, struct err *err)
{
	struct rdma_conn_param param;
	struct rdma_hello hello;
	int r = rdma_link_setup(l, err);

	if (r)
		return r;
	rdma_link_hello(l, &hello);
	fill_param(l, &hello, &param);
	if (l->hub->v->cm_connect(l->id, &param))
		return err_set(err, errno, "the request cannot be sent: %s", strerror(errno));
	rdma_set_state(l, RDMA_ASKED);
	return 0;
}

static int on_answer(struct rdma_link *l, const struct rdma_cm_event *e, struct err *err)
{
	struct rdma_hello hello;
	int r = rdma_hello_check(e->param.conn.private_data, e->param.conn.private_data_len, &hello,
				 err);

	if (r)
		return r;
	if (hello.n_qps != l->n_qps)
		return err_set(err, EPROTO, "it answered with %u queue pairs, not %u", hello.n_qps,
			       l->n_qps);
	take_hello(l, &hello);
	r = rdma_link_to_rts(l, err);
	if (r)
		return r;
	if (l->hub->v->cm_establish(l->id))
		return err_set(err, errno, "the connection cannot be confirmed: %s",
			       strerror(errno));
	rdma_set_state(l, RDMA_UP);
	return 0;
}

static int on_refused(const struct rdma_cm_event *e, struct err *err)
{
	/* 28: nboxd refused and says why; 8: nobody listens at that port */
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

static int step(struct rdma_link *l, const struct rdma_cm_event *e, struct err *err)
{
	const struct verbs *v = l->hub->v;

	switch ((int)e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (v->cm_resolve_route(l->id, RESOLVE_MS))
			return err_set(err, errno, "no route: %s", strerror(errno));
		rdma_set_state(l, RDMA_ROUTING);
		return 0;
	case RDMA_CM_EVENT_ADDR_ERROR:
		return err_set(err, EHOSTUNREACH,
			       "no RDMA device of this host reaches that address "
			       "(RDMA_CM_EVENT_ADDR_ERROR: %s); `nbox doctor` lists them",
			       status_text(e));
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return ask(l, err);
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return err_set(err, EHOSTUNREACH,
			       "no route to that address (RDMA_CM_EVENT_ROUTE_ERROR: %s)",
			       status_text(e));
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return l->state == RDMA_ASKED ? on_answer(l, e, err) : 0;
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
		if (l->state == RDMA_ACCEPTED)
			rdma_set_state(l, RDMA_UP);
		return 0;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (l->dev)
			l->dev->is_gone = true;
		return err_set(err, ENODEV,
			       "the device was removed (RDMA_CM_EVENT_DEVICE_REMOVAL)");
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_set_state(l, RDMA_LEFT);
		return 0;
	default: /* TIMEWAIT_EXIT, ADDR_CHANGE: of no consequence */
		return 0;
	}
}

static void on_cm_event(struct rdma_link *l, const struct rdma_cm_event *e)
{
	struct err err;
	int r;

	if (l->state == RDMA_ENDED)
		return;
	r = step(l, e, &err);
	if (r)
		rdma_fail(l, r, "%s", err.text);
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

static int open_id(struct rdma_link *l, struct err *err)
{
	struct rdma_hub *h = l->hub;
	uint8_t tos = (uint8_t)h->options.traffic_class;

	int r = rdma_hub_new_id(h, l, &l->id, err);

	if (r)
		return r;
	/* where this fails, qp.c sets it on the queue pair */
	if (h->options.traffic_class >= 0)
		h->v->cm_set_option(l->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
	return 0;
}

static int begin_connect(struct rdma_link *l, struct sockaddr *to, struct err *err)
{
	struct rdma_hub *h = l->hub;
	struct sockaddr_storage from; /* family 0: the route decides */
	int r = rdma_source_address(&h->options, to, &from, err);

	r = r < 0 ? r : open_id(l, err);
	if (r < 0)
		return r;
	if (h->v->cm_resolve_addr(l->id, from.ss_family ? (struct sockaddr *)&from : NULL, to,
				  RESOLVE_MS))
		return err_set(err, errno, "the address cannot be resolved: %s", strerror(errno));
	rdma_set_state(l, RDMA_RESOLVING);
	return 0;
}

static int connect_to(struct rdma_link *l, struct sockaddr *to, uint64_t due_ns, struct err *err)
{
	char name[ERR_TEXT_MAX / 2];
	int r = begin_connect(l, to, err);

	while (!r && l->state < RDMA_UP) {
		r = link_wait_fd(l->hub->epoll_fd, POLLIN, due_ns);
		if (r)
			return err_set(
				err, -r, "%s: %s", rdma_name(l, name, sizeof(name)),
				r != -ETIMEDOUT ? strerror(-r)
				: l->state == RDMA_ASKED
					? "the request is not answered in time: nboxd is stopped or "
					  "overloaded, or its host or network is down"
					: "the connection manager finds no way in time");
		rdma_hub_look(l->hub);
	}
	if (!r && l->state == RDMA_ENDED)
		return err_set(err, l->code ? -l->code : ECONNRESET, "%s", l->why);
	return r;
}

static int connect_one(struct rdma_hub *h, const struct addrinfo *ai, uint64_t due_ns,
		       const struct link_gpu *gpu, const struct link_events *ev, void *owner,
		       struct link **ret, struct err *err)
{
	struct rdma_link *l;
	int r = rdma_link_new(h, ev, owner, &l);

	if (r)
		return err_set(err, ENOMEM, "no memory for a link");
	link_addr_name("rdma", ai->ai_addr, l->link.peer, sizeof(l->link.peer));
	l->ring_gpu.from = gpu;
	l->link.discards_messages = gpu != NULL;
	r = connect_to(l, ai->ai_addr, due_ns, err);
	if (r) {
		rdma_link_free(l);
		return r;
	}
	*ret = &l->link;
	return 0;
}

int rdma_connect_link(const struct link_addr *a, uint64_t due_ns, const struct link_gpu *gpu,
		      const struct link_events *ev, void *owner, struct link **ret, struct err *err)
{
	struct addrinfo *list = NULL, *ai;
	struct rdma_options o;
	struct rdma_hub *h = NULL;
	int r = rdma_options_get(&o, err);

	r = r ? r : rdma_hub_new(&o, &rdma_links, &h, err);
	if (r)
		return r;
	r = link_addr_resolve(a, 0, &list, err);
	if (!r)
		r = -EADDRNOTAVAIL;
	for (ai = list; ai && r && r != -ETIMEDOUT; ai = ai->ai_next)
		r = connect_one(h, ai, due_ns, gpu, ev, owner, ret, err);
	if (list)
		freeaddrinfo(list);
	rdma_hub_leave(h); /* the link keeps it */
	return r;
}

/* --- accepting ---------------------------------------------------------------------------- */

static void refuse(struct rdma_hub *h, struct rdma_cm_id *id, enum rdma_refusal reason)
{
	const struct rdma_refuse refuse = {RDMA_HELLO_MAGIC, RDMA_HELLO_VERSION, (uint16_t)reason};

	h->v->cm_reject(id, &refuse, sizeof(refuse));
}

static int accept_hello(struct rdma_link *l, const struct rdma_hello *hello, struct err *err)
{
	struct rdma_conn_param param;
	struct rdma_hello answer;
	int r;

	l->n_qps = hello->n_qps;
	take_hello(l, hello);
	r = rdma_link_setup(l, err);
	r = r ? r : rdma_link_to_rts(l, err);
	if (r)
		return r;
	rdma_link_hello(l, &answer);
	fill_param(l, &answer, &param);
	if (l->hub->v->cm_accept(l->id, &param))
		return err_set(err, errno, "%s cannot be accepted: %s", l->link.peer,
			       strerror(errno));
	rdma_set_state(l, RDMA_ACCEPTED);
	return 0;
}

int rdma_accept_request(struct rdma_hub *h, struct rdma_request *q, const struct link_events *ev,
			void *owner, struct link **ret, struct err *err)
{
	char name[ERR_TEXT_MAX / 2];
	struct rdma_hello hello;
	struct rdma_link *l;
	int r = rdma_hello_check(q->data, q->n_data, &hello, err);

	if (r)
		refuse(h, q->id,
		       r == -EPROTONOSUPPORT ? RDMA_REFUSED_VERSION : RDMA_REFUSED_GARBAGE);
	if (!r && rdma_link_new(h, ev, owner, &l))
		r = err_set(err, ENOMEM, "no memory for a link");
	if (r) {
		rdma_hub_drop_id(h, q->id);
		return r;
	}
	l->id = q->id;
	l->id->context = l;
	link_addr_name("rdma", &l->id->route.addr.dst_addr, l->link.peer, sizeof(l->link.peer));
	r = accept_hello(l, &hello, err);
	if (!r) {
		*ret = &l->link;
		return 0;
	}
	refuse(h, l->id, RDMA_REFUSED_RESOURCES);
	err_prefix(err, r, "%s", rdma_name(l, name, sizeof(name)));
	rdma_set_state(l, RDMA_ENDED);
	rdma_link_free(l);
	return r;
}
