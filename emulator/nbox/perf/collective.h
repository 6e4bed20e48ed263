/* What both kinds of nbox perf begin with: the collective, perf's own defaults, the help. */
#pragma once

#include <stdio.h>

#include "config/config.h"

/* In PyTorch's spelling, too: all_reduce. Return: 0; -EINVAL with the sentence. */
int perf_take_collective(const char *word, const char **ret_name, struct err *err);
/* Below file and variables' rank: only where nothing was set. Return: 0; -ENOMEM. */
int perf_defaults(struct config *c);
void perf_usage(FILE *f);
