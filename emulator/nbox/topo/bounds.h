/* The bounds that nbox topo shows: 1 GiB over all ranks, as nccl-tests counts sizes. */
#pragma once

#include "fabric/fabric.h"

struct topo_bound {
	enum coll_kind kind;
	double ns, busbw; /* bytes/ns of nccl-tests' bus bandwidth at the bound */
	char where[64];
};

#define TOPO_BOUND_BYTES (1u << 30)
#define TOPO_BOUNDS 4

/* All-reduce, all-gather, reduce-scatter, all-to-all. Return: how many: 0 of one rank. */
int topo_bounds(const struct fabric *f, struct topo_bound ret[TOPO_BOUNDS]);
