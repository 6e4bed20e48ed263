/* The what-if jitter: its distributions, and what its draws depend on. */
#include "delay-test.h"

#include <errno.h>
#include <stdlib.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jitter_has_the_moments_of_the_textbooks),
		cmocka_unit_test(jitters_normal_distribution_is_exact),
		cmocka_unit_test(each_segment_is_one_draw_longer),
		cmocka_unit_test(draws_of_ranks_and_segments_are_independent),
		cmocka_unit_test(a_segments_draw_depends_on_seed_rank_and_number_only),
		cmocka_unit_test(no_segment_is_shorter_than_nothing),
		cmocka_unit_test(a_share_draws_what_its_time_draws),
		cmocka_unit_test(jitter_on_messages_never_goes_below_zero),
		cmocka_unit_test(a_draw_depends_on_seed_op_and_place_only),
		cmocka_unit_test(no_op_is_shorter_than_nothing),
	};

	return cmocka_run_group_tests_name("jitter", tests, NULL, NULL);
}
