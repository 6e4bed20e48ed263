/* See child.h. */
#include "nbox/oracle/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "nbox-oracle/lines.h"

#define LOG_BYTES_MAX (256 << 20)

/* NCCL's variables. The user's own stay, but for those that would bring something else in or let
 * NCCL talk to ranks that do not exist. */
static int set_environment(const char *plugin, const struct oracle_request *q)
{
	static const struct {
		const char *name, *value;
		int is_forced;
	} fixed[] = {
		{"NCCL_RAS_ENABLE", "0", 1},
		{"NCCL_MNNVL_ENABLE", "0", 0},
		{"NCCL_OOB_NET_ENABLE", "0", 1},
		{"NCCL_DEBUG", "INFO", 1},
		{"NCCL_DEBUG_SUBSYS", "INIT,GRAPH,TUNING,ENV", 1},
		{"NCCL_SINGLE_PROC_MEM_REG_ENABLE", "0", 1},
		{"NCCL_COMM_BLOCKING", "1", 1},
	};
	char log[32];
	int r = 0;

	snprintf(log, sizeof(log), "/proc/self/fd/%d", ORACLE_LOG_FD);
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		r |= setenv(fixed[i].name, fixed[i].value, fixed[i].is_forced);
	r |= setenv("NCCL_DEBUG_FILE", log, 1);
	r |= setenv("NCCL_TUNER_PLUGIN", plugin, 1);
	r |= unsetenv("NCCL_COMM_ID");
	r |= unsetenv("LD_PRELOAD"); /* libnbox.so, where nbox itself is run under it */
	if (!q->has_own_net) {
		/* NCCL's own network may be of sockets: it looks at that, too */
		r |= setenv("NCCL_SOCKET_IFNAME", "lo", 0);
		r |= setenv("NCCL_NET_PLUGIN", plugin, 1);
		r |= setenv("NCCL_NET", "nbox", 1);
	}
	if (q->topo)
		r |= setenv("NCCL_TOPO_FILE", q->topo, 1);
	return r;
}

static void __attribute__((noreturn))
become(const char *program, const char *plugin, const struct oracle_request *q, int socket, int log,
       pid_t parent)
{
	const char *argv[8] = {program, plugin};
	int n = 2, nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	/* both are first above what they become */
	socket = fcntl(socket, F_DUPFD, ORACLE_LOG_FD + 1);
	log = fcntl(log, F_DUPFD, ORACLE_LOG_FD + 1);
	if (dup2(nowhere, STDOUT_FILENO) < 0 || /* NCCL prints its version there */
	    dup2(socket, ORACLE_FD) < 0 || dup2(log, ORACLE_LOG_FD) < 0 ||
	    set_environment(plugin, q) != 0)
		_exit(127);
	close(socket);
	close(log);
	if (q->nccl) {
		argv[n++] = "--nccl";
		argv[n++] = q->nccl;
	}
	if (q->cudart) {
		argv[n++] = "--cudart";
		argv[n++] = q->cudart;
	}
	execv(program, (char *const *)(uintptr_t)argv);
	fprintf(stderr, "nbox: %s: %s\n", program, strerror(errno));
	_exit(127);
}

int oracle_child_start(struct oracle_child *ret, const char *program, const char *plugin,
		       const struct oracle_request *q, struct err *err)
{
	CLEANUP(closep) int log = memfd_create("nccl-log", MFD_CLOEXEC);
	pid_t pid, parent = getpid();
	int pair[2];

	if (log < 0)
		return err_set(err, errno, "memfd_create: %s", strerror(errno));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, errno, "socketpair: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		become(program, plugin, q, pair[1], log, parent);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_set(err, errno, "fork: %s", strerror(errno));
	}
	*ret = (struct oracle_child){.pid = pid, .socket = pair[0], .log = steal_fd(&log)};
	return 0;
}

int oracle_child_end(struct oracle_child *c)
{
	int status = 0;

	if (!c->pid)
		return 0;
	close(c->socket);
	kill(c->pid, SIGKILL); /* one that has ended keeps its status */
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	return status;
}

off_t oracle_child_log_bytes(const struct oracle_child *c)
{
	struct stat st;

	return fstat(c->log, &st) == 0 ? st.st_size : 0;
}

ssize_t oracle_child_log(const struct oracle_child *c, off_t from, char **ret)
{
	off_t end = oracle_child_log_bytes(c);
	size_t size = end > from ? (size_t)(end - from) : 0, n = 0;
	char *text;

	if (size > LOG_BYTES_MAX)
		return -EFBIG;
	text = malloc(size + 1);
	if (!text)
		return -ENOMEM;
	while (n < size) {
		ssize_t got = pread(c->log, text + n, size - n, from + (off_t)n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	text[n] = 0;
	*ret = text;
	return (ssize_t)n;
}
