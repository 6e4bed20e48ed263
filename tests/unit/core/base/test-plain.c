/* Text that is safe to print: bytes that a terminal obeys, and bytes that are no UTF-8, become '?';
 * all other text stays. Errors and log lines are such text. */
#include "cmocka-all.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/plain.h"

static void only_what_a_terminal_obeys_is_replaced(void **state)
{
	static const char *const table[][2] = {
		{"", ""},
		{"plain, 5 \xc2\xb5s, \xe2\x82\xac, \xf0\x9f\x98\x80",
		 "plain, 5 \xc2\xb5s, \xe2\x82\xac, \xf0\x9f\x98\x80"},
		{"\x1b[2J\x1b]0;title\x07", "?[2J?]0;title?"},
		{"a\nb\tc\rd\x7f", "a?b?c?d?"},
		{"\xc2\x9b"
		 "31m",
		 "??31m"}, /* C1 as UTF-8: also a beginning of a sequence */
		{"\x9b"
		 "31m",
		 "?31m"}, /* and as a byte */
		{"\xe2\x80\xae"
		 "abc\xe2\x81\xa6",
		 "???abc???"}, /* from right to left */
		{"\xe2\x80\x8f"
		 "1\xe2\x80\x8e\xd8\x9c",
		 "???1?????"},                /* marks of a direction */
		{"\xe2\x80\xa8", "???"},      /* a line's end */
		{"\xc0\x9b\xc1\xbf", "????"}, /* longer forms of ESC and others */
		{"\xe0\x80\x9b", "???"},
		{"\xf0\x80\x80\x9b", "????"},
		{"\xed\xa0\x80", "???"},                /* half of a pair */
		{"\xf4\x90\x80\x80\xf8\xff", "??????"}, /* beyond Unicode */
		{"\xe2\x82", "??"},
		{"\xe2", "?"},
		{"\xf0\x9f\x98", "???"}, /* cut off: the function does not look behind it */
		{"\xe2\x82xyz", "??xyz"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char text[64];

		strcpy(text, table[i][0]);
		assert_ptr_equal(plain_text(text), text);
		assert_string_equal(text, table[i][1]);
	}
}

/* Twice is as good as once, and nothing is longer than before. */
static void every_two_bytes_are_safe(void **state)
{
	(void)state;
	for (unsigned a = 1; a < 256; a++)
		for (unsigned b = 1; b < 256; b++) {
			char text[] = {(char)a, (char)b, 'x', 0}, again[4];

			plain_text(text);
			assert_int_equal(strlen(text), 3);
			assert_int_equal(text[2], 'x');
			assert_true((unsigned char)text[0] >= ' ' && text[0] != 0x7f);
			strcpy(again, text);
			assert_string_equal(plain_text(again), text);
		}
}

static void errors_and_log_lines_are_plain(void **state)
{
	struct err err;

	(void)state;
	err_set(&err, ENOENT, "%s: not there", "\x1b[31mname");
	assert_string_equal(err.text, "?[31mname: not there");
	err_prefix(&err, -ENOENT, "%s",
		   "\x07"
		   "dir");
	assert_string_equal(err.text, "?dir: ?[31mname: not there");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_a_terminal_obeys_is_replaced),
		cmocka_unit_test(every_two_bytes_are_safe),
		cmocka_unit_test(errors_and_log_lines_are_plain),
	};

	return cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
