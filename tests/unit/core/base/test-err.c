/* Sentences of errors: set, prefixed, cut. */
#include "cmocka-all.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

static void a_prefix_goes_before_the_sentence(void **state)
{
	struct err err = {""};

	(void)state;
	assert_int_equal(err_set(&err, EINVAL, "key '%s' is %d", "a", 3), -EINVAL);
	assert_string_equal(err.text, "key 'a' is 3");
	assert_int_equal(err_prefix(&err, -EINVAL, "%s:%d", "file", 7), -EINVAL);
	assert_string_equal(err.text, "file:7: key 'a' is 3");
	err.text[0] = '\0';
	err_prefix(&err, 1, "alone");
	assert_string_equal(err.text, "alone");
	assert_int_equal(err_set(NULL, ENOMEM, "x"), -ENOMEM);
	assert_int_equal(err_prefix(NULL, 5, "x"), 5);
}

static void a_long_text_is_cut(void **state)
{
	char big[2 * ERR_TEXT_MAX];
	struct err err;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	err_set(&err, EINVAL, "%s", big);
	assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
	assert_string_equal(err.text + ERR_TEXT_MAX - 4, "...");

	err_set(&err, EINVAL, "%.*s", ERR_TEXT_MAX - 1, big); /* just fits */
	assert_null(strstr(err.text, "."));
	err_prefix(&err, -EINVAL, "p");
	assert_int_equal(strncmp(err.text, "p: xxx", 6), 0);
	assert_string_equal(err.text + ERR_TEXT_MAX - 4, "...");
	err_prefix(&err, -EINVAL, "%s", big);
	assert_string_equal(err.text + ERR_TEXT_MAX - 4, "...");
}

/* A character of several bytes is kept whole or dropped. */
static void a_text_is_cut_at_a_whole_character(void **state)
{
	char big[2 * ERR_TEXT_MAX] = "";
	struct err err;

	(void)state;
	for (int shift = 0; shift < 4; shift++) {
		size_t end;

		memset(big, 0, sizeof(big));
		memset(big, 'x', (size_t)shift);
		while (strlen(big) < ERR_TEXT_MAX + 20)
			strcat(big, "\xe2\x82\xac"); /* the euro sign */
		err_set(&err, EINVAL, "%s", big);
		end = strlen(err.text) - 3;
		assert_string_equal(err.text + end, "...");
		assert_int_equal((end - (size_t)shift) % 3, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prefix_goes_before_the_sentence),
		cmocka_unit_test(a_long_text_is_cut),
		cmocka_unit_test(a_text_is_cut_at_a_whole_character),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
