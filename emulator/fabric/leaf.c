/* See leaf.h. */
#include "fabric/leaf.h"

static uint32_t ceil_div(uint64_t a, uint64_t b)
{
	return (uint32_t)((a + b - 1) / b);
}

uint32_t leaf_rails(const struct fabric *f)
{
	uint32_t n = 1;

	for (uint32_t i = 0; f->network.kind == FABRIC_RAIL && i < f->n_classes; i++)
		n = f->classes[i].n_nics > n ? f->classes[i].n_nics : n;
	return n;
}

uint32_t leaf_of(const struct fabric *f, uint32_t node, uint32_t nic)
{
	uint32_t row = node / f->network.nodes_per_leaf;

	return f->network.kind == FABRIC_RAIL ? row * leaf_rails(f) + nic : row;
}

uint32_t leaf_count(const struct fabric *f)
{
	if (f->network.kind == FABRIC_SWITCH || f->network.kind == FABRIC_CABLES)
		return 0;
	return ceil_div(f->n_nodes, f->network.nodes_per_leaf) * leaf_rails(f);
}

uint32_t leaf_pod_count(const struct fabric *f)
{
	if (f->network.kind != FABRIC_FAT_TREE && f->network.kind != FABRIC_DRAGONFLY)
		return 0;
	return ceil_div(leaf_count(f), f->network.leaves_per_pod);
}

bool leaf_is_cut(const struct fabric *f)
{
	bool is_cabled = f->network.kind == FABRIC_CABLES;

	if (!leaf_count(f) && !is_cabled)
		return false;
	for (size_t i = 0; i < f->n_nodes_runs; i++) {
		uint32_t n = f->classes[f->nodes[i].class].domain_nodes;

		if (n > 1 && (is_cabled || f->nodes[i].first % f->network.nodes_per_leaf ||
			      f->network.nodes_per_leaf % n))
			return false;
	}
	return true;
}
