/* The short cut of AllReduce, AllGather and ReduceScatter by ring; see symmetry-ring.c. */
#pragma once

#include "engine/symmetry-cost.h"

int symmetry_ring(struct symmetry *y, struct err *err); /* returns as symmetry_solve() */
