/* A border in the making: the connections of the real ranks are collected, then sorted, then each
 * in-connection gets its dependencies. Used by border-collective.c and border-p2p.c. */
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

/* @a: after border_arrange(). Return: the connection's index; -1: there is none. */
int64_t border_find(const struct border_conns *a, uint32_t src, uint32_t dst, uint16_t lane);
int border_add_conn(struct border_conns *a, const struct border_conn *c); /* 0; -ENOMEM */
/* Sorts by source, destination, lane, and gives each message its bit. Return: how many bits. */
uint64_t border_arrange(struct border_conns *a);
/* The current in-connection depends on this out-connection of a real rank. Return: 0; -ENOMEM. */
int border_add_dep(struct border_maker *m, uint32_t src, uint32_t dst, uint16_t lane,
		   uint64_t shift);
void border_maker_deinit(struct border_maker *m);
/* Adds the dependencies of in-connection @c; its source is virtual. Return: 0; -ENOMEM. */
typedef int border_deps(struct border_maker *m, const void *ctx, const struct border_conn *c);
/* Makes the border of the collected connections. @of_virtual NULL: virtual sources wait for nobody.
 * Return: 0; -ENOMEM. */
int border_maker_finish(struct border_maker *m, border_deps *of_virtual, const void *ctx,
			struct border *ret);
