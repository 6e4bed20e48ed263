/* What nbox perf prints around the table of its benchmark program, which times what the job sees: the virtual
 * cluster before it; behind it the virtual network's own times, how late this machine was, and where the results
 * are. Each line begins with '#', as the remarks of nccl-tests' table do. */
#pragma once

#include <stdio.h>

#include "cli/report.h"
#include "config/config.h"
#include "engine/record.h"

/* @network: in words; "": there is none to speak of. */
void perf_print_head(const struct config *c, const char *network, FILE *to);
/* @op: the collective as named on the command line. @dir: the results directory. */
void perf_print_tail(const struct record *rec, const struct report *rep, const char *op, const char *dir, FILE *to);
