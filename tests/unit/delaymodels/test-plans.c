/* Schedulers in a delay chain: the model of their links, the checks of their plans, and what a
 * message costs on its path. */
#include "delay-test.h"

#include <errno.h>
#include <stdlib.h>

static const struct nbox_fabric fabric = {.struct_size = sizeof(fabric),
					  .n_domains = 2,
					  .ranks_per_domain = 8};

static int open_planner(const char *model, const char *links, const char *what_if,
			struct delay_chain **ret, struct err *err)
{
	static const char *const dirs[] = {BAD_DIR, MODEL_DIR, NULL};

	*ret = NULL;
	err->text[0] = '\0';
	return delay_open(model, links, &what_if, what_if != NULL, &test_world, dirs, 0, ret, err);
}

static struct delay_chain *must_open(const char *model, const char *links, const char *what_if)
{
	struct delay_chain *d;
	struct err err;

	if (open_planner(model, links, what_if, &d, &err))
		fail_msg("%s", err.text);
	return d;
}

static void a_scheduler_stands_over_a_model_of_links(void **state)
{
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 8);
	struct nbox_plan plan;
	struct err err;

	(void)state;
	CHAIN d = must_open("planner:lanes=4,rails=2", NULL, NULL);

	assert_true(delay_has_plan(d) && delay_has_message(d) && !delay_has_op(d));
	assert_true(delay_is_uniform(d) && delay_is_steady(d));
	assert_string_equal(delay_describe(d), "planner:lanes=4,rails=2 over alphabeta");
	assert_int_equal(delay_plan(d, &op, &fabric, &plan, &err), 0);
	assert_int_equal(plan.n_lanes, 4);
	assert_int_equal(plan.n_rails, 2);

	CHAIN slow = must_open("planner", "alphabeta:alpha=3us", "slow:rank=3,link=2");

	assert_string_equal(delay_describe(slow),
			    "planner over alphabeta:alpha=3us + slow:rank=3,link=2");
	assert_true(delay_works_on_messages(slow) && !delay_is_uniform(slow));
}

static void only_schedulers_take_a_model_of_links(void **state)
{
	static const struct {
		const char *model, *links, *sentence;
	} cases[] = {
		{"ring", "alphabeta", "the model ring says itself what messages cost"},
		{"planner", "const:time=1us", "says nothing about messages"},
		{"planner", "planner", "says nothing about messages"},
		{"planner", "slow:rank=1,link=2", "give it with --what-if"},
		{"planner", "alhpabeta", "did you mean 'alphabeta'?"},
		{"planner:lnaes=2", NULL, "did you mean 'lanes'?"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct delay_chain *d;
		struct err err;

		assert_true(open_planner(cases[i].model, cases[i].links, NULL, &d, &err) < 0);
		if (!strstr(err.text, cases[i].sentence))
			fail_msg("'%s' does not say '%s'", err.text, cases[i].sentence);
		assert_null(d);
	}
}

static void pinned_plans_what_it_is_told(void **state)
{
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 8);
	struct nbox_fabric rails = fabric;
	struct nbox_plan plan;
	struct delay_chain *none;
	struct err err;

	(void)state;
	CHAIN d = must_open("pinned:algo=tree,proto=ll,channels=3,chunk=64K,slices=2", NULL, NULL);

	op.algo = NBOX_ALGO_ANY;
	rails.n_nics = 2;
	assert_int_equal(delay_plan(d, &op, &rails, &plan, &err), 0);
	assert_int_equal(plan.algo,
			 NBOX_TREE); /* in each channel both trees, half a chunk in each */
	assert_int_equal(plan.n_lanes, 6);
	assert_int_equal(plan.chunk_bytes, 32 << 10);
	assert_int_equal(plan.n_rails, 2);
	assert_int_equal(plan.n_slices, 2);
	assert_true(plan.proto == NBOX_LL && plan.wire_factor == 2);
	assert_true(plan.base_ns == 0 && plan.step_ns[0] == 0 && plan.step_ns[1] == 0);
	op.kind = NBOX_BROADCAST;
	assert_int_equal(delay_plan(d, &op, &fabric, &plan, &err), 0);
	assert_true(plan.algo == NBOX_CHAIN && plan.n_lanes == 3 && plan.n_rails == 1);
	rails.n_nics = 8; /* more than channels */
	assert_int_equal(delay_plan(d, &op, &rails, &plan, &err), 0);
	assert_int_equal(plan.n_rails, 3);
	assert_true(open_planner("pinned:channels=0", NULL, NULL, &none, &err) < 0);
	assert_non_null(strstr(err.text, "1 to 512 channels"));
	assert_true(open_planner("pinned:chunk=16B", NULL, NULL, &none, &err) < 0);
	assert_non_null(strstr(err.text, "at least 32B"));
	assert_true(open_planner("pinned:chunk=65T", NULL, NULL, &none, &err) < 0);
	assert_non_null(strstr(err.text, "at least 32B"));
}

