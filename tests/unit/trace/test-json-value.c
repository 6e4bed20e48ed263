/* JSON as a list of values: numbers as strtod() reads them, strings as RFC 8259 has them, cut texts
 * known at any byte. (Against jansson: tests/fuzz/fuzz-json-value.c.) */
#include "cmocka-all.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "trace/json-value.h"

static void numbers_are_the_nearest_doubles(void **state)
{
	static const int digits[] = {0, 3, 6, 12, 17};
	struct json_values v = {0};
	const char *why;
	char text[400];
	size_t n;

	(void)state;
	for (uint64_t i = 0; i < 60000; i++) {
		double scale = pow(10, (double)(rng_hash(2, i) % 20) - 3),
		       x = (double)(int64_t)rng_hash(1, i) * 0x1p-63 * scale;

		if (i % 6 < 5)
			snprintf(text, sizeof(text), "%.*f,", digits[i % 6], x);
		else
			snprintf(text, sizeof(text), "%.17g,", x);
		assert_int_equal(json_values_parse(&v, text, strlen(text), &n, &why), 0);
		assert_int_equal(n, strlen(text) - 1);
		if (v.list->number != strtod(text, NULL))
			fail_msg("%s is read as %.17g", text, v.list->number);
	}
	json_values_deinit(&v);
}

static void letters_and_members(void **state)
{
	static const char text[] =
		" {\"a\": [1, {\"b\": null}, \"\\u00e9\\ud83d\\ude00\\n\\/\xc3\xa9\"], \"c\": true, "
		"\"a\": {}, \"d\": -0.5e1}\n";
	struct json_values v = {0};
	const struct json_value *a;
	const char *why;
	size_t n;

	(void)state;
	for (size_t cut = 0; cut < sizeof(text) - 2; cut++)
		assert_int_equal(json_values_parse(&v, text, cut, &n, &why), JSON_VALUES_CUT);
	assert_int_equal(json_values_parse(&v, text, sizeof(text) - 1, &n, &why), 0);
	assert_int_equal(n, sizeof(text) - 2);
	a = json_value_next(v.list, NULL);
	assert_string_equal(a->key, "a");
	assert_int_equal(a->n_inside, 4);
	a = json_value_next(a, json_value_next(a, json_value_next(a, NULL)));
	assert_string_equal(json_value_text(a), "\xc3\xa9\xf0\x9f\x98\x80\n/\xc3\xa9");
	assert_null(json_value_next(json_value_next(v.list, NULL), a));
	assert_int_equal(json_value_get(v.list, "a")->mark, '{'); /* the last one */
	assert_true(json_value_number(json_value_get(v.list, "d")) == -5);
	assert_true(isnan(json_value_number(json_value_get(v.list, "c"))));
	assert_null(json_value_get(json_value_get(v.list, "none"), "a"));
	assert_null(json_value_next(json_value_get(v.list, "c"), NULL));
	json_values_deinit(&v);
}

static void no_json(void **state)
{
	static const char *const texts[] = {
		"[01] ",
		"[-] ",
		"[1.] ",
		"[.5] ",
		"[1e] ",
		"[+1] ",
		"[NaN] ",
		"[nan] ",
		"[Infinity] ",
		"[tru] ",
		"[1,] ",
		"[1 2] ",
		"{1: 2} ",
		"{\"a\"} ",
		"{\"a\": 1,} ",
		"[\"\n\"] ",
		"[\"\\x\"] ",
		"[\"\\u12g4\"] ",
		"[\"\\u0000\"] ",
		"[\"\\ud800\"] ",
		"[\"\\ud800\\n\"] ",
		"[\"\\udc00\"] ",
		"[\"\xff\"] ",
		"[\"\xc0\x80\"] ",
		"[\"\xed\xa0\x80\"] ",
		"[\"\xf4\x90\x80\x80\"] ",
		"[\"\xe2\x82\"] ",
		"] ",
	};
	struct json_values v = {0};
	const char *why;
	char deep[500];
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (json_values_parse(&v, texts[i], strlen(texts[i]), &n, &why) != -EINVAL)
			fail_msg("%s is taken", texts[i]);
		assert_true(n < strlen(texts[i]) && why);
	}
	memset(deep, '[', sizeof(deep));
	assert_int_equal(json_values_parse(&v, deep, sizeof(deep), &n, &why), -EINVAL);
	assert_string_equal(why, "lists in lists, more than 200 deep");
	json_values_deinit(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_the_nearest_doubles),
					   cmocka_unit_test(letters_and_members),
					   cmocka_unit_test(no_json)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
