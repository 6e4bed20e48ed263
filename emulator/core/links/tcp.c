/* See tcp.h. Reads go through a small stage: one system call brings the rest of a body straight
 * to its place and, behind it, the next headers and small frames into the stage. So hundreds of
 * small frames cost one call, and of a big body at most the stage's size is copied twice. Writes
 * hand headers and bodies to the kernel in one sendmsg().
 *
 * A read that got less than it asked for has emptied the socket. The next one waits for the next
 * link_progress(), because it would only say EAGAIN. */
#include "links/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "links/address.h"
#include "links/kind.h"
#include "links/wait.h"

#define STAGE_BYTES (16u << 10)
#define SOCKET_BUFFER_BYTES (4 << 20)

struct tcp_link {
	struct link link;
	int fd; /* owned */
	bool is_dry, is_at_end, peer_hung_up;
	uint32_t stage_first, stage_n;
	unsigned char stage[STAGE_BYTES];
};

static struct tcp_link *to_tcp(const struct link *l)
{
	/* the cast drops const; callers with a const link only read */
	return container_of((uintptr_t)l, struct tcp_link, link);
}

static void tcp_begin(struct link *l)
{
	to_tcp(l)->is_dry = false;
}

static ssize_t tcp_write(struct link *l, const struct iovec *iov, int n_iov)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov,
			     .msg_iovlen = (size_t)n_iov};
	ssize_t n;

	do
		n = sendmsg(to_tcp(l)->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == ENOBUFS ? 0 : -errno;
}

/* The result of a system call as bytes, 0, IO_END or an error. */
static ssize_t tcp_read_result(struct tcp_link *t, ssize_t n, size_t asked)
{
	t->is_dry = n < (ssize_t)asked;
	if (n > 0)
		return n;
	if (n == 0) {
		t->is_at_end = true;
		return IO_END;
	}
	return errno == EAGAIN ? 0 : -errno;
}

static size_t stage_take(struct tcp_link *t, void *dst, size_t n)
{
	if (n > t->stage_n)
		n = t->stage_n;
	if (dst)
		memcpy(dst, t->stage + t->stage_first, n);
	t->stage_first += (uint32_t)n;
	t->stage_n -= (uint32_t)n;
	return n;
}

static ssize_t tcp_read_through(struct tcp_link *t, void *dst, size_t n)
{
	struct iovec iov[2] = {{dst, n}, {t->stage, sizeof(t->stage)}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t got;

	if (n < sizeof(t->stage) / 4) { /* small: the stage alone, so that it fills */
		msg.msg_iov = iov + 1;
		msg.msg_iovlen = 1;
		n = 0;
	}
	do
		got = recvmsg(t->fd, &msg, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	got = tcp_read_result(t, got, n + sizeof(t->stage));
	if (got <= (ssize_t)n)
		return got;
	t->stage_first = 0;
	t->stage_n = (uint32_t)((size_t)got - n);
	return (ssize_t)n;
}

/* On TCP, MSG_TRUNC drops the bytes without copying them (tcp(7)). */
static ssize_t tcp_discard(struct tcp_link *t, size_t n)
{
	ssize_t got;

	do
		got = recv(t->fd, NULL, n, MSG_DONTWAIT | MSG_TRUNC);
	while (got < 0 && errno == EINTR);
	return tcp_read_result(t, got, n);
}

static ssize_t tcp_read(struct link *l, void *dst, size_t n)
{
	struct tcp_link *t = to_tcp(l);
	ssize_t got;

	if (t->stage_n)
		return (ssize_t)stage_take(t, dst, n);
	if (t->is_at_end)
		return IO_END;
	if (t->is_dry)
		return 0;
	if (!dst)
		return tcp_discard(t, n);
	got = tcp_read_through(t, dst, n);
	if (got == 0 && t->stage_n)
		return (ssize_t)stage_take(t, dst, n);
	return got;
}

/* poll() is level-triggered: nothing can slip in between. But it always reports a
 * connection that broke; while the link is held, that must not keep its owner awake. */
static bool tcp_arm(struct link *l, bool want_read, bool want_write)
{
	struct tcp_link *t = to_tcp(l);
	struct pollfd p = {.fd = t->fd};

	(void)want_write;
	if (want_read) {
		t->peer_hung_up = false;
		return !t->stage_n && !t->is_at_end;
	}
	t->peer_hung_up = poll(&p, 1, 0) > 0;
	return true;
}

static int tcp_fd(const struct link *l)
{
	return to_tcp(l)->peer_hung_up ? -1 : to_tcp(l)->fd;
}

static short tcp_poll_events(const struct link *l, bool want_read, bool want_write)
{
	(void)l;
	return (short)((want_read ? POLLIN : 0) | (want_write ? POLLOUT : 0));
}

static void tcp_free(struct link *l)
{
	struct tcp_link *t = to_tcp(l);

	close(t->fd);
	free(t);
}

static const struct link_ops tcp_ops = {
	.kind = "tcp",
	.write = tcp_write,
	.read = tcp_read,
	.begin = tcp_begin,
	.arm = tcp_arm,
	.fd = tcp_fd,
	.poll_events = tcp_poll_events,
	.free = tcp_free,
};

static void name_peer(int fd, char *buf, size_t size)
{
	struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(a);

	if (getpeername(fd, (struct sockaddr *)&a, &len))
		a.ss_family = AF_UNSPEC;
	link_addr_name("tcp", (struct sockaddr *)&a, buf, size);
}

/* The kernel grows buffers by itself up to a few MiB; a set size switches that
 * off and is cut to net.core.[rw]mem_max. So it is set only where it is more. */
static void set_buffer(int fd, int option)
{
	int bytes = SOCKET_BUFFER_BYTES, got = 0, probe;
	socklen_t len = sizeof(got);

	probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (probe < 0)
		return;
	if (!setsockopt(probe, SOL_SOCKET, option, &bytes, sizeof(bytes)) &&
	    !getsockopt(probe, SOL_SOCKET, option, &got, &len) && got >= bytes)
		setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes));
	close(probe);
}

