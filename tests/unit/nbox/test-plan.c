/* What a plan reads and says: goals, prices, marks. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmocka-all.h"
#include "nbox/plan/goal.h"
#include "nbox/plan/prices.h"
#include "nbox/sweep/notes.h"

static const struct {
	const char *text;
	const char *says; /* of an error; NULL: fine */
	enum plan_metric metric;
	bool is_least;
	double value;
} goals[] = {
	{"tokens/s >= 2M", NULL, PLAN_RATE, true, 2e6},
	{"tokens/s>2.5K", NULL, PLAN_RATE, true, 2500},
	{"mean_ms <= 300", NULL, PLAN_MEAN_MS, false, 300},
	{"efficiency >= 0.9", NULL, PLAN_EFFICIENCY, true, 0.9},
	{"price/hour < 500", NULL, PLAN_HOUR, false, 500},
	{"price/M <= 2", NULL, PLAN_MILLION, false, 2},
	{"samples/s >= 2M", "not 'samples/s'", 0, 0, 0},
	{"tokens/s = 2M", "METRIC >= VALUE", 0, 0, 0},
	{"tokens/s <> 2M", "METRIC >= VALUE", 0, 0, 0},
	{"tokens/s >= 2MB", "METRIC >= VALUE", 0, 0, 0},
	{"tokens/s >= -2", "METRIC >= VALUE", 0, 0, 0},
	{"tokens/s >= 2M or so", "METRIC >= VALUE", 0, 0, 0},
	{"", "METRIC >= VALUE", 0, 0, 0},
};

static void goals_are_read_or_refused_with_the_sentence(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(goals) / sizeof(goals[0]); i++) {
		struct plan_goal g = {.text = NULL};
		struct err err = {""};
		int r = plan_goal_parse(goals[i].text, "tokens", &g, &err);

		if (r != (goals[i].says ? -EINVAL : 0) ||
		    (goals[i].says && !strstr(err.text, goals[i].says)))
			fail_msg("'%s': %d, %s", goals[i].text, r, err.text);
		if (r == 0 && (g.metric != goals[i].metric || g.is_least != goals[i].is_least ||
			       g.value != goals[i].value))
			fail_msg("'%s': %d %d %g", goals[i].text, (int)g.metric, g.is_least,
				 g.value);
	}
}

static void a_goal_is_met_from_its_value_on(void **state)
{
	const struct plan_goal least = {"", PLAN_RATE, true, 10}, most = {"", PLAN_HOUR, false, 10};
	double f[PLAN_METRICS] = {[PLAN_RATE] = 10, [PLAN_HOUR] = 10};

	(void)state;
	assert_true(plan_goal_is_met(&least, f) && plan_goal_is_met(&most, f));
	f[PLAN_RATE] = 9.99;
	f[PLAN_HOUR] = 10.01;
	assert_false(plan_goal_is_met(&least, f) || plan_goal_is_met(&most, f));
	f[PLAN_RATE] = NAN;
	assert_false(plan_goal_is_met(&least, f));
	assert_true(plan_goal_is_met(&(struct plan_goal){.text = NULL}, f));
}

static void what_is_no_price_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {{"node_hour: {default: {a: 1}}", ":1:22: a price is expected here"},
		     {"node_hour: {[2]: 1}", ":1:13: a kind of node is expected here"},
		     {"currency: [EUR]", ":1:11: currency is expected here"},
		     {"node_hour: {default: nan}", "is no price"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[] = "/tmp/nbox-prices-XXXXXX";
		int fd = mkstemp(path);
		struct prices p = {.list = NULL};
		struct err err = {""};

		assert_true(fd >= 0 && write(fd, cases[i].text, strlen(cases[i].text)) > 0);
		close(fd);
		assert_int_equal(prices_read(path, &p, &err), -EINVAL);
		unlink(path);
		if (!strstr(err.text, cases[i].says))
			fail_msg("'%s': %s", cases[i].text, err.text);
	}
}

static void the_first_price_that_fits_counts(void **state)
{
	static const char text[] = "currency: EUR\nnode_hour:\n  nodes=2: 60\n  dgx-a100: 15\n"
				   "  4x200Gbps: 12\n  default: 80\n";
	static const struct {
		const char *nodes, *preset;
		double price;
	} cases[] = {{"2", "dgx-a100", 60}, {"4", "dgx-a100", 15}, {"4", "dgx-h100", 80}};
	char path[] = "/tmp/nbox-prices-XXXXXX";
	int fd = mkstemp(path);
	struct prices p = {.list = NULL};
	struct err err = {""};

	(void)state;
	assert_true(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1);
	close(fd);
	if (prices_read(path, &p, &err) < 0)
		fail_msg("%s", err.text);
	unlink(path);
	assert_string_equal(p.currency, "EUR");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config *c;
		double price;

		assert_int_equal(config_new(&c), 0);
		assert_int_equal(config_set(c, CONFIG_NODES, SOURCE_FLAG, cases[i].nodes), 0);
		assert_int_equal(config_set(c, CONFIG_PRESET, SOURCE_FLAG, cases[i].preset), 0);
		assert_int_equal(config_finish(c, &err), 0);
		assert_int_equal(prices_find(&p, c, &price, &err), 0);
		assert_true(price == cases[i].price);
		config_free(c);
	}
	prices_deinit(&p);
}

static void sentences_that_differ_in_numbers_have_one_letter(void **state)
{
	struct notes n = {.n = 0};
	uint32_t marks[3] = {0};
	char text[NOTES_MAX + 1], many[64];

	(void)state;
	assert_int_equal(notes_add(&n, "assumed: 56 ops", &marks[0]), 0);
	assert_int_equal(notes_add(&n, "extrapolated 2.5 times", &marks[0]), 0);
	assert_int_equal(notes_add(&n, "assumed: 7 ops", &marks[1]), 0);
	assert_int_equal(notes_add(&n, "assumed: 7 ops", &marks[1]), 0);
	assert_int_equal(notes_add(&n, "assumed: 7 rows", &marks[2]), 0);
	assert_string_equal(notes_text(marks[0], text), "ab");
	assert_string_equal(notes_text(marks[1], text), "a");
	assert_string_equal(notes_text(marks[2], text), "c");
	assert_int_equal(n.list[0].n, 2);
	for (int i = 0; i < 40; i++) { /* there are 26 letters */
		snprintf(many, sizeof(many), "%.*s", i + 1,
			 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
		assert_int_equal(notes_add(&n, many, &marks[2]), 0);
	}
	assert_int_equal(n.n, NOTES_MAX);
	assert_true(n.n_dropped > 0);
	notes_deinit(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goals_are_read_or_refused_with_the_sentence),
		cmocka_unit_test(a_goal_is_met_from_its_value_on),
		cmocka_unit_test(what_is_no_price_is_refused_with_its_place),
		cmocka_unit_test(the_first_price_that_fits_counts),
		cmocka_unit_test(sentences_that_differ_in_numbers_have_one_letter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
