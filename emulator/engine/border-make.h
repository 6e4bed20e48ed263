/* A border in the making: shared by border*.c, not for others. */
#pragma once

#include "engine/border.h"

struct border_conns {
	struct border_conn *items;
	uint32_t n, room;
};

struct border_maker {
	const struct bitmap *real;
	struct border_conns in, out;
	uint32_t *dep_start;
	struct border_dep *dep;
	uint32_t n_dep, dep_room;
};

static inline bool border_is_real(const struct border_maker *m, uint32_t rank)
{
	return bitmap_test(m->real, rank);
}

/* Return: its index in @a, which is arranged; -1: there is none. */
int64_t border_find(const struct border_conns *a, uint32_t src, uint32_t dst, uint16_t lane);
int border_add_conn(struct border_conns *a, const struct border_conn *c); /* 0; -ENOMEM */
/* In order of source, destination, lane; messages get their bits. Return: how many those are. */
uint64_t border_arrange(struct border_conns *a);
/* The in-connection that is looked at depends on a real rank's out-connection. Return: 0; -ENOMEM.
 */
int border_add_dep(struct border_maker *m, uint32_t src, uint32_t dst, uint16_t lane,
		   uint64_t shift);
void border_maker_deinit(struct border_maker *m);

/* --- border-tree.c ------------------------------------------------------------------ */

/* A real rank in a tree. */
struct tree_node {
	int64_t above; /* nearest real rank on the way to the root, or -1 */
	uint32_t via;  /* its child on the way to us */
	uint32_t rank;
	int64_t parent; /* -1: we are the root */
};

struct border_forest {
	struct tree_node *by_rank[2], *by_above[2]; /* owned; the same nodes twice */
	uint32_t n;
};

/* Return: 0; -ENOMEM; @f is to be deinitialised in either case. */
int border_forest_init(struct border_forest *f, const struct border_maker *m,
		       const struct sched *s);
void border_forest_deinit(struct border_forest *f);
/* What in-connection @c depends on. Return: 0; -ENOMEM. */
int border_add_tree_deps(struct border_maker *m, const struct border_forest *f,
			 const struct border_conn *c);

/* border.c: from connections to a border. @s NULL: SENDRECV; @f: of trees. Return: 0; -ENOMEM. */
int border_finish(struct border_maker *m, const struct sched *s, const struct border_forest *f,
		  struct border *ret);
