/* The nodes of a communicator in NCCL's order, which of them are real, and what lies between
 * those: on the rings, which visit node after node, and in the double binary tree. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bitmap.h"
#include "base/err.h"

#define NODES_NONE UINT32_MAX

struct nodes {
	uint32_t n_ranks, n, n_real; /* ranks, nodes, real nodes */
	uint32_t *of;                /* [n_ranks] owned */
	uint32_t *n_on;              /* [n] ranks; owned */
	uint32_t *real;              /* [n_real] ascending; owned */
	uint32_t *index;             /* [n] in @real, or NODES_NONE; owned */
	uint32_t *hops;              /* [n_real] virtual ranks on a ring before it; owned */
	struct nodes_above {
		uint32_t real;  /* index of the next real node above, or NODES_NONE */
		uint32_t child; /* the node that it sends to on the way down */
	} * above[2];           /* [n_real] of both trees; owned */
};

/* @node, @real: as in traffic_comm_make(). Return: 0; -EINVAL with the sentence; -ENOMEM. */
int nodes_init(struct nodes *s, uint32_t n_ranks, const uint32_t *node, const struct bitmap *real,
	       struct err *err);
void nodes_deinit(struct nodes *s);

/* The real node before @i on the rings, and after it: indices. Alone it is its own neighbour. */
uint32_t nodes_before(const struct nodes *s, uint32_t i);
uint32_t nodes_after(const struct nodes *s, uint32_t i);
/* Does @node, which is virtual, lie between real node @i and the one before it? */
bool nodes_is_between(const struct nodes *s, uint32_t i, uint32_t node);
/* Real nodes whose next real node above is @above, by its child @child. @ret: indices, room for
 * n_real; NULL: only count. */
uint32_t nodes_below(const struct nodes *s, int tree, uint32_t above, uint32_t child,
		     uint32_t *ret);
