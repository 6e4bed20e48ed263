/* Short cuts against event simulation in hundreds of random worlds; both against the alpha-beta
 * formulas. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cmocka-all.h"
#include "engine/sim.h"
#include "engine/symmetry.h"
#include "rng.h"
#include "schedule/dtree.h"

#define RANKS_MAX 64

/* alpha-beta by kind of hop: node = rank / per_node, or as listed */
struct world {
	uint32_t per_node;
	double alpha[2], beta[2];
	double bend[2]; /* latency for each of bytes % 8: costs that are no line, as a table may
			   have */
	double reduce;  /* ns a byte */
	bool is_listed;
	uint32_t node[RANKS_MAX];
	uint32_t n_nodes; /* of those listed */
};

static uint32_t hop_of(void *ctx, uint32_t src, uint32_t dst, uint16_t lane)
{
	(void)lane;
	const struct world *w = ctx;

	return w->is_listed ? w->node[src] != w->node[dst] : src / w->per_node != dst / w->per_node;
}

static int cost_of(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		   uint64_t bytes, struct nbox_delay *ret)
{
	const struct world *w = ctx;
	uint32_t hop = hop_of(ctx, src, dst, 0);

	(void)lane;
	(void)index;
	ret->latency_ns = w->alpha[hop] + w->bend[hop] * (double)(bytes % 8);
	ret->occupancy_ns = w->beta[hop] * (double)bytes;
	return 0;
}

static double simulate(const struct sched *s, struct world *w, uint64_t *ret_messages)
{
	struct sim_cost cost = {.message = cost_of, .ctx = w, .reduce_ns_per_byte = w->reduce};
	struct sim_result r;
	struct err err = {""};

	assert_int_equal(sim_run(s, &cost, NULL, NULL, &r, &err), 0);
	assert_int_equal(r.n_messages, sched_total_messages(s));
	if (ret_messages)
		*ret_messages = r.n_messages;
	return r.end_ns;
}

static uint64_t max_cells;

static int by_symmetry(const struct sched *s, struct world *w, const struct border *b, double *at,
		       const uint64_t *offset, double *ret_end_ns)
{
	struct sim_cost cost = {.message = cost_of, .ctx = w, .reduce_ns_per_byte = w->reduce};
	struct symmetry y = {
		.s = s,
		.cost = &cost,
		.class_of = hop_of,
		.ctx = w,
		.n_nodes = w->is_listed ? w->n_nodes : (s->n_ranks + w->per_node - 1) / w->per_node,
		.border = b,
		.at = at,
		.offset = offset,
		.max_cells = max_cells,
	};
	struct err err = {""};
	int r = symmetry_solve(&y, &err);

	*ret_end_ns = y.end_ns;
	return r;
}

static void assert_close(double a, double b, double tolerance, const struct sched *s)
{
	if (fabs(a - b) > tolerance * fmax(fabs(a), fabs(b)))
		fail_msg("%s %s, %u ranks, %u a node, %llu bytes, chunk %llu, %u channels, %u "
			 "slices: %.17g against %.17g",
			 coll_kind_name(s->kind), sched_algo_name(s->algo), s->n_ranks,
			 s->ranks_per_node, (unsigned long long)s->bytes,
			 (unsigned long long)s->chunk_bytes, s->n_channels, s->slices, a, b);
}

/* Members that share nodes unevenly: nboxd then says one rank a node. */
static void list_nodes(struct rng *r, struct sched *s, struct world *w)
{
	uint32_t most = 1 + below(r, s->n_ranks);
	bool is_seen[RANKS_MAX] = {false};

	s->ranks_per_node = 1;
	w->is_listed = true;
	w->n_nodes = 0;
	for (uint32_t i = 0; i < s->n_ranks; i++) {
		w->node[i] = below(r, 2) && i ? w->node[i - 1] : below(r, most);
		w->n_nodes += !is_seen[w->node[i]];
		is_seen[w->node[i]] = true;
	}
}

