/* The runs of this folder that may be under way: directories with an nboxd.addr (config/addr-file.h). */
#pragma once

#include <limits.h>

#define LIVE_RUN_TOP "nbox-out" /* where results go without --out */
#define LIVE_RUNS_MAX 16

struct live_runs {
	unsigned n;
	char dirs[LIVE_RUNS_MAX][PATH_MAX]; /* the newest first */
};

/* The newest LIVE_RUNS_MAX in @top. One whose nboxd was killed is among them. Return: 0, also where @top is not there;
 * negative errno. */
int live_runs_find(const char *top, struct live_runs *ret);
