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
#include "engine/solve-p2p.h"
#include "engine/solve.h"
#include "engine/solver.h"
#include "rng.h"
#include "scene.h"

#define RANKS_MAX 1024

struct times {
	double arrive[RANKS_MAX], busy[RANKS_MAX], end[RANKS_MAX], port[RANKS_MAX];
};

static bool is_close(double a, double b)
{
	return a == b || fabs(a - b) <= 1e-9 * fmax(1e3, fmax(fabs(a), fabs(b)));
}

static struct ends *ends_and_time_of(struct scene *c, struct delay_chain *d, bool is_plain,
				     struct timing *ret)
{
	struct ends *e = NULL;
	struct err err = {""};

	if (solve(&c->s, &c->t, &c->m, d, NULL, 1, 0, ret, &err) ||
	    ends_new(&c->s, &c->t, &c->m, d, 1, ret, is_plain, &e, &err))
		fail_msg("%s", err.text);
	return e; /* without a border @ret owns nothing */
}

static struct ends *ends_of(struct scene *c, struct delay_chain *d)
{
	struct timing t;

	return ends_and_time_of(c, d, false, &t);
}

static void simulate(struct scene *c, struct delay_chain *d, bool is_plain, const struct times *in,
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
	p.is_base_only = is_plain;
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
	bool is_plain = below(r, 4) == 0;
	struct timing t;
	struct ends *e = ends_and_time_of(c, d, is_plain, &t);
	struct err err = {""};
	uint32_t n = c->s.n_ranks;

	random_arrivals(r, n, t.end_ns, &in);
	simulate(c, d, is_plain, &in, &sim);
	for (uint32_t i = 0; i < n; i++) { /* no time is the first */
		in.arrive[i] -= 1e6;
		in.busy[i] -= 1e6;
	}
	if (ends_solve(e, in.arrive, in.busy, 0, got.end, got.port, &err))
		fail_msg("%s", err.text);
	for (uint32_t i = 0; i < n; i++) {
		got.end[i] += 1e6;
		got.port[i] += 1e6;
	}
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
	struct delay_chain *slow = open_chain("alphabeta", "slow:rank=1,link=3");
	uint32_t n_how[3] = {0};
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 12);
	for (int i = 0; i < 1500; i++) {
		struct scene c;

		random_scene(&r, &c);
		check_case(&r, &c, i % 8 ? d : slow, n_how);
		scene_end(&c);
	}
	delay_free(d);
	delay_free(slow);
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
		double last = 0;

		random_scene(&r, &c);
		if (solve(&c.s, &c.t, &c.m, d, NULL, 1, 0, &t, &err)) {
			assert_string_not_equal(err.text, ""); /* not a kind of this model */
		} else {
			e = ends_and_time_of(&c, d, false, &t);
			for (uint32_t k = 0; k < c.s.n_ranks; k++)
				in.arrive[k] = 1e9;
			assert_int_equal(ends_solve(e, in.arrive, NULL, 7, got.end, NULL, &err), 0);
			for (uint32_t k = 0; k < c.s.n_ranks; k++)
				last = fmax(last, got.end[k] - 1e9 - 7);
			assert_true(fabs(last - t.end_ns) <= 1e-6 + 1e-9 * t.end_ns);
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

/* @end of rank @k is not later than if all others that have not come yet came with the root, or
 * with it. */
static void check_crowd(const struct scene *c, struct ends *e, const struct times *in,
			const struct times *early, uint32_t k, double end)
{
	double with[2] = {in->arrive[c->s.root], fmax(in->arrive[c->s.root], in->arrive[k])};
	double last = early->end[k];
	static struct times crowd;
	struct err err = {""};

	for (int i = 0; i < 2; i++) {
		for (uint32_t j = 0; j < c->s.n_ranks; j++)
			crowd.arrive[j] = isinf(early->arrive[j]) ? with[i] : in->arrive[j];
		assert_int_equal(ends_solve(e, crowd.arrive, in->busy, 0, crowd.end, NULL, &err),
				 0);
		last = fmax(last, crowd.end[k]);
	}
	assert_true(last >= end * (1 - 1e-9) - 1e-3);
}

/* Whoever comes later may have come earlier in virtual time. Only at the root of a scatter do those
 * that are there get the turns of those that are not: with these there from the start no end is
 * earlier than it will be. */
static void an_end_that_depends_on_nobody_else_stays(void **state)
{
	struct delay_chain *d = open_chain("alphabeta", NULL);
	static struct times in, early, all;
	uint32_t n_early = 0, n_later = 0;
	struct err err = {""};
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 14);
	for (int i = 0; i < 1500; i++) {
		struct timing t;
		struct scene c;
		struct ends *e;

		random_scene(&r, &c);
		e = ends_and_time_of(&c, d, false, &t);
		random_arrivals(&r, c.s.n_ranks, t.end_ns, &in);
		for (uint32_t k = 0; k < c.s.n_ranks; k++)
			early.arrive[k] = below(&r, 3) ? in.arrive[k] : INFINITY;
		early.arrive[c.s.root] = in.arrive[c.s.root];
		assert_int_equal(ends_solve(e, early.arrive, in.busy, 0, early.end, NULL, &err), 0);
		assert_int_equal(ends_solve(e, in.arrive, in.busy, 0, all.end, NULL, &err), 0);
		for (uint32_t k = 0; k < c.s.n_ranks; k++) {
			if (isinf(early.end[k]) || isinf(in.arrive[k]))
				continue;
			if (c.s.kind == COLL_SCATTER)
				check_crowd(&c, e, &in, &early, k, all.end[k]);
			n_early++;
			n_later += all.end[k] > early.end[k] + 1;
			assert_true(c.s.kind == COLL_SCATTER || is_close(all.end[k], early.end[k]));
		}
		ends_unref(e);
		scene_end(&c);
	}
	delay_free(d);
	assert_true(n_early > 1000 && n_later > 0);
}

