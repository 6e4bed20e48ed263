/* Ends of AllReduce, AllGather and ReduceScatter by ring; see ends-ring.c. */
#pragma once

#include "engine/symmetry-cost.h"

struct ends_ring;

/* @y says the op, its costs and its ranks: all their arrays are there. @whole_ns: the op's time
 * when all arrive together. Return: 0; SYMMETRY_NONE; -ENOMEM; the cost function's own error. */
int ends_ring_new(struct symmetry *y, double whole_ns, struct ends_ring **ret, struct err *err);
struct ends_ring *ends_ring_free(struct ends_ring *g);

/* Lifts the ends of @y's ranks, and when their ports are free. Return: 0; -ENOMEM; the cost
 * function's own error. */
int ends_ring_solve(struct ends_ring *g, struct symmetry *y, struct err *err);
