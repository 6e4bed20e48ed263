/* The loader of delay models: which plug-ins it refuses and why, in which folders it looks, and
 * that it checks every answer. */
#include "delay-test.h"
#include "engine/delay-plugin.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_bad(const char *name, struct delay_chain **ret, struct err *err)
{
	static const char *const dirs[] = {BAD_DIR, MODEL_DIR, NULL};

	*ret = NULL;
	err->text[0] = '\0';
	return delay_open(name, NULL, NULL, 0, &test_world, dirs, 0, ret, err);
}

static void assert_sentence(const char *name, const struct err *err, const char *expect)
{
	if (!strstr(err->text, expect))
		fail_msg("%s: '%s' does not say '%s'", name, err->text, expect);
}

static void bad_plugins_are_refused_by_name(void **state)
{
	static const struct {
		const char *name;
		int code;
		const char *sentence;
	} cases[] = {
		{"other_abi", -ENOEXEC, "was built for delay-model ABI 1, nbox has 2"},
		{"too_short", -ENOEXEC, "says that its table has 24 bytes"},
		{"too_long", -ENOEXEC, "says that its table has 1048576 bytes"},
		/* too small a symbol; a sanitizer makes it larger, then its ABI is wrong */
		{"small_symbol", -ENOEXEC, "small_symbol.so"},
		{"no_symbol", -ENOEXEC, "exports no nbox_delaymodel"},
		{"no_name", -ENOEXEC, "has no name"},
		{"no_create", -ENOEXEC, "no_create has no create()"},
		{"no_destroy", -ENOEXEC, "has no destroy()"},
		{"no_answer", -ENOEXEC, "has no op(), message() or plan()"},
		{"no_decoration", -ENOEXEC, "has no message(), extra() or segment()"},
		{"other_name", -ENOEXEC, "calls itself 'liar'"},
		{"silent_create", -EINVAL, "gave an error for create() without a reason"},
		{"create_says_one", -EINVAL, "create() has no answer"},
		{"rnig", -ENOENT, "did you mean 'ring'?"},
		{"zebra", -ENOENT, "; models: alltoall "},
		{"zebra", -ENOENT, "; what-ifs: add "},
		{"zebra", -ENOENT, " fail"},
		{"", -EINVAL, "names no delay model"},
		{":time=1us", -EINVAL, "names no delay model"},
		{"./absent.so", -ENOEXEC, "cannot load the delay model ./absent.so"},
		{"const:", -EINVAL, "has nothing behind a colon or comma"},
		{"const:time", -EINVAL, "is no key=value"},
		{"const:=1us", -EINVAL, "is no key=value"},
		{"const:time=", -EINVAL, "is no key=value"},
		{"const:time=1us,", -EINVAL, "has nothing behind a colon or comma"},
		{"const:tmie=1us", -ENOENT, "unknown key 'tmie'; did you mean 'time'?"},
		{"ring:bandwith=1GB/s", -ENOENT, "did you mean 'bw'?"},
		{"const:zzz=1us", -ENOENT, "keys: time"},
		{"none:time=1us", -ENOENT, "it has no parameters"},
		{"const:time=1us,time=2us", -EINVAL, "'time' is given twice"},
		{"const:time=1", -EINVAL, "const: time: '1' has no unit"},
		{"const", -EINVAL, "const: time=<time> must be given: how long every op takes"},
		{"ring:chunk=0B", -EINVAL, "at least one"},
		{"ring:bw=0GB/s", -EINVAL, "zero"},
		{"add:delay=1us", -EINVAL, "give it with --what-if"},
	};
	struct delay_chain *d;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = open_bad(cases[i].name, &d, &err);

		if (r != cases[i].code)
			fail_msg("%s: %d, not %d: %s", cases[i].name, r, cases[i].code, err.text);
		assert_sentence(cases[i].name, &err, cases[i].sentence);
		assert_null(d);
	}
}

static void a_model_is_no_what_if(void **state)
{
	static const char *const what_ifs[] = {"ring", NULL};
	struct delay_chain *d = NULL;
	struct err err;

	(void)state;
	assert_int_equal(test_open("none", what_ifs, 0, &d, &err), -EINVAL);
	assert_sentence("ring", &err, "give it with --model");
}

