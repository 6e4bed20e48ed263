/* Planned ops in which each rank has messages for each other one: all-to-alls, gathers, groups of
 * calls. */
#include <math.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "engine/solve-p2p.h"
#include "fabric/fabric.h"
#include "plan-world.h"
#include "rng.h"

/* Where all NICs of a message's way have one bandwidth no port waits for another. */
static void an_all_to_all_is_its_busiest_port(void **state)
{
	static const char *const presets[] = {"dgx-a100", "dgx-h100", "p4d", "gb200-nvl72"};
	struct rng r;

	(void)state;
	rng_seed(&r, 14, 2);
	for (int i = 0; i < 60; i++) {
		struct world w = world_of(presets[below(&r, 4)], 1 + (uint32_t)below(&r, 9),
					  1u << below(&r, 3), "planner:step_inter=3us", NULL);
		struct sched s = op_of(&w, COLL_ALLTOALL, 4 << below(&r, 20));
		struct timing quick = solve_it(&w, &s, 0), sim = solve_it(&w, &s, 1);

		if (fabs(quick.end_ns - sim.end_ns) > 1e-9 * sim.end_ns)
			fail_msg("%s, %u ranks of %u, %llu bytes: %.12g is not %.12g", w.f->name,
				 s.n_ranks, w.t.gpus_per_node, (unsigned long long)s.bytes,
				 quick.end_ns, sim.end_ns);
		assert_true(sim.end_ns >= sim.bound_ns);
		world_end(&w);
	}
}

/* To a neighbour and to another domain at once: each has a port of its own. */
static void calls_inside_a_domain_and_out_of_it_overlap(void **state)
{
	struct world w = world_of("dgx-h100", 2, 0, "planner", NULL);
	const uint64_t bytes = 64 << 20;
	const struct sched_p2p calls[2] = {{.peer = 1, .is_send = true, .bytes = bytes},
					   {.peer = 8, .is_send = true, .bytes = bytes}};
	const struct sched_p2p *list[2] = {calls, calls + 1};
	const uint32_t rank = 0, n[2] = {2, 1};
	double ns[2];

	(void)state;
	for (int i = 0; i < 2; i++) { /* both; the far one */
		struct timing t = {0};
		struct err err;

		assert_int_equal(solve_p2p(&rank, 1, &list[i], &n[i], 1 << 20, &w.t, &w.m, w.d,
					   NULL, 0, &t, &err),
				 0);
		ns[i] = t.end_ns;
		timing_deinit(&t);
	}
	assert_true(ns[1] > (double)bytes / 50 && ns[1] < (double)bytes / 45);
	assert_true(fabs(ns[0] - ns[1]) < 1e-9 * ns[1]);
	world_end(&w);
}

/* A peer's one lane is slower than its NIC; the root's NIC is shared by lanes of all peers. */
static void peers_have_lanes_of_their_own(void **state)
{
	static const enum coll_kind each[] = {COLL_GATHER, COLL_SCATTER, COLL_ALLTOALL};
	const uint64_t bytes = 64 << 20;

	(void)state;
	for (uint32_t nodes = 2; nodes <= 8; nodes += 6)
		for (size_t k = 0; k < ARRAY_SIZE(each); k++) {
			struct world w = world_of("dgx-h100", nodes, 1,
						  "planner:lane_bw=20GB/s,chunk=256K", NULL);
			double bw = nodes == 2 ? 20 : 49;
			double ns = time_of(&w, each[k], bytes);

			assert_true(fabs(ns / ((nodes - 1) * (double)bytes / bw) - 1) < 0.02);
			world_end(&w);
		}
}

/* 8 hosts at two leaves, whose links up have a quarter of what their hosts have. */
static struct world oversubscribed(void)
{
	struct world w = world_of("lab", 8, 1, "planner", NULL);

	w.f->network.kind = FABRIC_LEAF_SPINE;
	w.f->network.nodes_per_leaf = 4;
	w.f->network.oversubscription = 4;
	return w;
}

/* Rank 0 sends to and receives from the first @n_peers others. Return: as solve_p2p() says. */
static double group_ns(const struct world *w, uint32_t n_peers, uint64_t bytes, bool *ret_is_shared)
{
	const struct sched_p2p *calls_of[1];
	struct sched_p2p calls[14];
	uint32_t rank = 0, n = 0;
	struct timing t = {0};
	struct err err = {""};

	for (uint32_t peer = 1; peer <= n_peers; peer++)
		for (int is_send = 0; is_send < 2; is_send++)
			calls[n++] = (struct sched_p2p){.peer = peer,
							.is_send = is_send,
							.bytes = bytes};
	calls_of[0] = calls;
	if (solve_p2p(&rank, 1, calls_of, &n, 0, &w->t, &w->m, w->d, NULL, 0, &t, &err))
		fail_msg("%s", err.text);
	*ret_is_shared = t.shared_ns > 0;
	return t.end_ns;
}

