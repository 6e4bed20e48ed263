/* nboxd's answer as a table: whole, with nothing in it, and from somebody who means ill. */
#include <errno.h>
#include <stdint.h>

#include "cmocka-all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nbox/status-text.h"

/* Return: the text, the caller's. */
static char *print(const char *json, int want)
{
	struct err err = {""};
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int r = status_print(json, f, &err);

	fclose(f);
	assert_int_equal(r, want);
	if (want)
		assert_non_null(strstr(err.text, "--json"));
	return text;
}

static void an_answer_becomes_a_table(void **state)
{
	char *t = print(
		"{\"nboxd\": \"0.1.0\", \"world_size\": 8, \"nodes\": 4, \"gpus_per_node\": 2, \"uptime_s\": 1.5,"
		"\"workers\": [{\"worker\": 3, \"state\": \"ready\", \"pid\": 77, \"host\": \"here\", \"link\": \"shm\"}],"
		"\"communicators\": [{\"communicator\": 1, \"ranks\": 8, \"real\": [0, 1], \"members\": \"world\", \"dead\": true}],"
		"\"waits\": [\"op 1 waits\"]}",
		0);

	(void)state;
	assert_non_null(strstr(t, "8 ranks (4 nodes x 2)"));
	assert_non_null(strstr(t, "  3       77        ready     shm                0  here\n"));
	assert_non_null(strstr(t, "world; aborted\n"));
	assert_non_null(strstr(t, "who waits for what:\n  op 1 waits\n"));
	free(t);
}

static void an_answer_may_lack_everything(void **state)
{
	char *t = print("{}", 0);

	(void)state;
	assert_non_null(strstr(t, "no worker is connected\n"));
	assert_non_null(strstr(t, "nobody waits\n"));
	free(t);
}

static void an_answer_that_is_no_object_is_refused(void **state)
{
	static const char *const wrong[] = {"", "[]", "7", "{\"a\": ", "\xff"};
	char many[4000] = "{\"waits\": [\"\\u001b[2J%s%n\"", *t;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		free(print(wrong[i], -EPROTO));
	for (int i = 0; i < 29; i++)
		strcat(many, ", \"x\"");
	strcat(many, "], \"workers\": {}, \"communicators\": 3, \"pid\": \"x\"}");
	t = print(many, 0);
	assert_null(strchr(t, 0x1b));
	assert_non_null(strstr(t, "  ?[2J%s%n\n"));
	assert_non_null(strstr(t, "and 10 more (--json lists them)"));
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_becomes_a_table),
		cmocka_unit_test(an_answer_may_lack_everything),
		cmocka_unit_test(an_answer_that_is_no_object_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
