/* Gather and Scatter of ranks that start together. */
#pragma once

#include "engine/symmetry-cost.h"

/* Return: as symmetry_solve(). */
int symmetry_star(struct symmetry *y, struct err *err);
