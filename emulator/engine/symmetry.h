/* Exact times of an op without simulating the world, where the costs of a message
 * depend on its bytes and on its kind of hop only, and all ranks start together. */
#pragma once

#include "engine/symmetry-cost.h"

/**
 * symmetry_solve - sets @y->end_ns, and @y->at of each border message
 *
 * Return: 0; SYMMETRY_NONE; -ENOMEM; the cost function's own error.
 */
int symmetry_solve(struct symmetry *y, struct err *err);