/* A table with more fields than this host knows. */
static void a_newer_table_is_taken(void **state)
{
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 4, 1, 8);
	struct delay_chain *opened;
	struct err err;

	(void)state;
	assert_int_equal(open_bad("newer", &opened, &err), 0);
	CHAIN d = opened;

	assert_true(test_op_ns(d, &op) == 7);
	assert_false(delay_is_uniform(d) || delay_is_steady(d));
}

static void answers_are_checked(void **state)
{
	static const struct {
		const char *name, *sentence;
	} cases[] = {
		{"nan_op", "delay model nan_op: op() answered not a number"},
		{"negative_op", "delay model negative_op: op() answered a negative time (-1 ns)"},
		{"infinite_op", "op() answered an infinite time"},
		{"endless_op", "op() answered more than 31 years (1e+30 ns)"},
		{"odd_code", "op() returned 42"},
		{"silent_error",
		 "delay model silent_error: gave an error for op() without a reason"},
		{"loud_error", "delay model loud_error: bytes=12 is odd"},
		{"nan_latency", "message()'s latency answered not a number"},
		{"negative_occupancy", "message()'s occupancy answered a negative time"},
	};
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 4, 1, 8);
	struct nbox_message msg = test_message(0, 1, NBOX_INTRA, 1, 8);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct nbox_delay delay = {-3, -3};
		struct delay_chain *opened;
		struct err err;
		double ns = -3;
		int r;

		assert_int_equal(open_bad(cases[i].name, &opened, &err), 0);
		CHAIN d = opened;

		for (int twice = 0; twice < 2; twice++) {
			err.text[0] = '\0';
			r = delay_has_op(d) ? delay_op(d, &op, &ns, &err)
					    : delay_message(d, &op, &msg, false, &delay, &err);
			assert_int_equal(r, -EINVAL);
			assert_sentence(cases[i].name, &err, cases[i].sentence);
		}
		assert_true(ns == -3 && delay.latency_ns == -3); /* untouched */
	}
}

static void what_ifs_answers_are_checked(void **state)
{
	static const char *const dirs[] = {BAD_DIR, MODEL_DIR, NULL};
	static const char *const extra[] = {"nan_extra"};
	/* a what-if that does not ask the model under it still has an answer */
	static const char *const eats[] = {"eats_messages", "add:hop=all,delay=1us"};
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 4, 1, 8);
	struct nbox_message msg = test_message(0, 1, NBOX_INTRA, 1, 8);
	struct delay_chain *d = NULL;
	struct err err;
	double ns = -3;
	bool is_ahead;

	(void)state;
	assert_int_equal(delay_open("none", NULL, extra, 1, &test_world, dirs, 0, &d, &err), 0);
	assert_int_equal(delay_extra(d, &op, 5, false, &ns, &is_ahead, &err), -EINVAL);
	assert_sentence("extra", &err, "delay model nan_extra: extra() answered not a number");
	delay_free(d);
	assert_true(ns == -3);
	assert_int_equal(delay_open("none", NULL, eats, 2, &test_world, dirs, 0, &d, &err), 0);
	assert_true(test_message_ns(d, &op, &msg).latency_ns == 1001);
	assert_false(delay_is_uniform(d));
	delay_free(d);
	/* an error under a decorator names the model that made it */
	assert_int_equal(delay_open("nan_latency", NULL, eats + 1, 1, &test_world, dirs, 0, &d,
				    &err),
			 0);
	struct nbox_delay delay;

	assert_int_equal(delay_message(d, &op, &msg, false, &delay, &err), -EINVAL);
	assert_sentence("below", &err, "delay model nan_latency: message()'s latency");
	delay_free(d);
}

static void answers_for_segments_are_checked(void **state)
{
	static const struct {
		const char *name, *sentence;
	} cases[] = {
		{"negative_segment",
		 "delay model negative_segment: segment() answered a negative time (-5 ns)"},
		{"nan_segment", "segment() answered not a number"},
		{"loud_segment", "delay model loud_segment: rank 3 cannot compute"},
	};
	static const char *const dirs[] = {BAD_DIR, MODEL_DIR, NULL};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *const bad[] = {"slow:rank=1,compute=2", cases[i].name};
		struct delay_chain *opened = NULL;
		struct err err = {""};
		double ns = -3;

		assert_int_equal(delay_open("none", NULL, bad, 2, &test_world, dirs, 0, &opened,
					    &err),
				 0);
		CHAIN d = opened;

		assert_true(delay_has_segments(d));
		assert_int_equal(delay_segment(d, 3, 0, 0, 5, &ns, &err), -EINVAL);
		assert_sentence(cases[i].name, &err, cases[i].sentence);
		assert_true(ns == -3); /* untouched */
	}
}

