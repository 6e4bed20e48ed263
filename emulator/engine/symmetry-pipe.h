/* The short cut of tree AllReduce, Broadcast and Reduce; see symmetry-pipe.c. */
#pragma once

#include "engine/pipe-plan.h"
#include "engine/symmetry-cost.h"

int symmetry_pipe(struct symmetry *y, struct err *err); /* returns as symmetry_solve() */

/* Whether the short cut knows such messages. */
bool symmetry_pipe_has_form(const struct symmetry *y);
/* The same with a plan that serves equal ops: *plan is NULL at first, and the caller's to free. */
int symmetry_pipe_keep(struct symmetry *y, struct pipe_plan **plan, struct err *err);
