/* The what-ifs: add, slow, hang, and what all have: parameters, times and ops for which they hold.
 * jitter: test-jitter.c. */
#include "delay-test.h"

#include <errno.h>
#include <stdlib.h>

/* --- add ------------------------------------------------------------------- */

static void add_lengthens_ops(void **state)
{
	CHAIN all = test_must_open("ring", "add:delay=5ms", 0);
	CHAIN one = test_must_open("ring", "add:op=All_Gather,delay=2us", 0);
	struct nbox_op op;

	(void)state;
	for (uint32_t kind = 0; kind <= NBOX_SENDRECV; kind++) {
		op = test_op(kind, 16, 2, 4096);
		assert_true(test_extra_ns(all, &op, 1000) == 5e6);
		assert_true(test_extra_ns(one, &op, 1000) == (kind == NBOX_ALLGATHER ? 2000 : 0));
	}
	/* it leaves messages and computation alone: the closed form stays */
	assert_true(!delay_has_segments(all) && test_segment_ns(all, 3, 7, 1e6) == 1e6);
	assert_true(delay_has_op(all) && delay_is_uniform(all) && delay_is_steady(all));
}

static void add_lengthens_messages(void **state)
{
	static const char *const hops[] = {"intra", "inter", "all"};

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		char what_if[64];
		struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 4096);
		struct nbox_message intra = test_message(0, 1, NBOX_INTRA, 1, 4000);
		struct nbox_message inter = test_message(7, 8, NBOX_INTER, 1, 4000);
		struct nbox_message self = test_message(7, 7, NBOX_SELF, 1, 4000);
		struct nbox_delay base;
		struct err err;

		snprintf(what_if, sizeof(what_if), "add:hop=%s,delay=2us", hops[i]);
		CHAIN d = test_must_open("alphabeta", what_if, 0);

		assert_true(test_message_ns(d, &op, &intra).latency_ns == 1000 + (i != 1) * 2000.0);
		assert_true(test_message_ns(d, &op, &inter).latency_ns == 5000 + (i != 0) * 2000.0);
		assert_true(test_message_ns(d, &op, &inter).occupancy_ns == 80);
		assert_true(test_message_ns(d, &op, &self).latency_ns == 0);
		assert_true(test_extra_ns(d, &op, 1000) == 0);
		assert_true(delay_is_uniform(d));
		/* and without what-ifs */
		assert_int_equal(delay_message(d, &op, &inter, true, &base, &err), 0);
		assert_true(base.latency_ns == 5000);
	}
}

/* Over a model of whole ops, messages cannot be touched: refused at once, not
 * ignored. A model with both is asked for messages only. */
static void what_ifs_on_messages_need_a_model_with_messages(void **state)
{
	static const char *const what_ifs[] = {"add:hop=inter,delay=1us",
					       "jitter:on=message,dist=uniform,max=1us"};
	struct delay_chain *d = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(what_ifs); i++) {
		const char *const one[] = {what_ifs[i], NULL};

		assert_int_equal(test_open("const:time=1ms", one, 0, &d, &err), -EINVAL);
		assert_non_null(strstr(err.text, "whole ops only"));
		assert_null(d);
		CHAIN both = test_must_open("ring", what_ifs[i], 0);
		struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 4096);
		double ns;

		assert_true(delay_has_op(both) && delay_has_message(both));
		assert_true(delay_works_on_messages(both));
		assert_int_equal(delay_op(both, &op, &ns, &err), 0); /* the model's own, still */
	}
}

static void what_ifs_add_up_in_order(void **state)
{
	static const char *const what_ifs[] = {"add:delay=1ms", "slow:rank=3,compute=2",
					       "slow:rank=5,compute=3,link=2",
					       "add:op=allreduce,delay=1us", NULL};
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 4096);
	struct delay_chain *opened = NULL;
	struct err err;

	(void)state;
	assert_int_equal(test_open("const:time=1ms", what_ifs, 0, &opened, &err), 0);
	CHAIN d = opened;

	/* (1 ms + 1 ms) twice as long by the slow link, and 1 us */
	test_near(test_extra_ns(d, &op, 1e6), 3e6 + 1000, 1e-12);
	assert_true(test_segment_ns(d, 3, 0, 1e6) == 2e6);
	assert_true(test_segment_ns(d, 4, 0, 1e6) == 1e6);
	assert_true(test_segment_ns(d, 5, 0, 1e6) == 3e6);
	assert_string_equal(delay_describe(d),
			    "const:time=1ms + add:delay=1ms + slow:rank=3,compute=2 + "
			    "slow:rank=5,compute=3,link=2 + add:op=allreduce,delay=1us");
}

