/* See listen.h. */
#include "nboxd/loop/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "links/address.h"
#include "links/endpoint.h"
#include "links/rdma/options.h"
#include "nboxd/loop/warn.h"

#define ACCEPTS_A_LOOK 64
#define LINKS_MAX 4096 /* open at a time */

struct listening {
	struct listen *all;        /* borrowed */
	struct listener *listener; /* owned */
	struct event *event;       /* owned */
};

/* Return: as worker_accept(). */
static int accept_one(struct listening *at, struct err *err)
{
	struct workers *ws = &at->all->loop->workers;
	struct worker *w;
	int r = worker_accept(ws, at->listener, &w, err);

	if (r == 0 && !capacity_make(at->all->capacity, ws->n > LINKS_MAX, w))
		worker_refuse(w, EMFILE, "more than %d links", LINKS_MAX);
	return r;
}

static void on_listen(evutil_socket_t fd, short what, void *ctx)
{
	struct listening *at = ctx;
	struct err err = {""};
	int r = 0;

	(void)fd;
	(void)what;
	/* an rdma listener's descriptor is that of its links too: mostly it was one of them */
	for (int i = 0; i < ACCEPTS_A_LOOK && r == 0; i++) {
		r = accept_one(at, &err);
		if (r != -EAGAIN)
			at->all->loop->tick_ns = 0;
	}
	if (r == LINK_LISTENS_AGAIN || r == -ENODEV)
		warn_run("%s", err.text);
	else if (r < 0 && r != -EAGAIN)
		warn_stranger("cannot accept a link: %s", err.text[0] ? err.text : strerror(-r));
}

int listen_open(struct listen *l, const struct config *c, struct err *err)
{
	int r = 0;

	rdma_options_use(&c->rdma);
	l->list = calloc(c->n_addrs, sizeof(*l->list));
	if (!l->list)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < c->n_addrs && r == 0; i++) {
		struct listening *at = &l->list[i];

		r = listener_open(c->addrs[i], &at->listener, err);
		at->all = l;
		l->n = i + (r == 0);
		if (r == 0 && !c->token[0] && strncmp(listener_addr(at->listener), "rdma:", 5) == 0)
			r = err_set(err, EINVAL,
				    "%s can be reached from other hosts, that needs a token: set "
				    "NBOX_TOKEN for nboxd and the workers",
				    listener_addr(at->listener));
	}
	return r;
}

int listen_start(struct listen *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct listening *at = &l->list[i];

		at->event = loop_watch(l->loop, listener_fd(at->listener), EV_READ | EV_PERSIST,
				       on_listen, at);
		if (!at->event)
			return -ENOMEM;
	}
	return 0;
}

void listen_stop(struct listen *l)
{
	for (size_t i = 0; i < l->n; i++) {
		if (l->list[i].event)
			event_free(l->list[i].event);
		l->list[i].event = NULL;
		l->list[i].listener = listener_free(l->list[i].listener);
	}
}

void listen_close(struct listen *l)
{
	listen_stop(l);
	free(l->list);
}

const char *listen_addr(const struct listen *l, size_t i)
{
	return i < l->n && l->list[i].listener ? listener_addr(l->list[i].listener) : NULL;
}

char *listen_more_addrs(const struct listen *l, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 1; i < l->n && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, " %s", listen_addr(l, i));
	return buf;
}

/* Where the link at @addr listens. Return: as listen_reach(). */
static int reach(const char *addr, struct sockaddr_storage *ret, struct err *err)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)ret;
	const struct sockaddr_in *four = (const struct sockaddr_in *)ret;
	struct addrinfo *list = NULL;
	struct link_addr a;
	int r = link_addr_parse(addr, &a, err);

	if (r == 0)
		r = link_addr_resolve(&a, 0, &list, err);
	if (r < 0)
		return r;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	if (ret->ss_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr)
				       : four->sin_addr.s_addr == htonl(INADDR_ANY))
		return err_set(err, EINVAL,
			       "%s is all addresses of this host, and workers must be told one of "
			       "them to connect to: name it",
			       addr);
	return 0;
}

static bool is_loopback(const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *four = (const struct sockaddr_in *)a;

	return a->ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&six->sin6_addr)
					: ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

int listen_reach(const struct listen *l, struct sockaddr_storage *ret, struct err *err)
{
	const struct sockaddr_in here = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_storage found = {0};

	memcpy(&found, &here, sizeof(here));
	for (size_t i = 0; i < l->n && is_loopback(&found); i++) {
		const char *addr = listen_addr(l, i);
		int r = strncmp(addr, "shm:", 4) == 0 ? 0 : reach(addr, &found, err);

		if (r < 0)
			return r;
	}
	*ret = found;
	return 0;
}
