/* See background.h. */
#include "daemon/background.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define READY_MS 10000

/* The exit code that says what came of the child. */
static int await_ready(pid_t pid, int fd)
{
	uint64_t until = clock_now_ns() + READY_MS * NS_PER_MS, now;
	char byte;
	int status = 0;

	while ((now = clock_now_ns()) < until) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&p, 1, (int)((until - now) / NS_PER_MS) + 1) <= 0)
			continue;
		n = read(fd, &byte, 1);
		if (n == 1)
			return 0;
		if (n == 0) /* it ended, and said why */
			return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) ?
				       WEXITSTATUS(status) : 1;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	fprintf(stderr, "nboxd: does not listen after %d s\n", READY_MS / 1000);
	return 1;
}

int background_start(int *ret_ready_fd, int *ret_code, struct err *err)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0) {
		int code = errno;

		close(fds[0]);
		close(fds[1]);
		return err_set(err, code, "fork: %s", strerror(code));
	}
	if (pid == 0) {
		close(fds[0]);
		setsid();
		*ret_ready_fd = fds[1];
		return 0;
	}
	close(fds[1]);
	*ret_code = await_ready(pid, fds[0]);
	close(fds[0]);
	return 1;
}