static void plans_are_checked(void **state)
{
	static const struct {
		const char *wrong, *sentence;
	} cases[] = {
		{"lanes", "delay model planner: plan() answered n_lanes 0, which must be 1 to"},
		{"rails", "n_rails 4096"},
		{"chunk", "chunk_bytes 0"},
		{"wire", "wire_factor 0.5"},
		{"base", "plan()'s base_ns answered not a number"},
		{"step", "plan()'s step_ns[1] answered a negative time (-1 ns)"},
		{"lane_bw", "lane_bytes_per_ns inf"},
		{"whole", "whole_ns 5, which must be negative"},
		{"no_whole", "plan()'s whole_ns answered a negative time"},
		{"algo", "algo 77"},
		{"cost", "a candidate's cost nan"},
		{"silent", "delay model planner: gave an error for plan() without a reason"},
		{"variable", "NBOX_TEST_VARIABLE is 4"},
	};
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 8);

	(void)state;
	setenv("NBOX_TEST_VARIABLE", "4", 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct nbox_plan plan = {.n_lanes = 99};
		char spec[64];
		struct err err = {""};

		snprintf(spec, sizeof(spec), "planner:wrong=%s", cases[i].wrong);
		CHAIN d = must_open(spec, NULL, NULL);

		assert_int_equal(delay_plan(d, &op, &fabric, &plan, &err), -EINVAL);
		if (!strstr(err.text, cases[i].sentence))
			fail_msg("'%s' does not say '%s'", err.text, cases[i].sentence);
		assert_int_equal(plan.n_lanes, 99); /* untouched */
	}
	unsetenv("NBOX_TEST_VARIABLE");
	CHAIN d = must_open("planner:wrong=variable", NULL, NULL);
	struct nbox_plan plan;
	struct err err;

	assert_int_equal(delay_plan(d, &op, &fabric, &plan, &err), 0); /* it is not set now */
	CHAIN ring = test_must_open("ring", NULL, 0);

	assert_int_equal(delay_plan(ring, &op, &fabric, &plan, &err), 1);
}

/* Latencies add up; the slowest share of a link counts, or the lane. */
static void alphabeta_answers_over_a_path(void **state)
{
	static const struct nbox_link links[] = {{100, 400, 8}, {2000, 25, 1}, {50, 50, 4}};
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 8);
	struct nbox_message msg = test_message(0, 8, NBOX_INTER, 1, 1000);
	struct nbox_delay d;

	(void)state;
	msg.links = links;
	msg.n_links = ARRAY_SIZE(links);
	msg.wire_bytes = 2000;
	msg.step_ns = 7;
	CHAIN plain = test_must_open("alphabeta", NULL, 0);

	d = test_message_ns(plain, &op, &msg);
	test_near(d.latency_ns, 7 + 100 + 2000 + 50, 1e-12);
	test_near(d.occupancy_ns, 2000 * 4 / 50.0, 1e-12);
	msg.lane_bytes_per_ns = 10;
	test_near(test_message_ns(plain, &op, &msg).occupancy_ns, 200, 1e-12);
	msg.lane_bytes_per_ns = 0;
	CHAIN given = test_must_open("alphabeta:inter_alpha=1us,inter_bw=10GB/s", NULL, 0);

	d = test_message_ns(given, &op, &msg);
	test_near(d.latency_ns, 1007, 1e-12);
	test_near(d.occupancy_ns, 2000 * 8 / 10.0, 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_scheduler_stands_over_a_model_of_links),
		cmocka_unit_test(only_schedulers_take_a_model_of_links),
		cmocka_unit_test(pinned_plans_what_it_is_told),
		cmocka_unit_test(plans_are_checked),
		cmocka_unit_test(alphabeta_answers_over_a_path),
	};

	return cmocka_run_group_tests_name("plans", tests, NULL, NULL);
}
