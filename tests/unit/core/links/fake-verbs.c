/* See fake-verbs.h: the table of functions, and the state that all parts share. The parts:
 * fake-device.c, fake-net.c, fake-memory.c, fake-queue.c, fake-wire.c, fake-cm.c. */
#include "fake-private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake_faults fake_faults;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
unsigned int fake_alive;

void fake_ring(int fd)
{
	if (write(fd, "x", 1) != 1)
		abort();
}

bool fake_take(int fd)
{
	char c;

	return read(fd, &c, 1) == 1;
}

int fake_pipe(int fds[2])
{
	return pipe2(fds, O_CLOEXEC | O_NONBLOCK);
}

int fake_fork_init(void)
{
	return 0;
}

void fake_reset(void)
{
	memset(&fake_faults, 0, sizeof(fake_faults));
	fake_n_rnr = 0;
}

unsigned int fake_leaks(void)
{
	return fake_alive;
}

const struct verbs fake_verbs = {
#define X(name) .name = fake_##name,
	VERBS_IBV(X)
#undef X
#define X(name) .cm_##name = fake_cm_##name,
		VERBS_CM(X)
#undef X
			.reg_dmabuf_mr = fake_reg_dmabuf_mr,
	.post_send = fake_post_send,
	.post_recv = fake_post_recv,
	.poll_cq = fake_poll_cq,
	.req_notify_cq = fake_req_notify_cq,
	.getifaddrs = fake_get_networks,
	.freeifaddrs = fake_free_networks,
};
