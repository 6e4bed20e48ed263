/* Where the ranks of a planned op stand: in any order, in domains of several classes and sizes,
 * each with an end of its own. */
#include <math.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "engine/ends.h"
#include "engine/places.h"
#include "fabric/fabric.h"
#include "plan-world.h"
#include "rng.h"

static void ends_of(const struct world *w, const struct sched *s, const double *arrive, double *ret)
{
	struct timing t = solve_it(w, s, 0);
	struct ends *e = NULL;
	struct err err = {""};

	if (ends_new(s, &w->t, &w->m, w->d, 0, &t, false, &e, &err) ||
	    ends_solve(e, arrive, NULL, t.extra_ns, ret, NULL, &err))
		fail_msg("%s", err.text);
	ends_unref(e);
}

/* The same messages, planned and not: each rank ends at the same time, the op's own time later. */
static void ranks_end_by_the_planned_messages(void **state)
{
	struct world planned = world_of("lab", 6, 1, "planner:base=7us", NULL);
	struct world plain = world_of("lab", 6, 1, "alphabeta:alpha=0us,bw=47MB/s", NULL);
	double arrive[6], ends[2][6];
	struct rng r;

	(void)state;
	rng_seed(&r, 15, 1);
	assert_int_equal(fabric_change(planned.f, "node*.nic0",
				       0.047 / fabric_nic_efficiency(planned.f->classes), 0, NULL),
			 0);
	planned.f->network.latency_ns = 0;
	for (int i = 0; i < 100; i++) {
		struct sched s = op_of(&planned, kinds[2 * below(&r, 2)], 4 << below(&r, 20));

		for (uint32_t k = 0; k < 6; k++)
			arrive[k] = (double)below(&r, 30000000);
		ends_of(&planned, &s, arrive, ends[0]);
		ends_of(&plain, &s, arrive, ends[1]);
		for (uint32_t k = 0; k < 6; k++)
			assert_true(fabs(ends[0][k] - ends[1][k] - 7000) < 1);
	}
	world_end(&planned);
	world_end(&plain);
}

/* Of the first node the op has GPU 1 alone, whose NIC is slow. */
static void a_lone_rank_leaves_by_its_own_nic(void **state)
{
	struct world w = world_of("dgx-h100", 2, 2, "planner", NULL);
	uint32_t table[] = {1, 3, 2};

	(void)state;
	assert_int_equal(fabric_change(w.f, "node0.nic1", 1, -1, NULL), 0);
	w.m = (struct membership){.n_ranks = 3, .table = table};
	assert_true(time_of(&w, COLL_ALLGATHER, 1 << 20) > 2 * (1 << 20));
	world_end(&w);
}

/* A node of NVLink and one of PCIe, where a rank's messages to all share one port: which of them is
 * the first does not count. */
static void each_node_has_its_own_ports(void **state)
{
	double ns[2];

	(void)state;
	for (uint32_t first = 0; first < 2; first++) {
		struct world w = world_of("dgx-a100", 2, 4, "planner:lanes=2", NULL);

		w.f->nodes = realloc(w.f->nodes, 2 * sizeof(*w.f->nodes));
		w.f->classes[1] = w.f->classes[0];
		w.f->classes[first].intra = FABRIC_PCIE;
		w.f->classes[first].gpu_bytes_per_ns = 20;
		w.f->n_classes = 2;
		w.f->n_nodes_runs = 2;
		for (uint32_t i = 0; i < 2; i++)
			w.f->nodes[i] = (struct fabric_nodes){i, 1, i};
		ns[first] = time_of(&w, COLL_ALLTOALL, 1 << 20);
		world_end(&w);
	}
	assert_true(fabs(ns[0] - ns[1]) < 1e-9 * ns[0]);
	assert_true(ns[0] > 7 * (1 << 20) / 20.);
}