/* The largest difference to the simulation, by the op's time, with 9 late ranks. */
static double far_off(enum coll_kind kind, uint32_t n, uint64_t bytes, enum solve_how how)
{
	struct delay_chain *d = open_chain("alphabeta", NULL);
	static struct times in, sim, got;
	double whole, worst = 0;
	struct timing t;
	struct err err = {""};
	struct scene c;
	struct ends *e;

	scene_of(&c, kind, 4);
	c.t.n_nodes = c.m.n_ranks = c.s.n_ranks = n;
	c.s.bytes = bytes;
	assert_int_equal(sched_init(&c.s, &err), 0);
	e = ends_and_time_of(&c, d, false, &t);
	whole = t.end_ns;
	memset(&in, 0, sizeof(in));
	for (uint32_t i = 0; i < 9; i++)
		in.arrive[i * i * 7 + 3] = whole * i / 8;
	simulate(&c, d, false, &in, &sim);
	assert_int_equal(ends_solve(e, in.arrive, in.busy, 0, got.end, got.port, &err), 0);
	assert_int_equal(ends_how(e), how);
	for (uint32_t i = 0; i < n; i++)
		worst = fmax(worst, fabs(got.end[i] - sim.end[i]) / whole);
	ends_unref(e);
	delay_free(d);
	return worst;
}

static void large_worlds_are_near_the_simulation(void **state)
{
	(void)state;
	assert_true(far_off(COLL_ALLREDUCE, 800, 800 * 4096, SOLVE_SYMMETRY) < 1e-9);
	assert_true(far_off(COLL_ALLREDUCE, 800, 800 * 4096 - 1000, SOLVE_SYMMETRY) < 1e-3);
	assert_true(far_off(COLL_ALLTOALL, 500, 8192, SOLVE_OP) < 0.01);
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
	static const double arrive[4] = {0, 0, 0, 0};
	struct ends *a, *b;
	double end[4];
	struct err err = {""};
	struct solver *solver;
	struct timing t;
	struct scene c;

	(void)state;
	scene_of(&c, COLL_ALLREDUCE, 1 << 20);
	assert_int_equal(solver_new(&c.t, d, &solver), 0);
	assert_int_equal(solver_solve(solver, 1, &c.s, &c.m, NULL, 2, &t, &err), 0);
	assert_int_equal(solver_ends(solver, 1, &c.s, &c.m, NULL, 2, &t, false, &a, &err), 0);
	assert_int_equal(solver_ends(solver, 1, &c.s, &c.m, NULL, 3, &t, false, &b, &err), 0);
	assert_ptr_equal(a, b);
	ends_unref(b);
	assert_int_equal(solver_ends(solver, 1, &c.s, &c.m, NULL, 3, &t, true, &b, &err), 0);
	assert_ptr_not_equal(a, b);
	solver_free(solver);
	assert_int_equal(ends_solve(a, arrive, NULL, 0, end, NULL, &err),
			 0); /* a reference lives */
	ends_unref(a);
	ends_unref(b);
	timing_deinit(&t);
	delay_free(d);
}

/* --- groups of point-to-point calls ------------------------------------------- */

struct who {
	double start[8], end[8], port[8];
	const char *what_if; /* NULL: adds 10 us to the whole group */
	bool is_plain;
};

static double start_of(void *ctx, uint32_t rank)
{
	return ((struct who *)ctx)->start[rank];
}

static void done(void *ctx, uint32_t rank, double end_ns, double port_ns)
{
	((struct who *)ctx)->end[rank] = end_ns;
	((struct who *)ctx)->port[rank] = port_ns;
}

