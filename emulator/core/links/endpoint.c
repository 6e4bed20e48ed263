/* See endpoint.h. */
#include "links/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/peer.h"
#include "links/address.h"
#include "links/kind.h"
#include "links/rdma/connect.h"
#include "links/rdma/listen.h"
#include "links/shm.h"
#include "links/tcp.h"
#include "links/unix.h"

struct listener {
	struct link_addr addr;
	int fd;      /* owned */
	int reserve; /* owned; given up to refuse a connection when there are no more */
	struct unix_name name;
	struct rdma_listener *rdma; /* owned; fd is its */
	char text[LINK_PEER_MAX + 256];
};

static int connect_shm(const struct link_addr *a, uint64_t due_ns, const struct link_events *ev,
		       void *owner, struct link **ret, struct err *err)
{
	CLEANUP(closep) int fd = -1;
	int r;

	r = unix_connect(a->path, due_ns, &fd, err);
	if (!r)
		r = shm_link_join(fd, due_ns, ev, owner, ret, err);
	if (!r)
		(void)steal_fd(&fd);
	return r ? err_prefix(err, r, "cannot connect to shm:%s", a->path) : 0;
}

static int connect_tcp(const struct link_addr *a, uint64_t due_ns, const struct link_events *ev,
		       void *owner, struct link **ret, struct err *err)
{
	CLEANUP(closep) int fd = -1;
	int r;

	r = tcp_connect(a, due_ns, &fd, err);
	if (r)
		return r;
	r = tcp_link_new(fd, ev, owner, ret);
	if (r)
		return err_set(err, -r, "no memory for a link");
	(void)steal_fd(&fd);
	return 0;
}

int link_connect(const char *addr, int timeout_ms, const struct link_events *ev, void *owner,
		 struct link **ret, struct err *err)
{
	return link_connect_gpu(addr, timeout_ms, NULL, ev, owner, ret, err);
}

int link_connect_gpu(const char *addr, int timeout_ms, const struct link_gpu *gpu,
		     const struct link_events *ev, void *owner, struct link **ret, struct err *err)
{
	uint64_t due_ns = clock_now_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * NS_PER_MS;
	struct link_addr a;
	int r;

	r = link_addr_parse(addr, &a, err);
	if (r)
		return r;
	if (gpu && a.kind != ADDR_RDMA)
		return err_set(err, ENOTSUP, "%s: only rdma receives into memory of a GPU", addr);
	switch (a.kind) {
	case ADDR_SHM:
		r = connect_shm(&a, due_ns, ev, owner, ret, err);
		break;
	case ADDR_TCP:
		r = connect_tcp(&a, due_ns, ev, owner, ret, err);
		break;
	case ADDR_RDMA:
		r = rdma_connect_link(&a, due_ns, gpu, ev, owner, ret, err);
		if (r)
			err_prefix(err, r, "cannot connect to %s", addr);
		break;
	}
	if (!r) /* the user's name for it says more than a number */
		snprintf((*ret)->peer, sizeof((*ret)->peer), "%s", addr);
	return r;
}

/* --- listening ---------------------------------------------------------------- */

static int real_port(int fd)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &len))
		return 0;
	if (a.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
	return ntohs(((struct sockaddr_in *)&a)->sin_port);
}

int listener_open(const char *addr, struct listener **ret, struct err *err)
{
	CLEANUP(freep) struct listener *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return err_set(err, ENOMEM, "no memory for a listener");
	r = link_addr_parse(addr, &l->addr, err);
	if (r)
		return r;
	l->reserve = -1;
	if (l->addr.kind == ADDR_SHM) {
		r = unix_listen(l->addr.path, &l->fd, &l->name, err);
		if (!r)
			snprintf(l->text, sizeof(l->text), "shm:%s", l->addr.path);
	} else if (l->addr.kind == ADDR_RDMA) {
		r = rdma_listener_open(&l->addr, &l->rdma, l->text, sizeof(l->text), err);
		if (!r)
			l->fd = rdma_listener_fd(l->rdma);
	} else {
		r = tcp_listen(&l->addr, &l->fd, err);
		if (!r)
			snprintf(l->text, sizeof(l->text),
				 strchr(l->addr.host, ':') ? "tcp:[%s]:%d" : "tcp:%s:%d",
				 l->addr.host, real_port(l->fd));
	}
	if (r)
		return r;
	if (!l->rdma)
		l->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	*ret = steal_ptr(l);
	return 0;
}

struct listener *listener_free(struct listener *l)
{
	if (!l)
		return NULL;
	if (l->addr.kind == ADDR_SHM)
		unix_unlisten(l->addr.path, &l->name);
	if (l->rdma)
		rdma_listener_close(l->rdma);
	else
		close(l->fd);
	if (l->reserve >= 0)
		close(l->reserve);
	free(l);
	return NULL;
}

int listener_fd(const struct listener *l)
{
	return l->fd;
}

const char *listener_addr(const struct listener *l)
{
	return l->text;
}

/* The process has no descriptor left. A connection that waits would keep the listener readable for
 * ever: accept it with the reserve, and close it. */
static void refuse_one(struct listener *l)
{
	int fd;

	if (l->reserve < 0)
		return;
	close(l->reserve);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	l->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int accept_socket(struct listener *l, const struct link_events *ev, void *owner,
			 struct link **ret, struct err *err)
{
	CLEANUP(closep) int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int r;

	if (fd < 0) {
		r = -errno;
		/* gone before accept4(): as if nobody had come (accept(2)) */
		if (r == -EAGAIN || r == -EINTR || r == -ECONNABORTED || r == -EPROTO ||
		    r == -ENETDOWN || r == -EHOSTUNREACH || r == -ENETUNREACH)
			return -EAGAIN;
		if (r == -EMFILE || r == -ENFILE)
			refuse_one(l);
		return err_set(err, -r, "%s: a connection was refused: %s", l->text, strerror(-r));
	}
	if (l->addr.kind == ADDR_SHM &&
	    (r = peer_check(fd, err)) < 0) /* an abstract name has no mode */
		return err_prefix(err, r, "%s: a connection was refused", l->text);
	if (l->addr.kind == ADDR_SHM)
		r = shm_link_accept(fd, ev, owner, ret, err);
	else
		r = tcp_link_new(fd, ev, owner, ret);
	if (r == -ENOMEM && l->addr.kind == ADDR_TCP)
		err_set(err, ENOMEM, "no memory for a link");
	if (!r)
		(void)steal_fd(&fd);
	return r;
}

int link_accept(struct listener *l, const struct link_events *ev, void *owner, struct link **ret,
		struct err *err)
{
	int r;

	if (!l->rdma)
		return accept_socket(l, ev, owner, ret, err);
	r = rdma_accept_link(l->rdma, ev, owner, ret, err);
	if (r == RDMA_LISTENS_AGAIN)
		return LINK_LISTENS_AGAIN;
	if (r == -ENODEV) /* no connection's, the listener's */
		return r;
	return r && r != -EAGAIN ? err_prefix(err, r, "%s: a connection was refused", l->text) : r;
}
