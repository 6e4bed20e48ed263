/* Users of links, and a slow, obvious water-filling for them. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "contention/share.h"
#include "fabric/fabric.h"
#include "rng.h"

#define USERS_MAX 40
#define USES_MAX FABRIC_PATH_MAX
#define LINKS_MAX (USERS_MAX * USES_MAX)

struct game {
	struct share_user users[USERS_MAX];
	struct share_use uses[USERS_MAX][USES_MAX];
	uint64_t names[LINKS_MAX];
	double left[LINKS_MAX];
	uint32_t n, n_links;
};

static inline double load_of(const struct game *g, uint32_t user, uint32_t link)
{
	for (uint32_t k = 0; k < g->users[user].n_uses; k++)
		if (g->uses[user][k].link == link)
			return g->uses[user][k].load;
	return 0;
}

/* Of users that rise with the level alone. */
static inline double level_of_link(const struct game *g, const bool *has, const double *speed,
				   uint32_t l)
{
	double taken = 0, rising = 0;

	for (uint32_t i = 0; i < g->n; i++)
		if (has[i])
			taken += speed[i] * load_of(g, i, l);
		else
			rising += g->users[i].weight * load_of(g, i, l);
	return rising > 0 ? (g->left[l] - taken) / rising : INFINITY;
}

/* One user a round, the one that the lowest level stops. */
static inline void slow_fill(const struct game *g, double *speed)
{
	bool has[USERS_MAX] = {0};

	for (uint32_t round = 0; round < g->n; round++) {
		double lowest = INFINITY;
		uint32_t who = 0;

		for (uint32_t i = 0; i < g->n; i++) {
			double level = g->users[i].cap / g->users[i].weight;

			for (uint32_t l = 0; l < g->n_links; l++)
				if (load_of(g, i, l) > 0)
					level = fmin(level, level_of_link(g, has, speed, l));
			if (!has[i] && level < lowest) {
				lowest = level;
				who = i;
			}
		}
		has[who] = true;
		speed[who] = lowest * g->users[who].weight;
	}
}

static inline uint32_t number_of(struct game *g, uint64_t name)
{
	uint32_t i = 0;

	while (i < g->n_links && g->names[i] != name)
		i++;
	g->names[i] = name;
	g->left[i] = 1;
	g->n_links += i == g->n_links;
	return i;
}

static inline void set_user(struct game *g, struct rng *r, uint32_t i)
{
	g->users[i].uses = g->uses[i];
	g->users[i].weight = below(r, 2) ? 1 : 0.01 + 100 * rng_uniform(r);
	g->users[i].cap =
		below(r, 3) || !g->users[i].n_uses ? 1e-3 + 30 * rng_uniform(r) : INFINITY;
}

/* Messages between random ranks of a random fabric: speeds are bytes/ns. Return: 0; as
 * fabric_preset(). */
static inline int paths_game(struct game *g, uint64_t seed, struct err *err)
{
	static const char *const presets[] = {"dgx-a100", "dgx-h100", "gb200-nvl72", "p4d", "lab"};
	struct fabric *f = NULL;
	struct rng r;
	uint32_t world;
	int e;

	rng_seed(&r, seed, 0);
	*g = (struct game){.n = 1 + (uint32_t)below(&r, USERS_MAX)};
	e = fabric_preset(presets[below(&r, 5)], 18 * (1 + (uint32_t)below(&r, 4)), 0, &f, err);
	if (e)
		return e;
	f->network.kind = below(&r, 2) ? FABRIC_SWITCH : FABRIC_LEAF_SPINE;
	f->network.nodes_per_leaf = 2;
	f->network.oversubscription = 1 + 3 * rng_uniform(&r);
	world = f->n_nodes * f->gpus_per_node;
	for (uint32_t i = 0; i < g->n; i++) {
		uint64_t links[FABRIC_PATH_MAX];
		/* few ranks, so that they meet */
		uint32_t src = (uint32_t)below(&r, world / 4 + 1), dst = (uint32_t)below(&r, world);
		int n = fabric_path(f, src, dst, FABRIC_NIC_NEAR, links);

		for (int k = 0; k < n; k++) {
			struct fabric_link link;

			fabric_link(f, links[k], &link);
			g->uses[i][k] =
				(struct share_use){number_of(g, links[k]), 1 / link.bytes_per_ns};
		}
		g->users[i].n_uses = n > 0 ? (uint32_t)n : 0;
		set_user(g, &r, i);
	}
	fabric_free(f);
	return 0;
}
