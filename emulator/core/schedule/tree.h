/* The trees of SCHED_TREE, for code that asks about one edge of them. */
#pragma once

#include <stdint.h>

#include "schedule/sched.h"

/* Trees of SCHED_TREE: lane and thread of a direction, and the rank above (-1 for the
 * root) in tree 0 or 1 of a channel. Channels of the same head (rails.h) have the same trees. */
enum { SCHED_UP, SCHED_DOWN };
static inline uint32_t sched_tree_lane(uint32_t channel, uint32_t tree, uint32_t direction)
{
	return (channel * 2 + tree) * 2 + direction;
}
int64_t sched_tree_parent(const struct sched *s, uint32_t rank, uint32_t channel, uint32_t tree);
/* Bytes of the tree that a lane belongs to. */
uint64_t sched_tree_bytes(const struct sched *s, uint16_t lane);
/* How many edges of a channel's two trees the rank with most of them has: to other nodes, and up
 * and down the chains inside its own. Where each rank counts as a node, those to other nodes may
 * lie inside one. */
void sched_tree_edges(const struct sched *s, uint32_t *ret_inter, uint32_t *ret_intra);
