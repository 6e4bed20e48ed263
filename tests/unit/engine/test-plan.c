/* Ops that a scheduler plans over a fabric: the short cuts are the simulation, nothing is quicker
 * than the fabric allows, a slow link costs its rail. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "engine/solve.h"
#include "engine/solver.h"
#include "fabric/fabric.h"
#include "fabric/link-number.h"
#include "nccl-plugin/plugin.h"
#include "plan-world.h"
#include "rng.h"

static void random_plan(struct rng *r, bool is_tree, char *spec, size_t size)
{
	snprintf(spec, size,
		 "planner:lanes=%u,rails=%u,slices=%u,chunk=%uB,wire=%s,base=%uns,step_intra=%uns,"
		 "step_inter=%uns%s%s",
		 1 + (unsigned)below(r, 9), 1 + (unsigned)below(r, 8), 1 + (unsigned)below(r, 2),
		 64 << below(r, 12), below(r, 2) ? "2" : "1", (unsigned)below(r, 9) * 100,
		 (unsigned)below(r, 3000), (unsigned)below(r, 3000),
		 below(r, 3) ? "" : ",lane_bw=20GB/s", is_tree ? ",algo=tree" : "");
}

/* The nodes from @first on are of a weaker class. */
static void mix(struct fabric *f, uint32_t first)
{
	if (first == 0 || first >= f->n_nodes)
		return;
	f->nodes = realloc(f->nodes, 2 * sizeof(*f->nodes));
	f->nodes[0] = (struct fabric_nodes){0, first, 0};
	f->nodes[1] = (struct fabric_nodes){first, f->n_nodes - first, 1};
	f->n_nodes_runs = f->n_classes = 2;
	f->classes[1] = f->classes[0];
	f->classes[1].gpu_bytes_per_ns /= 2;
	f->classes[1].nic_bytes_per_ns /= 3;
}

/* Some of the ranks, in any order. */
static void choose(struct rng *r, struct membership *m, uint32_t *table)
{
	uint32_t n = 1 + (uint32_t)below(r, m->n_ranks);

	for (uint32_t i = 0; i < m->n_ranks; i++) {
		uint32_t at = (uint32_t)below(r, i + 1);

		table[i] = table[at];
		table[at] = i;
	}
	*m = (struct membership){.n_ranks = n, .table = table};
}

/* Of random fabrics, members, plans and ops. */
static void short_cuts_are_the_simulation(void **state)
{
	static const char *const presets[] = {"dgx-a100", "dgx-h100", "p4d", "gb200-nvl72"};
	static const char *const links[] = {"node0.nic0", "leaf0", "node1.gpu1", "node*.nic1"};
	struct rng r;
	int n_symmetry = 0;

	(void)state;
	rng_seed(&r, 14, 1);
	for (int i = 0; i < 400; i++) {
		uint32_t k = (uint32_t)below(&r, 8), preset = (uint32_t)below(&r, 4);
		uint32_t nodes = 1 + (uint32_t)below(&r, 5) + (preset == 3 ? 16 : 0);
		char spec[256];
		struct timing quick, sim;
		uint32_t table[256];
		struct sched s;
		struct world w;

		random_plan(&r, k == 1, spec, sizeof(spec));
		w = world_of(presets[preset], nodes, 1u << below(&r, preset == 3 ? 2 : 4), spec,
			     below(&r, 4) ? NULL : "slow:rank=0,link=3");
		w.f->network.nodes_per_leaf = preset == 1 ? 2 : w.f->network.nodes_per_leaf;
		if (below(&r, 4) == 0)
			(void)fabric_change(w.f, links[below(&r, 4)], 3, 9000, NULL);
		if (below(&r, 4) == 0)
			mix(w.f, (uint32_t)below(&r, nodes));
		if (below(&r, 4) == 0)
			choose(&r, &w.m, table);
		s = op_of(&w, kinds[k], 4 * below(&r, 1 << (4 + below(&r, 14))));
		s.root = (uint32_t)below(&r, s.n_ranks);
		quick = solve_it(&w, &s, 0);
		sim = solve_it(&w, &s, 1);
		n_symmetry += quick.how == SOLVE_SYMMETRY;
		if (!quick.is_near && fabs(quick.end_ns - sim.end_ns) > 1e-9 * sim.end_ns)
			fail_msg("%s: %s of %u ranks, %llu bytes: %.12g is not %.12g", spec,
				 coll_kind_name(s.kind), s.n_ranks, (unsigned long long)s.bytes,
				 quick.end_ns, sim.end_ns);
		if (sim.end_ns < sim.bound_ns)
			fail_msg("%s: %s of %u ranks, %llu bytes: %g is below the bound %g (%s)",
				 spec, coll_kind_name(s.kind), s.n_ranks,
				 (unsigned long long)s.bytes, sim.end_ns, sim.bound_ns,
				 sim.bound_where);
		world_end(&w);
	}
	assert_true(n_symmetry > 150);
}