static void a_group_of_all_with_all_shares_its_leaf(void **state)
{
	struct world w = oversubscribed();
	bool is_shared;
	double all_ns, part_ns, bound_ns;

	(void)state;
	bound_ns = fabric_bound(w.f, COLL_ALLTOALL, 1 << 20, 0, &w.m, NULL, 0);
	all_ns = group_ns(&w, 7, 1 << 20, &is_shared);
	assert_true(is_shared && fabs(all_ns / bound_ns - 1) < 1e-9);
	part_ns = group_ns(&w, 6, 1 << 20, &is_shared);
	assert_true(!is_shared && part_ns < all_ns / 2);
	world_end(&w);
}

/* It is planned as an all-to-all, and is a group of calls for what-ifs. */
static void a_group_of_all_with_all_stays_a_group(void **state)
{
	struct world w = world_of("lab", 8, 1, "planner", "add:op=sendrecv,delay=1000s");
	bool is_shared;

	(void)state;
	assert_true(group_ns(&w, 7, 1 << 20, &is_shared) > 1e12);
	world_end(&w);
}

static void what_is_injected_into_an_alltoall_is_not_the_models(void **state)
{
	struct world w = world_of("dgx-h100", 4, 8, "planner", "add:hop=inter,delay=1ms");
	struct world plain = world_of("dgx-h100", 4, 8, "planner", NULL);
	struct sched s = op_of(&w, COLL_ALLTOALL, 1 << 16);

	(void)state;
	for (int force_sim = 0; force_sim < 2; force_sim++) {
		struct timing t = solve_it(&w, &s, force_sim);

		assert_true(fabs(t.model_ns - solve_it(&plain, &s, force_sim).end_ns) < 1e-3);
		assert_true(fabs(t.end_ns - t.model_ns - 1e6) < 1e-3);
	}
	world_end(&w);
	world_end(&plain);
}

/* Wherever a slow rank is: all wait for it, and the simulation says as much. */
static void an_alltoall_waits_for_any_slow_rank(void **state)
{
	double ns[4], sim_ns;

	(void)state;
	for (int i = 0; i < 4; i++) {
		char what[64];
		struct world w;
		struct sched s;

		snprintf(what, sizeof(what), "slow:rank=%d,link=3", 8 * i + 1);
		w = world_of("dgx-h100", 4, 8, "planner", what);
		s = op_of(&w, COLL_ALLTOALL, 1 << 20);
		ns[i] = solve_it(&w, &s, 0).end_ns;
		sim_ns = solve_it(&w, &s, 1).end_ns;
		assert_true(fabs(ns[i] - ns[0]) < 1e-9 * ns[0]);
		assert_true(fabs(ns[i] - sim_ns) <
			    0.2 * sim_ns); /* queues of others are not in it */
		world_end(&w);
	}
}

/* Racks of 18 nodes, of which the last has one: its NICs are the bound, or those of the first. */
static void an_alltoall_of_uneven_domains_is_as_busy_as_its_links(void **state)
{
	(void)state;
	for (uint32_t nodes = 19; nodes < 36; nodes++) {
		struct world w = world_of("gb200-nvl72", nodes, 4, "planner", NULL);
		struct sched s = op_of(&w, COLL_ALLTOALL, 10 << 20);
		struct timing t = solve_it(&w, &s, 0);

		assert_true(t.end_ns >= t.bound_ns && t.end_ns < 1.01 * t.bound_ns);
		assert_true(t.is_near);
		world_end(&w);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_all_to_all_is_its_busiest_port),
		cmocka_unit_test(calls_inside_a_domain_and_out_of_it_overlap),
		cmocka_unit_test(peers_have_lanes_of_their_own),
		cmocka_unit_test(a_group_of_all_with_all_shares_its_leaf),
		cmocka_unit_test(a_group_of_all_with_all_stays_a_group),
		cmocka_unit_test(what_is_injected_into_an_alltoall_is_not_the_models),
		cmocka_unit_test(an_alltoall_waits_for_any_slow_rank),
		cmocka_unit_test(an_alltoall_of_uneven_domains_is_as_busy_as_its_links),
	};

	take_dirs(argc, argv);
	return cmocka_run_group_tests_name("plan-peers", tests, NULL, NULL);
}
