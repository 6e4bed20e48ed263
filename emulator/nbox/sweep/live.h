/* A point of a sweep that is run, not re-timed: the job's own command line again. */
#pragma once

#include "nbox/sweep/grid.h"

#define LIVE_OUTPUT_NAME "output.txt" /* what the job and nbox run printed */

/* Adds the words of nbox run: by the config.yaml in @run_dir, with the point's options, into the
 * folder @dir. Return: 0; negative errno with the sentence: nobody knows the job's words. */
int live_command(const char *run_dir, const struct grid *g, size_t point, const char *dir,
		 struct values *ret, struct err *err);
/* Runs that and waits. @dir: its output goes there, too. Return: 0; -EIO with the
 * sentence: the job failed; another negative errno with the sentence. */
int live_run(const struct values *command, const char *dir, struct err *err);