/* --- slow ------------------------------------------------------------------ */

static void slow_ranks_compute_and_send_slowly(void **state)
{
	CHAIN d = test_must_open("alphabeta", "slow:rank=9,compute=1.5,link=200%", 0);
	CHAIN lazy = test_must_open("ring", "slow:rank=9,compute=1.5", 0);
	struct nbox_op with = test_op(NBOX_ALLREDUCE, 16, 2, 4096);
	struct nbox_message from = test_message(9, 10, NBOX_INTRA, 1, 4000);
	struct nbox_message to = test_message(7, 9, NBOX_INTER, 1, 5000);
	struct nbox_message other = test_message(7, 8, NBOX_INTER, 1, 5000);

	(void)state;
	assert_true(test_segment_ns(d, 9, 0, 8e6) == 12e6 && test_segment_ns(d, 8, 0, 8e6) == 8e6);
	assert_true(test_message_ns(d, &with, &from).occupancy_ns == 20);
	assert_true(test_message_ns(d, &with, &from).latency_ns == 1000);
	assert_true(test_message_ns(d, &with, &to).occupancy_ns == 200);
	assert_true(test_message_ns(d, &with, &other).occupancy_ns == 100);
	assert_true(!delay_is_uniform(d) && delay_is_steady(d));
	/* a slow processor alone leaves the closed form */
	assert_true(delay_has_op(lazy) && delay_is_uniform(lazy));
	assert_true(test_segment_ns(lazy, 9, 0, 8e6) == 12e6);
}

static struct nbox_message hop_of(uint32_t src, uint32_t dst)
{
	return test_message(src, dst, NBOX_INTER, 1, 5000);
}

static void segments_pass_through_all_what_ifs(void **state)
{
	static const char *const first[] = {"slow:rank=3,compute=2",
					    "jitter:on=compute,min=50%,max=50%",
					    "slow:rank=3+4,compute=1.5", NULL};
	struct delay_chain *opened = NULL;
	struct err err;

	(void)state;
	assert_int_equal(test_open("none", first, 0, &opened, &err), 0);
	CHAIN d = opened;

	test_near(test_segment_ns(d, 3, 0, 1e6), 4.5e6, 1e-12);
	test_near(test_segment_ns(d, 4, 0, 1e6), 2.25e6, 1e-12);
	test_near(test_segment_ns(d, 5, 0, 1e6), 1.5e6, 1e-12);
	assert_true(test_segment_ns(d, 3, 0, 0) == 0); /* nothing is computed between two edges */
}

