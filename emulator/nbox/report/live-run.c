/* See live-run.h. */
#include "nbox/report/live-run.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

int live_runs_find(const char *top, const char *name, struct live_runs *ret)
{
	struct timespec times[LIVE_RUNS_MAX];
	DIR *d = opendir(top);

	ret->n = 0;
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		char dir[PATH_MAX], path[PATH_MAX + 64];
		struct stat st;
		unsigned at;

		if (e->d_name[0] == '.' ||
		    snprintf(dir, sizeof(dir), "%s/%s", top, e->d_name) >= (int)sizeof(dir))
			continue;
		snprintf(path, sizeof(path), "%s/%.62s", dir, name);
		if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		for (at = 0; at < ret->n && !is_later(&st.st_mtim, &times[at]);)
			at++;
		if (at == LIVE_RUNS_MAX)
			continue;
		if (ret->n < LIVE_RUNS_MAX)
			ret->n++;
		for (unsigned i = ret->n - 1; i > at; i--) {
			strcpy(ret->dirs[i], ret->dirs[i - 1]);
			times[i] = times[i - 1];
		}
		strcpy(ret->dirs[at], dir);
		times[at] = st.st_mtim;
	}
	closedir(d);
	return 0;
}