static void random_case(struct rng *r, struct sched *s, struct world *w)
{
	static const struct {
		enum coll_kind kind;
		enum sched_algo algo;
	} kinds[] = {
		{COLL_ALLREDUCE, SCHED_RING},  {COLL_ALLREDUCE, SCHED_TREE},
		{COLL_ALLGATHER, SCHED_RING},  {COLL_REDUCESCATTER, SCHED_RING},
		{COLL_BROADCAST, SCHED_CHAIN}, {COLL_REDUCE, SCHED_CHAIN},
		{COLL_BROADCAST, SCHED_RING},  {COLL_ALLTOALL, SCHED_DIRECT},
		{COLL_GATHER, SCHED_DIRECT},   {COLL_SCATTER, SCHED_DIRECT},
	};
	uint32_t k = below(r, 10), i;
	struct err err = {""};

	*s = (struct sched){
		.kind = kinds[k].kind,
		.algo = kinds[k].algo,
		.ranks_per_node = 1 + below(r, 5),
		.elem_bytes = 1u << below(r, 4),
		.n_channels = 1 + (below(r, 3) == 0 ? below(r, 4) : 0),
		.slices = below(r, 4) == 0 ? 1 + below(r, 3) : below(r, 2),
	};
	s->n_ranks = s->ranks_per_node * (1 + below(r, 9));
	s->bytes = (uint64_t)s->elem_bytes * below(r, below(r, 2) ? 200 : 200000);
	s->chunk_bytes = s->elem_bytes * (uint64_t)(1 + below(r, 3000)) * (below(r, 2) ? 16 : 1);
	s->root = below(r, s->n_ranks);
	*w = (struct world){.per_node = s->ranks_per_node};
	w->reduce = below(r, 2) ? rng_uniform(r) : 0;
	if (below(r, 4) == 0)
		list_nodes(r, s, w);
	for (i = 0; i < 2; i++) {
		w->bend[i] = below(r, 4) ? 0 : rng_uniform(r) * 500;
		w->alpha[i] = below(r, 4) ? rng_uniform(r) * 5000 : 0;
		w->beta[i] = below(r, 6) ? rng_uniform(r) : 0;
	}
	if (below(r, 4) == 0)
		w->beta[1] = w->beta[0];
	if (sched_init(s, &err))
		fail_msg("%s", err.text);
}

static void short_cuts_equal_the_simulation(void **state)
{
	struct rng rng;
	struct sched s;
	struct world w;
	double exact, quick;
	uint32_t n_solved = 0, n = 1500, i;
	int r;

	(void)state;
	rng_seed(&rng, 2026, 1);
	for (i = 0; i < n; i++) {
		random_case(&rng, &s, &w);
		exact = simulate(&s, &w, NULL);
		r = by_symmetry(&s, &w, NULL, NULL, NULL, &quick);
		if (r == SYMMETRY_NONE)
			continue;
		assert_int_equal(r, 0);
		assert_close(quick, exact, 1e-9, &s);
		n_solved++;
	}
	/* Slices of pipelines and of messages to one root, and reductions that take turns, have no
	 * short cut; all else has. */
	assert_true(n_solved > n / 2);
}

/* As if they were large. In every other world ports are busier than chunks are on their way. */
static void large_rings_of_unequal_chunks_are_near_the_simulation(void **state)
{
	uint32_t n = 0, n_exact = 0;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 2026, 7);
	max_cells = 1;
	for (uint32_t i = 0; i < 3000; i++) {
		struct err err = {""};
		struct sched s;
		struct world w;
		double exact, quick;

		random_case(&rng, &s, &w);
		s.n_ranks = s.ranks_per_node * (5 + below(&rng, 20));
		s.bytes = s.elem_bytes * (uint64_t)(s.n_ranks * (20 + below(&rng, 400)) +
						    below(&rng, s.n_ranks * 8));
		w.per_node = s.ranks_per_node;
		w.is_listed = false;
		w.bend[0] = w.bend[1] = 0;
		w.beta[1] = w.beta[0] * (1 + below(&rng, 9));
		for (int k = 0; i % 2 && k < 2; k++)
			w.alpha[k] *= 0.02;
		if (s.kind != COLL_ALLREDUCE || s.algo != SCHED_RING || sched_init(&s, &err))
			continue;
		exact = simulate(&s, &w, NULL);
		if (by_symmetry(&s, &w, NULL, NULL, NULL, &quick) == SYMMETRY_NONE)
			continue;
		assert_close(quick, exact, 0.05, &s);
		n++;
		n_exact += fabs(quick - exact) <= 1e-9 * exact;
	}
	max_cells = 0;
	assert_true(n > 200 && n_exact > n / 2);
}

