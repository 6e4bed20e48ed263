/* A random op of a random communicator on a random cluster, and the plug-ins of this build. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "cmocka-all.h"
#include "engine/border-collective.h"
#include "engine/delay.h"
#include "rng.h"

static const char *dirs[2];

static const struct topology world = {.n_nodes = 64, .gpus_per_node = 8};

static struct delay_chain *open_chain(const char *model, const char *what_if)
{
	struct delay_chain *d;
	struct err err = {""};

	if (delay_open(model, NULL, &what_if, what_if ? 1 : 0, &world, dirs, 42, &d, &err))
		fail_msg("%s", err.text);
	return d;
}

struct scene {
	struct topology t;
	struct membership m;
	struct sched s;
	struct bitmap real;
	struct border b;
	uint32_t table[512];
};

static void scene_end(struct scene *c)
{
	border_deinit(&c->b);
	bitmap_deinit(&c->real);
}

static void random_members(struct rng *r, struct scene *c)
{
	uint32_t g = c->t.gpus_per_node, world = topology_world(&c->t), i;

	c->s.ranks_per_node = 1;
	switch (below(r, 4)) {
	case 0: /* the world */
		c->m = (struct membership){.n_ranks = world, .stride = 1};
		c->s.ranks_per_node = g;
		break;
	case 1: /* one rank a node */
		c->m = (struct membership){.n_ranks = c->t.n_nodes,
					   .base = below(r, g),
					   .stride = g};
		break;
	case 2: /* inside one node */
		c->m = (struct membership){.n_ranks = g,
					   .base = g * below(r, c->t.n_nodes),
					   .stride = 1};
		c->s.ranks_per_node = g;
		break;
	default: /* any, in any order */
		c->m = (struct membership){.table = c->table};
		for (i = 0; i < world; i++)
			if (below(r, 3))
				c->table[c->m.n_ranks++] = i;
		if (!c->m.n_ranks)
			c->table[c->m.n_ranks++] = 0;
		for (i = 0; below(r, 2) && i < c->m.n_ranks; i++) {
			uint32_t k = below(r, c->m.n_ranks), swap = c->table[k];

			c->table[k] = c->table[i];
			c->table[i] = swap;
		}
		break;
	}
	c->s.n_ranks = c->m.n_ranks;
}

static void random_scene(struct rng *r, struct scene *c)
{
	struct err err = {""};
	uint32_t i;

	memset(c, 0, sizeof(*c));
	c->t = (struct topology){
		.n_nodes = 1 + below(r, 8),
		.gpus_per_node = 1 + below(r, 5),
		.intra = {below(r, 3000), 1 + below(r, 400)},
		.inter = {below(r, 9000), 1 + below(r, 100)},
		.reduce_bytes_per_ns = below(r, 3) ? 0 : 1 + below(r, 20),
	};
	random_members(r, c);
	c->s.kind = below(r, COLL_SENDRECV);
	c->s.algo = sched_default_algo(c->s.kind);
	if (c->s.kind == COLL_ALLREDUCE && below(r, 2))
		c->s.algo = SCHED_TREE;
	c->s.root = below(r, c->s.n_ranks);
	c->s.n_channels = 1 + below(r, 3);
	c->s.elem_bytes = 4;
	c->s.bytes = below(r, 2) ? 4 * (uint64_t)below(r, 100000)
				 : (uint64_t)c->s.n_ranks * 1024 * below(r, 200);
	c->s.chunk_bytes = 1024 * (1 + below(r, 64));
	c->s.slices = below(r, 4) ? 1 : 2;
	if (sched_init(&c->s, &err))
		fail_msg("%s", err.text);
	assert_int_equal(bitmap_init(&c->real, c->s.n_ranks), 0);
	for (i = 0; i < c->s.n_ranks; i++)
		if (below(r, 4) == 0)
			bitmap_set(&c->real, i);
	if (border_make(&c->s, &c->real, &c->b, &err))
		fail_msg("%s", err.text);
}
