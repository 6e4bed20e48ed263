/* Whole solutions through the real plug-ins: the short cuts give the simulation's times of the end
 * and of every border message, in random worlds; no answer beats the ports; what-ifs come on top;
 * the solver remembers what solve() would find. Argument 1 is the models' folder. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "engine/border-p2p.h"
#include "engine/solve-p2p.h"
#include "engine/solve.h"
#include "engine/solver.h"
#include "rng.h"
#include "scene.h"

static void solve_ok(struct scene *c, struct delay_chain *d, const struct border *b, int force_sim,
		     struct timing *ret)
{
	struct err err = {""};

	if (solve(&c->s, &c->t, &c->m, d, b, 1, force_sim, ret, &err))
		fail_msg("%s", err.text);
}

static bool is_close(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static void short_cuts_give_the_simulated_times(void **state)
{
	struct delay_chain *d = open_chain("alphabeta", NULL);
	uint32_t n_symmetry[COLL_KINDS] = {0}, i, k;
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 4);
	for (i = 0; i < 1200; i++) {
		struct timing quick, sim, none;
		struct scene c;
		uint64_t m;

		random_scene(&r, &c);
		solve_ok(&c, d, &c.b, 0, &quick);
		solve_ok(&c, d, &c.b, 1, &sim);
		solve_ok(&c, d, NULL, 0, &none);
		assert_int_equal(sim.how, SOLVE_SIM);
		if (!is_close(quick.end_ns, sim.end_ns))
			fail_msg("case %u: %s of %u ranks ends at %.17g, simulated %.17g", i,
				 coll_kind_name(c.s.kind), c.s.n_ranks, quick.end_ns, sim.end_ns);
		assert_true(is_close(none.end_ns, quick.end_ns)); /* whatever the exchange */
		assert_true(is_close(quick.model_ns, quick.end_ns));
		for (k = 0; k < c.b.n_in; k++) {
			for (m = 0; m < c.b.in[k].n_messages; m++) {
				double a = timing_message_ns(&quick, k, m);
				double b = timing_message_ns(&sim, k, m);

				if (!is_close(a, b))
					fail_msg("case %u: %s %s of %u ranks: message %llu from %u "
						 "to "
						 "%u, lane %u: %.17g, simulated %.17g",
						 i, coll_kind_name(c.s.kind),
						 sched_algo_name(c.s.algo), c.s.n_ranks,
						 (unsigned long long)m, c.b.in[k].src,
						 c.b.in[k].dst, c.b.in[k].lane, a, b);
				assert_true(a <= quick.end_ns);
			}
		}
		if (quick.end_ns < quick.bound_ns * (1 - 1e-12))
			fail_msg("case %u: %s %s of %u ranks on %u nodes takes %g ns, its bytes %g "
				 "ns",
				 i, coll_kind_name(c.s.kind), sched_algo_name(c.s.algo),
				 c.s.n_ranks, c.t.n_nodes, quick.end_ns, quick.bound_ns);
		n_symmetry[c.s.kind] += quick.how == SOLVE_SYMMETRY;
		timing_deinit(&quick);
		timing_deinit(&sim);
		timing_deinit(&none);
		scene_end(&c);
	}
	for (k = 0; k < COLL_GATHER; k++)
		assert_true(n_symmetry[k] > 20);
	delay_free(d);
}

static void plain_scene(struct scene *c, enum coll_kind kind, enum sched_algo algo, uint32_t nodes,
			uint32_t gpus, uint64_t bytes)
{
	struct err err = {""};

	memset(c, 0, sizeof(*c));
	c->t = (struct topology){.n_nodes = nodes,
				 .gpus_per_node = gpus,
				 .intra = {1000, 400},
				 .inter = {5000, 50}};
	c->m = (struct membership){.n_ranks = nodes * gpus, .stride = 1};
	c->s = (struct sched){.kind = kind,
			      .algo = algo,
			      .n_ranks = nodes * gpus,
			      .ranks_per_node = gpus,
			      .n_channels = 1,
			      .elem_bytes = 4,
			      .bytes = bytes};
	if (sched_init(&c->s, &err))
		fail_msg("%s", err.text);
	assert_int_equal(bitmap_init(&c->real, c->s.n_ranks), 0);
	bitmap_set(&c->real, 0);
	assert_int_equal(border_make(&c->s, &c->real, &c->b, &err), 0);
}

