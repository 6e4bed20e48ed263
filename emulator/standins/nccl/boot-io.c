/* Sockets by which ranks find each other: reads and writes with a bound. Every wait looks at an
 * abort flag ten times a second. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "standins/nccl/boot-io.h"

#define SLICE_MS 100

int boot_random(void *buf, size_t len)
{
	return getrandom(buf, len, 0) == (ssize_t)len ? 0 : -EIO;
}

int boot_wait_fd(int fd, short events, uint64_t until_ns, const _Atomic bool *abort)
{
	for (;;) {
		struct pollfd p = {.fd = fd, .events = events};
		uint64_t now = clock_now_ns();
		int n;

		if (abort && atomic_load_explicit(abort, memory_order_acquire))
			return -ECANCELED;
		if (now >= until_ns)
			return -ETIMEDOUT;
		n = (int)((until_ns - now) / NS_PER_MS) + 1;
		n = poll(&p, 1, n < SLICE_MS ? n : SLICE_MS);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

int boot_transfer(int fd, void *buf, size_t len, bool is_write, uint64_t until_ns,
		  const _Atomic bool *abort)
{
	char *p = buf;

	while (len) {
		ssize_t n = is_write ? send(fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT)
				     : recv(fd, p, len, MSG_DONTWAIT);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else if (!n) {
			return -ECONNRESET;
		} else if (errno == EAGAIN || errno == EINTR) {
			int r = boot_wait_fd(fd, is_write ? POLLOUT : POLLIN, until_ns, abort);

			if (r)
				return r;
		} else {
			return -errno;
		}
	}
	return 0;
}

int boot_write(int fd, const void *buf, size_t len, int timeout_ms)
{
	union {
		const void *in;
		void *out;
	} u = {.in = buf};

	return boot_transfer(fd, u.out, len, true,
			     clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS, NULL);
}
