/* Max-min shares against a slow, obvious water-filling, over paths of random fabrics and over
 * random loads; and what makes an allocation max-min fair. */
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
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

static double load_of(const struct game *g, uint32_t user, uint32_t link)
{
	for (uint32_t k = 0; k < g->users[user].n_uses; k++)
		if (g->uses[user][k].link == link)
			return g->uses[user][k].load;
	return 0;
}

/* Of users that rise with the level alone. */
static double level_of_link(const struct game *g, const bool *has, const double *speed, uint32_t l)
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
static void slow_fill(const struct game *g, double *speed)
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

static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-9 * fmax(fabs(a), fabs(b)))
		fail_msg("%.17g is not %.17g", a, b);
}

static void check(const struct game *g)
{
	double speed[USERS_MAX], slow[USERS_MAX], level;
	struct share s = {0};

	assert_int_equal(share_solve(&s, g->users, g->n, g->n_links, g->left, speed), 0);
	slow_fill(g, slow);
	for (uint32_t i = 0; i < g->n; i++)
		assert_near(speed[i], slow[i]);
	/* nobody can have more without taking from one that has no more: each is at its cap, or has
	 * a full link where no other is at a higher level */
	for (uint32_t i = 0; i < g->n; i++) {
		bool is_stopped = speed[i] >= g->users[i].cap * (1 - 1e-9);

		for (uint32_t k = 0; k < g->users[i].n_uses && !is_stopped; k++) {
			uint32_t l = g->uses[i][k].link;
			double taken = 0, highest = 0;

			for (uint32_t u = 0; u < g->n; u++) {
				taken += speed[u] * load_of(g, u, l);
				level = speed[u] / g->users[u].weight;
				if (load_of(g, u, l) > 0)
					highest = fmax(highest, level);
			}
			assert_true(taken <= g->left[l] + 1e-9);
			level = speed[i] / g->users[i].weight;
			is_stopped = taken >= g->left[l] - 1e-9 && level >= highest * (1 - 1e-9);
		}
		assert_true(is_stopped);
	}
	share_deinit(&s);
}

static uint32_t number_of(struct game *g, uint64_t name)
{
	uint32_t i = 0;

	while (i < g->n_links && g->names[i] != name)
		i++;
	g->names[i] = name;
	g->left[i] = 1;
	g->n_links += i == g->n_links;
	return i;
}

static void set_user(struct game *g, struct rng *r, uint32_t i)
{
	g->users[i].uses = g->uses[i];
	g->users[i].weight = below(r, 2) ? 1 : 0.01 + 100 * rng_uniform(r);
	g->users[i].cap =
		below(r, 3) || !g->users[i].n_uses ? 1e-3 + 30 * rng_uniform(r) : INFINITY;
}

/* Messages between random ranks: speeds are bytes/ns. */
static void paths_of_random_fabrics(void **state)
{
	static const char *const presets[] = {"dgx-a100", "dgx-h100", "gb200-nvl72", "p4d", "lab"};
	struct game *g = calloc(1, sizeof(*g));
	struct rng r;

	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct fabric *f = NULL;
		struct err err;
		uint32_t world;

		rng_seed(&r, seed, 0);
		*g = (struct game){.n = 1 + (uint32_t)below(&r, USERS_MAX)};
		assert_int_equal(fabric_preset(presets[below(&r, 5)],
					       18 * (1 + (uint32_t)below(&r, 4)), 0, &f, &err),
				 0);
		f->network.kind = below(&r, 2) ? FABRIC_SWITCH : FABRIC_LEAF_SPINE;
		f->network.nodes_per_leaf = 2;
		f->network.oversubscription = 1 + 3 * rng_uniform(&r);
		world = f->n_nodes * f->gpus_per_node;
		for (uint32_t i = 0; i < g->n; i++) {
			uint64_t links[FABRIC_PATH_MAX];
			/* few ranks, so that they meet */
			uint32_t src = (uint32_t)below(&r, world / 4 + 1),
				 dst = (uint32_t)below(&r, world);
			int n = fabric_path(f, src, dst, FABRIC_NIC_NEAR, links);

			assert_true(n >= 0);
			for (int k = 0; k < n; k++) {
				struct fabric_link link;

				fabric_link(f, links[k], &link);
				g->uses[i][k] = (struct share_use){number_of(g, links[k]),
								   1 / link.bytes_per_ns};
			}
			g->users[i].n_uses = (uint32_t)n;
			set_user(g, &r, i);
		}
		check(g);
		fabric_free(f);
	}
	free(g);
}

/* Loads that differ by link and user, as whole ops have them; of some links a part is gone. */
static void random_loads(void **state)
{
	struct game *g = calloc(1, sizeof(*g));
	struct rng r;

	(void)state;
	for (uint64_t seed = 0; seed < 2000; seed++) {
		rng_seed(&r, seed, 1);
		*g = (struct game){.n = 1 + (uint32_t)below(&r, 20),
				   .n_links = 1 + (uint32_t)below(&r, 12)};
		for (uint32_t l = 0; l < g->n_links; l++)
			g->left[l] = below(&r, 3) ? 1 : below(&r, 3) ? rng_uniform(&r) : 0;
		for (uint32_t i = 0; i < g->n; i++) {
			struct share_user *u = &g->users[i];

			for (uint32_t l = 0; l < g->n_links; l++)
				if (below(&r, 3) == 0)
					g->uses[i][u->n_uses++] =
						(struct share_use){l, 1e-3 + rng_uniform(&r)};
			set_user(g, &r, i);
		}
		check(g);
	}
	free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_of_random_fabrics),
		cmocka_unit_test(random_loads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
