/* When an op is over for each of its ranks: against simulation of all messages, in random worlds
 * with random arrivals. Argument 1 is the models' folder. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "engine/ends.h"
#include "engine/price.h"
#include "engine/sim.h"
#include "engine/solve.h"
#include "engine/solver.h"
#include "rng.h"
#include "scene.h"

#define RANKS_MAX 512

struct times {
	double arrive[RANKS_MAX], busy[RANKS_MAX], end[RANKS_MAX], port[RANKS_MAX];
};

static bool is_close(double a, double b)
{
	return a == b || fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static struct ends *ends_of(struct scene *c, struct delay_chain *d)
{
	struct ends *e;
	struct err err = {""};

	if (ends_new(&c->s, &c->t, &c->m, d, 1, NULL, &e, &err))
		fail_msg("%s", err.text);
	return e;
}

static void simulate(struct scene *c, struct delay_chain *d, const struct times *in,
		     struct times *ret)
{
	struct sim_ranks ranks = {.start_ns = in->arrive,
				  .busy_ns = in->busy,
				  .buffered = sim_buffered(&c->s),
				  .end_ns = ret->end,
				  .free_ns = ret->port};
	struct sim_result result;
	struct err err = {""};
	struct sim_cost cost;
	struct price p;

	price_init(&p, &c->s, &c->t, &c->m, d, 1, &err);
	cost = price_cost(&p);
	if (sim_run(&c->s, &cost, &ranks, NULL, &result, &err))
		fail_msg("%s", err.text);
}

/* Few or all ranks late, by less or more than the op takes; some never come; some ports are busy.
 */
static void random_arrivals(struct rng *r, uint32_t n, double op_ns, struct times *t)
{
	double spread = op_ns * (double)below(r, 3), late = below(r, 2) ? 1 : 0.1;
	bool is_lost = below(r, 4) == 0, is_busy = below(r, 3) == 0;

	for (uint32_t i = 0; i < n; i++) {
		t->arrive[i] = rng_uniform(r) < late ? rng_uniform(r) * spread : 0;
		t->busy[i] = is_busy && below(r, 2) ? rng_uniform(r) * spread : 0;
		if (is_lost && below(r, n) == 0)
			t->arrive[i] = INFINITY;
	}
}

static void check_case(struct rng *r, struct scene *c, struct delay_chain *d, uint32_t *n_how)
{
	static struct times in, sim, got;
	struct ends *e = ends_of(c, d);
	struct err err = {""};
	uint32_t n = c->s.n_ranks;

	random_arrivals(r, n, ends_raw_ns(e), &in);
	simulate(c, d, &in, &sim);
	if (ends_solve(e, in.arrive, in.busy, 0, got.end, got.port, &err))
		fail_msg("%s", err.text);
	n_how[ends_how(e)]++;
	for (uint32_t i = 0; i < n && ends_how(e) != SOLVE_OP; i++)
		if (!is_close(got.end[i], sim.end[i]) ||
		    (sim.port[i] > 0 && !is_close(got.port[i], sim.port[i])))
			fail_msg("%s %s, %u ranks, %u a node, %llu bytes, chunk %llu, %u channels, "
				 "%u slices, root %u: rank %u ends at %.17g, port %.17g, not "
				 "%.17g, %.17g",
				 coll_kind_name(c->s.kind), sched_algo_name(c->s.algo), n,
				 c->s.ranks_per_node, (unsigned long long)c->s.bytes,
				 (unsigned long long)c->s.chunk_bytes, c->s.n_channels, c->s.slices,
				 c->s.root, i, got.end[i], got.port[i], sim.end[i], sim.port[i]);
	ends_unref(e);
}

static void ends_are_those_of_the_simulation(void **state)
{
	struct delay_chain *d = open_chain("alphabeta", NULL);
	uint32_t n_how[3] = {0};
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 12);
	for (int i = 0; i < 1500; i++) {
		struct scene c;

		random_scene(&r, &c);
		check_case(&r, &c, d, n_how);
		scene_end(&c);
	}
	delay_free(d);
	assert_true(n_how[SOLVE_SYMMETRY] > 500 && n_how[SOLVE_OP] < 50);
}

static void ranks_that_arrive_together_take_the_time_of_the_op(void **state)
{
	static const char *const models[] = {"alphabeta", "ring", "tree", "const:time=5ms",
					     "alltoall"};
	static struct times in, got;
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 13);
	for (int i = 0; i < 500; i++) {
		struct delay_chain *d = open_chain(models[below(&r, 5)], NULL);
		struct timing t;
		struct err err = {""};
		struct scene c;
		struct ends *e;
		double last = 0, first, latest;

		random_scene(&r, &c);
		if (solve(&c.s, &c.t, &c.m, d, NULL, 1, 0, &t, &err)) {
			assert_string_not_equal(err.text, ""); /* not a kind of this model */
		} else {
			e = ends_of(&c, d);
			for (uint32_t k = 0; k < c.s.n_ranks; k++)
				in.arrive[k] = 1e9;
			assert_int_equal(ends_solve(e, in.arrive, NULL, 7, got.end, NULL, &err), 0);
			for (uint32_t k = 0; k < c.s.n_ranks; k++)
				last = fmax(last, got.end[k] - 1e9 - 7);
			assert_true(fabs(last - t.end_ns) <= 1e-6 + 1e-9 * t.end_ns);
			assert_int_equal(ends_together(e, &first, &latest, &err), 0);
			assert_true(is_close(latest, t.end_ns) && first <= latest);
			assert_true(is_close(ends_raw_ns(e), t.end_ns));
			ends_unref(e);
			timing_deinit(&t);
		}
		scene_end(&c);
		delay_free(d);
	}
}