/* A job may number its ranks as it likes: across the nodes first, here. */
static void the_order_of_ranks_does_not_count(void **state)
{
	static const char *const specs[] = {"planner:chunk=64K,lanes=2,step_inter=3us",
					    "planner:algo=tree,lanes=2,chunk=64K", "nccl",
					    "planner:rails=4,lanes=4"};
	double arrive[2][12], ends[2][12];
	uint32_t table[12];
	struct rng r;

	(void)state;
	rng_seed(&r, 16, 1);
	for (uint32_t q = 0; q < 12; q++)
		table[q] = q % 3 * 4 + q / 3;
	for (uint32_t i = 0; i < 80; i++) {
		struct world w = world_of("dgx-a100", 3, 4, specs[i % 4], NULL), other = w;
		uint64_t k = i % 4 == 1 ? 0 : below(&r, ARRAY_SIZE(kinds));
		struct sched s = op_of(&w, kinds[k], 4 << below(&r, 18));
		struct sched permuted = s;
		double ns;

		permuted.root = (uint32_t)below(&r, 12);
		s.root = table[permuted.root];
		permuted.ranks_per_node = 1;
		other.m.table = table;
		for (uint32_t q = 0; q < 12; q++)
			arrive[0][q] = (double)below(&r, 3000000);
		for (uint32_t q = 0; q < 12; q++)
			arrive[1][q] = arrive[0][table[q]];
		ns = solve_it(&w, &s, 0).end_ns;
		assert_true(fabs(solve_it(&other, &permuted, 0).end_ns - ns) < 1e-9 * ns);
		ends_of(&w, &s, arrive[0], ends[0]);
		ends_of(&other, &permuted, arrive[1], ends[1]);
		for (uint32_t q = 0; q < 12 && i % 4 < 2; q++)
			assert_true(fabs(ends[1][q] - ends[0][table[q]]) < 1e-3);
		world_end(&w);
	}
}

static void domains_stand_as_they_first_appear(void **state)
{
	static const uint32_t table[] = {9, 0, 8, 3, 1}, sorted[] = {8, 9, 0, 1, 3};
	struct world w = world_of("dgx-h100", 2, 8, "planner", NULL);
	struct places p;

	(void)state;
	w.m = (struct membership){.n_ranks = 5, .table = table};
	assert_int_equal(places_init(&p, w.f, &w.m), 0);
	for (uint32_t r = 0; r < 5; r++) {
		assert_int_equal(p.world[r], sorted[r]);
		assert_int_equal(p.world[places_of(&p, r)], table[r]);
	}
	places_deinit(&p);
	w.m.table = sorted; /* they stand together */
	assert_int_equal(places_init(&p, w.f, &w.m), 0);
	assert_null(p.of);
	world_end(&w);
}

/* Of few bytes: as long as with the racks before, or with a whole one more, or between. */
static void a_last_domain_that_is_cut_costs_as_a_domain(void **state)
{
	static const char *const plans[] = {
		"planner:lanes=4,rails=4,step_intra=600ns,step_inter=3us",
		"planner:algo=tree,lanes=4,rails=2,step_intra=600ns,step_inter=3us"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(plans); i++)
		for (uint32_t racks = 2; racks < 6; racks++) {
			double ns[3];

			for (uint32_t k = 0; k < 3; k++) {
				struct world w = world_of("gb200-nvl72", 18 * racks + 9 * k, 4,
							  plans[i], NULL);

				ns[k] = time_of(&w, COLL_ALLREDUCE, 4096);
				world_end(&w);
			}
			assert_true(ns[0] <= ns[1] && ns[1] <= ns[2]);
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_end_by_the_planned_messages),
		cmocka_unit_test(a_lone_rank_leaves_by_its_own_nic),
		cmocka_unit_test(each_node_has_its_own_ports),
		cmocka_unit_test(the_order_of_ranks_does_not_count),
		cmocka_unit_test(domains_stand_as_they_first_appear),
		cmocka_unit_test(a_last_domain_that_is_cut_costs_as_a_domain),
	};

	take_dirs(argc, argv);
	return cmocka_run_group_tests_name("plan-places", tests, NULL, NULL);
}
