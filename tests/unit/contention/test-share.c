/* Max-min shares against a slow, obvious water-filling, over paths of random fabrics and over
 * random loads; and what makes an allocation max-min fair. */
#include "cmocka-all.h"
#include "slow-share.h"

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

static void paths_of_random_fabrics(void **state)
{
	struct game *g = calloc(1, sizeof(*g));
	struct err err = {""};

	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		if (paths_game(g, seed, &err))
			fail_msg("%s", err.text);
		check(g);
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