static struct sched make(enum coll_kind kind, enum sched_algo algo, uint32_t n, uint32_t per_node,
			 uint64_t bytes, uint64_t chunk)
{
	struct sched s = {.kind = kind,
			  .algo = algo,
			  .n_ranks = n,
			  .ranks_per_node = per_node,
			  .n_channels = 1,
			  .elem_bytes = 4,
			  .bytes = bytes,
			  .chunk_bytes = chunk};
	struct err err = {""};

	if (sched_init(&s, &err))
		fail_msg("%s", err.text);
	return s;
}

/* On 8,192 nodes. Worked out one by one, the last loop takes 20 s. */
static void a_ring_of_65536_ranks_and_unequal_chunks_takes_its_formula(void **state)
{
	static const uint64_t bytes[] = {100000004, 1 << 20, 262140, 3000000000};
	struct world w = {.per_node = 8, .alpha = {500, 5000}, .beta = {1 / 400., 1 / 50.}};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct sched s =
			make(COLL_ALLREDUCE, SCHED_RING, 65536, 8, bytes[i], UINT64_C(1) << 20);
		double chunk = (double)sched_message_bytes(&s, 1, 2, 0, 0), quick;
		double hop = (7 * (500 + chunk / 400) + 5000 + chunk / 50) / 8;

		assert_int_equal(by_symmetry(&s, &w, NULL, NULL, NULL, &quick), 0);
		assert_close(quick, 2 * 65535 * hop, 1e-4, &s); /* but for where a round begins */
	}
}

/* 2 (n-1) (alpha + S/n beta): with one chunk a loop and with many. */
static void a_ring_takes_its_formula(void **state)
{
	struct world w = {.per_node = 1, .alpha = {1000, 1000}, .beta = {1 / 50., 1 / 50.}};
	static const uint32_t ns[] = {2, 3, 8, 64, 100, 256};

	(void)state;
	for (uint32_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		double n = ns[i];
		uint64_t bytes = (uint64_t)ns[i] << 20;
		struct sched one = make(COLL_ALLREDUCE, SCHED_RING, ns[i], 1, bytes, 1 << 20);
		struct sched many = make(COLL_ALLREDUCE, SCHED_RING, ns[i], 1, bytes, 1 << 18);
		double expected = 2 * (n - 1) * (1000 + (double)(1 << 20) / 50), quick;

		assert_close(simulate(&one, &w, NULL), expected, 1e-12, &one);
		assert_int_equal(by_symmetry(&one, &w, NULL, NULL, NULL, &quick), 0);
		assert_close(quick, expected, 1e-12, &one);

		expected = 4 * 2 * (n - 1) * (1000 + (double)(1 << 18) / 50);
		assert_close(simulate(&many, &w, NULL), expected, 1e-12, &many);
		assert_int_equal(by_symmetry(&many, &w, NULL, NULL, NULL, &quick), 0);
		assert_close(quick, expected, 1e-12, &many);
	}
}

/* Half of the positions wait for a reduction, too. */
static void reductions_lengthen_a_ring(void **state)
{
	struct world w = {.per_node = 1,
			  .alpha = {1000, 1000},
			  .beta = {1 / 50., 1 / 50.},
			  .reduce = 1 / 6.};
	struct sched all = make(COLL_ALLREDUCE, SCHED_RING, 8, 1, 8 << 18, 1 << 18);
	struct sched scatter = make(COLL_REDUCESCATTER, SCHED_RING, 8, 1, 1 << 18, 1 << 18);
	double hop = 1000 + (1 << 18) / 50., reduction = (1 << 18) / 6., quick;

	(void)state;
	assert_close(simulate(&all, &w, NULL), 14 * hop + 7 * reduction, 1e-12, &all);
	assert_int_equal(by_symmetry(&all, &w, NULL, NULL, NULL, &quick), 0);
	assert_close(quick, 14 * hop + 7 * reduction, 1e-12, &all);
	assert_close(simulate(&scatter, &w, NULL), 7 * hop + 7 * reduction, 1e-12, &scatter);
	assert_int_equal(by_symmetry(&scatter, &w, NULL, NULL, NULL, &quick), 0);
	assert_close(quick, 7 * hop + 7 * reduction, 1e-12, &scatter);
}

static int depth_of(uint32_t n, int tree)
{
	int deepest = 0;

	for (uint32_t v = 0; v < n; v++) {
		int32_t parent, child[2];
		int depth = 0;

		sched_dtree(n, v, tree, &parent, child);
		for (; parent >= 0; depth++)
			sched_dtree(n, (uint32_t)parent, tree, &parent, child);
		deepest = depth > deepest ? depth : deepest;
	}
	return deepest;
}

