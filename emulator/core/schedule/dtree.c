/* NCCL's double binary tree over nodes (trees.cc, facts 1.7), after Sanders, Speck
 * and Traeff (2009): two binary trees in which a node that is inner in one is a
 * leaf in the other, so that each carries half of the data at full bandwidth.
 *
 * Tree 0 numbers nodes in order: node x with lowest set bit b has its children at
 * x - b/2 and x + b/2 (or nearer when that is beyond the end), and 0 is a root with
 * one child. Tree 1 is tree 0 mirrored (even n) or shifted by one (odd n). */
#include "schedule/dtree.h"

static uint32_t top_bit(uint32_t x) /* x > 0 */
{
	return UINT32_C(1) << (31 - __builtin_clz(x));
}

static void in_order_tree(uint32_t n, uint32_t x, int32_t *ret_parent, int32_t ret_child[2])
{
	uint32_t bit, half, up;

	ret_child[0] = ret_child[1] = -1;
	if (x == 0) {
		*ret_parent = -1;
		if (n > 1)
			ret_child[1] = (int32_t)top_bit(n - 1);
		return;
	}
	bit = x & -x;
	up = (x ^ bit) | (bit << 1);
	*ret_parent = (int32_t)(up < n ? up : x ^ bit);
	half = bit >> 1;
	if (half == 0)
		return;
	ret_child[0] = (int32_t)(x - half);
	if (x + 1 < n) {
		uint32_t room = top_bit(n - 1 - x);

		ret_child[1] = (int32_t)(x + (half < room ? half : room));
	}
}

static int32_t to_tree1(uint32_t n, int32_t x)
{
	if (x < 0)
		return -1;
	if (n % 2 == 0)
		return (int32_t)n - 1 - x;
	return (uint32_t)x + 1 == n ? 0 : x + 1;
}

void sched_dtree(uint32_t n_nodes, uint32_t node, int tree, int32_t *ret_parent,
		 int32_t ret_child[2])
{
	int32_t parent, child[2];

	if (tree == 0) {
		in_order_tree(n_nodes, node, ret_parent, ret_child);
		return;
	}
	if (n_nodes % 2 == 0)
		node = n_nodes - 1 - node;
	else
		node = node == 0 ? n_nodes - 1 : node - 1;
	in_order_tree(n_nodes, node, &parent, child);
	*ret_parent = to_tree1(n_nodes, parent);
	ret_child[0] = to_tree1(n_nodes, child[0]);
	ret_child[1] = to_tree1(n_nodes, child[1]);
}

uint32_t sched_dtree_edges(uint32_t n_nodes)
{
	uint32_t most = 1;

	for (uint32_t node = 0; node < n_nodes && most < 4; node++) {
		uint32_t n = 0;

		for (int tree = 0; tree < 2; tree++) {
			int32_t parent, child[2];

			sched_dtree(n_nodes, node, tree, &parent, child);
			n += (parent >= 0) + (child[0] >= 0) + (child[1] >= 0);
		}
		most = n > most ? n : most;
	}
	return most;
}
