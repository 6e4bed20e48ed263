/* Where other ranks reach this process: a unix socket for ranks of the same host, a TCP or rdma
 * address for others. A communicator and its splits share one port. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "links/endpoint.h"
#include "standins/nccl/impl.h"

struct port {
	_Atomic int refs;
	struct listener *near, *far; /* owned */
};

/* An abstract name: ranks are killed, and must leave nothing behind. */
static int open_near(struct listener **ret, struct err *err)
{
	uint64_t name[2];
	char addr[BOOT_ADDR_MAX];

	if (boot_random(name, sizeof(name)))
		return err_set(err, EIO, "no random numbers");
	snprintf(addr, sizeof(addr), "shm:@nbox-nccl-%016llx%016llx", (unsigned long long)name[0],
		 (unsigned long long)name[1]);
	return listener_open(addr, ret, err);
}

ncclResult_t port_open(const struct sockaddr_in *local, bool has_shm, bool is_ib, struct port **ret)
{
	struct port *p = calloc(1, sizeof(*p));
	struct err err = {{0}};
	char addr[64];
	int r = 0;

	if (!p)
		return fail(ncclSystemError, "out of memory");
	atomic_init(&p->refs, 1);
	if (is_ib)
		snprintf(addr, sizeof(addr), "rdma:auto:0");
	else
		snprintf(addr, sizeof(addr), "tcp:%s:0", inet_ntoa(local->sin_addr));
	r = listener_open(addr, &p->far, &err);
	if (!r && has_shm)
		r = open_near(&p->near, &err);
	if (r) {
		listener_free(p->far);
		free(p);
		return fail(ncclSystemError, "cannot listen for other ranks: %s", err.text);
	}
	proxy_add_port(p);
	*ret = p;
	return ncclSuccess;
}

void port_get(struct port *p)
{
	atomic_fetch_add(&p->refs, 1);
}

void port_put(struct port *p)
{
	if (atomic_fetch_sub(&p->refs, 1) > 1)
		return;
	proxy_remove_port(p);
	listener_free(p->near);
	listener_free(p->far);
	free(p);
}

const char *port_unix_addr(const struct port *p)
{
	return p->near ? listener_addr(p->near) : "";
}

const char *port_tcp_addr(const struct port *p)
{
	return listener_addr(p->far);
}

int port_fds(const struct port *p, int ret[2])
{
	int n = 0;

	ret[n++] = listener_fd(p->far);
	if (p->near)
		ret[n++] = listener_fd(p->near);
	return n;
}

static int accept_one(struct port *p, struct listener *from, const struct link_events *events)
{
	struct conn *k = calloc(1, sizeof(*k));
	struct err err;

	if (!k)
		return 0;
	if (link_accept(from, events, k, &k->link, &err)) {
		free(k);
		return 0;
	}
	k->port = p;
	k->is_parked = true;
	proxy_add_conn(k);
	return 1;
}

int port_accept(struct port *p, const struct link_events *events)
{
	int far = accept_one(p, p->far, events);

	return p->near ? far | accept_one(p, p->near, events) : far;
}
