/* Ends of AllReduce, AllGather and ReduceScatter by ring; see ends-ring.c. */
#pragma once

#include "engine/symmetry-cost.h"

struct ends_ring;

/* @y says the op and its costs; border and ranks are not used. @whole_ns: its
 * time when all arrive together. Return: 0; SYMMETRY_NONE; -ENOMEM;
 * the cost function's own error. */
int ends_ring_new(struct symmetry *y, double whole_ns, struct ends_ring **ret, struct err *err);
struct ends_ring *ends_ring_free(struct ends_ring *g);

/* Arrays as ends_solve(), @ret_busy too. Return: 0; -ENOMEM; the cost function's own error. */
int ends_ring_solve(struct ends_ring *g, struct symmetry *y, const double *arrive,
		    const double *busy, double *ret_end, double *ret_busy, struct err *err);
