/* What a message costs on its path and on a hop, by loggp, sigmoid and queue, against formulas
 * worked out here. */
#include "delay-test.h"

static const struct nbox_op *an_op(void)
{
	static struct nbox_op op;

	op = test_op(NBOX_ALLREDUCE, 16, 2, 1 << 20);
	return &op;
}

/* 300 ns and 200 GB/s, then 2 us and 50 GB/s shared by two; 5 us at the ends; a lane of 20 GB/s. */
static struct nbox_message on_path(double wire_bytes)
{
	static const struct nbox_link links[] = {{300, 200, 1}, {2000, 50, 2}};
	struct nbox_message msg = test_message(0, 8, NBOX_INTER, 1, 1);

	msg.links = links;
	msg.n_links = 2;
	msg.wire_bytes = wire_bytes;
	msg.step_ns = 5000;
	return msg;
}

static struct nbox_delay ask(struct delay_chain *d, struct nbox_message msg)
{
	return test_message_ns(d, an_op(), &msg);
}

static void nothing_given_all_are_the_path(void **state)
{
	static const char *const models[] = {"loggp", "queue:threshold=9,penalty=1",
					     "sigmoid:m1=1B,m2=2B,mid=1B,L=0,k=1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		CHAIN d = test_must_open(models[i], NULL, 1);
		struct nbox_message msg = on_path(1 << 20);
		struct nbox_delay delay = ask(d, msg);

		test_near(delay.latency_ns, 7300, 1e-5);
		test_near(delay.occupancy_ns, (1 << 20) * 2 / 50., 1e-5);
		msg.lane_bytes_per_ns = 20;
		test_near(ask(d, msg).occupancy_ns, (1 << 20) / 20., 1e-5);
		delay = ask(d, test_message(0, 8, NBOX_INTER, 3, 1 << 20)); /* the hop's */
		test_near(delay.latency_ns, 5000, 1.5e-5);
		test_near(delay.occupancy_ns, (1 << 20) * 3 / 50., 1e-5);
		delay = ask(d, test_message(0, 0, NBOX_SELF, 1, 1 << 20));
		assert_true(delay.latency_ns == 0 && delay.occupancy_ns == 0);
	}
}

static void loggp_has_overhead_and_gap(void **state)
{
	CHAIN d = test_must_open("loggp:o=1us,g=4us", NULL, 1);
	CHAIN own = test_must_open("loggp:L=9us,o=1us,bw=10GB/s", NULL, 1);
	CHAIN far = test_must_open("loggp:L=1us,g=9us", NULL, 1);
	CHAIN bare = test_must_open("loggp", NULL, 1);
	struct nbox_delay delay = ask(d, on_path(1001));

	(void)state;
	/* it arrives o + (k - 1) G + L + o after it was sent; the next one is sent g + (k - 1) G
	 * after it */
	test_near(delay.occupancy_ns, 4000 + 1000 * .04, 1e-12);
	test_near(delay.occupancy_ns + delay.latency_ns, 1000 + 1000 * .04 + 7300 + 1000, 1e-12);
	delay = ask(own, on_path(1001));
	test_near(delay.occupancy_ns, 1000 + 1000 * .2, 1e-12);
	test_near(delay.occupancy_ns + delay.latency_ns, 1000 + 1000 * .2 + 9000 + 1000, 1e-12);
	delay = ask(own, on_path(0));
	test_near(delay.occupancy_ns, 1000, 1e-12);
	assert_true(ask(far, on_path(8)).latency_ns == 0);
	/* without o and g a link still carries each byte */
	test_near(ask(bare, on_path(1000)).occupancy_ns, 1000 * .04, 1e-12);
}

static void a_sigmoid_takes_bandwidth_from_small_messages(void **state)
{
	CHAIN d = test_must_open("sigmoid:m1=4K,m2=16M,mid=128K,L=2,k=0.6", NULL, 1);
	double last = 0;

	(void)state;
	/* in the middle a tenth of the bandwidth */
	test_near(ask(d, on_path(131072)).occupancy_ns, 131072 * .04 * 10, 1e-12);
	test_near(ask(d, on_path(8)).occupancy_ns, ask(d, on_path(4096)).occupancy_ns, 1e-12);
	test_near(ask(d, on_path(4096)).occupancy_ns,
		  4096 * .04 * pow(10, 2 * (1 - 1 / (1 + exp(.6 * 5)))), 1e-12);
	test_near(ask(d, on_path(1e9)).occupancy_ns, 1e9 * .04, 1e-12);
	for (double bytes = 1; bytes < 1e10; bytes *= 1.02) {
		double ns = ask(d, on_path(bytes)).occupancy_ns;

		assert_true(ns >= last);
		last = ns;
	}
}

static void a_queue_has_a_threshold(void **state)
{
	CHAIN d = test_must_open("queue:threshold=2,penalty=25%", NULL, 1);
	struct nbox_link links[] = {{300, 200, 1}, {2000, 50, 2}};
	struct nbox_message msg = on_path(1e6);

	(void)state;
	msg.links = links;
	test_near(ask(d, msg).occupancy_ns, 1e6 * 2 / 50, 1e-12);
	links[1].flows = 3;
	test_near(ask(d, msg).occupancy_ns, 1e6 * 3 / 50 * 1.25, 1e-12);
	links[0].flows = 10; /* the other link is the slowest now */
	test_near(ask(d, msg).occupancy_ns, 1e6 * 10 / 200 * 3, 1e-12);
	test_near(ask(d, test_message(0, 8, NBOX_INTER, 4, 1000)).occupancy_ns,
		  1000 * 4 / 50. * 1.5, 1e-12);
}

static void what_cannot_be_is_refused(void **state)
{
	static const struct {
		const char *spec, *sentence;
	} rows[] = {
		{"sigmoid:m1=8K,m2=4K,mid=1K,L=1,k=1", "m1 is below m2"},
		{"sigmoid:m1=1K,m2=4K,mid=1K,L=2,k=1", "L x k is 2: above 1.2041 more bytes"},
		{"sigmoid:m1=1K,m2=4K,mid=1K,L=400,k=0", "L is 400: so many decades; at most 12"},
		{"sigmoid:m1=1K,m2=4K,mid=1K,L=2", "k=<ratio> must be given"},
		{"queue:threshold=2", "penalty=<ratio> must be given"},
		{"loggp:G=1", "'G'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct delay_chain *d = NULL;
		struct err err;

		assert_true(test_open(rows[i].spec, NULL, 1, &d, &err) < 0);
		if (!strstr(err.text, rows[i].sentence))
			fail_msg("%s: %s", rows[i].spec, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_given_all_are_the_path),
		cmocka_unit_test(loggp_has_overhead_and_gap),
		cmocka_unit_test(a_sigmoid_takes_bandwidth_from_small_messages),
		cmocka_unit_test(a_queue_has_a_threshold),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