/* A model of whole ops: messages are spread over the op, the last one at its end. */
static void a_whole_ops_time_is_spread_over_its_messages(void **state)
{
	struct delay_chain *d = open_chain("const:time=90us", NULL);
	struct timing t;
	struct scene c;

	(void)state;
	plain_scene(&c, COLL_ALLREDUCE, SCHED_RING, 4, 2, 1 << 20);
	solve_ok(&c, d, &c.b, 0, &t);
	assert_int_equal(t.how, SOLVE_OP);
	assert_true(t.end_ns == 90000 && t.model_ns == 90000);
	assert_int_equal(c.b.n_in, 1);
	assert_int_equal(c.b.in[0].n_messages, 14);
	for (uint64_t i = 0; i < 14; i++)
		assert_true(is_close(timing_message_ns(&t, 0, i), 90000. * (double)(i + 1) / 14));
	assert_true(timing_message_ns(&t, 0, 13) <= t.end_ns);
	timing_deinit(&t);
	scene_end(&c);
	delay_free(d);
}

/* What a model says of a whole op is without reductions, unless it knows no messages. */
static void reductions_come_on_top(void **state)
{
	static const struct {
		const char *model;
		double positions; /* that wait for a reduction */
	} models[] = {{"alphabeta", 7}, {"ring", 7}, {"none", 7}, {"const:time=90us", 0}};
	struct scene c;

	(void)state;
	plain_scene(&c, COLL_ALLREDUCE, SCHED_RING, 8, 1, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		struct delay_chain *d = open_chain(models[i].model, NULL);
		struct timing plain, t;

		c.t.reduce_bytes_per_ns = 0;
		solve_ok(&c, d, &c.b, 0, &plain);
		c.t.reduce_bytes_per_ns = 4;
		solve_ok(&c, d, &c.b, 0, &t);
		assert_true(is_close(t.end_ns, plain.end_ns + models[i].positions * (1 << 17) / 4));
		assert_true(is_close(t.model_ns, t.end_ns));
		timing_deinit(&plain);
		timing_deinit(&t);
		delay_free(d);
	}
	scene_end(&c);
}

static void extras_come_on_top(void **state)
{
	static const char *const models[] = {"alphabeta", "ring", "none"};
	struct scene c;

	(void)state;
	plain_scene(&c, COLL_ALLREDUCE, SCHED_RING, 4, 2, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		struct delay_chain *d = open_chain(models[i], NULL);
		struct delay_chain *late = open_chain(models[i], "add:op=allreduce,delay=5ms");
		struct timing plain, t;

		solve_ok(&c, d, &c.b, 0, &plain);
		solve_ok(&c, late, &c.b, 0, &t);
		assert_true(is_close(t.end_ns, plain.end_ns + 5e6));
		assert_true(is_close(t.model_ns, plain.end_ns));
		assert_true(is_close(plain.model_ns, plain.end_ns));
		timing_deinit(&plain);
		timing_deinit(&t);
		delay_free(d);
		delay_free(late);
	}
	scene_end(&c);
}

/* A what-if on messages over a model of whole ops: the model's time is the same with and without.
 */
static void what_ifs_on_messages_leave_the_models_time_alone(void **state)
{
	static const char *const what_ifs[] = {"add:hop=inter,delay=0ns",
					       "add:hop=inter,delay=10us", "slow:rank=3,link=2"};
	static const enum coll_kind kinds[] = {COLL_ALLREDUCE, COLL_BROADCAST};
	struct scene c;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct delay_chain *d = open_chain("ring", NULL);
		struct timing plain;

		plain_scene(&c, kinds[k], kinds[k] == COLL_ALLREDUCE ? SCHED_RING : SCHED_CHAIN, 4,
			    2, 8 << 20);
		solve_ok(&c, d, &c.b, 0, &plain);
		for (size_t i = 0; i < ARRAY_SIZE(what_ifs); i++) {
			struct delay_chain *with = open_chain("ring", what_ifs[i]);
			struct timing t;

			solve_ok(&c, with, &c.b, 0, &t);
			assert_true(is_close(t.model_ns, plain.end_ns));
			if (i == 0)
				assert_true(is_close(t.end_ns, plain.end_ns));
			else
				assert_true(t.end_ns > plain.end_ns * 1.001);
			for (uint64_t n = 0; c.b.n_in && n < c.b.in[0].n_messages; n++)
				assert_true(timing_message_ns(&t, 0, n) <= t.end_ns);
			timing_deinit(&t);
			delay_free(with);
		}
		timing_deinit(&plain);
		scene_end(&c);
		delay_free(d);
	}
}

