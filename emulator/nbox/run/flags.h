/* The flags of `nbox run` that are no options of nboxd. */
#pragma once

#include "nbox/run/run.h"

/* Takes argv[*index] if it is one. Return: 0; CONFIG_NOT_MINE; -EINVAL with the sentence. */
int run_arg(struct run *r, int argc, char **argv, int *index, struct err *err);
/* @defaults: shown as defaults; NULL: those of the table. */
void run_help(FILE *f, const struct config *defaults);
/* The names of these flags, with dashes, for suggestions. */
extern const char *const run_flags[];
extern const size_t n_run_flags;
