/* Ends of AllReduce, AllGather and ReduceScatter by ring; see ends-ring.c. */
#pragma once

#include "engine/symmetry-cost.h"

struct ends_ring;

/* @y says the op and its costs; border and ranks are not used. Return: 0; SYMMETRY_NONE; -ENOMEM;
 * the cost function's own error. */
int ends_ring_new(struct symmetry *y, struct ends_ring **ret, struct err *err);
struct ends_ring *ends_ring_free(struct ends_ring *g);

/* The largest difference to the simulation's ends; 0: none. */
double ends_ring_error_ns(const struct ends_ring *g);

/* Arrays as ends_solve(), @ret_busy too. Return: 0; -ENOMEM; the cost function's own error. */
int ends_ring_solve(struct ends_ring *g, struct symmetry *y, const double *arrive,
		    const double *busy, double *ret_end, double *ret_busy, struct err *err);
