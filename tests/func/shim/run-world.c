/* Runs one job in a virtual world: an nboxd, and one process a real rank with
 * libnbox.so preloaded.
 *
 *   run-world [option ...] REAL,REAL,... program arg ...
 *     -d OPTION   for nboxd (repeated)
 *     -e K=V      environment of the workers
 *     -k MS       kill nboxd that long after the workers said they are ready (a line
 *                 "ready" on stdout); workers must then end within 60 s of it
 *     -K MS       the same, but the first worker is killed
 *     -a ADDRESS  where nboxd listens, instead of a socket in a folder of ours; "rdma":
 *                 the device whose address is in NBOX_TEST_RDMA (none: skipped, 77)
 *     -L TEXT     a worker may print one line on stderr, with TEXT in it
 *     -l TEXT     every worker left must print exactly one line on stderr, with TEXT
 *                 in it (-K: at most one, the real NCCL may have been faster to tell);
 *                 without it none may print anything there
 *
 * NBOXD and LIBNBOX name the binaries. The workers have GPUS_PER_NODE, of nboxd's options. Nothing
 * but "ready" and "told" may be on stdout; who says "told" may wait for the end of its stdin, which
 * comes when all have said so or have ended. Leaves nothing behind. Return: 0 when all workers (but
 * a killed one) ended with 0. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define MAX_WORKERS 32
#define MAX_OPTIONS 64
#define LIMIT_NS \
	(600 * NS_PER_S) /* only for what hangs: an emulated machine beside a build is slow */
#define AFTER_KILL_NS (300 * NS_PER_S) /* a fraction of a second, where the machine is not busy */

struct worker {
	pid_t pid;
	int in, out, err; /* @in: its stdin, open until all are told */
	char lines[8192], said[256];
	size_t n, n_said;
	int is_ready, is_told;
};

static struct worker workers[MAX_WORKERS];
static unsigned int n_workers;
static pid_t nboxd;
static char dir[64], addr[256];
static const char *listen_at;

/* nboxd wants a token where others could connect. */
static const char *rdma_address(void)
{
	static char text[128];
	const char *of_device = getenv("NBOX_TEST_RDMA");

	if (!of_device) {
		fprintf(stderr,
			"run-world: skipped: NBOX_TEST_RDMA names no address of an RDMA device\n");
		exit(77);
	}
	snprintf(text, sizeof(text), "rdma:%s:0", of_device);
	setenv("NBOX_TOKEN", "for-tests", 1);
	return text;
}

static void clean_up(void)
{
	char path[128];

	for (unsigned int i = 0; i < n_workers; i++)
		if (workers[i].pid > 0)
			kill(workers[i].pid, SIGKILL);
	if (nboxd > 0) {
		kill(nboxd, SIGKILL);
		waitpid(nboxd, NULL, 0);
	}
	snprintf(path, sizeof(path), "%s/s", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/s.lock", dir);
	unlink(path);
	rmdir(dir);
}

static void die(const char *what)
{
	fprintf(stderr, "run-world: %s\n", what);
	for (unsigned int i = 0; i < n_workers; i++)
		fprintf(stderr, "worker %u (%s) said '%s' and printed:\n%s", i,
			workers[i].pid > 0 ? "runs" : "has ended", workers[i].said,
			workers[i].lines);
	clean_up();
	exit(1);
}

static pid_t spawn(char **argv, char **env, int n_env, int in, int out, int err)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	for (int i = 0; i < n_env; i++)
		putenv(env[i]);
	if (in >= 0)
		dup2(in, 0);
	if (out >= 0)
		dup2(out, 1);
	if (err >= 0)
		dup2(err, 2);
	execv(argv[0], argv);
	perror(argv[0]);
	_exit(127);
}