/* Rank 1 sends @bytes to rank 2 and receives 1 MiB from rank 0; ranks 0 and 2 are virtual. */
static void play_group(const char *model, uint64_t bytes, struct who *w)
{
	static const uint32_t rank = 1, n = 2;
	struct sched_p2p calls[] = {{.peer = 2, .is_send = true, .bytes = bytes},
				    {.peer = 0, .bytes = 1 << 20}};
	const struct sched_p2p *const group = calls;
	const struct p2p_ranks ranks = {.ctx = w, .start = start_of, .done = done};
	struct delay_chain *d = open_chain(model, w->what_if ? w->what_if : "add:delay=10us");
	struct timing t;
	struct scene c;
	struct err err = {""};

	scene_of(&c, COLL_ALLREDUCE, 4);
	if (solve_p2p(&rank, 1, &group, &n, 0, &c.t, &c.m, d, NULL, 0, &t, &err) ||
	    solve_p2p_ends(&rank, 1, &group, &n, 0, &c.t, &c.m, d, 0, &t, w->is_plain, &ranks,
			   &err))
		fail_msg("%s", err.text);
	assert_true(w->what_if || t.extra_ns == 10e3);
	timing_deinit(&t);
	delay_free(d);
}

static void a_send_that_fits_the_buffers_waits_for_nobody(void **state)
{
	const double extra = 10e3, mib = (1 << 20) / 100.;
	struct who w = {.start = {500, 70, INFINITY}};

	(void)state;
	play_group("alphabeta", 2 << 20, &w);
	assert_true(is_close(w.end[1], 500 + 1000 + mib + extra));
	assert_true(is_close(w.port[1], 70 + 2 * mib + extra));
	assert_true(isinf(w.end[2]) && w.end[0] == 500 + extra);
	w.start[2] = 1e6;
	play_group("alphabeta", 2 << 20, &w);
	assert_true(w.end[2] == 1e6 + extra); /* it was there before */
	w.start[0] = INFINITY;
	play_group("alphabeta", 2 << 20, &w);
	assert_true(isinf(w.end[1]));
}

static void plain_ends_of_a_group_know_no_what_ifs(void **state)
{
	static const char *const what_ifs[] = {"add:delay=10us", "add:delay=70us",
					       "slow:rank=1,link=3"};
	double end[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct who w = {.what_if = what_ifs[i], .is_plain = true};

		play_group("alphabeta", 2 << 20, &w);
		end[i] = w.end[1];
		w.is_plain = false;
		play_group("alphabeta", 2 << 20, &w);
		assert_true(w.end[1] > end[i] + 5e3);
	}
	assert_true(end[0] == end[1] && end[0] == end[2]);
}

static void a_send_that_does_not_fit_waits_for_its_receiver(void **state)
{
	const double extra = 10e3, mib = (1 << 20) / 100.;
	struct who w = {.start = {500, 70, 1e6}};

	(void)state;
	play_group("alphabeta", 8 << 20, &w); /* four messages fit, the others wait */
	assert_true(is_close(w.end[2], 1e6 + 1000 + 4 * mib + extra));
	assert_true(w.end[1] == 1e6 + extra);
	w.start[2] = INFINITY;
	play_group("alphabeta", 8 << 20, &w);
	assert_true(isinf(w.end[1]) && isinf(w.port[1]) && isinf(w.end[2]));
}

static void a_group_of_which_only_the_time_is_known_has_ends(void **state)
{
	const double extra = 10e3;
	struct who w = {.start = {500, 70, INFINITY}};

	(void)state;
	play_group("const:time=8ms", 2 << 20, &w);
	assert_true(w.end[1] == 500 + 8e6 + extra && isinf(w.end[2]) && w.end[0] == 500 + extra);
	play_group("const:time=8ms", 8 << 20, &w);
	assert_true(isinf(w.end[1]));
	w.start[2] = 1e8;
	play_group("const:time=8ms", 8 << 20, &w);
	assert_true(w.end[1] == 1e8 + 4e6 + extra && w.end[2] == 1e8 + 8e6 + extra);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_those_of_the_simulation),
		cmocka_unit_test(ranks_that_arrive_together_take_the_time_of_the_op),
		cmocka_unit_test(an_end_that_depends_on_nobody_else_stays),
		cmocka_unit_test(large_worlds_are_near_the_simulation),
		cmocka_unit_test(a_root_leaves_to_its_port_what_fits_the_buffers),
		cmocka_unit_test(the_second_of_two_ops_queues_behind_the_first),
		cmocka_unit_test(a_solver_keeps_the_ends_of_an_op),
		cmocka_unit_test(a_send_that_fits_the_buffers_waits_for_nobody),
		cmocka_unit_test(plain_ends_of_a_group_know_no_what_ifs),
		cmocka_unit_test(a_send_that_does_not_fit_waits_for_its_receiver),
		cmocka_unit_test(a_group_of_which_only_the_time_is_known_has_ends),
	};

	dirs[0] = argc > 1 ? argv[1] : NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
