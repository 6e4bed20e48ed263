/* Runs that have left a results directory: finds one by its name, lists all. Another user may have
 * written the files of such a directory: texts are made plain (base/plain.h) and sizes are bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/record-read.h"

struct run_info {
	char name[256]; /* of the folder */
	struct record_header header;
	char command[512]; /* the job's own words, cut */
	uint64_t n_steps;  /* 0: none were found, or not known: */
	bool has_summary;  /* not where nbox or nboxd was killed, or is not through yet */
	double step_ms;    /* p50 */
	int exit_code;     /* of the job; -1: not known */
	bool has_failed;   /* by its exit code, or where that is not known as it seems: a worker
			      failed or vanished */
	bool is_running;   /* or its nboxd was killed */
};

/* A name as --name takes it: of a folder, without '/', not hidden, no option. Return: 0; -EINVAL
 * with the sentence. */
int runs_check_name(const char *name, struct err *err);

/* The results directory that a user means by @word: a path (also of its
 * record.nbox), or the name of a run below nbox-out/.
 * @ret: PATH_MAX bytes;
 * @word itself where there is no such run. Return: @ret. */
char *runs_find(const char *word, char *ret);

/* The error of a word that names no run. Return: -ENOENT. */
int runs_not_found(const char *word, struct err *err);

/* What the folder @dir says of its run; @ret->name is set by the caller. Return: 0; negative errno
 * with the sentence. */
int runs_read(const char *dir, struct run_info *ret, struct err *err);

/* All runs below @top, the oldest first; those that cannot be read are left out, and counted.
 * @ret_runs is the caller's to free. Return: 0, also where @top is not there; negative errno with
 * the sentence. */
int runs_list(const char *top, struct run_info **ret_runs, size_t *ret_n, size_t *ret_n_unreadable,
	      struct err *err);
