/* See shm-greeting.h. */
#include "links/shm-greeting.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "wire/wire.h"

#define RING_BYTES_MIN (UINT64_C(4) << 10)
#define RING_BYTES_MAX (UINT64_C(1) << 30)
#define GREETING_MAGIC UINT32_C(0x68736e6e)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int shm_make_memory(uint64_t ring_bytes)
{
	CLEANUP(closep) int fd = memfd_create("nbox-link", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)shm_area_bytes(ring_bytes)) || fcntl(fd, F_ADD_SEALS, SEALS))
		return -errno;
	return steal_fd(&fd);
}

int shm_send_greeting(int fd, int mem, uint64_t ring_bytes)
{
	struct shm_greeting g = {GREETING_MAGIC, WIRE_VERSION, ring_bytes};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {&g, sizeof(g)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.space,
			     .msg_controllen = sizeof(control.space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &mem, sizeof(mem));
	do
		n = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == sizeof(g) ? 0 : -EPIPE;
}

/* Takes the first descriptor of @msg and closes what else came. */
static int take_descriptor(struct msghdr *msg)
{
	struct cmsghdr *c;
	int fd, taken = -1;
	size_t i, n;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (taken < 0)
				taken = fd;
			else
				close(fd);
		}
	}
	return taken;
}

int shm_receive_greeting(int fd, struct shm_greeting *g, int *ret_mem)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = {g, sizeof(*g)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.space,
			     .msg_controllen = sizeof(control.space)};
	CLEANUP(closep) int mem = -1;
	ssize_t n;

	do
		n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	mem = take_descriptor(&msg);
	if (n == 0)
		return -ECONNRESET;
	if (n != sizeof(*g) || mem < 0 || g->magic != GREETING_MAGIC)
		return -EPROTO;
	*ret_mem = steal_fd(&mem);
	return 0;
}

bool shm_memory_is_sound(int mem, uint64_t ring_bytes)
{
	struct stat st;

	if (ring_bytes < RING_BYTES_MIN || ring_bytes > RING_BYTES_MAX ||
	    (ring_bytes & (ring_bytes - 1)))
		return false;
	if (fstat(mem, &st) || (uint64_t)st.st_size != shm_area_bytes(ring_bytes))
		return false;
	return (fcntl(mem, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW)) ==
	       (F_SEAL_SHRINK | F_SEAL_GROW);
}
