/* Slow ranks and jitter. */
#include "cmocka-all.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "stepper/pace.h"

static void a_slow_rank_is_slow_in_what_is_named(void **state)
{
	struct pace p = {.rank = 5, .world = 8, .n_layers = 4},
		    other = {.rank = 4, .world = 8, .n_layers = 4};
	static const char *const texts[] = {"3,5=1.5", "0-7=200%@3"};
	struct err err = {""};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(pace_add_slow(&p, texts[i], &err), 0);
		assert_int_equal(pace_add_slow(&other, texts[i], &err), 0);
	}
	assert_true(pace_factor(&p, 0, 0, 0) == 1.5);
	assert_true(pace_factor(&p, 0, 0, 3) == 3);
	assert_true(pace_factor(&p, 0, 0, -1) == 1.5);
	assert_true(pace_factor(&other, 0, 0, 0) == 1);
	assert_true(pace_factor(&other, 0, 0, 3) == 2);
	assert_true(pace_factor(&other, 0, 0, -1) == 1);
}

static void jitter_is_normal_and_the_same_in_each_run(void **state)
{
	struct pace p = {.rank = 1, .world = 2, .n_layers = 1, .seed = 7}, q;
	double sum = 0, squares = 0, f;
	struct err err = {""};
	const int n = 100000;

	(void)state;
	assert_int_equal(pace_set_jitter(&p, "10%", &err), 0);
	q = p;
	q.rank = 0;
	for (int i = 0; i < n; i++) {
		f = pace_factor(&p, (uint64_t)i / 10, (uint64_t)i % 10, 0);
		assert_true(f == pace_factor(&p, (uint64_t)i / 10, (uint64_t)i % 10, 0));
		assert_true(f != pace_factor(&q, (uint64_t)i / 10, (uint64_t)i % 10, 0));
		sum += f;
		squares += (f - 1) * (f - 1);
	}
	assert_true(fabs(sum / n - 1) < 0.002);
	assert_true(fabs(sqrt(squares / n) - 0.1) < 0.002);
	/* never less than a tenth */
	assert_int_equal(pace_set_jitter(&p, "300%", &err), 0);
	for (int i = 0; i < n; i++)
		assert_true(pace_factor(&p, 0, (uint64_t)i, 0) >= 0.1);
}

static void wrong_words_are_named(void **state)
{
	static const struct {
		const char *slow, *why;
	} wrong[] = {
		{"3", "'3' is no slowness: write 3=1.5 or 3,5=1.5@LAYER"},
		{"8=2", "'8' names a rank beyond the last one, 7"},
		{"3=fast", "'fast' is no ratio: it must begin with a number such as 1.5"},
		{"3=0", "'3=0': a factor is more than 0 and at most 1e+06"},
		{"3=2@4", "the layers of the job are 0 to 3, and not 4"},
		{"3=2@", "layer: '' is no count: write decimal digits only"},
	};
	struct pace p = {.rank = 3, .world = 8, .n_layers = 4};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct err err = {""};

		assert_true(pace_add_slow(&p, wrong[i].slow, &err) < 0);
		assert_string_equal(err.text, wrong[i].why);
	}
	for (int i = 0; i < 2; i++) {
		struct err err = {""};

		assert_int_equal(pace_set_jitter(&p, i ? "10" : "", &err), -EINVAL);
		assert_non_null(strstr(err.text, "has no unit: write a percentage, such as 10%"));
	}
	assert_int_equal(p.n_slow, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_rank_is_slow_in_what_is_named),
		cmocka_unit_test(jitter_is_normal_and_the_same_in_each_run),
		cmocka_unit_test(wrong_words_are_named),
	};

	return cmocka_run_group_tests_name("stepper-pace", tests, NULL, NULL);
}
