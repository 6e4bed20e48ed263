/* The physical lower bound of an op. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "schedule/schedule.h"
#include "topology/topology.h"

/* Nanoseconds that no op on this cluster can beat: what each rank must send and receive at least
 * (2(n-1)/n of the bytes for AllReduce, ...) over the bandwidth. The communicator spans @n_nodes;
 * @has_intra: some members share a node. */
double bound_of_op(const struct sched *s, const struct topology *t, uint32_t n_nodes,
		   bool has_intra);