/* --- folders --------------------------------------------------------------- */

static void count_each(void *ctx, const struct nbox_delaymodel *m, const char *path)
{
	char(*names)[512] = ctx;

	assert_non_null(strstr(path, m->name));
	assert_true(strlen(*names) + strlen(m->name) + 2 < sizeof(*names));
	strcat(*names, " ");
	strcat(*names, m->name);
}

static void the_list_is_sorted_and_names_what_fails(void **state)
{
	static const char *const dirs[] = {MODEL_DIR, MODEL_DIR, "/nonexistent/folder", NULL};
	static const char *const bad[] = {BAD_DIR, NULL};
	char names[512] = "";
	struct err err = {""};

	(void)state;
	assert_int_equal(delay_list(dirs, count_each, &names, &err), 0);
	assert_string_equal(
		names,
		" add alltoall alphabeta const fitted hang jitter loggp nccl none onesided pinned queue ring sigmoid slow table tree");
	/* the good plug-ins of a folder are listed; the error names the first bad one */
	names[0] = '\0';
	assert_int_equal(delay_list(bad, count_each, &names, &err), -ENOEXEC);
	assert_true(err.text[0] != '\0');
	assert_non_null(strstr(names, " newer"));
}

static void earlier_folders_hide_later_ones(void **state)
{
	char dir[] = "/tmp/nbox-test-models-XXXXXX", name[128], spec[256], var[256];
	struct delay_chain *d = NULL;
	struct err err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/none.so", dir);
	assert_int_equal(symlink(BAD_DIR "/nan_op.so", name), 0);
	/* NBOX_MODEL_PATH goes before the given folders, empty parts are nothing */
	setenv("NBOX_MODEL_PATH", "/nonexistent", 1);
	assert_int_equal(test_open("none", NULL, 0, &d, &err), -ENOENT);
	assert_sentence("folder", &err, "NBOX_MODEL_PATH: /nonexistent");
	snprintf(var, sizeof(var), "::%s:", dir);
	setenv("NBOX_MODEL_PATH", var, 1);
	assert_int_equal(test_open("none", NULL, 0, &d, &err), -ENOEXEC);
	assert_sentence("path", &err, "calls itself 'nan_op'");
	unsetenv("NBOX_MODEL_PATH");
	/* by path any file will do, with and without parameters */
	assert_int_equal(test_open(name, NULL, 0, &d, &err), 0);
	d = delay_free(d);
	unlink(name);
	snprintf(name, sizeof(name), "%s/a:b.so", dir);
	assert_int_equal(symlink(MODEL_DIR "/ring.so", name), 0);
	snprintf(spec, sizeof(spec), "%s:bw=50GB/s,alpha=1us", name);
	assert_int_equal(test_open(spec, NULL, 0, &d, &err), 0);
	assert_string_equal(delay_describe(d), spec);
	d = delay_free(d);
	unlink(name);
	rmdir(dir);
	static const char *const none[] = {"/nonexistent", NULL};

	assert_int_equal(delay_open("ring", NULL, NULL, 0, &test_world, none, 0, &d, &err),
			 -ENOENT);
	assert_sentence("none", &err, "NBOX_MODEL_PATH");
	assert_null(delay_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_plugins_are_refused_by_name),
		cmocka_unit_test(a_model_is_no_what_if),
		cmocka_unit_test(a_newer_table_is_taken),
		cmocka_unit_test(answers_are_checked),
		cmocka_unit_test(what_ifs_answers_are_checked),
		cmocka_unit_test(answers_for_segments_are_checked),
		cmocka_unit_test(the_list_is_sorted_and_names_what_fails),
		cmocka_unit_test(earlier_folders_hide_later_ones),
	};

	return cmocka_run_group_tests_name("loader", tests, NULL, NULL);
}