/* Of NCCL's plans, on all presets. */
static void nothing_is_quicker_than_its_bound(void **state)
{
	static const uint32_t nodes[] = {1, 2, 3, 18, 33, 64};
	const char *preset, *summary;

	(void)state;
	for (size_t i = 0; (preset = fabric_preset_name(i, &summary)); i++)
		for (size_t n = 0; n < ARRAY_SIZE(nodes); n++) {
			struct world w = world_of(preset, nodes[n], 0, "nccl", NULL);

			for (size_t k = 0; k < COLL_SENDRECV; k++)
				for (uint64_t bytes = 4;
				     bytes < (k < COLL_GATHER ? 1 << 28 : 1 << 20); bytes *= 32) {
					struct sched s = op_of(&w, (enum coll_kind)k, bytes);
					struct timing t = solve_it(&w, &s, 0);

					if (t.end_ns < t.bound_ns * (1 - 1e-9))
						fail_msg("%s of %u nodes: %s of %llu bytes takes "
							 "%g us, the bound is %g (%s)",
							 preset, nodes[n],
							 coll_kind_name((uint32_t)k),
							 (unsigned long long)bytes, t.end_ns / 1e3,
							 t.bound_ns / 1e3, t.bound_where);
				}
			world_end(&w);
		}
}

static double half_or_double(const void *ctx, const struct nbox_op *op)
{
	(void)op;
	return *(const double *)ctx;
}

/* Messages, base time, whole ops (NVLS within a node): all are longer; none becomes shorter than
 * its bound. */
static void a_model_that_is_off_takes_as_much_longer(void **state)
{
	static const uint32_t nodes[] = {1, 4};
	double factor = 1;
	const struct delay_scale scale = {half_or_double, &factor};

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(nodes); n++)
		for (uint64_t bytes = 1024; bytes <= 1 << 28; bytes *= 512) {
			struct world w = world_of("dgx-h100", nodes[n], 0, "nccl", NULL);
			struct sched s = op_of(&w, COLL_ALLREDUCE, bytes);
			double as_said = solve_it(&w, &s, 0).end_ns;
			struct timing t;

			delay_set_scale(w.d, &scale);
			factor = 2;
			assert_true(fabs(solve_it(&w, &s, 0).end_ns - 2 * as_said) <
				    1e-6 * as_said);
			factor = 0.5;
			t = solve_it(&w, &s, 0);
			assert_true(fabs(t.end_ns - fmax(t.bound_ns, as_said / 2)) <
				    1e-6 * as_said);
			assert_true(fabs(t.model_ns - t.end_ns) < 1e-6 * as_said);
			world_end(&w);
		}
}

/* Eight rails, one NIC of which has a quarter of the bandwidth: as a world whose NICs all have. */
static void a_slow_link_of_one_rail_costs_its_lane(void **state)
{
	const char *plan = "planner:lanes=16,rails=8,chunk=1M,slices=2";
	struct world whole = world_of("dgx-h100", 8, 0, plan, NULL);
	struct world slow = world_of("dgx-h100", 8, 0, plan, NULL);
	struct world all = world_of("dgx-h100", 8, 0, plan, NULL);
	struct world gone = world_of("dgx-h100", 8, 0, plan, NULL);
	double ns[4];

	(void)state;
	assert_int_equal(fabric_change(slow.f, "node3.nic2", 12.25, -1, NULL), 0);
	assert_int_equal(fabric_change(all.f, "node*.nic2", 12.25, -1, NULL), 0);
	assert_int_equal(fabric_change(gone.f, "node*.nic*", 12.25, -1, NULL), 0);
	ns[0] = time_of(&whole, COLL_ALLREDUCE, 1 << 30);
	ns[1] = time_of(&slow, COLL_ALLREDUCE, 1 << 30);
	ns[2] = time_of(&all, COLL_ALLREDUCE, 1 << 30);
	ns[3] = time_of(&gone, COLL_ALLREDUCE, 1 << 30);
	assert_true(ns[1] > 3.5 * ns[0] && ns[1] < 4.1 * ns[0]);
	assert_true(fabs(ns[2] - ns[3]) < 1e-9 * ns[3]);
	assert_true(ns[1] <= ns[2]);
	world_end(&whole);
	world_end(&slow);
	world_end(&all);
	world_end(&gone);
}

