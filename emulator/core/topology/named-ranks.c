/* See named-ranks.h. */
#include "topology/named-ranks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/units.h"

/* All ranks of the @n nodes. Return: 0 or -ENOMEM. */
static int expand(const struct topology *t, const uint32_t *nodes, size_t n, uint32_t **ret_ranks,
		  size_t *ret_n)
{
	size_t gpus = t->gpus_per_node;
	uint32_t *ranks = calloc(n * gpus, sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < n * gpus; i++)
		ranks[i] = (uint32_t)(nodes[i / gpus] * gpus + i % gpus);
	*ret_ranks = ranks;
	*ret_n = n * gpus;
	return 0;
}

int named_ranks(const struct topology *t, const char *rank, const char *node, uint32_t **ret_ranks,
		size_t *ret_n, struct err *err)
{
	uint32_t *nodes = NULL;
	size_t n = 0;
	int r;

	if (rank && node)
		return err_set(err, EINVAL,
			       "rank=%.64s and node=%.64s exclude each other: use two what-ifs",
			       rank, node);
	if (rank) {
		r = units_ranks(rank, topology_world(t), ret_ranks, ret_n, err);
		if (r == -ERANGE)
			return err_set(err, ERANGE,
				       "rank=%.64s is outside the world of %u ranks (0 to %u)",
				       rank, topology_world(t), topology_world(t) - 1);
		return r < 0 ? err_prefix(err, r, "rank") : 0;
	}
	if (!node) {
		*ret_ranks = NULL;
		*ret_n = 0;
		return 0;
	}
	r = units_numbers(node, "node", t->n_nodes, &nodes, &n, err);
	if (r == -ERANGE)
		return err_set(err, ERANGE,
			       "node=%.64s is outside the cluster of %u nodes (0 to %u)", node,
			       t->n_nodes, t->n_nodes - 1);
	if (r < 0)
		return err_prefix(err, r, "node");
	r = expand(t, nodes, n, ret_ranks, ret_n);
	free(nodes);
	return r < 0 ? err_set(err, ENOMEM, "out of memory for a list of ranks") : 0;
}
