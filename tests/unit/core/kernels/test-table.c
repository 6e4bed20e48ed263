/* Tables of kernels' times: patterns, which row decides, what is refused and where. */
#include "cmocka-all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernels/table.h"

static void a_pattern_fits_whole_names(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool fits;
	} cases[] = {
		{"*", "", true},
		{"*", "void f<int[4]>(char*)", true},
		{"", "", true},
		{"", "a", false},
		{"gemm", "gemm", true},
		{"gemm", "gemm2", false},
		{"*gemm*", "sm90_xmma_gemm_bf16", true},
		{"*gemm", "gemm gemm2", false},
		{"*gemm", "gemm2 gemm", true},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"a\\?c", "abc", false},
		{"a\\?c", "a?c", true},
		{"f(char\\*)", "f(char*)", true},
		{"f(char\\*)", "f(charm)", false},
		{"a\\\\b", "a\\b", true},
		{"a\\", "a\\", true},
		{"[ab]", "a", false},
		{"[ab]", "[ab]", true},
		{"*a*b*c", "xxaxxbxxbxxc", true},
		{"**", "x", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (kernel_pattern_fits(cases[i].pattern, cases[i].name) != cases[i].fits)
			fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].name);
}

static void an_escaped_name_fits_itself_in_a_table(void **state)
{
	static const char *const names[] = {
		"void f<4, char*>(int, std::array<char*, 3ul>)::{lambda(int)#1}",
		"#first",
		" ends ",
		"a\\",
		"\\*?",
		"tab\there\n",
		"h100",
		"x 20us",
		"*",
	};
	char pattern[256], text[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP(kernel_table_freep) struct kernel_table *t = NULL;
		struct err err = {""};
		int n = snprintf(text, sizeof(text), "%s 7us\n* 1us\n",
				 kernel_pattern_escape(names[i], pattern));

		assert_int_equal(kernel_table_parse("f", text, (size_t)n, &t, &err), 0);
		assert_true(kernel_table_find(t, names[i], NULL)->ns == 7000);
		assert_true(kernel_table_find(t, "another", NULL)->ns == 1000);
	}
}

static void the_first_row_that_fits_decides(void **state)
{
	char text[] =
		"# a comment\n\n  void gemm<a, b>(int)\t 3us \r\n*gemm* h100\n*second* 5us\n* 1us";
	CLEANUP(kernel_table_freep) struct kernel_table *t = NULL;
	struct err err = {""};

	(void)state;
	assert_int_equal(kernel_table_parse("f", text, strlen(text), &t, &err), 0);
	assert_int_equal(t->n, 4);
	assert_true(kernel_table_find(t, "void gemm<a, b>(int)", NULL)->ns == 3000);
	assert_ptr_equal(kernel_table_find(t, "gemm", NULL)->card, card_find("h100"));
	assert_true(kernel_table_find(t, "_Z", "a second name")->ns == 5000);
	assert_true(kernel_table_find(t, "_Z", "other")->ns == 1000);
	assert_non_null(strstr(t->what, "the table f"));
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
	static const struct {
		const char *text, *sentence;
	} cases[] = {
		{"",
		 "f:1: no row is for all other kernels: end the table with one such as '* 5us'"},
		{"a 1us\n# end\n", "f:2: no row is for all other kernels"},
		{"a 1us\nb\n", "f:2: a row is a pattern of names, blanks and a time or a card"},
		{"a 1us\n* 1us\nc 2us\n", "f:3: the row * before it fits every kernel"},
		{"a 5\n* 1us\n", "f:1: '5' has no unit"},
		{"a 61s\n", "f:1: '61s' is no time below a minute; write for example 20us"},
		{"a h10\n",
		 "f:1: 'h10' is neither a time such as 20us nor one of the cards a100, h100"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(freep) char *text = strdup(cases[i].text);
		struct kernel_table *t = NULL;
		struct err err = {""};

		assert_int_equal(kernel_table_parse("f", text, strlen(text), &t, &err), -EINVAL);
		if (strncmp(err.text, cases[i].sentence, strlen(cases[i].sentence)) != 0)
			fail_msg("%s", err.text);
		assert_null(t);
	}
}

static void one_word_is_a_time_a_card_or_a_file(void **state)
{
	char path[] = "/tmp/nbox-kernels-XXXXXX";
	struct kernel_table *t = NULL;
	struct err err = {""};
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(kernel_table_open("20us", &t, &err), 0);
	assert_true(kernel_table_find(t, "any", NULL)->ns == 20000);
	assert_string_equal(t->what, "each kernel takes 20us");
	kernel_table_free(t);
	assert_int_equal(kernel_table_open("b200", &t, &err), 0);
	assert_ptr_equal(kernel_table_find(t, "any", NULL)->card, card_find("b200"));
	kernel_table_free(t);
	t = NULL;
	assert_int_equal(kernel_table_open("2", &t, &err), -EINVAL);
	assert_int_equal(kernel_table_open("60s", &t, &err), -EINVAL);
	assert_int_equal(kernel_table_open("h10", &t, &err), -EINVAL);
	assert_non_null(
		strstr(err.text, "'h10' is no time such as 20us, none of the cards a100, h100"));
	assert_int_equal(kernel_table_open("/tmp", &t, &err), -EINVAL);
	assert_null(t);
	assert_int_equal(write(fd, "* 9us\n", 6), 6);
	close(fd);
	assert_int_equal(kernel_table_open(path, &t, &err), 0);
	assert_true(kernel_table_find(t, "any", NULL)->ns == 9000);
	kernel_table_free(t);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_fits_whole_names),
		cmocka_unit_test(an_escaped_name_fits_itself_in_a_table),
		cmocka_unit_test(the_first_row_that_fits_decides),
		cmocka_unit_test(what_is_wrong_is_said_with_its_line),
		cmocka_unit_test(one_word_is_a_time_a_card_or_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
