/* See wait.h. */
#include "links/wait.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"

int link_wait_fd(int fd, short events, uint64_t due_ns)
{
	struct pollfd p = {.fd = fd, .events = events};
	uint64_t now_ns;
	int r;

	for (;;) {
		now_ns = clock_now_ns();
		r = poll(&p, 1,
			 now_ns >= due_ns ? 0
					  : (int)((due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS));
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r == 0 && clock_now_ns() >= due_ns)
			return -ETIMEDOUT;
	}
}
