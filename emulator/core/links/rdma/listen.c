/* See listen.h. A listener listens at a port of one device. When the device is removed, the
 * listener says so. Then it tries once a second to listen at the same address again. It does not
 * accept: connect.c does. */
#include "links/rdma/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "links/address.h"
#include "links/kind.h"
#include "links/rdma/address.h"
#include "links/rdma/connect.h"
#include "links/rdma/hub.h"

#define BACKLOG 128

struct rdma_listener {
	struct rdma_hub *hub;       /* shared with the links that were accepted */
	struct rdma_cm_id *id;      /* NULL: the device was removed and is not back yet */
	struct sockaddr_storage at; /* with the real port */
	uint64_t tried_tick;
};

static int listen_one(struct rdma_hub *h, const struct sockaddr *at, struct rdma_cm_id **ret,
		      struct err *err)
{
	struct rdma_cm_id *id;
	char name[LINK_PEER_MAX];
	int r = rdma_hub_new_id(h, NULL, &id, err), code;

	if (r)
		return r;
	if (!h->v->cm_bind_addr(id, (struct sockaddr *)(uintptr_t)at) &&
	    !h->v->cm_listen(id, BACKLOG)) {
		*ret = id;
		return 0;
	}
	code = errno;
	rdma_hub_drop_id(h, id);
	link_addr_name("rdma", at, name, sizeof(name));
	if (code == EADDRINUSE)
		return err_set(
			err, EADDRINUSE,
			"another nboxd (or program) listens at %s; stop it or choose another "
			"--addr",
			name);
	if (code == ENODEV || code == EADDRNOTAVAIL)
		return err_set(err, code,
			       "cannot listen at %s: no RDMA device of this host has that address; "
			       "`nbox doctor` lists them",
			       name);
	return err_set(err, code, "cannot listen at %s: %s", name, strerror(code));
}

static int listen_at_host(struct rdma_hub *h, const struct link_addr *a, struct rdma_cm_id **ret,
			  struct err *err)
{
	struct addrinfo *list, *ai;
	int r = link_addr_resolve(a, AI_PASSIVE, &list, err);

	if (r)
		return r;
	r = -EADDRNOTAVAIL;
	for (ai = list; ai && r; ai = ai->ai_next)
		r = listen_one(h, ai->ai_addr, ret, err);
	freeaddrinfo(list);
	return r;
}

static int listen_at_device(struct rdma_hub *h, const char *port, struct rdma_cm_id **ret,
			    struct err *err)
{
	struct sockaddr_storage at;
	int r = rdma_own_address(&h->options, &at, err);

	if (r)
		return r;
	/* sin_port and sin6_port have the same offset */
	((struct sockaddr_in *)&at)->sin_port = htons((uint16_t)atoi(port));
	return listen_one(h, (struct sockaddr *)&at, ret, err);
}

static void name_listener(const struct rdma_listener *l, char *buf, size_t size)
{
	link_addr_name("rdma", (const struct sockaddr *)&l->at, buf, size);
}

int rdma_listener_open(const struct link_addr *a, struct rdma_listener **ret, char *text,
		       size_t size, struct err *err)
{
	CLEANUP(freep) struct rdma_listener *l = calloc(1, sizeof(*l));
	struct rdma_options o;
	int r = l ? rdma_options_get(&o, err) : err_set(err, ENOMEM, "no memory");

	r = r ? r : rdma_hub_new(&o, &rdma_links, &l->hub, err);
	if (r)
		return r;
	if (strcmp(a->host, "auto") == 0)
		r = listen_at_device(l->hub, a->port, &l->id, err);
	else
		r = listen_at_host(l->hub, a, &l->id, err);
	if (r) {
		rdma_hub_leave(l->hub);
		return r;
	}
	memcpy(&l->at, &l->id->route.addr.src_storage, sizeof(l->at));
	name_listener(l, text, size);
	l->hub->listening = l->id;
	*ret = steal_ptr(l);
	return 0;
}

static void stop_listening(struct rdma_listener *l)
{
	if (!l->id)
		return;
	rdma_hub_drop_id(l->hub, l->id);
	l->hub->listening = NULL;
	l->id = NULL;
}

/* An id that was bound to a removed device hears nothing when the device is back: a new id is made.
 */
static int on_removal(struct rdma_listener *l, struct err *err)
{
	char name[LINK_PEER_MAX];

	stop_listening(l);
	l->tried_tick = l->hub->ticks;
	name_listener(l, name, sizeof(name));
	return err_set(err, ENODEV,
		       "the RDMA device of %s was removed: nobody can connect until it is back "
		       "with that address",
		       name);
}

/* About once a second. Return: RDMA_LISTENS_AGAIN, with the sentence; -EAGAIN. */
static int listen_again(struct rdma_listener *l, struct err *err)
{
	char name[LINK_PEER_MAX];
	struct err why;

	if (l->tried_tick == l->hub->ticks)
		return -EAGAIN;
	l->tried_tick = l->hub->ticks;
	if (listen_one(l->hub, (struct sockaddr *)&l->at, &l->id, &why))
		return -EAGAIN;
	l->hub->listening = l->id;
	name_listener(l, name, sizeof(name));
	err_set(err, 0, "the RDMA device of %s is back, and is listened at", name);
	return RDMA_LISTENS_AGAIN;
}

void rdma_listener_close(struct rdma_listener *l)
{
	stop_listening(l);
	rdma_hub_leave(l->hub);
	free(l);
}

int rdma_listener_fd(const struct rdma_listener *l)
{
	return l->hub->epoll_fd;
}

int rdma_accept_link(struct rdma_listener *l, const struct link_events *ev, void *owner,
		     struct link **ret, struct err *err)
{
	struct rdma_request *q;
	int r;

	rdma_hub_look(l->hub);
	if (rdma_hub_take_removal(l->hub))
		return on_removal(l, err);
	if (!l->id)
		return listen_again(l, err);
	rdma_hub_take_request(l->hub, &q);
	if (!q)
		return -EAGAIN;
	r = rdma_accept_request(l->hub, q, ev, owner, ret, err);
	free(q);
	return r;
}
