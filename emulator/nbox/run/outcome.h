/* What a run leaves when its job is over: summary.json, and the summary on the terminal. */
#pragma once

#include "nbox/run/results.h"
#include "nbox/run/run.h"

/* @exit_code: the job's. Return: 0; negative errno with the sentence. */
/* @exit_code: of the job; what that of nbox is then: another one where the run is not as expected,
 * or as it is. */
int run_outcome(const struct run *run, const struct results *res, int *exit_code, struct err *err);
