/* See autostart.h. nboxd is started by posix_spawn(), which runs no handlers of this process in the
 * child, and is no child for long: `nboxd --background` returns when it listens, so that the job's own
 * wait() calls meet it for that moment at most. */
#include "shim/autostart.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define START_MS 15000 /* nboxd gives up by itself before */
#define NAP_NS (10 * NS_PER_MS)

extern char **environ;

static const char *get(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static void nap(void)
{
	struct timespec ts = {.tv_nsec = NAP_NS};

	nanosleep(&ts, NULL);
}

/* What is the same for all workers of a job and another for the next job, as far as launchers say. */
char *autostart_addr(char *buf, size_t size)
{
	static const char *const names[] = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID",
					    "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_STEP_ID",
					    "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_ID",
					    "PMI_JOBID", "NBOX_WORLD"};
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *text = get(names[i]);

		for (const char *p = text ? text : ""; *p; p++)
			hash = (hash ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
		hash = (hash ^ 0xff) * UINT64_C(0x100000001b3);
	}
	snprintf(buf, size, "shm:@nbox-auto-%u-%016llx", (unsigned)getuid(), (unsigned long long)hash);
	return buf;
}

/* --- where nboxd is ------------------------------------------------------------------- */

/* Of libnbox.so, absolute also where LD_PRELOAD was not. */
static int own_path(char *buf, size_t size)
{
	uintptr_t here = (uintptr_t)autostart_addr;
	char line[PATH_MAX + 128];
	unsigned long from, to;
	int at = 0, found = -ENOENT;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &at) < 2 || here < from ||
		    here >= to || line[at] != '/')
			continue;
		found = snprintf(buf, size, "%s", line + at) < (int)size ? 0 : -ENAMETOOLONG;
	}
	if (f)
		fclose(f);
	return found;
}

/* Beside libnbox.so in a build folder; <prefix>/bin for <prefix>/lib/nbox. */
static int find_nboxd(char *buf, size_t size, struct err *err)
{
	static const char *const places[] = {"nboxd", "../../bin/nboxd"};
	const char *given = get("NBOX_NBOXD");
	char dir[PATH_MAX];

	if (given) {
		if (access(given, X_OK) != 0)
			return err_set(err, errno, "NBOX_NBOXD=%s: %s", given, strerror(errno));
		return snprintf(buf, size, "%s", given) < (int)size ? 0 : -ENAMETOOLONG;
	}
	if (own_path(dir, sizeof(dir)) < 0)
		return err_set(err, ENOENT, "cannot find where libnbox.so lies: set NBOX_NBOXD to nboxd's path");
	*strrchr(dir, '/') = 0;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (snprintf(buf, size, "%s/%s", dir, places[i]) < (int)size && access(buf, X_OK) == 0)
			return 0;
	return err_set(err, ENOENT, "there is no nboxd beside %s/libnbox.so: set NBOX_NBOXD to its path", dir);
}

/* --- starting it ---------------------------------------------------------------------- */

/* The job's environment, but: nothing is preloaded into nboxd, and the store is not served. */
static char **daemon_env(void)
{
	static const char *const without[] = {"LD_PRELOAD=", "NBOX_STORE=", "NBOX_ADDR=", "NBOX_LINK="};
	size_t n = 0, k = 0;
	char **list;

	while (environ[n])
		n++;
	list = calloc(n + 1, sizeof(*list));
	for (size_t i = 0; list && i < n; i++) {
		bool is_kept = true;

		for (size_t w = 0; w < ARRAY_SIZE(without); w++)
			is_kept = is_kept && strncmp(environ[i], without[w], strlen(without[w])) != 0;
		if (is_kept)
			list[k++] = environ[i];
	}
	return list;
}