static void start_nboxd(char **options, int n_options, const char *real)
{
	char *argv[MAX_OPTIONS + 8], fd_text[16], line[320] = "", where[96];
	char *no_model = (char *)"NBOX_MODEL=none"; /* but where @options name one */
	int fds[2], n = 0;
	size_t got = 0;
	uint64_t until = clock_now_ns() + LIMIT_NS;

	snprintf(dir, sizeof(dir), "/tmp/nbox-func-XXXXXX");
	if (!mkdtemp(dir) || pipe(fds))
		die("mkdtemp or pipe");
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	snprintf(fd_text, sizeof(fd_text), "%d", fds[1]);
	snprintf(where, sizeof(where), "shm:%s/s", dir);
	argv[n++] = getenv("NBOXD");
	argv[n++] = (char *)"--addr";
	argv[n++] = listen_at ? (char *)(uintptr_t)listen_at : where;
	argv[n++] = (char *)"--real";
	argv[n++] = (char *)(uintptr_t)real;
	for (int i = 0; i < n_options; i++)
		argv[n++] = options[i];
	argv[n++] = (char *)"--ready-fd";
	argv[n++] = fd_text;
	argv[n] = NULL;
	nboxd = spawn(argv, &no_model, 1, -1, -1, -1);
	close(fds[1]);
	while (!strchr(line, '\n') && got < sizeof(line) - 1 && clock_now_ns() < until) {
		struct pollfd p = {.fd = fds[0], .events = POLLIN};
		ssize_t r;

		if (poll(&p, 1, 100) <= 0)
			continue;
		r = read(fds[0], line + got, 1);
		if (r <= 0)
			break;
		got++;
	}
	close(fds[0]);
	if (sscanf(line, "nboxd ready %255s", addr) != 1)
		die("nboxd did not get ready");
}

static void start_workers(const char *real, char **env, int n_env, char **argv)
{
	char *end;

	for (const char *p = real; *p && n_workers < MAX_WORKERS; p = end + (*end == ',')) {
		struct worker *w = &workers[n_workers++];
		char vars[4][300];
		const char *asan = getenv("ASAN_OPTIONS");
		char *all[MAX_OPTIONS + 8];
		int in[2], out[2], err[2], n = 0;

		if (pipe(in) || pipe(out) || pipe(err))
			die("pipe");
		fcntl(in[1], F_SETFD, FD_CLOEXEC);
		fcntl(out[0], F_SETFD, FD_CLOEXEC);
		fcntl(err[0], F_SETFD, FD_CLOEXEC);
		snprintf(vars[0], sizeof(vars[0]), "RANK=%ld", strtol(p, &end, 10));
		snprintf(vars[1], sizeof(vars[1]), "NBOX_ADDR=%s", addr);
		snprintf(vars[2], sizeof(vars[2]), "LD_PRELOAD=%s", getenv("LIBNBOX"));
		/* a sanitized libnbox.so comes before the sanitizer's library */
		snprintf(vars[3], sizeof(vars[3]), "ASAN_OPTIONS=%s:verify_asan_link_order=0",
			 asan ? asan : "");
		for (int i = 0; i < 4; i++)
			all[n++] = vars[i];
		for (int i = 0; i < n_env; i++)
			all[n++] = env[i];
		w->pid = spawn(argv, all, n, in[0], out[1], err[1]);
		close(in[0]);
		close(out[1]);
		close(err[1]);
		w->in = in[1];
		w->out = out[0];
		w->err = err[0];
		fcntl(w->out, F_SETFL, O_NONBLOCK);
		fcntl(w->err, F_SETFL, O_NONBLOCK);
	}
}

static void read_lines(struct worker *w)
{
	ssize_t r;

	while ((r = read(w->out, w->said + w->n_said, sizeof(w->said) - 1 - w->n_said)) > 0)
		w->n_said += (size_t)r;
	while ((r = read(w->err, w->lines + w->n, sizeof(w->lines) - 1 - w->n)) > 0)
		w->n += (size_t)r;
	w->is_ready = strstr(w->said, "ready\n") != NULL;
	w->is_told = strstr(w->said, "told\n") != NULL;
}

/* Nobody waits for the others any more. */
static void let_go(void)
{
	for (unsigned int i = 0; i < n_workers; i++) {
		if (workers[i].in >= 0)
			close(workers[i].in);
		workers[i].in = -1;
	}
}

/* Return: how many workers are still running. */
static unsigned int look(int *ret_failed)
{
	unsigned int n = 0, n_waiting = 0;

	for (unsigned int i = 0; i < n_workers; i++) {
		struct worker *w = &workers[i];
		int status;

		read_lines(w);
		if (w->pid <= 0)
			continue;
		if (waitpid(w->pid, &status, WNOHANG) != w->pid) {
			n++;
			n_waiting += (unsigned int)w->is_told;
			continue;
		}
		read_lines(w);
		w->pid = 0;
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			*ret_failed = 1;
			fprintf(stderr, "worker %u: status 0x%x\n", i, (unsigned int)status);
		}
	}
	if (n == n_waiting)
		let_go();
	return n;
}

