/* nboxd as a run starts it: the configuration as a file of the results directory, nboxd's command
 * line and its environment. */
#pragma once

#include "nbox/run/nboxd-proc.h"
#include "nbox/run/results.h"
#include "nbox/run/run.h"

/* Return: 0, nboxd listens; negative errno with the sentence. */
int nboxd_line_start(const struct run *run, const struct results *res, const char *token,
		     struct nboxd_proc *ret, struct err *err);
