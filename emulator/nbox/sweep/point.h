/* One point of a sweep: the folder of its results, and what stands there. It is complete when it
 * has a summary, and the command line that it was made by is the one that is wanted now. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "nbox/retime/retime.h"
#include "nbox/sweep/grid.h"

struct sweep;
/* What a point's folder holds besides: a file that is written when the point is played, and without
 * which it is not complete. */
struct sweep_extra {
	const char *name;
	/* Return: 0; negative errno with the sentence. */
	int (*write)(const struct sweep *s, size_t point, const char *path, struct err *err);
	const void *ctx; /* for it */
};

/* What a sweep is made from. All borrowed. */
struct sweep {
	const char *command;        /* "sweep" or "plan" */
	const char *word;           /* the run, as the user named it */
	const struct recorded *run; /* NULL: its points are run, not re-timed */
	const char *run_dir;
	struct values beyond; /* what was given beside the run: "--with=RUN2", "--counts=..." */
	struct grid grid;
	const char *dir; /* results: a folder a point below points/ */
	bool keeps_records;
	const struct sweep_extra *extra; /* NULL: none */
};

enum point_state { POINT_NONE, POINT_DONE, POINT_FAILED };

/* Times in ms. */
struct point_result {
	enum point_state state;
	char why[512];            /* it failed */
	bool has_steps, is_unmet; /* not as --expect says */
	double p25, p50, p75, p95, mean, exposed, injected, modelled;
	unsigned world, nodes;
	unsigned n_warnings;
	char warnings[2048]; /* a line each, as many as there is room for */
};

/* "<dir>/points/nodes=8,delay=2ms". @buf: PATH_MAX bytes. Return: @buf. */
char *point_dir(const struct sweep *s, size_t point, char *buf);
/* The configuration of a re-timed point, before config_finish(). Return: 0; negative errno with the
 * sentence. */
int point_options(const struct sweep *s, size_t point, struct config **ret, struct err *err);
/* The same, finished. */
int point_config(const struct sweep *s, size_t point, struct config **ret, struct err *err);
/* Plays it, or runs it, into its folder; what was there goes. A failure is noted there, too.
 * Return: 0; negative errno with the sentence. */
int point_play(const struct sweep *s, size_t point, struct err *err);
/* The command line that makes it. Return: 0; negative errno with the sentence. */
int point_command(const struct sweep *s, size_t point, struct values *ret, struct err *err);
/* Notes that it failed. */
void point_fail(const struct sweep *s, size_t point, const char *why);
/* What stands in its folder. Return: 0; -ENOMEM. */
int point_read(const struct sweep *s, size_t point, struct point_result *ret);
/* What stands in the folder of a point of any sweep. */
void point_read_dir(const char *dir, struct point_result *ret);
