/* See nboxd-proc.h. */
#include "nbox/run/nboxd-proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define READY_MS 30000 /* far above what a busy machine needs */
#define STOP_MS 30000

/* Reads one line from @fd. Return: 1 got it; 0 the writer ended; negative errno. */
static int read_line(int fd, char *buf, size_t size, int timeout_ms)
{
	uint64_t until = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	size_t n = 0;

	while (n + 1 < size) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = clock_now_ns();
		ssize_t got;

		if (now >= until)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)((until - now) / NS_PER_MS) + 1) <= 0)
			continue;
		got = read(fd, buf + n, 1);
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (got == 0)
			return 0;
		if (got == 1 && buf[n++] == '\n') {
			buf[n - 1] = 0;
			return 1;
		}
	}
	return -EPROTO;
}

/* In the child. */
static void __attribute__((noreturn))
become_nboxd(char **args, const struct job_env *env, pid_t parent)
{
	sigset_t none;
	int r;

	setpgid(0, 0); /* a Ctrl-C is for nbox; it ends nboxd last */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(127);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	r = env->set(env->ctx);
	if (r == 0)
		execv(args[0], args);
	fprintf(stderr, "nbox: %s: %s\n", args[0], strerror(r < 0 ? -r : errno));
	_exit(127);
}

int nboxd_start(struct nboxd_proc *p, char *const argv[], const struct job_env *env,
		struct err *err)
{
	CLEANUP(freep) char **args = NULL;
	int fds[2], ended[2], n = 0, r;
	char fd_text[16], ended_text[16], line[1200];
	pid_t parent = getpid();

	while (argv[n])
		n++;
	args = calloc((size_t)n + 5, sizeof(*args));
	if (!args)
		return err_set(err, ENOMEM, "out of memory");
	if (pipe(fds) < 0)
		return err_set(err, errno, "pipe: %s", strerror(errno));
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ended) < 0) {
		r = err_set(err, errno, "socketpair: %s", strerror(errno));
		close(fds[0]);
		close(fds[1]);
		return r;
	}
	fcntl(ended[0], F_SETFD, FD_CLOEXEC);
	memcpy(args, argv, (size_t)n * sizeof(*args));
	snprintf(fd_text, sizeof(fd_text), "%d", fds[1]);
	args[n] = (char *)"--ready-fd";
	args[n + 1] = fd_text;
	snprintf(ended_text, sizeof(ended_text), "%d", ended[1]);
	args[n + 2] = (char *)"--ended-fd";
	args[n + 3] = ended_text;
	p->pid = fork();
	if (p->pid < 0) {
		r = err_set(err, errno, "fork: %s", strerror(errno));
		p->pid = 0;
		close(fds[0]);
		close(fds[1]);
		close(ended[0]);
		close(ended[1]);
		return r;
	}
	if (p->pid == 0)
		become_nboxd(args, env, parent);
	close(fds[1]);
	close(ended[1]);
	p->ended_fd = ended[0];
	r = read_line(fds[0], line, sizeof(line), READY_MS);
	close(fds[0]);
	p->store[0] = 0;
	if (r == 1 && sscanf(line, "nboxd ready %255s store %255s", p->addr, p->store) >= 1)
		return 0;
	nboxd_stop(p);
	if (r == -ETIMEDOUT)
		return err_set(err, ETIMEDOUT, "nboxd did not say within %d s that it listens",
			       READY_MS / 1000);
	return err_set(err, ECHILD, "nboxd ended before it listened (its own line says why)");
}

void nboxd_tell_ended(const struct nboxd_proc *p, uint32_t rank, int exit_code)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%u %d", rank, exit_code);

	/* one that is gone needs it no more; one that is stopped is no reason to stop, too */
	if (p->pid > 0)
		(void)!send(p->ended_fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool nboxd_is_leaving(const struct nboxd_proc *p)
{
	struct pollfd fd = {.fd = p->ended_fd};

	return p->pid > 0 && poll(&fd, 1, 0) == 1 && (fd.revents & POLLHUP);
}

void nboxd_gone(struct nboxd_proc *p)
{
	if (p->pid > 0)
		close(p->ended_fd);
	p->pid = 0;
	if (strncmp(p->addr, "shm:/", 5) == 0)
		unlink(p->addr + 4); /* killed, it could not do that itself */
	p->addr[0] = p->store[0] = 0;
}

int nboxd_stop(struct nboxd_proc *p)
{
	uint64_t until = clock_now_ns() + STOP_MS * NS_PER_MS;
	int status = 0;

	if (p->pid <= 0)
		return 0;
	/* Stopped, it would not hear the other. In this order: a SIGCONT while a leak check stops
	 * it at its end takes that stop away, and the check waits for ever. */
	kill(p->pid, SIGCONT);
	if (!nboxd_is_leaving(
		    p)) /* it has closed its handlers then: a signal would cut its end short */
		kill(p->pid, SIGTERM);
	while (waitpid(p->pid, &status, WNOHANG) == 0) {
		if (clock_now_ns() >= until)
			kill(p->pid, SIGKILL);
		usleep(2000);
	}
	nboxd_gone(p);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
