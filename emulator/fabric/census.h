/* How many ranks of an op each node has, and which NICs are near to them. Equal nodes that follow
 * each other stand together, so that an op over a whole cluster costs nothing by its size. */
#pragma once

#include "fabric/fabric.h"

struct census_run {
	uint32_t first, n_nodes; /* of one class */
	uint32_t n_ranks;        /* of each node, at least one */
	uint32_t nics;           /* bits */
};

struct census {
	struct census_run *runs; /* owned; in order, perhaps with gaps */
	size_t n;
};

/* Domains that are alike and follow each other. */
struct census_domains {
	uint32_t first, n_nodes; /* of the first of them */
	uint32_t times;
	uint32_t n_ranks, n_nics; /* of each; NICs near to its ranks */
};

/* Return: 0; -ENOMEM. O(1) for ranks without gaps, else O(ranks + nodes). */
int census_take(const struct fabric *f, const struct membership *m, struct census *ret);
void census_deinit(struct census *c);
/* The domains from node *@at on, which moves behind them; begin with 0. Return: false: no more. */
bool census_next(const struct fabric *f, const struct census *c, uint32_t *at,
		 struct census_domains *ret);
uint32_t census_nics(const struct census *c, uint32_t node); /* bits */
