/* See overlap-bench.h. Max-min speeds against the slow water-filling of the unit test. */
#include "overlap-bench.h"
#include "slow-share.h"

#define GAMES 3000

void bench_shares(struct bench_output *out)
{
	struct game *g = malloc(sizeof(*g));
	double worst = 0, quick_s = 0, slow_s = 0;
	struct share s = {0};
	struct err err = {""};
	uint64_t n = 0;

	for (uint64_t seed = 1000; seed < 1000 + GAMES; seed++) {
		double speed[USERS_MAX], slow[USERS_MAX], begin;

		if (!g || paths_game(g, seed, &err))
			bench_fail(err.text);
		begin = bench_now_s();
		if (share_solve(&s, g->users, g->n, g->n_links, NULL, speed))
			bench_fail("no memory");
		quick_s += bench_now_s() - begin;
		begin = bench_now_s();
		slow_fill(g, slow);
		slow_s += bench_now_s() - begin;
		for (uint32_t i = 0; i < g->n; i++)
			worst = fmax(worst, fabs(speed[i] / slow[i] - 1));
		n += g->n;
	}
	printf("max-min speeds of %llu users on %u random fabrics: %.1e off a slow water-filling at most; "
	       "%.2f us a set, slow %.0f\n",
	       (unsigned long long)n, GAMES, worst, quick_s / GAMES * 1e6, slow_s / GAMES * 1e6);
	bench_row(out, "{\"what\": \"shares\", \"sets\": %u, \"worst\": %.3e, \"us\": %.3f}", GAMES,
		  worst, quick_s / GAMES * 1e6);
	share_deinit(&s);
	free(g);
}
