/* A scenario file as what-ifs, expectations and a rule of steps; what is wrong with others, and
 * where. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "config/config.h"
#include "config/scenario-event.h"
#include "config/scenario.h"
#include "scenario/expect.h"

static char *all_of(const struct scenario_list *l)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	for (size_t i = 0; i < l->n; i++)
		fprintf(f, "%u:%u %s\n", l->items[i].line, l->items[i].column, l->items[i].text);
	fclose(f);
	return text;
}

static void assert_list(const struct scenario_list *l, const char *text)
{
	char *all = all_of(l);

	assert_string_equal(all, text);
	free(all);
}

static void parse(const char *text, struct scenario *ret)
{
	struct err err = {""};

	if (scenario_parse("s", text, strlen(text), ret, &err) < 0)
		fail_msg("%s", err.text);
}

static void events_are_what_ifs_with_their_time_and_target(void **state)
{
	struct scenario s;

	(void)state;
	parse("steps: {ops: 4, op: [allreduce, broadcast], communicator: dp}\n"
	      "events:\n"
	      "  - {at: {step: 20}, for: 15 steps, what: link:slower=4, rack: 3}\n"
	      "  - at: 30s\n"
	      "    what:\n"
	      "      - slow:compute=1.5\n"
	      "      - hang\n"
	      "    rank: [1, 5, 8-9]\n"
	      "    for: 10s\n"
	      "  - what: add:delay=1ms\n"
	      "  - {what: fail, rank: 200, at: 60 steps}\n"
	      "expect: iteration_ms p95 < 700\n",
	      &s);
	assert_int_equal(s.n_events, 4);
	assert_list(&s.steps, "1:8 ops=4,op=allreduce+broadcast,communicator=dp\n");
	assert_list(&s.what_ifs, "3:43 link:slower=4,rack=3,from=20steps,for=15steps\n"
				 "6:9 slow:compute=1.5,rank=1+5+8-9,from=30s,for=10s\n"
				 "7:9 hang:rank=1+5+8-9,from=30s,for=10s\n"
				 "10:11 add:delay=1ms\n"
				 "11:12 fail:rank=200,from=60steps\n");
	assert_list(&s.expects, "12:9 iteration_ms p95 < 700\n");
	scenario_deinit(&s);
}

static void a_ramp_is_a_staircase(void **state)
{
	struct scenario s;

	(void)state;
	parse("events:\n  - {at: step 40, ramp: 4 steps, for: 10 steps, every: 50 steps, what: "
	      "'slow:rank=97,compute=3'}\n",
	      &s);
	assert_list(&s.what_ifs,
		    "2:72 slow:rank=97,compute=1.25,from=40steps,for=1steps,every=50steps\n"
		    "2:72 slow:rank=97,compute=1.75,from=41steps,for=1steps,every=50steps\n"
		    "2:72 slow:rank=97,compute=2.25,from=42steps,for=1steps,every=50steps\n"
		    "2:72 slow:rank=97,compute=2.75,from=43steps,for=1steps,every=50steps\n"
		    "2:72 slow:rank=97,compute=3,from=44steps,for=6steps,every=50steps\n");
	scenario_deinit(&s);
	parse("events:\n  - {ramp: 16s, what: [add:delay=32ms, 'slow:rank=1,link=300%']}\n", &s);
	assert_int_equal(s.what_ifs.n, 2 * (RAMP_STAGES + 1));
	assert_string_equal(s.what_ifs.items[0].text, "add:delay=1ms,from=0ns,for=1000000000ns");
	assert_string_equal(s.what_ifs.items[16].text, "add:delay=32ms,from=16000000000ns");
	assert_string_equal(s.what_ifs.items[17].text,
			    "slow:rank=1,link=106.25%,from=0ns,for=1000000000ns");
	scenario_deinit(&s);
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
	static const char *const cases[][2] = {
		{"", "s:1:1: the file is empty"},
		{"[]\n", "s:1:1: keys are expected here, such as events:, expect:, steps:"},
		{"evnts: []\n", "s:1:1: unknown key 'evnts'; did you mean 'events'?"},
		{"events: {}\n", "s:1:9: events: a list is expected: - at: ..."},
		{"events: [a]\n", "s:1:10: events: keys are expected: {at: ..., what: ...}"},
		{"events: [{at: 3s}]\n", "s:1:10: an event without what: it is a what-if, such as "
					 "slow:rank=3,compute=1.5"},
		{"events: [{what: a, ranks: 3}]\n",
		 "s:1:20: unknown key 'ranks'; did you mean 'rank'?"},
		{"events: [{what: a, what: b}]\n", "s:1:20: key 'what' is here a second time"},
		{"events: [{what: a, rank: 3, rank: 4}]\n",
		 "s:1:29: key 'rank' is here a second time"},
		{"events: [{what: a, at: 20}]\n",
		 "s:1:10: at: '20' has no unit; units of a time: ns us ms s"},
		{"events: [{what: a, at: {stp: 20}}]\n",
		 "s:1:25: at: {step: N}, 'step N' or a time"},
		{"events: [{what: a, rank: '1,5'}]\n",
		 "s:1:26: rank: no commas or blanks; several are a list: [1, 5]"},
		{"events: [{what: fail, ramp: 3s}]\n",
		 "s:1:10: ramp: nothing of 'fail' can rise slowly"},
		{"events: [{what: 'add:delay=1ms', ramp: 3s, for: 2s}]\n",
		 "s:1:10: ramp: it takes no less than what it leads to: for: 2s"},
		{"events: [{what: 'add:delay=1ms', ramp: 3s, at: step 2}]\n",
		 "s:1:10: ramp: give at, for and ramp all in steps or all as times"},
		{"steps: {op: allreduce}\n", "s:1:8: say how many ops are a step: ops=N; nbox "
					     "report says what a former run's were"},
		{"expect: [steps == 3, exposed_ms p95 < 3]\n",
		 "s:1:22: 'exposed_ms p95 < 3': exposed_ms has no p95, but one value"},
		{"expect: iteration < 3\n",
		 "s:1:9: 'iteration < 3': unknown metric 'iteration'; did "
		 "you mean 'iteration_ms'?"},
		{"expect: steps is 3\n", "s:1:9: 'steps is 3': 'is' is none of < <= > >= =="},
		{"expect: steps == 3s\n", "s:1:9: 'steps == 3s': '3s' is no number"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scenario s;
		struct err err = {""};

		assert_true(scenario_parse("s", cases[i][0], strlen(cases[i][0]), &s, &err) < 0);
		assert_string_equal(err.text, cases[i][1]);
	}
}

static void expectations_compare_in_the_metrics_unit(void **state)
{
	struct expect e;
	struct err err;

	(void)state;
	assert_int_equal(expect_parse("iteration_ms p95 <= 0.7s", &e, &err), 0);
	assert_true(e.metric == EXPECT_ITERATION_MS && e.stat == EXPECT_P95);
	assert_true(expect_is_met(&e, 700) && !expect_is_met(&e, 700.1));
	assert_int_equal(expect_parse("lateness_us > 3", &e, &err), 0);
	assert_true(e.stat == EXPECT_MEAN && expect_is_met(&e, 3.5) && !expect_is_met(&e, 3));
	assert_int_equal(expect_parse("exit_code == 1", &e, &err), 0);
	assert_true(expect_is_met(&e, 1) && !expect_is_met(&e, 0));
	assert_int_equal(expect_parse("steps >= nan", &e, &err), -EINVAL);
}

/* A run's config.yaml has what the scenario became, and is the same run. */
static void a_scenario_becomes_options(void **state)
{
	const char *path = "test-scenario.yaml";
	FILE *f = fopen(path, "w");
	struct config *c, *again;
	struct err err = {""};
	char *text = NULL, where[64];
	size_t n;

	(void)state;
	assert_non_null(f);
	fputs("steps: ops=4\nevents:\n - {at: step 3, what: 'slow:rank=1,compute=2'}\n"
	      "expect: [steps > 3]\n",
	      f);
	fclose(f);
	assert_int_equal(config_new(&c), 0);
	config_set(c, CONFIG_SCENARIO, SOURCE_FLAG, path);
	config_set(c, CONFIG_WHAT_IF, SOURCE_FLAG, "add:delay=1ms");
	if (config_finish(c, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(c->n_what_ifs, 2);
	assert_string_equal(c->what_ifs[1], "slow:rank=1,compute=2,from=3steps");
	assert_string_equal(config_where(c, CONFIG_WHAT_IF, 0, where, sizeof(where)), "--what-if");
	assert_string_equal(config_where(c, CONFIG_WHAT_IF, 1, where, sizeof(where)),
			    "test-scenario.yaml:3:23");
	assert_true(c->steps.n_ops == 4 && c->n_expects == 1);
	f = open_memstream(&text, &n);
	assert_int_equal(config_write(c, f), 0);
	fclose(f);
	assert_int_equal(config_new(&again), 0);
	assert_int_equal(config_parse(again, "again", text, n, &err), 0);
	assert_int_equal(config_finish(again, &err), 0);
	assert_true(again->n_what_ifs == 2 && again->steps.n_ops == 4 && again->n_expects == 1);
	config_free(c);
	config_free(again);
	free(text);
	remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_what_ifs_with_their_time_and_target),
		cmocka_unit_test(a_ramp_is_a_staircase),
		cmocka_unit_test(what_is_wrong_is_said_with_its_place),
		cmocka_unit_test(expectations_compare_in_the_metrics_unit),
		cmocka_unit_test(a_scenario_becomes_options),
	};

	return cmocka_run_group_tests_name("scenario-file", tests, NULL, NULL);
}
