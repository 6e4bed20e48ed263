/* The short cut of Broadcast and Reduce along a chain of ranks that start together. */
#pragma once

#include "engine/symmetry-cost.h"

int symmetry_chain(struct symmetry *y, struct err *err); /* returns as symmetry_solve() */