static int all_ready(void)
{
	for (unsigned int i = 0; i < n_workers; i++)
		if (!workers[i].is_ready)
			return 0;
	return 1;
}

static int check_lines(unsigned int first, const char *text, unsigned int least)
{
	int bad = 0;

	for (unsigned int i = first; i < n_workers; i++) {
		struct worker *w = &workers[i];
		unsigned int n = 0;

		if (*w->said && strcmp(w->said, "ready\n") && strcmp(w->said, "told\n") &&
		    strcmp(w->said, "ready\ntold\n")) {
			fprintf(stderr, "worker %u printed on stdout: %s", i, w->said);
			bad = 1;
		}
		for (const char *p = w->lines; *p; p++)
			n += *p == '\n';
		if ((text && (n > 1 || n < least || (n && !strstr(w->lines, text)))) ||
		    (!text && w->n)) {
			fprintf(stderr, "worker %u printed %u lines:\n%s", i, n, w->lines);
			bad = 1;
		}
	}
	return bad;
}

int main(int argc, char **argv)
{
	char *options[MAX_OPTIONS], *env[MAX_OPTIONS];
	int n_options = 0, n_env = 0, opt, failed = 0, status = 0;
	long kill_ms = -1;
	int kills_worker = 0, may_be_silent = 0;
	const char *text = NULL;
	uint64_t until = clock_now_ns() + LIMIT_NS, kill_at = 0;

	while ((opt = getopt(argc, argv, "+a:d:e:k:K:l:L:")) != -1) {
		if (opt == 'd' && n_options < MAX_OPTIONS) {
			if (n_options && !strcmp(options[n_options - 1], "--gpus-per-node"))
				setenv("GPUS_PER_NODE", optarg, 1);
			options[n_options++] = optarg;
		} else if (opt == 'e' && n_env < MAX_OPTIONS)
			env[n_env++] = optarg;
		else if (opt == 'k' || opt == 'K')
			kill_ms = atol(optarg);
		else if (opt == 'l' || opt == 'L')
			text = optarg;
		else if (opt == 'a')
			listen_at = strcmp(optarg, "rdma") ? optarg : rdma_address();
		else
			return 2;
		kills_worker = kills_worker || opt == 'K';
		may_be_silent = may_be_silent || opt == 'K' || opt == 'L';
	}
	if (argc - optind < 2)
		return 2;
	start_nboxd(options, n_options, argv[optind]);
	start_workers(argv[optind], env, n_env, argv + optind + 1);
	while (look(&failed)) {
		uint64_t now = clock_now_ns();

		if (now > until)
			die(kill_at ? "still running 300 s after the kill" : "takes too long");
		if (kill_ms >= 0 && !kill_at && all_ready()) {
			clock_sleep_until_ns(now + (uint64_t)kill_ms * NS_PER_MS);
			kill_at = clock_now_ns();
			until = kill_at + AFTER_KILL_NS;
			kill(kills_worker ? workers[0].pid : nboxd, SIGKILL);
			if (kills_worker) {
				waitpid(workers[0].pid, NULL, 0);
				workers[0].pid = 0;
			}
		}
		clock_sleep_until_ns(now + 2 * NS_PER_MS);
	}
	if (kill_ms >= 0 && !kill_at)
		die("ended before the kill");
	if (kill_at)
		printf("workers ended %.3f s after the kill\n",
		       (double)(clock_now_ns() - kill_at) / 1e9);
	failed |= check_lines(kills_worker ? 1 : 0, text, may_be_silent ? 0 : 1);
	if (kill_ms < 0 || kills_worker) {
		kill(nboxd, SIGTERM);
		if (waitpid(nboxd, &status, 0) != nboxd || !WIFEXITED(status) ||
		    WEXITSTATUS(status)) {
			fprintf(stderr, "nboxd: status 0x%x\n", (unsigned int)status);
			failed = 1;
		}
		nboxd = 0;
	}
	clean_up();
	return failed;
}
