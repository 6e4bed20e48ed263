/* A run, from the results directory to the summary. */
#pragma once

#include "nbox/run/run.h"

/* After run_prepare(). Return: the exit code for nbox: the job's own, or 1 or 2 with the sentence
 * printed. */
int run_execute(struct run *run);