/* A host that vanished without a word is noticed within about 15 s. Failures of
 * these are no reason to refuse the link: they are not what makes it correct. */
static void set_options(int fd)
{
	int on = 1, idle_s = 5, interval_s = 3, n_probes = 3, unacked_ms = 15000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &n_probes, sizeof(n_probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof(unacked_ms));
	set_buffer(fd, SO_SNDBUF);
	set_buffer(fd, SO_RCVBUF);
}

int tcp_link_new(int fd, const struct link_events *ev, void *owner, struct link **ret)
{
	struct tcp_link *t = malloc(sizeof(*t));

	if (!t)
		return -ENOMEM;
	memset(t, 0, offsetof(struct tcp_link, stage));
	link_init(&t->link, &tcp_ops, ev, owner);
	name_peer(fd, t->link.peer, sizeof(t->link.peer));
	set_options(fd);
	t->fd = fd;
	*ret = &t->link;
	return 0;
}

/* --- connecting and listening ------------------------------------------------ */

static int resolve(const struct link_addr *a, int flags, struct addrinfo **ret, struct err *err)
{
	int r = link_addr_resolve(a, flags, ret, err);

	return r ? err_prefix(err, r, "tcp:%s:%s", a->host, a->port) : 0;
}

static int connect_one(const struct addrinfo *ai, uint64_t due_ns, int *ret_fd)
{
	CLEANUP(closep) int fd = -1;
	int r, error = 0;
	socklen_t len = sizeof(error);

	fd = socket(ai->ai_family, ai->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, ai->ai_protocol);
	if (fd < 0)
		return -errno;
	/* EINTR: the connection goes on by itself, as with EINPROGRESS */
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) && errno != EINPROGRESS && errno != EINTR)
		return -errno;
	r = link_wait_fd(fd, POLLOUT, due_ns);
	if (r)
		return r;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return -errno;
	if (error)
		return -error;
	*ret_fd = steal_fd(&fd);
	return 0;
}

int tcp_connect(const struct link_addr *a, uint64_t due_ns, int *ret_fd, struct err *err)
{
	struct addrinfo *list, *ai;
	int r;

	r = resolve(a, 0, &list, err);
	if (r)
		return r;
	r = -EADDRNOTAVAIL;
	for (ai = list; ai && r && r != -ETIMEDOUT; ai = ai->ai_next)
		r = connect_one(ai, due_ns, ret_fd);
	freeaddrinfo(list);
	if (r)
		return err_set(err, -r, "cannot connect to tcp:%s:%s: %s%s", a->host, a->port,
			       strerror(-r), r == -ECONNREFUSED ? "; nobody listens there" : "");
	return 0;
}

static int listen_one(const struct addrinfo *ai, int *ret_fd)
{
	CLEANUP(closep) int fd = -1;
	int on = 1;

	fd = socket(ai->ai_family, ai->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, ai->ai_protocol);
	if (fd < 0)
		return -errno;
	/* so that connections of an earlier run that linger do not refuse us */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, SOMAXCONN))
		return -errno;
	*ret_fd = steal_fd(&fd);
	return 0;
}

int tcp_listen(const struct link_addr *a, int *ret_fd, struct err *err)
{
	struct addrinfo *list, *ai;
	int r;

	r = resolve(a, AI_PASSIVE, &list, err);
	if (r)
		return r;
	r = -EADDRNOTAVAIL;
	for (ai = list; ai && r; ai = ai->ai_next)
		r = listen_one(ai, ret_fd);
	freeaddrinfo(list);
	if (r == -EADDRINUSE)
		return err_set(err, EADDRINUSE,
			       "another nboxd (or program) listens at tcp:%s:%s; stop it or choose "
			       "another --addr",
			       a->host, a->port);
	if (r)
		return err_set(err, -r, "cannot listen at tcp:%s:%s: %s", a->host, a->port,
			       strerror(-r));
	return 0;
}
