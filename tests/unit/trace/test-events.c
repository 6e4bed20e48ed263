/* Events of a trace: numbers as strtod() reads them, members and letters as RFC 8259 has them, and
 * what is refused, at any cut. */
#include "cmocka-all.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "trace/events.h"

static int read_text(const char *text, size_t n, const struct events_sink *sink, void *ctx,
		     struct err *err)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, n, "r");
	int r;

	assert_non_null(f);
	r = events_read(f, "t.json", sink, ctx, err);
	fclose(f);
	return r;
}

static int take_any(void *ctx, const struct json_value *event, struct err *err)
{
	(void)event;
	(void)err;
	++*(int *)ctx;
	return 0;
}

static const struct events_sink any = {NULL, take_any};

static void numbers_are_the_nearest_doubles(void **state)
{
	static const int digits[] = {0, 3, 6, 12, 17};
	char text[400];

	(void)state;
	for (uint64_t i = 0; i < 60000; i++) {
		double scale = pow(10, (double)(rng_hash(2, i) % 20) - 3),
		       x = (double)(int64_t)rng_hash(1, i) * 0x1p-63 * scale;

		if (i % 6 < 5)
			snprintf(text, sizeof(text), "%.*f", digits[i % 6], x);
		else
			snprintf(text, sizeof(text), "%.17g", x);
		if (json_number(text, strlen(text)) != strtod(text, NULL))
			fail_msg("%s is read as %.17g", text, json_number(text, strlen(text)));
	}
	assert_true(isinf(json_number("1e999", 5)));
	assert_true(json_number("12345", 3) == 123);
}

static int take_letters(void *ctx, const struct json_value *event, struct err *err)
{
	const struct json_value *a = json_value_next(event, NULL);

	(void)err;
	assert_string_equal(a->key, "a");
	assert_int_equal(a->n_inside, 4);
	a = json_value_next(a, json_value_next(a, json_value_next(a, NULL)));
	assert_string_equal(json_value_text(a), "\xc3\xa9\xf0\x9f\x98\x80\n/\xc3\xa9");
	assert_null(json_value_next(json_value_next(event, NULL), a));
	assert_int_equal(json_value_get(event, "a")->mark, '{'); /* the last one */
	assert_true(json_value_number(json_value_get(event, "d")) == -5);
	assert_true(isnan(json_value_number(json_value_get(event, "c"))));
	assert_null(json_value_get(json_value_get(event, "none"), "a"));
	assert_null(json_value_next(json_value_get(event, "c"), NULL));
	++*(int *)ctx;
	return 0;
}

static int take_member(void *ctx, const char *key, struct json_values *values, struct err *err)
{
	(void)err;
	if (strcmp(key, "info") == 0)
		assert_int_equal(json_value_get(values->list, "traceEvents")->mark, '[');
	else
		assert_string_equal(key, "base");
	*(int *)ctx += 10;
	return 0;
}

static void letters_and_members(void **state)
{
	static const char text[] =
		" {\"info\": {\"traceEvents\": [1]}, \"traceEvents\": [ {\"a\": [1, {\"b\": null}, "
		"\"\\u00e9\\ud83d\\ude00\\n\\/\xc3\xa9\"], \"c\": true, "
		"\"a\": {}, \"d\": -0.5e1} ,{\"a\":[0,[0],\"\xc3\xa9\xf0\x9f\x98\x80\\n\\/\xc3\xa9\"],"
		"\"d\":-5.0,\"a\":{}}], \"base\": 3}\n";
	static const struct events_sink sink = {take_member, take_letters};
	struct err err = {""};
	int n = 0;

	(void)state;
	for (size_t cut = 1; cut < sizeof(text) - 2; cut++)
		assert_int_equal(read_text(text, cut, &sink, &n, &err), -EINVAL);
	n = 0;
	assert_int_equal(read_text(text, sizeof(text) - 1, &sink, &n, &err), 0);
	assert_int_equal(n, 22);
}

static void no_json(void **state)
{
	static const char *const texts[] = {
		"01",     "-",        "1.",           ".5",          "1e",          "+1",
		"NaN",    "nan",      "Infinity",     "tru",         "[1,]",        "[1 2]",
		"{1: 2}", "{\"a\"}",  "{\"a\": 1,}",  "\"\n\"",      "\"\\x\"",     "\"\\u12g4\"",
		"]",      "\"\xff\"", "\"\xe2\x82\"", "\"\\u0000\"", "\"a\" \"b\"",
	};
	char text[1000], deep[500];
	struct err err = {""};
	int taken = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		snprintf(text, sizeof(text), "[{\"v\": %s}]", texts[i]);
		if (read_text(text, strlen(text), &any, &taken, &err) != -EINVAL)
			fail_msg("%s is taken", text);
		if (strncmp(err.text, "t.json: event 1", 15) != 0)
			fail_msg("%s: %s", text, err.text);
	}
	memset(deep, '[', sizeof(deep));
	snprintf(text, sizeof(text), "[{\"v\": %.500s", deep);
	assert_int_equal(read_text(text, 400, &any, &taken, &err), -EINVAL);
	assert_string_equal(err.text, "t.json: event 1: has lists in lists, more than 200 deep");
	assert_int_equal(read_text("[{}]\n[{}]", 9, &any, &taken, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is it two traces in one file?"));
	assert_int_equal(read_text("[{}, 3]", 7, &any, &taken, &err), -EINVAL);
	assert_string_equal(err.text, "t.json: event 2: is no object");
}

/* Whatever is large in it: one string, many of them, numbers, blanks. */
static void a_value_is_bounded(void **state)
{
	static const char *const pieces[] = {"a", "\",\"", "\\u00e9", "\"],[\"", "\",1e5,\""};
	const size_t n = 3 << 20;
	char *text = malloc(n + 64);
	struct err err = {""};
	int taken = 0;

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		size_t at = (size_t)sprintf(text, "[{\"v\": [[\"");

		while (at < n)
			at += (size_t)sprintf(text + at, "%s", pieces[i]);
		assert_int_equal(read_text(text, at, &any, &taken, &err), -EFBIG);
		assert_string_equal(err.text,
				    "t.json: event 1: a value has more than 1048576 bytes");
	}
	assert_int_equal(taken, 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_the_nearest_doubles),
					   cmocka_unit_test(letters_and_members),
					   cmocka_unit_test(no_json),
					   cmocka_unit_test(a_value_is_bounded)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
