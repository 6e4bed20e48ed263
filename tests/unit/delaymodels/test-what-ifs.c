/* The decorators: add, slow, jitter. */
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

	(void)state;
	assert_true(delay_has_op(d));
	assert_true(test_extra_ns(d, &with, 1e6) == 1.5e6);
	assert_true(test_extra_ns(d, &without, 1e6) == 0);
	assert_false(delay_has_segments(d));
	/* an op built from messages contains it already */
	assert_int_equal(delay_extra(d, &with, 1e6, true, &extra, &err), 0);
	assert_true(extra == 0);
}

/* --- jitter ---------------------------------------------------------------- */

#define DRAWS 200000

struct moments {
	double mean, variance, min, max, p50, p99;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Of the extra of DRAWS ops. */
static struct moments draw(const char *params, uint64_t seed)
{
	static double x[DRAWS];
	struct moments m = {0};
	char what_if[128];
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 4096);

	snprintf(what_if, sizeof(what_if), "jitter:%s", params);
	CHAIN d = test_must_open("none", what_if, seed);

	for (int i = 0; i < DRAWS; i++) {
		op.number = (uint64_t)i;
		x[i] = test_extra_ns(d, &op, 1e12);
		m.mean += x[i] / DRAWS;
	}
	for (int i = 0; i < DRAWS; i++)
		m.variance += (x[i] - m.mean) * (x[i] - m.mean) / DRAWS;
	qsort(x, DRAWS, sizeof(x[0]), compare);
	m.min = x[0];
	m.max = x[DRAWS - 1];
	m.p50 = x[DRAWS / 2];
	m.p99 = x[DRAWS / 100 * 99];
	return m;
}

/* Against the moments in the textbooks. The seed is fixed: nothing is left to luck.
 * Tolerances are five standard errors and more. */
static void jitter_has_the_moments_of_the_textbooks(void **state)
{
	struct moments m;

	(void)state;
	m = draw("dist=uniform,min=10us,max=30us", 1);
	test_near(m.mean, 20000, 0.005);
	test_near(m.variance, 20000.0 * 20000 / 12, 0.01);
	assert_true(m.min >= 10000 && m.max < 30000 && m.min < 10001 && m.max > 29999);

	m = draw("dist=normal,mean=50us,stddev=10us", 2);
	test_near(m.mean, 50000, 0.005);
	test_near(m.variance, 1e8, 0.02);
	test_near(m.p99, 50000 + 10000 * 2.3263478740408408, 0.01);
	m = draw("dist=normal,stddev=10us", 3); /* mean 0: half of it shortens */
	assert_true(fabs(m.mean) < 150 && fabs(m.p50) < 200 && m.min < -35000 && m.max > 35000);

	m = draw("dist=lognormal,median=20us,sigma=0.5", 4);
	test_near(m.p50, 20000, 0.01);
	test_near(m.mean, 20000 * exp(0.125), 0.01);
	test_near(m.variance, 4e8 * (exp(0.25) - 1) * exp(0.25), 0.05);
	test_near(m.p99, 20000 * exp(0.5 * 2.3263478740408408), 0.02);

	m = draw("dist=pareto,scale=10us,shape=5", 5);
	test_near(m.mean, 5.0 / 4 * 10000, 0.01);
	test_near(m.variance, 1e8 * 5 / (16.0 * 3), 0.1);
	test_near(m.p50, 10000 * pow(2, 0.2), 0.01);
	assert_true(m.min >= 10000);
}

/* The inverse of the normal distribution against erfc(), through a distribution
 * whose standard deviation is a second: digits enough. */
static void jitters_normal_distribution_is_exact(void **state)
{
	CHAIN normal = test_must_open("none", "jitter:dist=normal,stddev=1s", 9);
	CHAIN uniform = test_must_open("none", "jitter:dist=uniform,max=1s", 9);

	(void)state;
	for (uint64_t i = 0; i < 20000; i++) {
		struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 4096);
		double x, u;

		op.number = i;
		x = test_extra_ns(normal, &op, 1e12) / 1e9;
		u = test_extra_ns(uniform, &op, 1e12) / 1e9; /* the same number below it */
		assert_true(fabs(0.5 * erfc(-x * M_SQRT1_2) - u) < 1e-12);
	}
}

/* Of DRAWS segments: mean and spread of what they take beyond @ns, which is long enough for no
 * segment to reach 0. */
static struct moments draw_segments(const char *params, uint32_t rank, double ns)
{
	struct moments m = {.min = INFINITY};
	double square = 0;
	char what_if[128];

	snprintf(what_if, sizeof(what_if), "jitter:on=compute,%s", params);
	CHAIN d = test_must_open("none", what_if, 6);

	for (uint64_t i = 0; i < DRAWS; i++) {
		double x = test_segment_ns(d, rank, i, ns) - ns;

		m.mean += x / DRAWS;
		square += x * x / DRAWS;
		m.min = fmin(m.min, x);
		m.max = fmax(m.max, x);
	}
	m.variance = square - m.mean * m.mean;
	return m;
}

