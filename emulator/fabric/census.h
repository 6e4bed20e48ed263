/* How many ranks of an op each node has, and which NICs are near to them. */
#pragma once

#include "fabric/fabric.h"

struct census_node {
	uint32_t n_ranks;
	uint32_t nics; /* bits */
};

struct census {
	uint32_t first, n; /* nodes that it looks at, whole domains: some may have no rank */
	struct census_node *nodes; /* owned; of node first + i */
};

/* Return: 0; -ENOMEM. */
int census_take(const struct fabric *f, const struct membership *m, struct census *ret);
void census_deinit(struct census *c);
/* The next domain behind node @at, itself included, that has ranks; UINT32_MAX: none. Begin with
 * c->first. */
uint32_t census_domain(const struct fabric *f, const struct census *c, uint32_t at,
		       struct census_node *ret_all);
