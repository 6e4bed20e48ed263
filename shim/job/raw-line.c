/* See raw-line.h. posix_spawn() starts nboxd: it runs no handlers of this process in the child. The
 * nboxd of the job is no child of this process, so the job's own wait() calls never meet it. */
#include "shim/job/raw-line.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define JOIN_NS (20 * NS_PER_S) /* nboxd gives up by itself before */
#define TEXT_MAX 16384

extern char **environ;

static const char *get(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

const char *raw_line_wanted(void)
{
	static const char *const names[] = {"NBOX_NODES", "NBOX_WORLD", "NBOX_CONFIG"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (get(names[i]))
			return names[i];
	return access(RAW_LINE_FILE, F_OK) == 0 ? "./" RAW_LINE_FILE : NULL;
}

bool raw_line_is_quiet(void)
{
	const char *quiet = get("NBOX_QUIET");

	return quiet && !strcmp(quiet, "1");
}

/* --- where nboxd is ------------------------------------------------------------------- */

/* Beside libnbox.so in a build folder; <prefix>/bin for <prefix>/lib/nbox. */
static int find_nboxd(char *buf, size_t size, struct err *err)
{
	static const char *const places[] = {"nboxd", "../../bin/nboxd"};
	const char *given = get("NBOX_NBOXD");
	char dir[PATH_MAX];
	Dl_info self;

	if (given) {
		if (access(given, X_OK) != 0)
			return err_set(err, errno, "NBOX_NBOXD=%s: %s", given, strerror(errno));
		return snprintf(buf, size, "%s", given) < (int)size ? 0 : -ENAMETOOLONG;
	}
	/* relative where LD_PRELOAD was: this runs before the program can change its folder */
	if (!dladdr((void *)(uintptr_t)raw_line_join, &self) || !realpath(self.dli_fname, dir))
		return err_set(err, ENOENT,
			       "cannot find where libnbox.so lies: set NBOX_NBOXD to nboxd's path");
	*strrchr(dir, '/') = 0;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (snprintf(buf, size, "%s/%s", dir, places[i]) < (int)size &&
		    access(buf, X_OK) == 0)
			return 0;
	return err_set(err, ENOENT,
		       "there is no nboxd beside %s/libnbox.so: set NBOX_NBOXD to its path", dir);
}

/* --- running it ----------------------------------------------------------------------- */

/* The worker's environment; nothing is preloaded into nboxd. */
static char **daemon_env(void)
{
	size_t n = 0, k = 0;
	char **list;

	while (environ[n])
		n++;
	list = calloc(n + 1, sizeof(*list));
	for (size_t i = 0; list && i < n; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0)
			list[k++] = environ[i];
	return list;
}

/* @out: nboxd's stdout. */
static int set_up(posix_spawnattr_t *attr, posix_spawn_file_actions_t *actions, int out)
{
	sigset_t none, all;
	int r = 0;

	sigemptyset(&none);
	sigfillset(&all);
	r |= posix_spawnattr_setsigmask(attr, &none);
	r |= posix_spawnattr_setsigdefault(attr, &all);
	r |= posix_spawnattr_setpgroup(attr, 0); /* a Ctrl-C is for the job; nboxd ends after it */
	r |= posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						    POSIX_SPAWN_SETPGROUP);
	r |= posix_spawn_file_actions_adddup2(
		actions, out, STDOUT_FILENO); /* first: @out may be 0, in a job without stdin */
	r |= posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	r |= posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
	return r ? -ENOMEM : 0;
}

/* @ret_fd: where it writes. */
static int start(const char *path, uint32_t rank, uint32_t n_ranks, uint32_t local_size,
		 pid_t *ret_pid, int *ret_fd, struct err *err)
{
	CLEANUP(freep) char **env = daemon_env();
	char rank_text[16], ranks_text[16], local_text[16];
	char *argv[] = {
		(char *)(uintptr_t)path, (char *)"--join", rank_text, (char *)"--ranks", ranks_text,
		(char *)"--local",       local_text,       NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int fds[2], r;

	snprintf(rank_text, sizeof(rank_text), "%u", rank);
	snprintf(ranks_text, sizeof(ranks_text), "%u", n_ranks);
	snprintf(local_text, sizeof(local_text), "%u", local_size);
	if (!env || pipe2(fds, O_CLOEXEC))
		return err_set(err, errno, "cannot start %s: %s", path, strerror(errno));
	if (posix_spawnattr_init(&attr) || posix_spawn_file_actions_init(&actions)) {
		close(fds[0]);
		close(fds[1]);
		return err_set(err, ENOMEM, "no memory");
	}
	r = set_up(&attr, &actions, fds[1]);
	if (!r)
		r = -posix_spawn(ret_pid, path, &actions, &attr, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	close(fds[1]);
	*ret_fd = fds[0];
	if (r)
		close(fds[0]);
	return r ? err_set(err, -r, "cannot start %s: %s", path, strerror(-r)) : 0;
}

/* All that comes until the other end is closed, terminated. Return: bytes; -ETIMEDOUT; other
 * negative errno. */
static ssize_t read_all(int fd, char *buf, size_t size)
{
	uint64_t until = clock_now_ns() + JOIN_NS, now;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t n = 0;
	ssize_t got;

	while ((now = clock_now_ns()) < until) {
		if (poll(&p, 1, (int)((until - now) / NS_PER_MS) + 1) <= 0)
			continue;
		got = read(fd, buf + n, size - 1 - n);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0 || n == size - 1) {
			buf[n] = 0;
			return (ssize_t)n;
		}
		n += got > 0 ? (size_t)got : 0;
	}
	return -ETIMEDOUT;
}

static void set_variables(const char *text, size_t n)
{
	char name[64];

	for (const char *p = text; p < text + n; p += strlen(p) + 1) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(p, "="), p);
		setenv(name, p + strcspn(p, "=") + 1, 1);
	}
}

int raw_line_join(uint32_t rank, uint32_t n_ranks, uint32_t local_size, struct err *err)
{
	char path[PATH_MAX], text[TEXT_MAX];
	ssize_t n;
	pid_t pid;
	int fd = -1, r = find_nboxd(path, sizeof(path), err);

	r = r ? r : start(path, rank, n_ranks, local_size, &pid, &fd, err);
	if (r)
		return r;
	n = read_all(fd, text, sizeof(text));
	close(fd);
	if (n < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n == -ETIMEDOUT)
		return err_set(err, ETIMEDOUT, "%s did not answer within %d s", path,
			       (int)(JOIN_NS / NS_PER_S));
	if (n <= 0)
		return err_set(err, ECHILD, "%s could not start (its own line says why)", path);
	if (!memchr(text, 0, (size_t)n)) /* a sentence */
		return err_set(err, EINVAL, "%.*s", ERR_TEXT_MAX - 1, text);
	set_variables(text, (size_t)n);
	return 0;
}