static void a_large_allreduce_is_near_to_its_bound(void **state)
{
	struct world w =
		world_of("dgx-h100", 64, 0, "planner:lanes=16,rails=8,chunk=2M,slices=2", NULL);
	struct sched s = op_of(&w, COLL_ALLREDUCE, 1 << 30);
	struct timing t = solve_it(&w, &s, 0);

	(void)state;
	assert_int_equal(t.how, SOLVE_SYMMETRY);
	assert_int_equal(t.plan.n_lanes, 16);
	assert_true(t.end_ns >= t.bound_ns && t.end_ns < 1.25 * t.bound_ns);
	world_end(&w);
}

static void other_algorithms_take_what_the_plan_says(void **state)
{
	struct world w = world_of("dgx-h100", 4, 0, "planner:algo=nvls,whole=70us", NULL);
	struct sched s = op_of(&w, COLL_ALLREDUCE, 1 << 20);
	struct timing t = solve_it(&w, &s, 0);

	(void)state;
	assert_true(t.end_ns == 70000 && t.how == SOLVE_OP);
	world_end(&w);
}

static struct world world_with(uint32_t nodes, const char *model, const char *what_if,
			       double factor)
{
	static const struct fabric_residual one = {COLL_ALLREDUCE, 65536, 0};
	struct world w = world_of("dgx-h100", nodes, 8 / nodes, model, what_if);

	w.f->residuals = malloc(sizeof(one));
	assert_non_null(w.f->residuals);
	w.f->residuals[0] = one;
	w.f->residuals[0].factor = factor;
	w.f->n_residuals = 1;
	return w;
}

/* All of an op takes as much longer, what-ifs what they take; no op less than its bound. */
static void residuals_of_the_fabric_count(void **state)
{
	static const char *const models[] = {"planner:lanes=2,rails=1,base=3us",
					     "planner:algo=tree,lanes=2,rails=1,base=3us",
					     "planner:algo=nvls,whole=70us"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		struct world plain = world_with(8, models[i], NULL, 1);
		struct world slow = world_with(8, models[i], NULL, 2);
		struct world quick = world_with(8, models[i], NULL, .1);
		struct sched s = op_of(&slow, COLL_ALLREDUCE, 1 << 20);
		double ns = time_of(&plain, COLL_ALLREDUCE, 1 << 20);

		assert_true(fabs(solve_it(&slow, &s, 0).end_ns / (2 * ns) - 1) < 1e-12);
		assert_true(fabs(solve_it(&slow, &s, 1).end_ns / (2 * ns) - 1) < 1e-9);
		s = op_of(&quick, COLL_ALLREDUCE, 1 << 30);
		assert_true(solve_it(&quick, &s, 0).end_ns >= solve_it(&quick, &s, 0).bound_ns);
		world_end(&plain);
		world_end(&slow);
		world_end(&quick);
	}
	for (uint32_t nodes = 1; nodes <= 8; nodes *= 8) { /* of other kinds, and in one node */
		struct world plain = world_with(nodes, models[0], NULL, 1);
		struct world other = world_with(nodes, models[0], NULL, 2);
		enum coll_kind kind = nodes == 1 ? COLL_ALLREDUCE : COLL_ALLGATHER;

		assert_true(time_of(&plain, kind, 4096) == time_of(&other, kind, 4096));
		world_end(&plain);
		world_end(&other);
	}
	for (double factor = 1; factor < 3; factor++) {
		struct world w = world_with(8, models[0], NULL, factor);
		struct world late = world_with(8, models[0], "add:hop=all,delay=5us", factor);

		assert_true(fabs(time_of(&late, COLL_ALLREDUCE, 65536) -
				 time_of(&w, COLL_ALLREDUCE, 65536) - 14 * 5e3) < 1e-3);
		world_end(&w);
		world_end(&late);
	}
}

static void without_a_fabric_there_is_no_plan(void **state)
{
	struct world w = world_of("dgx-h100", 2, 0, "planner", NULL);
	struct sched s = op_of(&w, COLL_ALLREDUCE, 1 << 20);
	struct timing t;
	struct err err;

	(void)state;
	delay_set_fabric(w.d, NULL);
	assert_int_equal(solve(&s, &w.t, &w.m, w.d, NULL, 0, 0, &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "plans ops over a fabric"));
	world_end(&w);
}