static void what_ifs_that_leave_computation_alone_say_so(void **state)
{
	static const struct {
		const char *what_if;
		bool has_segments;
	} cases[] = {
		{"slow:rank=1,compute=1.1", true}, {"slow:rank=1,compute=1,link=2", false},
		{"slow:rank=1,link=2", false},     {"jitter:on=compute,max=1%", true},
		{"jitter:on=op,max=1us", false},   {"jitter:on=message,max=1us", false},
		{"add:delay=1us", false},          {NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHAIN d = test_must_open("alphabeta", cases[i].what_if, 0);

		assert_int_equal(delay_has_segments(d), cases[i].has_segments);
		if (!cases[i].has_segments)
			assert_true(test_segment_ns(d, 1, 0, 12345.5) == 12345.5);
	}
}

/* Several ranks in rank=, in any order, and node=. */
static void slow_touches_the_named_ranks_only(void **state)
{
	static const struct {
		const char *what_if;
		uint32_t first, last, other; /* slow; other: one more */
	} cases[] = {
		{"slow:rank=16-23,link=2,compute=3", 16, 23, 16},
		{"slow:node=2,link=2,compute=3", 16, 23, 16},
		{"slow:rank=40+16-23,link=2,compute=3", 16, 23, 40},
		{"slow:node=2-3,link=2,compute=3", 16, 31, 16},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHAIN d = test_must_open("alphabeta", cases[i].what_if, 0);
		struct nbox_op op = test_op(NBOX_ALLREDUCE, 64, 8, 4096);

		for (uint32_t rank = 0; rank < 64; rank++) {
			uint32_t quiet = rank == 63 ? 62 : 63;
			int slow = (rank >= cases[i].first && rank <= cases[i].last) ||
				   rank == cases[i].other;
			struct nbox_message from = hop_of(rank, quiet), to = hop_of(quiet, rank);

			assert_true(test_message_ns(d, &op, &from).occupancy_ns ==
				    (slow ? 200 : 100));
			assert_true(test_message_ns(d, &op, &to).occupancy_ns ==
				    (slow ? 200 : 100));
			assert_true(test_segment_ns(d, rank, rank, 1e6) == (slow ? 3e6 : 1e6));
		}
		struct nbox_message between = hop_of(16, 17);

		assert_true(test_message_ns(d, &op, &between).occupancy_ns == 200); /* once */
	}
}

static void slow_links_need_messages(void **state)
{
	CHAIN d = test_must_open("const:time=1ms", "slow:rank=9,link=2.5", 0);
	struct nbox_op with = test_op(NBOX_ALLREDUCE, 16, 2, 4096);
	struct nbox_op without = test_op(NBOX_ALLREDUCE, 8, 1, 4096);
	struct err err;
	double extra;
	bool is_ahead;

	(void)state;
	assert_true(delay_has_op(d));
	assert_true(test_extra_ns(d, &with, 1e6) == 1.5e6);
	assert_true(test_extra_ns(d, &without, 1e6) == 0);
	assert_false(delay_has_segments(d));
	/* an op built from messages contains it already */
	assert_int_equal(delay_extra(d, &with, 1e6, true, &extra, &is_ahead, &err), 0);
	assert_true(extra == 0);
}

/* --- onesided ----------------------------------------------------------- */

/* T-G7: of an all-to-all of 5 ranks, 1000 messages each, that takes 1 us + 10 us. */
static void stores_leave_the_tail_that_computation_does_not_hide(void **state)
{
	static const struct {
		double window_ns, tail_ns;
	} rows[] = {{-1, 11000}, /* not known */
		    {0, 11000},
		    {5000, 11000 - 5000 * 0.999},
		    {11000, 1010}, /* alpha and the last message */
		    {1e9, 1010}};
	CHAIN d = test_must_open("const:time=11us", "onesided:alpha=1us,message=4B", 0);
	CHAIN h = test_must_open("const:time=11us", "onesided:alpha=1us,message=4B,header=4B", 0);
	struct nbox_op op = test_op(NBOX_ALLTOALL, 5, 1, 1000),
		       other = test_op(NBOX_ALLREDUCE, 5, 1, 1000);
	double extra;
	bool is_ahead;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		delay_set_window(d, rows[i].window_ns);
		assert_int_equal(delay_extra(d, &op, 11000, false, &extra, &is_ahead, NULL), 0);
		assert_float_equal(11000 + extra, rows[i].tail_ns, 1e-6);
		assert_int_equal(is_ahead, rows[i].window_ns > 0);
	}
	delay_set_window(h, 0);
	assert_true(test_extra_ns(h, &op, 11000) == 10000);
	delay_set_window(h, -1); /* as the host tells of other kinds */
	assert_true(test_extra_ns(h, &other, 11000) == 0);
}

/* --- parameters ------------------------------------------------------------ */

