/* nboxd's answer as a table: whole, with nothing in it, and from somebody who means ill. */
#include <errno.h>
#include <stdint.h>

#include "cmocka-all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nbox/status/text.h"
#include "nbox/status/watch-text.h"

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

static void nccls_own_messages_are_counted(void **state)
{
	char *t = print(
		"{\"nccl\": \"full\", \"exchange\": \"payload\", \"traffic\": {\"arrived\": 7, "
		"\"sent\": 6, \"identity\": 5, \"late\": 4, \"waiting\": 3, \"flows\": 2}}",
		0);

	(void)state;
	assert_non_null(strstr(t, "real; nccl full; exchange payload; "));
	assert_non_null(
		strstr(t, "NCCL's messages: 7 from real ranks, 6 to them, 5 of these without a "
			  "real rank's data, 4 late; 3 receives wait, 2 flows are open\n"));
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

/* A screen, without the sequences that give it its look. */
static char *screen(const struct watch *w, const char *json, unsigned columns, unsigned rows)
{
	char *text = NULL, *to;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	watch_print(w, json, columns, rows, false, f);
	fclose(f);
	to = text;
	for (char *c = text; *c; c++) {
		if (*c == 0x1b)
			c += strcspn(c, "m");
		else
			*to++ = *c;
	}
	*to = '\0';
	return text;
}

static void a_screen_shows_times_as_bars_and_the_longest_wait_first(void **state)
{
	struct watch w = {.step_ms = {10, 40, 20, 40},
			  .n_steps_kept = 4,
			  .n_steps = 4,
			  .p50_ms = 40};
	static const char *const json =
		"{\"ops\": 8, \"uptime_s\": 2, \"warnings\": 1, \"waits\": [\"op 1, has waited 0.5 s for it\","
		"\"op 2, is 3.5 s beyond its end\", \"op 3, ends in 9 s\"]}";
	struct err err = {""};
	char *t;

	(void)state;
	assert_int_equal(watch_take(&w, "{\"ops\": 2, \"uptime_s\": 1}", &err), 0);
	assert_int_equal(watch_take(&w, json, &err), 0);
	assert_int_equal(watch_take(&w, "[]", &err), -EPROTO);
	t = screen(&w, json, 80, 24);
	assert_non_null(strstr(t, "\n             _#:#\n"));
	assert_non_null(strstr(t, "ops          8 begun, 0 not over, 6.0 a second\n"));
	assert_non_null(
		strstr(t, "waits        3, the longest first\n  op 2, is 3.5 s beyond its end\n"
			  "  op 1, has waited 0.5 s for it\n  op 3, ends in 9 s\n"));
	free(t);
}

static void a_screen_is_no_larger_than_the_terminal_whatever_was_answered(void **state)
{
	struct watch w = {.n_steps = 0};
	char *t = screen(
		&w, "{\"model\": \"\\u001b[2J\\u0000äöü 0123456789\", \"waits\": [7, \"a\\nb\"]}",
		20, 8);
	size_t n = 0, width = 0;

	(void)state;
	assert_null(strstr(t, "[2J\033"));
	for (char *c = t; *c; c++) {
		n += *c == '\n';
		width = *c == '\n' ? 0 : width + ((*c & 0xc0) != 0x80);
		assert_true(width <= 20);
		assert_true(*c == '\n' || (unsigned char)*c >= ' ');
	}
	assert_true(n > 0 && n < 8);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_becomes_a_table),
		cmocka_unit_test(nccls_own_messages_are_counted),
		cmocka_unit_test(an_answer_may_lack_everything),
		cmocka_unit_test(an_answer_that_is_no_object_is_refused),
		cmocka_unit_test(a_screen_shows_times_as_bars_and_the_longest_wait_first),
		cmocka_unit_test(a_screen_is_no_larger_than_the_terminal_whatever_was_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