/* The scheduler is asked once: its estimate counts its answers. */
static void the_solver_asks_the_scheduler_once(void **state)
{
	struct world w = world_of("dgx-h100", 4, 0, "planner:lanes=4,rails=4", NULL);
	struct sched s = op_of(&w, COLL_ALLREDUCE, 1 << 20);
	struct solver *solver;
	struct timing t;
	struct err err;

	(void)state;
	assert_int_equal(solver_new(&w.t, w.d, &solver), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(solver_solve(solver, 0, &s, &w.m, NULL, (uint64_t)i, &t, &err), 0);
		assert_true(t.plan.estimate_ns == 1);
		timing_deinit(&t);
	}
	solver_free(solver);
	world_end(&w);
}

/* Ops that differ in what NCCL took alone are not one op to the solver. */
static void the_solver_tells_apart_what_nccl_took(void **state)
{
	struct world w = world_of("dgx-h100", 16, 0, "nccl", NULL);
	struct sched s = op_of(&w, COLL_ALLREDUCE, 1 << 20);
	double ns[3][PLUGIN_N_PROTOCOLS];
	struct solver *solver;
	struct timing t;
	struct err err;

	(void)state;
	assert_int_equal(solver_new(&w.t, w.d, &solver), 0);
	for (int again = 0; again < 2; again++)
		for (uint32_t algorithm = PLUGIN_TREE; algorithm <= PLUGIN_RING; algorithm++)
			for (uint32_t p = 0; p < PLUGIN_N_PROTOCOLS; p++) {
				s.took = (struct sched_took){algorithm, p, 4};
				assert_int_equal(solver_solve(solver, 0, &s, &w.m, NULL, 0, &t,
							      &err),
						 0);
				assert_int_equal(t.plan.is_taken, 1);
				assert_int_equal(t.plan.algo,
						 algorithm == PLUGIN_TREE ? NBOX_TREE : NBOX_RING);
				assert_int_equal(t.plan.proto, p);
				assert_int_equal(t.plan.n_lanes, 4);
				assert_true(!again || ns[algorithm][p] == t.end_ns);
				ns[algorithm][p] = t.end_ns;
				timing_deinit(&t);
			}
	assert_true(ns[PLUGIN_TREE][PLUGIN_LL] != ns[PLUGIN_RING][PLUGIN_LL]);
	assert_true(ns[PLUGIN_RING][PLUGIN_LL] != ns[PLUGIN_RING][PLUGIN_SIMPLE]);
	s.took.n_channels = 0;
	assert_int_equal(solver_solve(solver, 0, &s, &w.m, NULL, 0, &t, &err), 0);
	assert_int_equal(t.plan.is_taken, 0);
	timing_deinit(&t);
	solver_free(solver);
	world_end(&w);
}

/* Of S bytes in one chunk for each tree, in S over the bandwidth of a NIC: a parent's children
 * share its port, nobody else is busy then. Labs of 4, 8 and 16 hosts took 2.9, 4.6 and 6.8. */
static void a_tree_fills_as_its_ports_let_it(void **state)
{
	static const struct {
		uint32_t nodes;
		double times;
	} cases[] = {{2, 1}, {3, 2}, {4, 3}, {5, 4}, {8, 5}, {16, 7}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world w = world_of("lab", cases[i].nodes, 1,
					  "planner:algo=tree,lanes=2,chunk=512K", NULL);
		struct sched s = op_of(&w, COLL_ALLREDUCE, 1 << 20);
		struct fabric_link nic;
		double unit;

		assert_int_equal(fabric_change(w.f, "node*.nic0", 0.05, 0, NULL), 0);
		fabric_link(w.f, w.f->changes[0].link, &nic);
		unit = (1 << 20) / nic.bytes_per_ns;
		w.f->network.latency_ns = 0;
		assert_true(fabs(solve_it(&w, &s, 0).end_ns - cases[i].times * unit) < 1e-6 * unit);
		assert_true(fabs(solve_it(&w, &s, 1).end_ns - cases[i].times * unit) < 1e-6 * unit);
		world_end(&w);
	}
}

/* Of S bytes, half in each tree, in S over the bandwidth of a GPU's port. One chunk goes up and
 * down beside that of the other tree. In the long run a GPU in the middle sends up and down in
 * both. */
