/* See low-port.h. */
#include "nboxd/store/gloo/low-port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <unistd.h>

#include "base/cleanup.h"

static void set_port(struct sockaddr_storage *a, uint32_t port)
{
	if (a->ss_family == AF_INET)
		((struct sockaddr_in *)a)->sin_port = htons((uint16_t)port);
	else
		((struct sockaddr_in6 *)a)->sin6_port = htons((uint16_t)port);
}

int low_port_listen(struct sockaddr_storage *a)
{
	socklen_t len =
		a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

	for (uint32_t low = 0; low < 16; low++) {
		for (uint32_t high = 4; high < 128; high++) {
			CLEANUP(closep)
			int fd =
				socket(a->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

			if (fd < 0)
				return -errno;
			set_port(a, high << 8 | low);
			if (bind(fd, (struct sockaddr *)a, len) == 0 && listen(fd, SOMAXCONN) == 0)
				return steal_fd(&fd);
			if (errno == EADDRNOTAVAIL)
				return -errno; /* not an address of this host */
		}
	}
	return -EADDRNOTAVAIL;
}
