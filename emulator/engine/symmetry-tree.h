/* The short cut of tree AllReduce where all domains are alike inside; see symmetry-tree.c. */
#pragma once

#include "engine/symmetry-cost.h"

int symmetry_tree(struct symmetry *y, struct err *err); /* returns as symmetry_solve() */
