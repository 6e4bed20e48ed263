/* See fabric.h: the network cut in two. Nodes are halved in the order of their numbers, between
 * domains, and where there are several leaves or pods, between these, as near as domains allow.
 * NICs, and rails, that are near to no rank do not count: NCCL does not use them. */
#include <math.h>

#include "fabric/leaf.h"
#include "fabric/link-number.h"

struct network {
	const struct fabric *f;
	uint32_t nics[FABRIC_CLASSES_MAX]; /* of a node of each class, near to ranks, as bits */
};

static uint32_t nics_of(const struct network *n, uint32_t node)
{
	return n->nics[fabric_class_of(n->f, node) - n->f->classes];
}

static double nodes_rate(const struct network *n, uint32_t from, uint32_t to, unsigned direction)
{
	double sum = 0;

	for (uint32_t node = from; node < to; node++)
		for (uint32_t bits = nics_of(n, node); bits; bits &= bits - 1)
			sum += link_rate(n->f, LINK_NIC, node, (uint32_t)__builtin_ctz(bits),
					 direction);
	return sum;
}

static double row_rate(const struct network *n, uint32_t row, unsigned direction)
{
	uint32_t first = row * n->f->network.nodes_per_leaf, bits = 0;

	for (uint32_t i = 0; i < n->f->network.nodes_per_leaf && first + i < n->f->n_nodes; i++)
		bits |= nics_of(n, first + i);
	return link_row_rate(n->f, row, bits, direction);
}

/* Of the first @n rows of leaves to the others. */
static double rows_rate(const struct network *net, uint32_t n)
{
	uint32_t end = leaf_count(net->f) / leaf_rails(net->f);
	double up = 0, down = 0;

	for (uint32_t i = 0; i < n; i++)
		up += row_rate(net, i, LINK_UP);
	for (uint32_t i = n; i < end; i++)
		down += row_rate(net, i, LINK_DOWN);
	return fmin(up, down);
}

/* Of the first @n pods or groups. */
static double pods_rate(const struct network *net, uint32_t n)
{
	const struct fabric *f = net->f;
	uint32_t end = leaf_pod_count(f);
	double up = 0, down = 0;

	if (f->network.kind == FABRIC_DRAGONFLY) {
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t k = n; k < end; k++)
				up += link_rate(f, LINK_GROUP, i, k, LINK_OUT);
		return up;
	}
	for (uint32_t i = 0; i < n; i++)
		up += link_rate(f, LINK_POD, i, 0, LINK_UP);
	for (uint32_t i = n; i < end; i++)
		down += link_rate(f, LINK_POD, i, 0, LINK_DOWN);
	return fmin(up, down);
}

/* Rows or pods of @per nodes. That which has nodes of both halves, since a domain is in two, is on
 * one side with all of its switches: then the NICs of its other nodes are cut. */
static double cut(const struct network *net, uint32_t at, uint64_t per,
		  double (*sets_rate)(const struct network *net, uint32_t n))
{
	uint32_t n = (uint32_t)(at / per), first = (uint32_t)(n * per);
	uint32_t n_nodes = net->f->n_nodes;
	uint32_t end = first + per < n_nodes ? (uint32_t)(first + per) : n_nodes;

	return fmin(nodes_rate(net, first, at, LINK_OUT) + sets_rate(net, n),
		    nodes_rate(net, at, end, LINK_IN) + sets_rate(net, n + 1));
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

/* The only domain's: from its first @n ranks to the others. */
static double ports_rate(const struct fabric *f, uint32_t n)
{
	uint32_t g = f->gpus_per_node, end = f->n_nodes * g;
	double out = 0, in = 0;

	for (uint32_t i = 0; i < n; i++)
		out += link_rate(f, LINK_GPU, i / g, i % g, LINK_OUT);
	for (uint32_t i = n; i < end; i++)
		in += link_rate(f, LINK_GPU, i / g, i % g, LINK_IN);
	return fmin(out, in);
}

double fabric_bisection(const struct fabric *f, uint32_t *ret_ranks)
{
	struct network net = {.f = f};
	uint32_t at = middle(f), rest = f->n_nodes - at;
	uint64_t per_leaf = f->network.nodes_per_leaf;
	double least;

	*ret_ranks =
		at ? (at < rest ? at : rest) * f->gpus_per_node : f->n_nodes * f->gpus_per_node / 2;
	if (at == 0)
		return ports_rate(f, *ret_ranks);
	if (f->network.kind == FABRIC_CABLES)
		return NAN;
	for (uint32_t i = 0; i < f->n_classes; i++)
		net.nics[i] = fabric_nics_of_gpus(&f->classes[i], 0, f->gpus_per_node);
	least = fmin(nodes_rate(&net, 0, at, LINK_OUT), nodes_rate(&net, at, f->n_nodes, LINK_IN));
	if (leaf_count(f))
		least = fmin(least, cut(&net, at, per_leaf, rows_rate));
	if (leaf_pod_count(f) > 1)
		least = fmin(least, cut(&net, at, per_leaf * f->network.leaves_per_pod, pods_rate));
	return least;
}
