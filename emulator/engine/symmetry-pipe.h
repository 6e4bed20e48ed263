/* The short cut of tree AllReduce, Broadcast and Reduce; see symmetry-pipe.c. */
#pragma once

#include "engine/pipe-plan.h"
#include "engine/symmetry-cost.h"

int symmetry_pipe(struct symmetry *y, struct err *err); /* returns as symmetry_solve() */

/* Whether there is a short cut; then pipe_plan_new() makes a plan, which serves equal ops. */
bool symmetry_pipe_has_plan(const struct symmetry *y);
int symmetry_pipe_planned(struct symmetry *y, const struct pipe_plan *plan, struct err *err);
