/* A program that the process starts while a link is made gets no descriptor of the link: the
 * memory, which is open for a moment only, the sockets, the listener. sendmsg() and recvmsg() are
 * wrapped, so that the test can look. */
#include "peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);

static _Atomic int n_sent, n_received,
	n_inherited; /* descriptors that passed; how many of them a child would inherit */

static void look_at(const struct msghdr *msg, _Atomic int *n)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)msg, c)) {
		int fd;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		(*n)++;
		n_inherited += !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (msg->msg_controllen)
		look_at(msg, &n_sent);
	return __real_sendmsg(fd, msg, flags);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t n = __real_recvmsg(fd, msg, flags);

	if (n > 0 && msg->msg_controllen)
		look_at(msg, &n_received);
	return n;
}

/* How many descriptors a child would have, beyond 0 to 2. */
static int count_inherited(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		int fd = atoi(e->d_name), flags = fd > 2 ? fcntl(fd, F_GETFD) : -1;

		n += flags >= 0 && !(flags & FD_CLOEXEC);
	}
	closedir(d);
	return n;
}

struct end {
	const char *addr;
	struct peer peer;
	int r;
	struct err err;
};

static void *connect_end(void *arg)
{
	struct end *e = arg;

	e->r = link_connect(e->addr, 60000, &peer_events, &e->peer, &e->peer.link, &e->err);
	return NULL;
}

static void make_and_look(const char *addr)
{
	int before = count_inherited(), r;
	struct end near = {0}, far = {0};
	struct listener *l = NULL;
	struct err err = {""};
	struct pollfd p;
	pthread_t thread;

	assert_int_equal(listener_open(addr, &l, &err), 0);
	far.addr = listener_addr(l);
	assert_int_equal(pthread_create(&thread, NULL, connect_end, &far), 0);
	p = (struct pollfd){.fd = listener_fd(l), .events = POLLIN};
	do {
		poll(&p, 1, 10000);
		r = link_accept(l, &peer_events, &near.peer, &near.peer.link, &err);
	} while (r == -EAGAIN);
	pthread_join(thread, NULL);
	if (r || far.r)
		fail_msg("accepted: %d %s; connected: %d %s", r, err.text, far.r, far.err.text);
	assert_int_equal(count_inherited(), before);
	link_free(near.peer.link);
	link_free(far.peer.link);
	listener_free(l);
}

static void no_child_gets_a_descriptor_of_shm(void **state)
{
	char addr[64];

	(void)state;
	snprintf(addr, sizeof(addr), "shm:@nbox-test-%d", (int)getpid());
	make_and_look(addr);
	assert_int_equal(n_sent, 1);
	assert_int_equal(n_received, 1);
	assert_int_equal(n_inherited, 0);
}

static void no_child_gets_a_descriptor_of_tcp(void **state)
{
	(void)state;
	make_and_look("tcp:127.0.0.1:0");
	assert_int_equal(n_inherited, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_child_gets_a_descriptor_of_shm),
		cmocka_unit_test(no_child_gets_a_descriptor_of_tcp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
