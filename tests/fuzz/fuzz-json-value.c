/* The parser of traces' JSON beside jansson: both take the same texts, and find the same in them.
 */
#include "fuzz.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "trace/json-value.h"

static void check(const json_t *want, const struct json_value *got, const struct json_value *end)
{
	const struct json_value *v = NULL;
	const char *key;
	const json_t *member;
	size_t i;

	REQUIRE(got + got->n_inside < end);
	REQUIRE(json_is_string(want) ? strcmp(json_string_value(want), json_value_text(got)) == 0
				     : !json_value_text(got));
	REQUIRE(json_is_number(want) ? json_number_value(want) == json_value_number(got)
				     : isnan(json_value_number(got)));
	REQUIRE((got->mark == '{') == json_is_object(want));
	REQUIRE((got->mark == '[') == json_is_array(want));
	json_object_foreach((json_t *)(uintptr_t)want, key, member)
		check(member, json_value_get(got, key), end);
	json_array_foreach(want, i, member)
	{
		v = json_value_next(got, v);
		check(member, v, end);
	}
	if (json_is_array(want))
		REQUIRE(!json_value_next(got, v));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 3); /* in a list */
	struct json_values v = {0};
	const char *why = NULL;
	json_error_t error;
	json_t *want;
	size_t n = 0;
	int r;

	REQUIRE(text);
	text[0] = '[';
	memcpy(text + 1, data, size);
	memcpy(text + 1 + size, "] ", 2);
	want = json_loadb(text, size + 3, JSON_DECODE_INT_AS_REAL | JSON_DISABLE_EOF_CHECK, &error);
	r = json_values_parse(&v, text, size + 3, &n, &why);
	REQUIRE(n <= size + 3);
	if (memchr(data, '\0', size)) /* jansson passes over one behind a number */
		REQUIRE(r == -EINVAL || n <= (size_t)((char *)memchr(text, '\0', size + 3) - text));
	else if (r == 0 && want)
		check(want, v.list, v.list + v.n);
	else if (r == 0) /* what jansson alone does not take */
		REQUIRE(json_error_code(&error) == json_error_numeric_overflow);
	else if (want)
		REQUIRE(r == -EINVAL && strstr(why, "deep"));
	json_decref(want);
	json_values_deinit(&v);
	free(text);
	return 0;
}
