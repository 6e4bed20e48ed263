/* The short cut of AllReduce, AllGather and ReduceScatter by ring; see symmetry-ring.c. */
#pragma once

#include "engine/symmetry-cost.h"

/* Messages of a loop on a connection, each as many as slices. */
static inline uint64_t symmetry_ring_positions(const struct sched *s)
{
	return (s->kind == COLL_ALLREDUCE ? 2 : 1) * ((uint64_t)s->n_ranks - 1);
}

int symmetry_ring(struct symmetry *y, struct err *err); /* returns as symmetry_solve() */
