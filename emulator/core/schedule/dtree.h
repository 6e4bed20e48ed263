/* NCCL's double binary tree over nodes. */
#pragma once

#include <stdint.h>

/* Parent (-1 for the root) and children
 * (-1 for none) of @node in tree 0 or 1. */
void sched_dtree(uint32_t n_nodes, uint32_t node, int tree, int32_t *ret_parent,
		 int32_t ret_child[2]);
/* The most edges that a node has in both trees: inner in one, leaf in the other. At least 1. */
uint32_t sched_dtree_edges(uint32_t n_nodes);
