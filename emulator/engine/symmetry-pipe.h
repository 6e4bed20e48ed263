/* The short cut of tree AllReduce, Broadcast and Reduce; see symmetry-pipe.c. */
#pragma once

#include "engine/symmetry-cost.h"

int symmetry_pipe(struct symmetry *y, struct err *err); /* returns as symmetry_solve() */
