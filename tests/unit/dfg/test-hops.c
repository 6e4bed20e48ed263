/* An op's hops, played, end when a simulation of its messages says so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "dfg/hops.h"
#include "engine/sim.h"
#include "rng.h"
#include "schedule/schedule.h"

enum { RANKS_MAX = 12, CASES = 400, LANES = 16 };

struct world {
	uint64_t seed;
	bool is_uniform;
	uint32_t pieces;
	struct dfg *g;
	uint32_t device[RANKS_MAX][RANKS_MAX][LANES]; /* + 1 */
};

static int cost(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		uint64_t bytes, struct nbox_delay *ret)
{
	const struct world *w = ctx;
	struct rng rng;

	(void)lane;
	(void)index;
	rng_seed(&rng, w->seed, w->is_uniform ? 0 : 1 + src * RANKS_MAX + dst);
	*ret = (struct nbox_delay){.latency_ns = (double)below(&rng, 5000),
				   .occupancy_ns =
					   (double)bytes * (1 + (double)below(&rng, 9)) / 8};
	return 0;
}

static int device(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint32_t *ret)
{
	struct world *w = ctx;
	uint32_t *known = &w->device[src][dst][lane];

	if (!*known) {
		assert_int_equal(dfg_add_device(w->g, known), 0);
		++*known;
	}
	*ret = *known - 1;
	return 0;
}

static double by_hops(struct world *w, const struct sched *s, const double *start, uint32_t period,
		      double reduce_ns_per_byte)
{
	const struct sim_cost c = {cost, w, reduce_ns_per_byte};
	uint32_t in[RANKS_MAX], out[RANKS_MAX], op;
	const struct hops h = {.s = s,
			       .cost = &c,
			       .factor = 1,
			       .period = period,
			       .pieces = w->pieces,
			       .in = in,
			       .out = out,
			       .device = device,
			       .ctx = w};
	struct err err = {""};
	double end;

	memset(w->device, 0, sizeof(w->device));
	w->g = dfg_new();
	assert_non_null(w->g);
	for (uint32_t i = 0; i < period; i++) {
		assert_int_equal(dfg_add_op(w->g, DFG_PARALLEL, start[i], 0, &in[i]), 0);
		assert_int_equal(dfg_add_op(w->g, DFG_PARALLEL, 0, 0, &out[i]), 0);
	}
	assert_int_equal(hops_add(w->g, &h, &err), 0);
	assert_int_equal(dfg_play(w->g, DFG_EVENT, &op), 0);
	end = dfg_end(w->g, NULL);
	dfg_free(w->g);
	return end;
}

static void make(struct sched *s, struct rng *rng)
{
	static const struct {
		enum coll_kind kind;
		enum sched_algo algo;
	} of[] = {{COLL_ALLREDUCE, SCHED_RING},  {COLL_ALLREDUCE, SCHED_TREE},
		  {COLL_ALLGATHER, SCHED_RING},  {COLL_REDUCESCATTER, SCHED_RING},
		  {COLL_BROADCAST, SCHED_CHAIN}, {COLL_REDUCE, SCHED_CHAIN}};
	uint32_t k = (uint32_t)below(rng, sizeof(of) / sizeof(of[0]));
	struct err err = {""};

	*s = (struct sched){.kind = of[k].kind,
			    .algo = of[k].algo,
			    .n_ranks = 2 + (uint32_t)below(rng, RANKS_MAX - 1),
			    .ranks_per_node = 1,
			    .n_channels = 1 + (uint32_t)below(rng, 3),
			    .elem_bytes = 4,
			    .bytes = 4 * (1 + below(rng, 4000)),
			    .chunk_bytes = 512 << below(rng, 3),
			    .slices = 1 + (uint32_t)below(rng, 2)};
	s->root = (uint32_t)below(rng, s->n_ranks);
	assert_int_equal(sched_init(s, &err), 0);
}

static void ends_are_those_of_a_simulation(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= CASES; seed++) {
		struct world w = {.seed = seed, .pieces = (uint32_t)(seed % 3)};
		double start[RANKS_MAX], end, reduce_ns;
		struct sim_result result;
		struct sim_ranks ranks = {.start_ns = start, .buffered = 1};
		struct err err = {""};
		struct sched s;
		struct rng rng;

		rng_seed(&rng, seed, 99);
		make(&s, &rng);
		/* of several that are ready at once either may be added up first */
		reduce_ns = s.n_channels > 1 || s.algo == SCHED_TREE || below(&rng, 2) ? 0 : 0.5;
		for (uint32_t i = 0; i < RANKS_MAX; i++)
			start[i] = (double)below(&rng, 20000);
		end = by_hops(&w, &s, start, s.n_ranks, reduce_ns);
		assert_int_equal(sim_run(&s, &(struct sim_cost){cost, &w, reduce_ns}, &ranks, NULL,
					 &result, &err),
				 0);
		if (fabs(end - result.end_ns) > 1e-9 * result.end_ns)
			fail_msg("seed %llu: %s of %u by %s ends at %.3f ns, simulated at %.3f",
				 (unsigned long long)seed, coll_kind_name(s.kind), s.n_ranks,
				 sched_algo_name(s.algo), end, result.end_ns);
	}
}

/* Where all are alike a few stand for all. */
static void few_ranks_stand_for_all(void **state)
{
	static const struct {
		enum coll_kind kind;
		enum sched_algo algo;
	} of[] = {{COLL_ALLREDUCE, SCHED_RING},
		  {COLL_ALLGATHER, SCHED_RING},
		  {COLL_ALLTOALL, SCHED_DIRECT}};
	const double start[RANKS_MAX] = {0};

	(void)state;
	for (uint32_t k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
		struct world w = {.seed = 7, .is_uniform = true};
		struct err err = {""};
		struct sched s = {.kind = of[k].kind,
				  .algo = of[k].algo,
				  .n_ranks = 12,
				  .ranks_per_node = 1,
				  .n_channels = 1,
				  .elem_bytes = 4,
				  .bytes = 12 << 10};

		assert_int_equal(sched_init(&s, &err), 0);
		for (uint32_t period = 1; period < 12; period++)
			if (12 % period == 0 && fabs(by_hops(&w, &s, start, period, 0) -
						     by_hops(&w, &s, start, 12, 0)) > 1e-6)
				fail_msg("%s by %u ranks", coll_kind_name(s.kind), period);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_those_of_a_simulation),
		cmocka_unit_test(few_ranks_stand_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
