/* Dependencies in a tree schedule: for each real rank, the next real rank above it and the next
 * real ranks below it, with only virtual ranks between. */
#pragma once

#include "engine/border-maker.h"

/* A real rank in a tree. */
struct tree_node {
	int64_t above; /* nearest real rank on the way to the root, or -1 */
	uint32_t via;  /* its child on the way to us */
	uint32_t rank;
	int64_t parent; /* -1: we are the root */
};

struct border_forest {
	/* owned; of each rail's two trees; the same nodes twice */
	struct tree_node **by_rank, **by_above;
	uint32_t n_trees;
	uint32_t n;
};

/* Return: 0; -ENOMEM; @f is to be deinitialised in either case. */
int border_forest_init(struct border_forest *f, const struct border_maker *m,
		       const struct sched *s);
void border_forest_deinit(struct border_forest *f);
/* What in-connection @c depends on. Return: 0; -ENOMEM. */
int border_add_tree_deps(struct border_maker *m, const struct border_forest *f,
			 const struct border_conn *c);
