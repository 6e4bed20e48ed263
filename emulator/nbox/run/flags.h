/* The options of `nbox run`. `nbox perf` has all of them. */
#pragma once

#include "base/options.h"
#include "nbox/run/run.h"

/* Takes an option of a run, or a flag. Return: 0; -EINVAL with the sentence; -ENOMEM. */
int run_take(struct run *run, const struct option_word *w, struct err *err);
/* The options of --help. @defaults: shown as defaults; NULL: those of the table. */
void run_help(enum command command, FILE *f, const struct config *defaults);