static void bad_parameters_are_refused(void **state)
{
	static const struct {
		const char *what_if, *sentence;
	} cases[] = {
		{"add", "add: delay=<time> must be given: how much"},
		{"add:delay=5", "has no unit"},
		{"add:delay=-5ms", "negative"},
		{"add:delay=5ms,op=alreduce", "did you mean 'allreduce'?"},
		{"add:delay=5ms,hop=rack", "one of: intra inter all"},
		{"add:delay=5ms,hop=inter,op=reduce", "exclude each other"},
		{"add:delay=5ms,delay=6ms", "given twice"},
		{"slow:rank=1", "give compute=, link= or both"},
		{"slow:compute=2", "give rank= or node="},
		{"slow:rank=1,compute=0.5", "below 1"},
		{"slow:rank=1,link=50%", "below 1"},
		{"slow:rank=4294967296,link=2",
		 "rank=4294967296 is outside the world of 512 ranks (0 to 511)"},
		{"slow:rank=500-512,link=2", "rank=500-512 is outside the world"},
		{"slow:node=64,link=2", "node=64 is outside the cluster of 64 nodes (0 to 63)"},
		{"slow:rank=1,node=2,link=2", "exclude each other"},
		{"slow:rank=1.5,link=2", "no list of ranks: write 0, 0-7 or 0+5+9-12"},
		{"slow:node=x,link=2", "no list of nodes"},
		{"slow:rank=1,5,link=2",
		 "'5' is no key=value; several ranks are written with +, such as rank=1+5"},
		{"slow:rank=1+1,link=2", "names rank 1 twice"},
		{"slow:rank=1,link=2x", "no ratio"},
		{"jitter", "give the values of a distribution: min and max (uniform)"},
		{"jitter:stddev=5us,max=9us", "stddev: dist=uniform has min and max"},
		{"jitter:dist=gauss", "one of: uniform normal lognormal pareto"},
		{"jitter:on=compute,stddev=1ms", "on=compute takes shares"},
		{"jitter:on=compute,min=0us,max=5%", "min: on=compute takes shares"},
		{"jitter:dist=uniform", "max must be given"},
		{"jitter:dist=uniform,min=2us,max=1us", "below min"},
		{"jitter:dist=uniform,min=2us,max=1%", "make both times or both percentages"},
		{"jitter:dist=normal,stddev=5 %", "is no ratio"},
		{"jitter:dist=normal,stddev=5", "has no unit; units of a time: ns us ms s"},
		{"jitter:dist=normal,max=1us", "dist=normal has mean and stddev"},
		{"jitter:dist=normal,mean=1us", "stddev must be given"},
		{"jitter:dist=lognormal,sigma=1", "median must be given"},
		{"jitter:dist=lognormal,median=1us,sigma=11", "above 10"},
		{"jitter:dist=pareto,scale=1us,shape=1", "no mean"},
		{"jitter:dist=pareto,scale=1us,shape=2us", "no ratio"},
		{"jitter:dist=uniform,max=1us,on=link", "one of: op message compute"},
	};
	struct delay_chain *d = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *const one[] = {cases[i].what_if, NULL};

		assert_int_equal(test_open("none", one, 0, &d, &err), -EINVAL);
		if (!strstr(err.text, cases[i].sentence))
			fail_msg("%s: %s", cases[i].what_if, err.text);
		assert_null(d);
	}
}

static double segment_at(struct delay_chain *d, uint32_t rank, double start, double ns)
{
	struct err err = {""};
	double ret = NAN;

	assert_int_equal(delay_segment(d, rank, 0, start, ns, &ret, &err), 0);
	return ret;
}