static void scene_of(struct scene *c, enum coll_kind kind, uint64_t bytes)
{
	struct err err = {""};

	*c = (struct scene){
		.t = {.n_nodes = 4, .gpus_per_node = 1, .intra = {1000, 100}, .inter = {1000, 100}},
		.m = {.n_ranks = 4, .stride = 1},
		.s = {.kind = kind,
		      .algo = sched_default_algo(kind),
		      .n_ranks = 4,
		      .ranks_per_node = 1,
		      .n_channels = 1,
		      .elem_bytes = 4,
		      .bytes = bytes},
	};
	assert_int_equal(sched_init(&c->s, &err), 0);
}

static void a_root_leaves_to_its_port_what_fits_the_buffers(void **state)
{
	struct delay_chain *d = open_chain("const:time=8ms", NULL);
	static const double arrive[4] = {INFINITY, 5, INFINITY, 7};
	double end[4], port[4];
	struct err err = {""};
	struct scene c;
	struct ends *e;

	(void)state;
	scene_of(&c, COLL_BROADCAST, 1 << 20);
	c.s.root = 1;
	e = ends_of(&c, d);
	assert_int_equal(ends_solve(e, arrive, NULL, 0, end, port, &err), 0);
	assert_true(isinf(end[0]) && end[1] == 5 && isinf(end[2]) && end[3] == 8e6 + 7);
	assert_true(port[1] == 8e6 + 5);
	ends_unref(e);
	scene_of(&c, COLL_BROADCAST, 16 << 20); /* three quarters do not fit */
	c.s.root = 1;
	e = ends_of(&c, d);
	assert_int_equal(ends_solve(e, arrive, NULL, 0, end, NULL, &err), 0);
	assert_true(end[1] == 6e6 + 5 && end[3] == 8e6 + 7);
	ends_unref(e);
	scene_of(&c, COLL_REDUCE, 1 << 20);
	e = ends_of(&c, d);
	assert_int_equal(ends_solve(e, arrive, NULL, 0, end, NULL, &err), 0);
	assert_true(isinf(end[0]) && end[1] == 5 && end[3] == 7);
	ends_unref(e);
	scene_of(&c, COLL_ALLREDUCE, 1 << 20);
	e = ends_of(&c, d);
	assert_int_equal(ends_solve(e, arrive, NULL, 0, end, NULL, &err), 0);
	assert_true(isinf(end[0]) && isinf(end[1]) && isinf(end[3]));
	ends_unref(e);
	delay_free(d);
}

static void the_second_of_two_ops_queues_behind_the_first(void **state)
{
	struct delay_chain *d = open_chain("alphabeta", NULL);
	static const double arrive[4] = {0, 0, 0, 0};
	double end[4], port[4], second[4];
	struct err err = {""};
	struct scene c;
	struct ends *e;

	(void)state;
	scene_of(&c, COLL_BROADCAST, 1 << 20);
	e = ends_of(&c, d);
	assert_int_equal(ends_solve(e, arrive, NULL, 0, end, port, &err), 0);
	assert_true(end[0] == 0 && is_close(port[0], (1 << 20) / 100.));
	assert_int_equal(ends_solve(e, end, port, 0, second, NULL, &err), 0);
	assert_true(second[0] == 0);
	assert_true(is_close(second[1], end[1] + (1 << 20) / 100.));
	ends_unref(e);
	delay_free(d);
}

static void a_solver_keeps_the_ends_of_an_op(void **state)
{
	struct delay_chain *d = open_chain("alphabeta", NULL);
	struct ends *a, *b;
	struct err err = {""};
	struct solver *solver;
	struct timing t;
	struct scene c;

	(void)state;
	scene_of(&c, COLL_ALLREDUCE, 1 << 20);
	assert_int_equal(solver_new(&c.t, d, &solver), 0);
	assert_int_equal(solver_ends(solver, 1, &c.s, &c.m, NULL, 1, &a, &err), 0);
	ends_unref(a); /* not kept: its times are not */
	assert_int_equal(solver_solve(solver, 1, &c.s, &c.m, NULL, 2, &t, &err), 0);
	assert_int_equal(solver_ends(solver, 1, &c.s, &c.m, NULL, 2, &a, &err), 0);
	assert_int_equal(solver_ends(solver, 1, &c.s, &c.m, NULL, 3, &b, &err), 0);
	assert_ptr_equal(a, b);
	solver_free(solver);
	assert_true(is_close(ends_raw_ns(a), t.end_ns)); /* a reference lives longer */
	ends_unref(a);
	ends_unref(b);
	timing_deinit(&t);
	delay_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_those_of_the_simulation),
		cmocka_unit_test(ranks_that_arrive_together_take_the_time_of_the_op),
		cmocka_unit_test(a_root_leaves_to_its_port_what_fits_the_buffers),
		cmocka_unit_test(the_second_of_two_ops_queues_behind_the_first),
		cmocka_unit_test(a_solver_keeps_the_ends_of_an_op),
	};

	dirs[0] = argc > 1 ? argv[1] : NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
