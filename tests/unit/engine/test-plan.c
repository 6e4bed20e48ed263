/* Ops that a scheduler plans over a fabric: the short cuts are the simulation, nothing is quicker
 * than the fabric allows, a slow link costs its rail. Arguments: the folders of the models and of
 * the test's scheduler. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "engine/ends.h"
#include "engine/places.h"
#include "engine/solve-p2p.h"
#include "engine/solve.h"
#include "engine/solver.h"
#include "fabric/fabric.h"
#include "fabric/link-number.h"
#include "rng.h"

static const char *dirs[3];

struct world {
	struct topology t;
	struct membership m;
	struct fabric *f;
	struct delay_chain *d;
};

static void world_end(struct world *w)
{
	delay_free(w->d);
	fabric_free(w->f);
}

static struct world world_of(const char *preset, uint32_t nodes, uint32_t gpus, const char *model,
			     const char *what_if)
{
	struct world w = {.t = {.n_nodes = nodes, .gpus_per_node = gpus, {1, 1}, {1, 1}, 0}};
	struct err err = {""};

	if (fabric_preset(preset, nodes, gpus, &w.f, &err) ||
	    delay_open(model, NULL, &what_if, what_if != NULL, &w.t, dirs, 1, &w.d, &err))
		fail_msg("%s", err.text);
	w.t.gpus_per_node = w.f->gpus_per_node;
	w.m = (struct membership){.n_ranks = topology_world(&w.t), .stride = 1};
	delay_set_fabric(w.d, w.f);
	return w;
}

static struct sched op_of(const struct world *w, enum coll_kind kind, uint64_t bytes)
{
	struct sched s = {.kind = kind,
			  .algo = sched_default_algo(kind),
			  .n_ranks = w->m.n_ranks,
			  .ranks_per_node = w->m.table ? 1 : w->t.gpus_per_node,
			  .n_channels = 1,
			  .elem_bytes = 4,
			  .bytes = bytes};

	assert_int_equal(sched_init(&s, NULL), 0);
	return s;
}

static struct timing solve_it(const struct world *w, const struct sched *s, int force_sim)
{
	struct timing t = {0};
	struct err err = {""};

	if (solve(s, &w->t, &w->m, w->d, NULL, 0, force_sim, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static double time_of(const struct world *w, enum coll_kind kind, uint64_t bytes)
{
	struct sched s = op_of(w, kind, bytes);

	return solve_it(w, &s, 0).end_ns;
}

static const enum coll_kind kinds[] = {COLL_ALLREDUCE,     COLL_ALLREDUCE, COLL_ALLGATHER,
				       COLL_REDUCESCATTER, COLL_BROADCAST, COLL_REDUCE,
				       COLL_GATHER,        COLL_SCATTER};

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
	assert_int_equal(fabric_change(planned.f, "node*.nic0", 0.047, 0, NULL), 0);
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

/* What NCCL gives to NVLSTree has no messages, and waits for a slow NIC all the same: an eighth of
 * twice the bytes goes through it. */
static void a_slow_link_holds_up_an_op_without_messages(void **state)
{
	struct world w = world_of("dgx-h100", 8, 8, "nccl:algo=nvlstree", NULL);
	uint64_t bytes = UINT64_C(256) << 20;
	double ns = time_of(&w, COLL_ALLREDUCE, bytes), share = 2 * (double)bytes / 8;

	(void)state;
	assert_int_equal(fabric_change(w.f, "node3.nic2", 5, -1, NULL), 0);
	assert_true(fabs(time_of(&w, COLL_ALLREDUCE, bytes) - share / 5) < 1);
	assert_true(share / 5 > 5 * ns);
	assert_int_equal(fabric_change(w.f, "node3.nic2", 49, -1, NULL), 0);
	assert_int_equal(fabric_change(w.f, "leaf0.up", 1, -1, NULL), 0);
	assert_true(time_of(&w, COLL_ALLREDUCE, bytes) >= ns);
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
		cmocka_unit_test(short_cuts_are_the_simulation),
		cmocka_unit_test(an_all_to_all_is_its_busiest_port),
		cmocka_unit_test(nothing_is_quicker_than_its_bound),
		cmocka_unit_test(a_slow_link_of_one_rail_costs_its_lane),
		cmocka_unit_test(a_large_allreduce_is_near_to_its_bound),
		cmocka_unit_test(other_algorithms_take_what_the_plan_says),
		cmocka_unit_test(residuals_of_the_fabric_count),
		cmocka_unit_test(without_a_fabric_there_is_no_plan),
		cmocka_unit_test(calls_inside_a_domain_and_out_of_it_overlap),
		cmocka_unit_test(the_solver_asks_the_scheduler_once),
		cmocka_unit_test(a_tree_fills_as_its_ports_let_it),
		cmocka_unit_test(a_tree_inside_a_domain_shares_its_ports),
		cmocka_unit_test(peers_have_lanes_of_their_own),
		cmocka_unit_test(rails_leave_by_all_nics_of_a_gpu),
		cmocka_unit_test(a_group_of_all_with_all_shares_its_leaf),
		cmocka_unit_test(a_group_of_all_with_all_stays_a_group),
		cmocka_unit_test(domains_stand_as_they_first_appear),
		cmocka_unit_test(what_is_injected_into_an_alltoall_is_not_the_models),
		cmocka_unit_test(an_alltoall_waits_for_any_slow_rank),
		cmocka_unit_test(a_what_if_on_messages_wants_some),
		cmocka_unit_test(ranks_end_by_the_planned_messages),
		cmocka_unit_test(a_lone_rank_leaves_by_its_own_nic),
		cmocka_unit_test(each_node_has_its_own_ports),
		cmocka_unit_test(the_order_of_ranks_does_not_count),
		cmocka_unit_test(a_slow_link_holds_up_an_op_without_messages),
		cmocka_unit_test(a_last_domain_that_is_cut_costs_as_a_domain),
		cmocka_unit_test(an_alltoall_of_uneven_domains_is_as_busy_as_its_links),
	};

	for (int i = 0; i < 2 && i + 1 < argc; i++)
		dirs[i] = argv[i + 1];
	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
