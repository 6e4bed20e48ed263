/* See preloaded.h. What a process has mapped is in /proc/PID/maps, under the name of the file
 * itself, whatever the name was in LD_PRELOAD. */
#include "nbox/run/preloaded.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PARENTS_MAX 64

/* Return: 0: it is gone, or has ended. */
static pid_t parent_of(pid_t pid, char *ret_name, size_t size)
{
	char path[64], text[512] = "", state = 'Z';
	char *open, *end;
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	open = strchr(text, '(');
	end = strrchr(text, ')');
	if (!open || !end || sscanf(end + 1, " %c %d", &state, &parent) != 2 || state == 'Z')
		return 0;
	*end = 0;
	snprintf(ret_name, size, "%s", open + 1);
	return parent;
}

static bool descends(pid_t pid, pid_t spared)
{
	char name[64];

	for (int i = 0; i < PARENTS_MAX && pid > 1; i++) {
		if (pid == spared)
			return false;
		pid = parent_of(pid, name, sizeof(name));
		if (pid == getpid())
			return true;
	}
	return false;
}

/* Return: 1, 0; -1: it is gone, or has no memory of its own any more. */
static int has_libnbox(pid_t pid)
{
	char path[64], line[PATH_MAX + 128];
	bool is_found = false, any = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f) /* another user's, such as sudo's: the dynamic linker does not heed LD_PRELOAD there
		 */
		return errno == EACCES ? 0 : -1;
	while (!is_found && fgets(line, sizeof(line), f)) {
		any = true;
		is_found = strstr(line, "/libnbox.so") != NULL;
	}
	fclose(f);
	return any ? is_found : -1;
}

void preloaded_look(pid_t spared, struct preloaded *ret)
{
	DIR *dir = opendir("/proc");
	char name[sizeof(ret->command)];
	struct dirent *d;
	pid_t pid;
	int has;

	*ret = (struct preloaded){0};
	while (dir && (d = readdir(dir))) {
		pid = (pid_t)atoi(d->d_name);
		if (pid <= 1 || pid == getpid() || pid == spared ||
		    !parent_of(pid, name, sizeof(name)) || !descends(pid, spared))
			continue;
		has = has_libnbox(pid);
		if (has < 0)
			continue;
		ret->n_processes++;
		ret->n_with += (unsigned int)has;
		if (!ret->pid) {
			ret->pid = pid;
			snprintf(ret->command, sizeof(ret->command), "%s", name);
		}
	}
	if (dir)
		closedir(dir);
}