/* And leaves the model's share alone. */
static void a_slow_link_lengthens_the_op_only(void **state)
{
	struct delay_chain *d = open_chain("alphabeta", NULL);
	struct delay_chain *slow = open_chain("alphabeta", "slow:rank=5,link=3");
	struct timing plain, t;
	struct scene c;

	(void)state;
	plain_scene(&c, COLL_ALLREDUCE, SCHED_RING, 4, 2, 8 << 20);
	solve_ok(&c, d, &c.b, 0, &plain);
	solve_ok(&c, slow, &c.b, 0, &t);
	assert_int_equal(plain.how, SOLVE_SYMMETRY);
	assert_true(is_close(t.model_ns, plain.end_ns));
	assert_true(t.end_ns > 1.5 * plain.end_ns);
	timing_deinit(&plain);
	timing_deinit(&t);
	scene_end(&c);
	delay_free(d);
	delay_free(slow);
}

static void assert_same(const struct timing *a, const struct timing *b, const struct border *border)
{
	assert_true(a->end_ns == b->end_ns && a->model_ns == b->model_ns &&
		    a->bound_ns == b->bound_ns && a->how == b->how);
	for (uint32_t i = 0; border && i < border->n_in; i++)
		for (uint64_t m = 0; m < border->in[i].n_messages; m++)
			assert_true(timing_message_ns(a, i, m) == timing_message_ns(b, i, m));
}

static void the_solver_gives_what_solve_gives(void **state)
{
	static const char *const what_ifs[] = {"slow:rank=1,link=2", "add:op=all,delay=1ms",
					       "jitter:dist=normal,mean=20us,stddev=5us",
					       "jitter:dist=uniform,max=9us,on=message"};
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 5);
	for (size_t w = 0; w < ARRAY_SIZE(what_ifs); w++) {
		struct delay_chain *d = open_chain("alphabeta", what_ifs[w]);
		struct scene scenes[100];
		struct solver *solver = NULL;
		struct topology t = {.n_nodes = 4,
				     .gpus_per_node = 3,
				     .intra = {1000, 300},
				     .inter = {4000, 25}};

		assert_int_equal(solver_new(&t, d, &solver), 0);
		for (uint32_t i = 0; i < ARRAY_SIZE(scenes); i++) {
			random_scene(&r, &scenes[i]);
			scenes[i].t = t;
		}
		for (uint64_t k = 0; k < 1000; k++) {
			uint32_t i = below(&r, k % 3 ? 20 : ARRAY_SIZE(scenes));
			struct scene *c = &scenes[i];
			const struct border *b = below(&r, 2) ? &c->b : NULL;
			struct timing direct, kept;
			struct err err = {""};

			if (c->m.table)
				c->m.table = c->table;
			if (c->m.table || c->m.base + (c->m.n_ranks - 1) * c->m.stride >= 12)
				continue;
			if (solve(&c->s, &t, &c->m, d, b, k, 0, &direct, &err) ||
			    solver_solve(solver, i, &c->s, &c->m, b, k, &kept, &err))
				fail_msg("%s", err.text);
			assert_same(&direct, &kept, b);
			timing_deinit(&direct);
			timing_deinit(&kept);
		}
		for (uint32_t i = 0; i < ARRAY_SIZE(scenes); i++)
			scene_end(&scenes[i]);
		assert_null(solver_free(solver));
		delay_free(d);
	}
}