static void a_tree_inside_a_domain_shares_its_ports(void **state)
{
	(void)state;
	for (uint32_t gpus = 2; gpus <= 8; gpus++) {
		struct world w =
			world_of("dgx-h100", 1, gpus, "planner:algo=tree,lanes=2,chunk=512K", NULL);
		double few = 1 << 20, many = 1 << 30, ns;
		struct fabric_link gpu;

		w.f->classes[0].gpu_latency_ns = 0;
		fabric_link(w.f, link_number(LINK_GPU, 0, 0, LINK_OUT), &gpu);
		ns = time_of(&w, COLL_ALLREDUCE, 1 << 20);
		assert_true(fabs(ns / (2 * (gpus - 1) * few / gpu.bytes_per_ns) - 1) < 1e-9);
		ns = time_of(&w, COLL_ALLREDUCE, 1 << 30);
		assert_true(fabs(ns / ((gpus > 2 ? 2 : 1) * many / gpu.bytes_per_ns) - 1) < 0.02);
		world_end(&w);
	}
}

static void rails_leave_by_all_nics_of_a_gpu(void **state)
{
	struct world w =
		world_of("dgx-h100", 8, 4, "planner:lanes=16,rails=8,chunk=2M,slices=2", NULL);
	struct sched s = op_of(&w, COLL_ALLREDUCE, 1 << 30);
	struct timing t;

	(void)state;
	w.f->classes[0].pcie_bytes_per_ns = 0;
	for (uint32_t i = 0; i < 8; i++)
		w.f->classes[0].nic_gpu[i] = i / 2;
	t = solve_it(&w, &s, 0);
	assert_true(t.end_ns >= t.bound_ns && t.end_ns < 1.25 * t.bound_ns);
	world_end(&w);
}

/* What works on messages does not pass by an op that has none. */
static void a_what_if_on_messages_wants_some(void **state)
{
	struct world w =
		world_of("dgx-h100", 8, 8, "nccl:algo=nvlstree+ring", "add:hop=inter,delay=1us");
	struct sched s = op_of(&w, COLL_ALLREDUCE, 256 << 20);
	struct timing t;
	struct err err = {""};

	(void)state;
	assert_int_equal(solve(&s, &w.t, &w.m, w.d, NULL, 0, 0, &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "the what-if add works on messages, and AllReduce of 64"));
	delay_set_algo(w.d, COLL_ALLREDUCE, SCHED_RING);
	assert_int_equal(solve(&s, &w.t, &w.m, w.d, NULL, 0, 0, &t, &err), 0);
	world_end(&w);
}

/* What NCCL gives to NVLSTree has no messages, and waits for a slow NIC all the same: an eighth of
 * twice the bytes goes through it. */
static void a_slow_link_holds_up_an_op_without_messages(void **state)
{
	struct world w = world_of("dgx-h100", 8, 8, "nccl:algo=nvlstree", NULL);
	uint64_t bytes = UINT64_C(256) << 20;
	double ns = time_of(&w, COLL_ALLREDUCE, bytes), share = 2 * (double)bytes / 8;

	(void)state;
	assert_int_equal(fabric_change(w.f, "node3.nic2", 5, -1, NULL), 0);
	assert_true(fabs(time_of(&w, COLL_ALLREDUCE, bytes) - share / (5 * 0.98)) < 1);
	assert_true(share / 5 > 5 * ns);
	assert_int_equal(fabric_change(w.f, "node3.nic2", 50, -1, NULL), 0);
	assert_int_equal(fabric_change(w.f, "leaf0.up", 1, -1, NULL), 0);
	assert_true(time_of(&w, COLL_ALLREDUCE, bytes) >= ns);
	world_end(&w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_cuts_are_the_simulation),
		cmocka_unit_test(nothing_is_quicker_than_its_bound),
		cmocka_unit_test(a_model_that_is_off_takes_as_much_longer),
		cmocka_unit_test(a_slow_link_of_one_rail_costs_its_lane),
		cmocka_unit_test(a_large_allreduce_is_near_to_its_bound),
		cmocka_unit_test(other_algorithms_take_what_the_plan_says),
		cmocka_unit_test(residuals_of_the_fabric_count),
		cmocka_unit_test(without_a_fabric_there_is_no_plan),
		cmocka_unit_test(the_solver_asks_the_scheduler_once),
		cmocka_unit_test(the_solver_tells_apart_what_nccl_took),
		cmocka_unit_test(a_tree_fills_as_its_ports_let_it),
		cmocka_unit_test(a_tree_inside_a_domain_shares_its_ports),
		cmocka_unit_test(rails_leave_by_all_nics_of_a_gpu),
		cmocka_unit_test(a_what_if_on_messages_wants_some),
		cmocka_unit_test(a_slow_link_holds_up_an_op_without_messages),
	};

	take_dirs(argc, argv);
	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
