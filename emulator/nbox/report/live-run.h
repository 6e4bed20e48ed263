/* The runs of this folder: those that may be under way have an nboxd.addr (config/addr-file.h),
 * those that can be reported a record.nbox. */
#pragma once

#include <limits.h>

#define LIVE_RUN_TOP "nbox-out" /* where results go without --out */
#define LIVE_RUNS_MAX 16

struct live_runs {
	unsigned n;
	char dirs[LIVE_RUNS_MAX][PATH_MAX]; /* the newest first */
};

/* Finds the newest LIVE_RUNS_MAX runs in @top that have a file @name; the time is that of its last
 * write. A run whose nboxd was killed is among them. Return: 0, also where @top is not there;
 * negative errno. */
int live_runs_find(const char *top, const char *name, struct live_runs *ret);