/* Keys that the plug-ins know nothing of. */
static void any_what_if_may_hold_for_a_time_and_for_some_ops(void **state)
{
	const struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 1 << 20),
			     small = test_op(NBOX_ALLREDUCE, 16, 2, 64);
	const struct target_comm world = {1, true, ""}, tp = {2, false, "tp"};
	struct moment at = {.time_ns = 5e9, .step = 7};
	CHAIN add =
		test_must_open("none",
			       "add:delay=1us,from=2s,for=4s,bytes=1KiB-,communicator=world", 0);
	CHAIN of_rank = test_must_open("none", "add:delay=1us,rank=15", 0);
	CHAIN of_other = test_must_open("none", "add:delay=1us,node=3", 0);
	CHAIN in_steps = test_must_open("none", "slow:rank=3,compute=2,from=8steps", 0);

	(void)state;
	delay_set_moment(add, &at, &world);
	assert_float_equal(test_extra_ns(add, &op, 0), 1000, 0);
	assert_float_equal(test_extra_ns(add, &small, 0), 0, 0);
	delay_set_moment(add, &at, &tp);
	assert_float_equal(test_extra_ns(add, &op, 0), 0, 0);
	at.time_ns = 6e9;
	delay_set_moment(add, &at, &world);
	assert_float_equal(test_extra_ns(add, &op, 0), 0, 0);
	assert_int_equal(delay_n_used(add, 0), 1);
	assert_float_equal(test_extra_ns(of_rank, &op, 0), 1000, 0);
	assert_float_equal(test_extra_ns(of_other, &op, 0), 0, 0);
	assert_int_equal(delay_in_steps(in_steps), 0);
	delay_set_moment(in_steps, &at, NULL);
	assert_float_equal(segment_at(in_steps, 3, 6e9, 100), 100, 0);
	at.step = 8;
	delay_set_moment(in_steps, &at, NULL);
	assert_float_equal(segment_at(in_steps, 3, 6e9, 100), 200, 0);
	assert_float_equal(segment_at(in_steps, 4, 6e9, 100), 100, 0);
}

/* Answers on messages are kept among equal phases only. */
static void a_phase_is_what_holds_for_messages(void **state)
{
	const char *const what_ifs[] = {"add:hop=inter,delay=1us,for=1s",
					"slow:rank=3,link=2,from=3s", "add:delay=1us,from=3s",
					NULL};
	const double times[] = {0, 2e9, 3e9};
	uint64_t phases[3];
	CHAIN d = NULL;
	struct err err;

	(void)state;
	assert_int_equal(test_open("alphabeta", what_ifs, 0, &d, &err), 0);
	for (int i = 0; i < 3; i++) {
		const struct moment at = {.time_ns = times[i]};

		delay_set_moment(d, &at, NULL);
		phases[i] = delay_phase(d);
		assert_int_equal(delay_works_on_messages(d), i != 1);
		assert_int_equal(delay_is_uniform(d), i != 2);
	}
	assert_true(phases[0] != phases[1] && phases[1] != phases[2] && phases[0] != phases[2]);
}

static void who_hangs_goes_on_when_the_time_is_over(void **state)
{
	CHAIN d = test_must_open("none", "hang:rank=3,from=10us,for=5us", 0);

	(void)state;
	assert_float_equal(segment_at(d, 3, 0, 10e3), 10e3, 0);  /* over by then */
	assert_float_equal(segment_at(d, 3, 8e3, 6e3), 11e3, 0); /* begun before */
	assert_float_equal(segment_at(d, 3, 12e3, 1e3), 4e3, 0); /* would begin meanwhile */
	assert_float_equal(segment_at(d, 3, 15e3, 1e3), 1e3, 0); /* after it */
	assert_float_equal(segment_at(d, 4, 8e3, 6e3), 6e3, 0);  /* another rank */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_lengthens_ops),
		cmocka_unit_test(add_lengthens_messages),
		cmocka_unit_test(what_ifs_on_messages_need_a_model_with_messages),
		cmocka_unit_test(what_ifs_add_up_in_order),
		cmocka_unit_test(segments_pass_through_all_what_ifs),
		cmocka_unit_test(what_ifs_that_leave_computation_alone_say_so),
		cmocka_unit_test(slow_touches_the_named_ranks_only),
		cmocka_unit_test(slow_ranks_compute_and_send_slowly),
		cmocka_unit_test(slow_links_need_messages),
		cmocka_unit_test(any_what_if_may_hold_for_a_time_and_for_some_ops),
		cmocka_unit_test(a_phase_is_what_holds_for_messages),
		cmocka_unit_test(stores_leave_the_tail_that_computation_does_not_hide),
		cmocka_unit_test(who_hangs_goes_on_when_the_time_is_over),
		cmocka_unit_test(bad_parameters_are_refused),
	};

	return cmocka_run_group_tests_name("what-ifs", tests, NULL, NULL);
}