/* Two ops that differ in the root only, or in their members only. */
static void the_solver_tells_ops_apart(void **state)
{
	struct delay_chain *d = open_chain("alphabeta", "slow:rank=1,link=3");
	struct solver *solver = NULL;
	double ends[8];
	struct scene c;

	(void)state;
	plain_scene(&c, COLL_BROADCAST, SCHED_CHAIN, 2, 2, 1 << 16);
	assert_int_equal(solver_new(&c.t, d, &solver), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct timing direct, kept;
		struct err err = {""};

		c.s.root = i % 4;
		if (i >= 4) { /* two communicators of two ranks: on one node, and on two */
			c.s.root = 0;
			c.s.n_ranks = 2;
			c.s.ranks_per_node = 1;
			c.m = (struct membership){.n_ranks = 2, .stride = 1 + i % 2};
		}
		assert_int_equal(sched_init(&c.s, &err), 0);
		assert_int_equal(solve(&c.s, &c.t, &c.m, d, NULL, i, 0, &direct, &err), 0);
		assert_int_equal(solver_solve(solver, i < 4 ? 9 : i % 2, &c.s, &c.m, NULL, i, &kept,
					      &err),
				 0);
		assert_same(&direct, &kept, NULL);
		ends[i] = direct.end_ns;
		timing_deinit(&direct);
		timing_deinit(&kept);
	}
	assert_true(ends[0] != ends[2] && ends[4] != ends[5]);
	solver_free(solver);
	scene_end(&c);
	delay_free(d);
}

/* Two real ranks of a world of 8: to each other, to and from virtual ranks, to self. */
static void calls_share_the_ports_of_their_ranks(void **state)
{
	struct delay_chain *d = open_chain("alphabeta", NULL);
	struct sched_p2p calls0[] = {
		{.peer = 1, .is_send = true, .bytes = 1000000},
		{.peer = 5, .bytes = 400000},
		{.peer = 0, .is_send = true, .bytes = 77},
		{.peer = 0, .bytes = 77},
		{.peer = 5, .bytes = 50000},
		{.peer = 6, .is_send = true, .bytes = 0},
	};
	struct sched_p2p calls1[] = {
		{.peer = 0, .bytes = 1000000},
		{.peer = 7, .is_send = true, .bytes = 3000000},
	};
	const struct sched_p2p *calls[] = {calls0, calls1};
	uint32_t ranks[] = {0, 1}, n_calls[] = {ARRAY_SIZE(calls0), ARRAY_SIZE(calls1)};
	struct err err = {""};
	struct border b;
	struct timing t;
	struct scene c;

	(void)state;
	plain_scene(&c, COLL_ALLREDUCE, SCHED_RING, 8, 1, 1024);
	bitmap_set(&c.real, 1);
	if (border_make_p2p(ranks, 2, calls, n_calls, 1 << 16, &c.real, &b, &err) ||
	    solve_p2p(ranks, 2, calls, n_calls, 1 << 16, &c.t, &c.m, d, &b, 3, &t, &err))
		fail_msg("%s", err.text);
	/* the busiest port: rank 1 sends 3 MB */
	assert_true(is_close(t.end_ns, 5000 + 3000000 / 50.));
	assert_true(is_close(t.bound_ns, 3000000 / 50.));
	assert_true(t.how == SOLVE_SIM);
	for (uint32_t i = 0; i < b.n_in; i++) {
		double last = 0;

		for (uint64_t m = 0; m < b.in[i].n_messages; m++) {
			assert_true(timing_message_ns(&t, i, m) > last);
			last = timing_message_ns(&t, i, m);
		}
		if (b.in[i].src == 0) /* alone on its ports */
			assert_true(is_close(last, 5000 + 1000000 / 50.));
		if (b.in[i].src == 5 && b.in[i].lane == 0) /* takes turns with lane 1 */
			assert_true(is_close(last, 5000 + 450000 / 50.));
	}
	assert_int_equal(b.n_in, 3);
	timing_deinit(&t);
	border_deinit(&b);
	scene_end(&c);
	delay_free(d);
}

