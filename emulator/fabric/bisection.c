/* See fabric.h: the network cut in two. Nodes are halved in the order of their numbers, between
 * domains, and where there are several leaves or pods, between these, as near as domains allow. */
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

/* Of the first @n rows of leaves to the others. */
static double rows_rate(const struct fabric *f, uint32_t n)
{
	uint32_t end = leaf_count(f), at = n * leaf_rails(f);

	return fmin(leaves_rate(f, 0, at, LINK_LEAF, LINK_UP),
		    leaves_rate(f, at, end, LINK_LEAF, LINK_DOWN));
}

/* Of the first @n pods or groups. */
static double pods_rate(const struct fabric *f, uint32_t n)
{
	uint32_t end = leaf_pod_count(f);
	double sum = 0;

	if (f->network.kind == FABRIC_FAT_TREE)
		return fmin(leaves_rate(f, 0, n, LINK_POD, LINK_UP),
			    leaves_rate(f, n, end, LINK_POD, LINK_DOWN));
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = n; k < end; k++)
			sum += rate(f, LINK_GROUP, i, k, LINK_OUT);
	return sum;
}

/* Rows or pods of @per nodes. That which has nodes of both halves, since a domain is in two, is on
 * one side with all of its switches: then the NICs of its other nodes are cut. */
static double cut(const struct fabric *f, uint32_t at, uint64_t per,
		  double (*sets_rate)(const struct fabric *f, uint32_t n))
{
	uint32_t n = (uint32_t)(at / per), first = (uint32_t)(n * per);
	uint32_t end = first + per < f->n_nodes ? (uint32_t)(first + per) : f->n_nodes;

	return fmin(nodes_rate(f, first, at, LINK_NIC, LINK_OUT) + sets_rate(f, n),
		    nodes_rate(f, at, end, LINK_NIC, LINK_IN) + sets_rate(f, n + 1));
}

/* The first node of the second half; 0: there is one domain. */
static uint32_t middle(const struct fabric *f)
{
	uint64_t per_row = f->network.nodes_per_leaf, half = f->n_nodes / 2;
	uint32_t at;

	if (leaf_pod_count(f) > 1)
		per_row *= f->network.leaves_per_pod;
	if (leaf_count(f) && per_row < f->n_nodes)
		half = (f->n_nodes / per_row + 1) / 2 * per_row;
	half = half < f->n_nodes ? half : f->n_nodes - 1;
	at = fabric_domain(f, (uint32_t)half * f->gpus_per_node);
	at = at ? at : fabric_domain_nodes(f, 0);
	return at < f->n_nodes ? at : 0;
}

double fabric_bisection(const struct fabric *f, uint32_t *ret_ranks)
{
	uint32_t at = middle(f), n = at ? at : f->n_nodes / 2;
	uint64_t per_leaf = f->network.nodes_per_leaf;
	double least;

	*ret_ranks = (n < f->n_nodes - n ? n : f->n_nodes - n) * f->gpus_per_node;
	if (f->n_nodes == 1) { /* its GPUs */
		*ret_ranks = f->gpus_per_node / 2;
		return *ret_ranks * rate(f, LINK_GPU, 0, 0, LINK_OUT);
	}
	if (at == 0)
		return nodes_rate(f, 0, n, LINK_GPU, LINK_OUT);
	if (f->network.kind == FABRIC_CABLES)
		return NAN;
	least = fmin(nodes_rate(f, 0, at, LINK_NIC, LINK_OUT),
		     nodes_rate(f, at, f->n_nodes, LINK_NIC, LINK_IN));
	if (leaf_count(f))
		least = fmin(least, cut(f, at, per_leaf, rows_rate));
	if (leaf_pod_count(f) > 1)
		least = fmin(least, cut(f, at, per_leaf * f->network.leaves_per_pod, pods_rate));
	return least;
}
