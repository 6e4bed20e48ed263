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
	int rc;

	rc = unix_connect(a->path, due_ns, &fd, err);
	if (!rc)
		rc = shm_link_join(fd, due_ns, ev, owner, ret, err);
	if (!rc)
		(void)steal_fd(&fd);
	return rc ? err_prefix(err, rc, "cannot connect to shm:%s", a->path) : 0;
}

static int connect_tcp(const struct link_addr *a, uint64_t due_ns, const struct link_events *ev,
		       void *owner, struct link **ret, struct err *err)
{
	CLEANUP(closep) int fd = -1;
	int rc;

	rc = tcp_connect(a, due_ns, &fd, err);
	if (rc)
		return rc;
	rc = tcp_link_new(fd, ev, owner, ret);
	if (rc)
		return err_set(err, -rc, "no memory for a link");
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
	int rc;

	rc = link_addr_parse(addr, &a, err);
	if (rc)
		return rc;
	if (gpu && a.kind != ADDR_RDMA)
		return err_set(err, ENOTSUP, "%s: only rdma receives into memory of a GPU", addr);
	switch (a.kind) {
	case ADDR_SHM:
		rc = connect_shm(&a, due_ns, ev, owner, ret, err);
		break;
	case ADDR_TCP:
		rc = connect_tcp(&a, due_ns, ev, owner, ret, err);
		break;
	case ADDR_RDMA:
		rc = rdma_connect_link(&a, due_ns, gpu, ev, owner, ret, err);
		if (rc)
			err_prefix(err, rc, "cannot connect to %s", addr);
		break;
	}
	if (!rc) /* what the user called it says more than a number */
		snprintf((*ret)->peer, sizeof((*ret)->peer), "%s", addr);
	return rc;
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
	int rc;

	if (!l)
		return err_set(err, ENOMEM, "no memory for a listener");
	rc = link_addr_parse(addr, &l->addr, err);
	if (rc)
		return rc;
	l->reserve = -1;
	if (l->addr.kind == ADDR_SHM) {
		rc = unix_listen(l->addr.path, &l->fd, &l->name, err);
		if (!rc)
			snprintf(l->text, sizeof(l->text), "shm:%s", l->addr.path);
	} else if (l->addr.kind == ADDR_RDMA) {
		rc = rdma_listener_open(&l->addr, &l->rdma, l->text, sizeof(l->text), err);
		if (!rc)
			l->fd = rdma_listener_fd(l->rdma);
	} else {
		rc = tcp_listen(&l->addr, &l->fd, err);
		if (!rc)
			snprintf(l->text, sizeof(l->text),
				 strchr(l->addr.host, ':') ? "tcp:[%s]:%d" : "tcp:%s:%d",
				 l->addr.host, real_port(l->fd));
	}
	if (rc)
		return rc;
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

/* No descriptor is left. A connection that nobody takes would keep the listener
 * readable for ever: take it with the reserve, and hang up. */
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
	int rc;

	if (fd < 0) {
		rc = -errno;
		/* gone again before we looked: as if nobody had come (accept(2)) */
		if (rc == -EAGAIN || rc == -EINTR || rc == -ECONNABORTED || rc == -EPROTO ||
		    rc == -ENETDOWN || rc == -EHOSTUNREACH || rc == -ENETUNREACH)
			return -EAGAIN;
		if (rc == -EMFILE || rc == -ENFILE)
			refuse_one(l);
		return err_set(err, -rc, "%s: a connection was refused: %s", l->text,
			       strerror(-rc));
	}
	if (l->addr.kind == ADDR_SHM &&
	    (rc = peer_check(fd, err)) < 0) /* an abstract name has no mode */
		return err_prefix(err, rc, "%s: a connection was refused", l->text);
	if (l->addr.kind == ADDR_SHM)
		rc = shm_link_accept(fd, ev, owner, ret, err);
	else
		rc = tcp_link_new(fd, ev, owner, ret);
	if (rc == -ENOMEM && l->addr.kind == ADDR_TCP)
		err_set(err, ENOMEM, "no memory for a link");
	if (!rc)
		(void)steal_fd(&fd);
	return rc;
}

int link_accept(struct listener *l, const struct link_events *ev, void *owner, struct link **ret,
		struct err *err)
{
	int rc;

	if (!l->rdma)
		return accept_socket(l, ev, owner, ret, err);
	rc = rdma_accept_link(l->rdma, ev, owner, ret, err);
	if (rc == RDMA_LISTENS_AGAIN)
		return LINK_LISTENS_AGAIN;
	if (rc == -ENODEV) /* no connection's, the listener's */
		return rc;
	return rc && rc != -EAGAIN ? err_prefix(err, rc, "%s: a connection was refused", l->text)
				   : rc;
}