static void results_dir(char *buf, size_t size)
{
	const char *out = get("NBOX_OUT"), *attempt = get("TORCHELASTIC_RESTART_COUNT");
	time_t now = time(NULL);
	char stamp[32] = "";
	struct tm tm;

	if (out && attempt && strcmp(attempt, "0") != 0) {
		snprintf(buf, size, "%s-restart%s", out, attempt);
	} else if (out) {
		snprintf(buf, size, "%s", out);
	} else {
		strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
		snprintf(buf, size, "nbox-out/%s-%d", stamp, (int)getpid());
	}
}

static int set_up(posix_spawnattr_t *attr, posix_spawn_file_actions_t *actions)
{
	sigset_t none, all;
	int rc = 0;

	sigemptyset(&none);
	sigfillset(&all);
	rc |= posix_spawnattr_setsigmask(attr, &none);
	rc |= posix_spawnattr_setsigdefault(attr, &all);
	rc |= posix_spawnattr_setpgroup(attr, 0); /* a Ctrl-C is for the job; nboxd ends after it */
	rc |= posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
					       POSIX_SPAWN_SETPGROUP);
	rc |= posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	rc |= posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	rc |= posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
	return rc ? -ENOMEM : 0;
}

/* Until `nboxd --background` has returned. Return: 0; -ECHILD it failed; -ETIMEDOUT. */
static int await(pid_t pid)
{
	uint64_t until = clock_now_ns() + START_MS * NS_PER_MS;
	int status = 0;

	for (;;) {
		pid_t r = waitpid(pid, &status, WNOHANG);

		if (r == pid)
			return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
		if (r < 0 && errno != EINTR)
			return 0; /* the job waited for it, or ignores SIGCHLD: see whether it listens */
		if (clock_now_ns() >= until)
			break;
		nap();
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -ETIMEDOUT;
}

static int start(const char *addr, struct err *err)
{
	CLEANUP(freep) char **env = daemon_env();
	const char *gpus = get("NBOX_GPUS_PER_NODE"), *local = get("LOCAL_WORLD_SIZE");
	char path[PATH_MAX], out[PATH_MAX];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int rc = find_nboxd(path, sizeof(path), err);
	pid_t pid;

	if (rc < 0)
		return rc;
	if (!local)
		local = get("LOCAL_SIZE") ? get("LOCAL_SIZE") : get("OMPI_COMM_WORLD_LOCAL_SIZE");
	results_dir(out, sizeof(out));
	char *argv[] = {path, (char *)"--background", (char *)"--once", (char *)"--addr", (char *)(uintptr_t)addr,
			(char *)"--out", out, (char *)(gpus || !local ? NULL : "--gpus-per-node"),
			(char *)(uintptr_t)local, NULL};

	if (!env || posix_spawnattr_init(&attr))
		return err_set(err, ENOMEM, "no memory");
	posix_spawn_file_actions_init(&actions);
	rc = set_up(&attr, &actions);
	if (!rc)
		rc = -posix_spawn(&pid, path, &actions, &attr, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (rc)
		return err_set(err, -rc, "cannot start %s: %s", path, strerror(-rc));
	log_info("starts %s, results go to %s", path, out);
	rc = await(pid);
	if (rc == -ETIMEDOUT)
		return err_set(err, -rc, "%s did not listen within %d s", path, START_MS / 1000);
	return rc ? err_set(err, -rc, "%s could not start (its own line says why)", path) : 0;
}

int autostart_try(const char *addr, struct err *err)
{
	CLEANUP(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	socklen_t len;
	int n;

	if (fd < 0)
		return err_set(err, errno, "socket: %s", strerror(errno));
	/* "shm:@name" -> the abstract "name-lock" */
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s-lock", addr + 5);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	if (bind(fd, (struct sockaddr *)&a, len) == 0)
		return start(addr, err);
	if (errno != EADDRINUSE)
		return err_set(err, errno, "cannot take the lock %s: %s", a.sun_path + 1, strerror(errno));
	nap(); /* another worker starts it */
	return 0;
}
