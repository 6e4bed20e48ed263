/* See store-client.h. */
#include "store-client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_MS 60000

void nboxd_start_told(struct daemon *d, const char *real, int ended_fd)
{
	char ended[32] = "";

	if (ended_fd >= 0)
		snprintf(ended, sizeof(ended), " --ended-fd %d", ended_fd);
	daemon_start_line(d,
			  "--nodes 4 --gpus-per-node 2 --real %s --addr tcp:127.0.0.1:0 "
			  "--store 127.0.0.1:0 --settle 100ms%s",
			  real, ended);
}

void nboxd_start(struct daemon *d, const char *real)
{
	nboxd_start_told(d, real, -1);
}

int store_dial(const struct daemon *d)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	a.sin_port = htons((uint16_t)atoi(strrchr(d->store, ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	return fd;
}

int store_client(const struct daemon *d)
{
	int fd = store_dial(d);

	store_put(fd, request(STORE_VALIDATE, "u", STORE_MAGIC));
	return fd;
}

void store_put(int fd, struct buffer r)
{
	assert_int_equal(send(fd, r.data, r.n, MSG_NOSIGNAL), r.n);
	buffer_deinit(&r);
}

bool is_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

void store_take(int fd, void *ret_bytes, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t more;

		if (!is_readable(fd, ANSWER_MS))
			fail_msg("no answer within %d s", ANSWER_MS / 1000);
		more = recv(fd, (char *)ret_bytes + got, n - got, 0);
		if (more <= 0)
			fail_msg("the server hung up");
		got += (size_t)more;
	}
}

int store_take_u8(int fd)
{
	uint8_t v;

	store_take(fd, &v, 1);
	return v;
}

int64_t store_take_i64(int fd)
{
	int64_t v;

	store_take(fd, &v, 8);
	return v;
}

size_t store_take_value(int fd, void *ret_bytes, size_t size)
{
	size_t n = (size_t)store_take_i64(fd);

	assert_true(n <= size);
	store_take(fd, ret_bytes, n);
	return n;
}

bool is_hung_up(int fd)
{
	char byte;

	return is_readable(fd, ANSWER_MS) && recv(fd, &byte, 1, 0) <= 0;
}

bool is_cut_off(int fd)
{
	char bytes[256];

	while (is_readable(fd, ANSWER_MS))
		if (recv(fd, bytes, sizeof(bytes), 0) <= 0)
			return true;
	return false;
}
