/* See wire.h. */
#include "wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define OPS_MAX 4

#define LOOK_MS 20 /* how often a thread that waits looks at the flag */

static _Thread_local char error[512];
static _Thread_local const _Atomic bool *abort_flag;

void wire_abort_by(const _Atomic bool *flag)
{
	abort_flag = flag;
}

const char *wire_error(void)
{
	return error;
}

int wire_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(error, sizeof(error), fmt, args);
	va_end(args);
	return -1;
}

/* Return: 1 with progress; 0; -1. */
static int op_step(struct wire_op *op)
{
	ssize_t n = op->is_send ? send(op->fd, op->bytes + op->at, op->n - op->at,
				       MSG_DONTWAIT | MSG_NOSIGNAL)
				: recv(op->fd, op->bytes + op->at, op->n - op->at, MSG_DONTWAIT);

	if (n > 0)
		op->at += (size_t)n;
	if (n == 0)
		return wire_fail("closed by the other side, %zu of %zu bytes have come", op->at,
				 op->n);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return wire_fail("%s: %s", op->is_send ? "send" : "recv", strerror(errno));
	return n > 0;
}

static int wait_for(struct pollfd *fds, nfds_t n, uint64_t until_ns)
{
	while (poll(fds, n, LOOK_MS) == 0) {
		if (abort_flag && *abort_flag)
			return wire_fail("aborted");
		if (clock_now_ns() >= until_ns)
			return wire_fail("nothing comes in time");
	}
	return 0;
}

int wire_exchange(struct wire_op *ops, int n, uint64_t until_ns)
{
	for (;;) {
		struct pollfd fds[OPS_MAX];
		nfds_t n_open = 0;
		bool is_progress = false;

		for (int i = 0; i < n; i++) {
			int r = ops[i].at < ops[i].n ? op_step(&ops[i]) : 0;

			if (r < 0)
				return -1;
			is_progress |= r > 0;
			if (ops[i].at < ops[i].n)
				fds[n_open++] = (struct pollfd){.fd = ops[i].fd,
								.events = ops[i].is_send ? POLLOUT
											 : POLLIN};
		}
		if (!n_open)
			return 0;
		if (!is_progress && wait_for(fds, n_open, until_ns) < 0)
			return -1;
	}
}

int wire_send(int fd, const void *bytes, size_t n, uint64_t until_ns)
{
	struct wire_op op = {fd, true, (uint8_t *)(uintptr_t)bytes, n, 0};

	return wire_exchange(&op, 1, until_ns);
}

int wire_recv(int fd, void *bytes, size_t n, uint64_t until_ns)
{
	struct wire_op op = {fd, false, bytes, n, 0};

	return wire_exchange(&op, 1, until_ns);
}

int wire_send_message(int fd, const void *bytes, int32_t n, uint64_t until_ns)
{
	if (wire_send(fd, &n, sizeof(n), until_ns) < 0)
		return -1;
	return wire_send(fd, bytes, (size_t)n, until_ns);
}

int wire_recv_message(int fd, void *bytes, int32_t n, uint64_t until_ns)
{
	int32_t size;

	if (wire_recv(fd, &size, sizeof(size), until_ns) < 0)
		return -1;
	if (size != n)
		return wire_fail("a message of %d bytes instead of %d", size, n);
	return wire_recv(fd, bytes, (size_t)n, until_ns);
}

int wire_recv_end(int fd, uint64_t until_ns)
{
	for (;;) {
		uint8_t byte;
		ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

		if (n == 0)
			return 0;
		if (n > 0)
			return wire_fail("more bytes than were said");
		if (errno != EAGAIN && errno != EINTR)
			return wire_fail("recv: %s", strerror(errno));
		if (wait_for(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, until_ns) < 0)
			return -1;
	}
}

static socklen_t length_of(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

int wire_listen(const uint8_t at[NCCL_ADDRESS_BYTES], uint8_t ret_address[NCCL_ADDRESS_BYTES])
{
	struct sockaddr_storage a = {0};
	socklen_t len;
	int fd;

	memcpy(&a, at, NCCL_ADDRESS_BYTES);
	((struct sockaddr_in *)&a)->sin_port = 0; /* IPv6 has it at the same place */
	len = length_of(&a);
	fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 1024) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0) {
		wire_fail("listen: %s", strerror(errno));
		wire_close(&fd);
		return -1;
	}
	memcpy(ret_address, &a, NCCL_ADDRESS_BYTES);
	return fd;
}

int wire_connect_silent(const uint8_t address[NCCL_ADDRESS_BYTES], uint64_t until_ns)
{
	struct sockaddr_storage a = {0};
	int on = 1, e = 0, fd;
	socklen_t len = sizeof(e);

	memcpy(&a, address, NCCL_ADDRESS_BYTES);
	fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return wire_fail("socket: %s", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (struct sockaddr *)&a, length_of(&a)) < 0) {
		e = errno;
		if (e == EINPROGRESS &&
		    wait_for(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, until_ns) == 0)
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len);
	}
	if (e) {
		wire_fail("connect: %s", strerror(e));
		wire_close(&fd);
	}
	return fd;
}

int wire_connect(const uint8_t address[NCCL_ADDRESS_BYTES], uint64_t magic, uint64_t until_ns)
{
	int fd = wire_connect_silent(address, until_ns);
	int32_t what = NCCL_SOCKET_BOOTSTRAP;

	if (fd >= 0 && (wire_send(fd, &magic, sizeof(magic), until_ns) < 0 ||
			wire_send(fd, &what, sizeof(what), until_ns) < 0))
		wire_close(&fd);
	return fd;
}

int wire_accept(int listen_fd, uint64_t magic, uint64_t until_ns)
{
	for (;;) {
		int on = 1, fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		uint64_t said;
		int32_t what;

		if (fd < 0 && errno != EAGAIN && errno != EINTR)
			return wire_fail("accept: %s", strerror(errno));
		if (fd < 0) {
			if (wait_for(&(struct pollfd){.fd = listen_fd, .events = POLLIN}, 1,
				     until_ns) < 0)
				return -1;
			continue;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (wire_recv(fd, &said, sizeof(said), until_ns) < 0 || said != magic) {
			wire_close(&fd);
			continue;
		}
		if (wire_recv(fd, &what, sizeof(what), until_ns) == 0 &&
		    what == NCCL_SOCKET_BOOTSTRAP)
			return fd;
		wire_close(&fd);
		return wire_fail("a connection is for something else than the bootstrap");
	}
}

void wire_close(int *fd)
{
	if (*fd >= 0) {
		shutdown(*fd, SHUT_RDWR);
		close(*fd);
	}
	*fd = -1;
}