/* Each rank, the first and the last alike. */
static void each_segment_is_one_draw_longer(void **state)
{
	static const uint32_t ranks[] = {0, 65535};
	struct moments m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ranks); i++) {
		m = draw_segments("min=1%,max=3%", ranks[i], 1e6);
		test_near(m.mean, 20000, 0.005);
		test_near(m.variance, 20000.0 * 20000 / 12, 0.01);
		assert_true(m.min >= 9999.9 && m.max <= 30000.1);
		m = draw_segments("mean=2%,stddev=10%", ranks[i], 5e6);
		test_near(m.mean, 0.1e6, 0.06);
		test_near(m.variance, 0.25e12, 0.02);
		m = draw_segments("median=1%,sigma=0.5", ranks[i], 2e6);
		test_near(m.mean, 20000 * exp(0.125), 0.01);
	}
}

/* Two ranks have nothing to do with each other, nor have two segments of one rank. */
static void draws_of_ranks_and_segments_are_independent(void **state)
{
	enum { N = 100000 };
	CHAIN d = test_must_open("none", "jitter:on=compute,max=200%", 11);
	double of_ranks = 0, of_segments = 0, last = 0;

	(void)state;
	for (uint64_t i = 0; i < N; i++) {
		double a = test_segment_ns(d, 16, i, 1e6) - 2e6; /* mean 0 */
		double b = test_segment_ns(d, 17, i, 1e6) - 2e6;

		assert_true(a != b && a != last);
		of_ranks += a * b / N;
		of_segments += a * last / N;
		last = a;
	}
	/* correlation; its standard error is 1 / sqrt(N) = 0.003 */
	assert_true(fabs(of_ranks / (4e12 / 12)) < 0.016);
	assert_true(fabs(of_segments / (4e12 / 12)) < 0.016);
}

static void a_segments_draw_depends_on_seed_rank_and_number_only(void **state)
{
	static const char *const what_if = "jitter:on=compute,stddev=30%";
	CHAIN a = test_must_open("none", what_if, 1);
	CHAIN b = test_must_open("alphabeta", what_if, 1);
	CHAIN c = test_must_open("none", what_if, 2);
	double forward[100];

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		forward[i] = test_segment_ns(a, i % 7, i / 7, 1e6);
		assert_true(forward[i] != test_segment_ns(c, i % 7, i / 7, 1e6));
	}
	for (uint32_t i = 100; i-- > 0;) { /* twice, backwards */
		assert_true(test_segment_ns(b, i % 7, i / 7, 1e6) == forward[i]);
		assert_true(test_segment_ns(a, i % 7, i / 7, 1e6) == forward[i]);
		/* a share scales with the segment */
		test_near(test_segment_ns(a, i % 7, i / 7, 5e6), 5 * forward[i], 1e-12);
	}
}

static void no_segment_is_shorter_than_nothing(void **state)
{
	CHAIN d = test_must_open("none", "jitter:on=compute,stddev=200%", 3);
	int n_zero = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		double ns = test_segment_ns(d, 5, i, 1e6);

		assert_true(ns >= 0);
		n_zero += ns == 0;
	}
	assert_true(n_zero > 240 && n_zero < 380); /* P(1 + 2 z <= 0) = 0.3085 */
}

/* A share (5%) draws the same as the time that it stands for. */
static void a_share_draws_what_its_time_draws(void **state)
{
	static const struct {
		const char *share, *time; /* of an op of 1 ms, a message of 5 us and 100 ns */
	} cases[] = {
		{"on=op,dist=normal,mean=10%,stddev=5%",
		 "on=op,dist=normal,mean=100us,stddev=50us"},
		{"on=op,dist=normal,mean=0us,stddev=5%", "on=op,dist=normal,stddev=50us"},
		{"on=op,stddev=5%", "on=op,dist=normal,stddev=50us"},
		{"on=op,max=150%", "on=op,dist=uniform,max=1.5ms"},
		{"on=message,dist=uniform,min=10%,max=20%",
		 "on=message,dist=uniform,min=510ns,max=1020ns"},
		{"on=op,sigma=0.5,median=2%", "on=op,dist=lognormal,median=20us,sigma=0.5"},
		{"on=op,scale=1%,shape=3", "on=op,dist=pareto,scale=10us,shape=3"},
	};

	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		char a[96], b[96];

		snprintf(a, sizeof(a), "jitter:%s", cases[c].share);
		snprintf(b, sizeof(b), "jitter:%s", cases[c].time);
		CHAIN share = test_must_open("alphabeta", a, 6);
		CHAIN time = test_must_open("alphabeta", b, 6);

		for (uint64_t i = 0; i < 200; i++) {
			struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 4096);
			struct nbox_message msg = test_message(1, 9, NBOX_INTER, 1, 5000);
			struct nbox_delay x, y;

			op.number = i;
			x = test_message_ns(share, &op, &msg);
			y = test_message_ns(time, &op, &msg);
			test_near(x.latency_ns, y.latency_ns, 1e-9);
			assert_true(x.occupancy_ns == 100);
			assert_true(fabs(test_extra_ns(share, &op, 1e6) -
					 test_extra_ns(time, &op, 1e6)) < 1e-6);
		}
	}
}