/* Double tree, one rank a node: up and down the deeper tree, then one occupancy for
 * each further chunk. */
static void a_tree_takes_its_formula(void **state)
{
	struct world w = {.per_node = 1, .alpha = {1000, 1000}, .beta = {4 / 50., 4 / 50.}};
	static const uint32_t ns[] = {2, 3, 5, 8, 17, 64, 100};

	(void)state;
	for (uint32_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		for (uint64_t chunks = 1; chunks <= 16; chunks *= 4) {
			uint64_t chunk = 1 << 16;
			struct sched s = make(COLL_ALLREDUCE, SCHED_TREE, ns[i], 1,
					      2 * chunks * chunk, 2 * chunk);
			int depth = depth_of(ns[i], 0) > depth_of(ns[i], 1) ? depth_of(ns[i], 0)
									    : depth_of(ns[i], 1);
			double occupancy = (double)chunk * 4 / 50, quick;
			double expected =
				2 * depth * (1000 + occupancy) + (double)(chunks - 1) * occupancy;

			assert_close(simulate(&s, &w, NULL), expected, 1e-12, &s);
			assert_int_equal(by_symmetry(&s, &w, NULL, NULL, NULL, &quick), 0);
			assert_close(quick, expected, 1e-12, &s);
		}
	}
}

/* (n-1) chunks a rank, one after the other, then the last one's latency; a gather's
 * root takes them one after the other, too. */
static void direct_kinds_take_their_formula(void **state)
{
	struct world w = {.per_node = 1, .alpha = {1000, 1000}, .beta = {1 / 50., 1 / 50.}};
	struct sched a = make(COLL_ALLTOALL, SCHED_DIRECT, 37, 1, 1 << 20, 1 << 18);
	struct sched g = make(COLL_GATHER, SCHED_DIRECT, 37, 1, 1 << 20, 1 << 18);
	struct sched c = make(COLL_SCATTER, SCHED_DIRECT, 37, 1, 1 << 20, 1 << 18);
	double expected = 36. * (1 << 20) / 50 + 1000, quick;

	(void)state;
	assert_close(simulate(&a, &w, NULL), expected, 1e-12, &a);
	assert_close(simulate(&g, &w, NULL), expected, 1e-12, &g);
	assert_close(simulate(&c, &w, NULL), expected, 1e-12, &c);
	assert_int_equal(by_symmetry(&a, &w, NULL, NULL, NULL, &quick), 0);
	assert_close(quick, expected, 1e-12, &a);
	assert_int_equal(by_symmetry(&g, &w, NULL, NULL, NULL, &quick), 0);
	assert_close(quick, expected, 1e-12, &g);
	assert_int_equal(by_symmetry(&c, &w, NULL, NULL, NULL, &quick), 0);
	assert_close(quick, expected, 1e-12, &c);
}

/* Broadcast down a chain: n-1 hops for the first chunk, one occupancy for each other. */
static void a_chain_takes_its_formula(void **state)
{
	struct world w = {.per_node = 1, .alpha = {700, 700}, .beta = {1 / 25., 1 / 25.}};
	struct sched s = make(COLL_BROADCAST, SCHED_CHAIN, 33, 1, 10 << 16, 1 << 16);
	double occupancy = (1 << 16) / 25., expected = 32 * (700 + occupancy) + 9 * occupancy,
	       quick;

	(void)state;
	assert_close(simulate(&s, &w, NULL), expected, 1e-12, &s);
	assert_int_equal(by_symmetry(&s, &w, NULL, NULL, NULL, &quick), 0);
	assert_close(quick, expected, 1e-12, &s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_rings_of_unequal_chunks_are_near_the_simulation),
		cmocka_unit_test(a_ring_of_65536_ranks_and_unequal_chunks_takes_its_formula),
		cmocka_unit_test(a_ring_takes_its_formula),
		cmocka_unit_test(reductions_lengthen_a_ring),
		cmocka_unit_test(a_tree_takes_its_formula),
		cmocka_unit_test(a_chain_takes_its_formula),
		cmocka_unit_test(direct_kinds_take_their_formula),
		cmocka_unit_test(short_cuts_equal_the_simulation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