/* A ring shift of pipeline stages, seen by one rank. */
static void one_ranks_calls_are_a_group(void **state)
{
	struct delay_chain *d = open_chain("alphabeta", NULL);
	struct sched_p2p calls[] = {{.peer = 3, .is_send = true, .bytes = 1 << 20},
				    {.peer = 1, .bytes = 1 << 20}};
	const struct sched_p2p *const group = calls;
	const uint32_t rank = 2, n = 2;
	struct timing t;
	struct scene c;
	struct err err = {""};

	(void)state;
	plain_scene(&c, COLL_ALLREDUCE, SCHED_RING, 4, 1, 1024);
	assert_int_equal(solve_p2p(&rank, 1, &group, &n, 0, &c.t, &c.m, d, NULL, 0, &t, &err), 0);
	assert_true(is_close(t.end_ns, 5000 + (1 << 20) / 50.));
	timing_deinit(&t);
	scene_end(&c);
	delay_free(d);
}

static void an_op_that_no_model_answers_is_refused(void **state)
{
	struct delay_chain *d = open_chain("alltoall", NULL);
	struct timing t;
	struct scene c;
	struct err err = {""};

	(void)state;
	plain_scene(&c, COLL_ALLREDUCE, SCHED_RING, 4, 1, 1024);
	if (solve(&c.s, &c.t, &c.m, d, NULL, 0, 0, &t, &err) == 0)
		timing_deinit(&t); /* it has messages: then it did answer */
	else
		assert_non_null(strstr(err.text, "alltoall"));
	scene_end(&c);
	delay_free(d);
}

/* A what-if that draws for each message makes a large world too large to simulate; a uniform chain
 * needs no simulation, and neither does one that is but for some ranks. */
static void what_would_take_minutes_is_refused(void **state)
{
	struct delay_chain *jitter = open_chain("alphabeta", "jitter:on=message,max=1us");
	struct delay_chain *slow = open_chain("alphabeta", "slow:rank=5,link=3");
	struct delay_chain *plain = open_chain("alphabeta", NULL);
	struct timing t;
	struct scene c;
	struct err err = {""};

	(void)state;
	plain_scene(&c, COLL_ALLREDUCE, SCHED_RING, 8192, 8, 1 << 30);
	assert_int_equal(solve(&c.s, &c.t, &c.m, jitter, NULL, 0, 0, &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "must be simulated"));
	assert_non_null(strstr(err.text, "jitter"));
	solve_ok(&c, plain, NULL, 0, &t);
	assert_int_equal(t.how, SOLVE_SYMMETRY);
	assert_true(t.end_ns > t.bound_ns);
	timing_deinit(&t);
	solve_ok(&c, slow, NULL, 0, &t);
	assert_true(t.how == SOLVE_SYMMETRY && t.end_ns > t.model_ns);
	timing_deinit(&t);
	c.s.n_channels = 2;
	c.t.reduce_bytes_per_ns = 6;
	assert_int_equal(solve(&c.s, &c.t, &c.m, plain, NULL, 0, 0, &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "leave out reduce-bandwidth"));
	scene_end(&c);
	plain_scene(&c, COLL_ALLTOALL, SCHED_DIRECT, 1024, 8, 1 << 10);
	assert_int_equal(solve(&c.s, &c.t, &c.m, slow, NULL, 0, 0, &t, &err), -EINVAL);
	solve_ok(&c, plain, NULL, 0, &t);
	assert_int_equal(t.how, SOLVE_SYMMETRY);
	timing_deinit(&t);
	scene_end(&c);
	delay_free(jitter);
	delay_free(slow);
	delay_free(plain);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_ops_time_is_spread_over_its_messages),
		cmocka_unit_test(what_ifs_on_messages_leave_the_models_time_alone),
		cmocka_unit_test(reductions_come_on_top),
		cmocka_unit_test(extras_come_on_top),
		cmocka_unit_test(a_slow_link_lengthens_the_op_only),
		cmocka_unit_test(calls_share_the_ports_of_their_ranks),
		cmocka_unit_test(one_ranks_calls_are_a_group),
		cmocka_unit_test(an_op_that_no_model_answers_is_refused),
		cmocka_unit_test(what_would_take_minutes_is_refused),
		cmocka_unit_test(the_solver_gives_what_solve_gives),
		cmocka_unit_test(the_solver_tells_ops_apart),
		cmocka_unit_test(short_cuts_give_the_simulated_times),
	};

	dirs[0] = argc > 1 ? argv[1] : "delaymodels";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
