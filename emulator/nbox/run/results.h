/* The results directory of a run. Each run has its own, made before anything starts. nboxd writes
 * record.nbox and config.yaml into it, and nboxd.addr while it runs. nbox adds summary.json,
 * command.txt, versions.txt and host.json; on the raw line nboxd writes these, too. */
#pragma once

#include <limits.h>

#include "base/err.h"

struct results {
	char dir[PATH_MAX];
};

/* @dir: NULL for nbox-out/<time>-<pid> in the current folder. A folder that holds a
 * record already is refused. Return: 0 or negative errno with the sentence. */
int results_open(struct results *r, const char *dir, struct err *err);
/* Before anything is made: can the folder @dir (NULL: as above) be made, and written to? Return: 0;
 * negative errno with the sentence. */
int results_check(const char *dir, struct err *err);
/* Before anything is made: can the file @path be written? It is written at the end, and may lie
 * right in the folder @dir, which need not be there yet. @flag: the option that names it. */
int results_check_file(const char *flag, const char *path, const char *dir, struct err *err);
/* command.txt, versions.txt, host.json. @argv: nbox's own words. @command: the job's, which follow
 * behind a "--" whether the user wrote one or not; NULL: nbox's words are all. */
int results_describe(const struct results *r, int argc, char *const argv[], char *const command[],
		     struct err *err);
/* "<dir>/<name>" into @buf of PATH_MAX bytes. Return: @buf. */
char *results_path(const struct results *r, const char *name, char *buf);
