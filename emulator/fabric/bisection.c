/* See fabric.h: the network cut in two. Nodes are halved in the order of their numbers, between
 * domains, and where there are several leaves or pods, between these. */
#include <math.h>

#include "fabric/leaf.h"
#include "fabric/link-number.h"

static double rate(const struct fabric *f, enum link_kind kind, uint32_t a, uint32_t b,
		   unsigned direction)
{
	struct fabric_link l;

	fabric_link(f, link_number(kind, a, b, direction), &l);
	return l.bytes_per_ns;
}

/* Of all NICs of nodes, or where they have none, of all GPUs' ports. */
static double nodes_rate(const struct fabric *f, uint32_t from, uint32_t to, enum link_kind kind,
			 unsigned direction)
{
	double sum = 0;

	for (uint32_t node = from; node < to; node++) {
		uint32_t n = kind == LINK_NIC ? fabric_class_of(f, node)->n_nics : f->gpus_per_node;

		for (uint32_t i = 0; i < n; i++)
			sum += rate(f, kind, node, i, direction);
	}
	return sum;
}

static double leaves_rate(const struct fabric *f, uint32_t from, uint32_t to, enum link_kind kind,
			  unsigned direction)
{
	double sum = 0;

	for (uint32_t i = from; i < to; i++)
		sum += rate(f, kind, i, 0, direction);
	return sum;
}

/* The first node of the second half. */
static uint32_t middle(const struct fabric *f)
{
	uint64_t per_row = f->network.nodes_per_leaf, half = f->n_nodes / 2;

	if (leaf_pod_count(f) > 1)
		per_row *= f->network.leaves_per_pod;
	if (leaf_count(f) && per_row < f->n_nodes)
		half = (f->n_nodes / per_row + 1) / 2 * per_row;
	return half < f->n_nodes ? fabric_domain(f, (uint32_t)half * f->gpus_per_node) : 0;
}

double fabric_bisection(const struct fabric *f)
{
	uint32_t at = middle(f), n_pods = leaf_pod_count(f), half = f->gpus_per_node / 2, row, pod;
	double least, sum = 0;

	if (f->n_nodes == 1) /* its GPUs */
		return half * rate(f, LINK_GPU, 0, 0, LINK_OUT);
	if (at == 0)
		return nodes_rate(f, 0, f->n_nodes / 2, LINK_GPU, LINK_OUT);
	least = fmin(nodes_rate(f, 0, at, LINK_NIC, LINK_OUT),
		     nodes_rate(f, at, f->n_nodes, LINK_NIC, LINK_IN));
	if (!leaf_count(f) || f->n_nodes <= f->network.nodes_per_leaf)
		return f->network.kind == FABRIC_CABLES ? NAN : least;
	row = at / f->network.nodes_per_leaf * leaf_rails(f);
	least = fmin(least, leaves_rate(f, 0, row, LINK_LEAF, LINK_UP));
	least = fmin(least, leaves_rate(f, row, leaf_count(f), LINK_LEAF, LINK_DOWN));
	if (n_pods < 2)
		return least;
	pod = row / f->network.leaves_per_pod;
	if (f->network.kind == FABRIC_FAT_TREE)
		return fmin(least, fmin(leaves_rate(f, 0, pod, LINK_POD, LINK_UP),
					leaves_rate(f, pod, n_pods, LINK_POD, LINK_DOWN)));
	for (uint32_t i = 0; i < pod; i++)
		for (uint32_t k = pod; k < n_pods; k++)
			sum += rate(f, LINK_GROUP, i, k, LINK_OUT);
	return fmin(least, sum);
}
