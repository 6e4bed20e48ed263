/* See census.h. */
#include "fabric/census.h"

#include <errno.h>
#include <stdlib.h>

int census_take(const struct fabric *f, const struct membership *m, struct census *ret)
{
	uint32_t low = UINT32_MAX, high = 0, n = f->gpus_per_node;

	for (uint32_t i = 0; i < m->n_ranks; i++) {
		uint32_t rank = membership_world(m, i);

		low = rank < low ? rank : low;
		high = rank > high ? rank : high;
	}
	*ret = (struct census){0};
	if (!m->n_ranks)
		return 0;
	ret->first = fabric_domain(f, low);
	high = fabric_domain(f, high);
	ret->n = high + fabric_domain_nodes(f, high) - ret->first;
	ret->nodes = calloc(ret->n, sizeof(*ret->nodes));
	if (!ret->nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n_ranks; i++) {
		uint32_t rank = membership_world(m, i), node = rank / n;
		struct census_node *at = &ret->nodes[node - ret->first];

		at->n_ranks++;
		at->nics |= fabric_near_nics(fabric_class_of(f, node), rank % n);
	}
	return 0;
}

void census_deinit(struct census *c)
{
	free(c->nodes);
	c->nodes = NULL;
}

uint32_t census_domain(const struct fabric *f, const struct census *c, uint32_t at,
		       struct census_node *ret_all)
{
	while (at < c->first + c->n) {
		uint32_t n = fabric_domain_nodes(f, at);

		*ret_all = (struct census_node){0};
		for (uint32_t i = 0; i < n; i++) {
			const struct census_node *node = &c->nodes[at + i - c->first];

			ret_all->n_ranks += node->n_ranks;
			ret_all->nics += (uint32_t)__builtin_popcount(node->nics);
		}
		if (ret_all->n_ranks)
			return at;
		at += n;
	}
	return UINT32_MAX;
}
