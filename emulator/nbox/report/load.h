/* The results of one run, loaded: its record and what the files beside it say. */
#pragma once

#include <limits.h>

#include "nbox/report/report.h"
#include "nbox/report/runs.h"

struct loaded_run {
	struct record rec;    /* owned */
	struct run_info info; /* its name is not set */
	char dir[PATH_MAX];   /* "": a record that was moved away, of which nothing else is known */
};

/* @word: a record.nbox, a results directory, or the name of a run. Return: 0; negative errno with
 * the sentence. */
int run_load(const char *word, struct loaded_run *ret, struct err *err);
void loaded_run_deinit(struct loaded_run *run);
/* The report of the run, with how its job ended. Return: 0; -ENOMEM. */
int run_report(const struct loaded_run *run, struct report *ret);