static void jitter_on_messages_never_goes_below_zero(void **state)
{
	CHAIN d = test_must_open("alphabeta", "jitter:on=message,dist=normal,stddev=20us", 7);
	CHAIN again = test_must_open("alphabeta", "jitter:on=message,dist=normal,stddev=20us", 7);
	CHAIN other = test_must_open("alphabeta", "jitter:on=message,dist=normal,stddev=20us", 8);
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 4096);
	int n_zero = 0, n_same = 0;
	double last = -1;

	(void)state;
	assert_true(!delay_is_uniform(d) && !delay_is_steady(d));
	for (uint32_t i = 0; i < 4096; i++) {
		struct nbox_message msg = test_message(i % 16, (i + 1) % 16, NBOX_INTER, 1, 5000);
		struct nbox_delay a;

		msg.index = i / 16 % 16;
		msg.lane = i / 256;
		a = test_message_ns(d, &op, &msg);
		assert_true(a.latency_ns >= 0 && a.occupancy_ns == 100);
		assert_true(a.latency_ns == test_message_ns(again, &op, &msg).latency_ns);
		n_zero += a.latency_ns == 0;
		n_same += a.latency_ns > 0 &&
			  (a.latency_ns == test_message_ns(other, &op, &msg).latency_ns ||
			   a.latency_ns == last);
		last = a.latency_ns;
	}
	assert_int_equal(n_same, 0);
	/* P(5 us + 20 us z <= 0) = 0.4013 */
	assert_true(n_zero > 1500 && n_zero < 1790);
}

/* A draw depends on seed, op and place in the chain; not on what was asked before. */
static void a_draw_depends_on_seed_op_and_place_only(void **state)
{
	static const char *const two[] = {"jitter:dist=uniform,max=1ms",
					  "jitter:dist=uniform,max=1ms", NULL};
	CHAIN a = test_must_open("none", two[0], 1);
	CHAIN b = test_must_open("none", two[0], 1);
	CHAIN c = test_must_open("none", two[0], 2);
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 4096);
	struct delay_chain *opened = NULL;
	double forward[100];
	struct err err;

	(void)state;
	for (int i = 0; i < 100; i++) {
		op.number = (uint64_t)i;
		forward[i] = test_extra_ns(a, &op, 0);
		assert_true(forward[i] != test_extra_ns(c, &op, 0));
	}
	assert_int_equal(test_open("none", two, 1, &opened, &err), 0);
	CHAIN pair = opened;
	for (int i = 99; i >= 0; i--) {
		double both;

		op.number = (uint64_t)i;
		assert_true(test_extra_ns(b, &op, 0) == forward[i]);
		assert_true(test_extra_ns(b, &op, 0) == forward[i]);
		both = test_extra_ns(pair, &op, 0); /* two equal ones do not draw alike */
		assert_true(both > forward[i] && both != 2 * forward[i]);
	}
}

static void no_op_is_shorter_than_nothing(void **state)
{
	CHAIN d = test_must_open("const:time=1us", "jitter:dist=normal,stddev=1ms", 3);
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 4096);
	int n_zero = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		op.number = i;
		double total = 1000 + test_extra_ns(d, &op, 1000);

		assert_true(total >= 0);
		n_zero += total == 0;
	}
	assert_true(n_zero > 400 && n_zero < 600);
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
		cmocka_unit_test(jitter_has_the_moments_of_the_textbooks),
		cmocka_unit_test(jitters_normal_distribution_is_exact),
		cmocka_unit_test(each_segment_is_one_draw_longer),
		cmocka_unit_test(draws_of_ranks_and_segments_are_independent),
		cmocka_unit_test(a_segments_draw_depends_on_seed_rank_and_number_only),
		cmocka_unit_test(no_segment_is_shorter_than_nothing),
		cmocka_unit_test(jitter_on_messages_never_goes_below_zero),
		cmocka_unit_test(a_share_draws_what_its_time_draws),
		cmocka_unit_test(a_draw_depends_on_seed_op_and_place_only),
		cmocka_unit_test(no_op_is_shorter_than_nothing),
		cmocka_unit_test(any_what_if_may_hold_for_a_time_and_for_some_ops),
		cmocka_unit_test(a_phase_is_what_holds_for_messages),
		cmocka_unit_test(who_hangs_goes_on_when_the_time_is_over),
		cmocka_unit_test(bad_parameters_are_refused),
	};

	return cmocka_run_group_tests_name("what-ifs", tests, NULL, NULL);
}
