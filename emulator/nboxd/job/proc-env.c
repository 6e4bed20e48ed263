/* See proc-env.h. */
#include "nboxd/job/proc-env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ENV_MAX (256u << 10)

int proc_env_read(pid_t pid, struct proc_env *ret)
{
	static char text[ENV_MAX];
	CLEANUP(closep) int fd = -1;
	char path[64];
	size_t n = 0;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n < sizeof(text) - 1 && (got = read(fd, text + n, sizeof(text) - 1 - n)) != 0) {
		if (got < 0 && errno != EINTR)
			return -errno;
		n += got > 0 ? (size_t)got : 0;
	}
	if (n == sizeof(text) - 1)
		return -E2BIG;
	text[n] = '\0';
	*ret = (struct proc_env){text, n};
	return 0;
}

const char *proc_env_get(const struct proc_env *e, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = e->text; p < e->text + e->n; p += strlen(p) + 1)
		if (strncmp(p, name, len) == 0 && p[len] == '=')
			return p + len + 1;
	return NULL;
}

bool proc_env_has(const struct proc_env *e, const char *prefix)
{
	for (const char *p = e->text; p < e->text + e->n; p += strlen(p) + 1)
		if (strncmp(p, prefix, strlen(prefix)) == 0)
			return true;
	return false;
}

/* What /proc/PID/stat says behind the process's name, which may hold anything. Return: it, in @buf;
 * NULL: there is no such process, or it may not be seen. */
static const char *read_stat(pid_t pid, char *buf, size_t size)
{
	char path[64];
	const char *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return NULL;
	buf[fread(buf, 1, size - 1, f)] = '\0';
	fclose(f);
	p = strrchr(buf, ')');
	return p ? p + 1 : NULL;
}

pid_t proc_parent(pid_t pid, char *ret_state)
{
	char text[1024];
	const char *p = read_stat(pid, text, sizeof(text));
	int parent = 0;

	return p && sscanf(p, " %c %d", ret_state, &parent) == 2 ? parent : 0;
}

uint64_t proc_start(pid_t pid)
{
	char text[1024];
	const char *p = read_stat(pid, text, sizeof(text));
	unsigned long long start = 0;

	if (p)
		sscanf(p,
		       " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		       &start);
	return start;
}

uint64_t proc_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

pid_t proc_agent(pid_t pid)
{
	struct proc_env e;
	char state;

	for (int i = 0; i < PROC_PARENTS_MAX; i++) {
		pid = proc_parent(pid, &state);
		if (pid <= 1 || proc_env_read(pid, &e) < 0 || e.n == 0)
			return 0;
		if (!proc_env_get(&e, "LOCAL_RANK"))
			return pid;
	}
	return 0;
}
