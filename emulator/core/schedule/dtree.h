/* NCCL's double binary tree over nodes. */
#pragma once

#include <stdint.h>

/* Parent (-1 for the root) and children
 * (-1 for none) of @node in tree 0 or 1. */
void sched_dtree(uint32_t n_nodes, uint32_t node, int tree, int32_t *ret_parent,
		 int32_t ret_child[2]);
