/* nbox kernels: what of a trace becomes which row; traces that are none. */
#include "cmocka-all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernels/table.h"
#include "nbox/kernels/launches.h"
#include "nbox/kernels/write.h"

static int read_text(const char *text, struct launches *ret, struct err *err)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int r;

	assert_non_null(f);
	r = launches_read(f, "t.json", ret, err);
	fclose(f);
	return r;
}

/* The table that the trace makes. */
static char *make(const char *trace_text)
{
	struct launches trace;
	struct err err = {""};
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (read_text(trace_text, &trace, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(kernels_write(&trace, "t.json", f), 0);
	fclose(f);
	launches_deinit(&trace);
	return text;
}

static void each_name_has_its_median(void **state)
{
	CLEANUP(freep)
	char *text = make(
		"{\"schemaVersion\": 1,\"deviceProperties\": [{\"id\": 0}], \"n\":2,\n"
		"\"traceEvents\": [\n"
		"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void f<4, char*>(int)\", \"dur\": 3},\n"
		"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"g [x]\", \"dur\": 2.5, \"args\": {\"stream\": 7}},\n"
		"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void f<4, char*>(int)\", \"dur\": 1},\n"
		"{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pageable -> Device)\", \"dur\": 1000},\n"
		"{\"ph\": \"i\", \"name\": 7},\n"
		"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce(x)\", \"dur\": 900},\n"
		"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void f<4, char*>(int)\", \"dur\": 9}\n"
		"], \"traceName\": \"x\"}");

	(void)state;
	assert_string_equal(
		text,
		"# Kernels of t.json, by `nbox kernels`: the median of each. For nbox run --gpu.\n"
		"# 1 launches of NCCL are left out: nbox says how long its ops take.\n"
		"# 1 launch\n"
		"memcpy HtoD 1000.000us\n"
		"# 3 launches, 1.000us to 9.000us\n"
		"void f<4, char\\*>(int) 3.000us\n"
		"# 1 launch\n"
		"g [x] 2.500us\n"
		"# all other kernels: the median of all\n"
		"* 3.000us\n");
}

/* The second kernel of the first product adds up its parts; operators may come behind their
 * kernels. */
static void products_go_by_their_sizes(void **state)
{
	CLEANUP(freep)
	char *text = make(
		"[{\"cat\":\"kernel\",\"name\":\"nvjet\",\"dur\":10,\"args\":{\"External id\":5}},"
		"{\"cat\":\"kernel\",\"name\":\"splitk\",\"dur\":2,\"args\":{\"External id\":5}},"
		"{\"cat\":\"kernel\",\"name\":\"nvjet\",\"dur\":14,\"args\":{\"External id\":6}},"
		"{\"cat\":\"kernel\",\"name\":\"nvjet\",\"dur\":20,\"args\":{\"External id\":7}},"
		"{\"cat\":\"kernel\",\"name\":\"nvjet\",\"dur\":30,\"args\":{\"External id\":8}},"
		"{\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"args\":{\"External id\":5,"
		"\"Input Dims\":[[128,64],[64,256]],\"Input type\":[\"c10::BFloat16\",\"c10::BFloat16\"]}},"
		"{\"cat\":\"cpu_op\",\"name\":\"aten::addmm\",\"args\":{\"External id\":6,"
		"\"Input Dims\":[[128],[256,64],[64,128],[],[]],"
		"\"Input type\":[\"c10::BFloat16\",\"c10::BFloat16\",\"c10::BFloat16\",\"Scalar\",\"Scalar\"]}},"
		"{\"cat\":\"cpu_op\",\"name\":\"aten::bmm\",\"args\":{\"External id\":7,"
		"\"Input Dims\":[[6,32,8],[6,8,16]],\"Input type\":[\"float\",\"float\"]}},"
		"{\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"args\":{\"External id\":8}}]");

	(void)state;
	assert_non_null(strstr(text, "# 1 products of matrices have no sizes, and no row"));
	assert_non_null(
		strstr(text,
		       "\n# 2 launches, 12.000us to 14.000us\nmatmul bf16 128x256x64 13.000us\n"));
	assert_non_null(strstr(text, "\nmatmul f32 16x32x8x6 20.000us\n"));
	assert_non_null(strstr(text, "\n# 1 launch\nnvjet 30.000us\n"));
	assert_null(strstr(text, "splitk"));
}

static void a_table_has_its_row_for_every_name_of_its_trace(void **state)
{
	static const char *const names[] = {"#1 *", " a ", "x\\\\y?", "h100",
					    "tab\\there \\u202e \\u001b[2J"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP(kernel_table_freep) struct kernel_table *t = NULL;
		CLEANUP(freep) char *table = NULL;
		json_auto_t *name = NULL;
		struct err err = {""};
		char text[256];

		snprintf(text, sizeof(text),
			 "[{\"cat\":\"kernel\",\"name\":\"%s\",\"dur\":7},"
			 "{\"cat\":\"kernel\",\"name\":\"z\",\"dur\":1}]",
			 names[i]);
		table = make(text);
		snprintf(text, sizeof(text), "\"%s\"", names[i]);
		name = json_loads(text, JSON_DECODE_ANY, NULL);
		if (kernel_table_parse("f", table, strlen(table), &t, &err) < 0)
			fail_msg("%s", err.text);
		assert_true(kernel_table_find(t, json_string_value(name), NULL)->ns == 7000);
	}
}

static void what_is_no_trace_is_refused(void **state)
{
	static const struct {
		const char *text, *sentence;
	} cases[] = {
		{" ", "t.json: is no trace: it does not begin as JSON does"},
		{"\x1f\x8b", "t.json: is compressed: gunzip it first"},
		{"{}", "t.json: is no trace: it has no list traceEvents"},
		{"{\"traceEvents\": 3}", "t.json: is no trace: it has no list traceEvents"},
		{"{\"a\" 3}", "t.json: at byte 6: parse error: "},
		{"[]", "t.json: no event is a kernel (cat \"kernel\"): was it profiled on a GPU"},
		{"[{\"cat\":\"cpu_op\",\"name\":\"x\"}]", "t.json: no event is a kernel"},
		{"[{\"cat\":\"kernel\",\"name\":\"x\",\"dur\":1}",
		 "t.json: ends in the middle: in event 1, or behind it"},
		{"[{\"cat\":\"kernel\",", "t.json: "},
		{"[{}, {\"cat\":\"kernel\",\"name\":\"x\",\"dur\":-1}]",
		 "t.json: event 2: a kernel of -1 us"},
		{"[{\"cat\":\"kernel\",\"name\":\"x\",\"dur\":60000000}]",
		 "t.json: event 1: a kernel of 6e+07 us"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = {""};
		struct launches trace;

		assert_int_equal(read_text(cases[i].text, &trace, &err), -EINVAL);
		if (strncmp(err.text, cases[i].sentence, strlen(cases[i].sentence)) != 0)
			fail_msg("%s", err.text);
	}
}

static void an_event_without_end_is_not_read_for_ever(void **state)
{
	size_t n = 4 << 20;
	CLEANUP(freep) char *text = malloc(n + 1);
	struct err err = {""};
	struct launches trace;

	(void)state;
	memset(text, 'x', n);
	memcpy(text, "[{\"", 3);
	text[n] = '\0';
	assert_int_equal(read_text(text, &trace, &err), -EFBIG);
	assert_string_equal(err.text, "t.json: event 1: a value has more than 1048576 bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_name_has_its_median),
		cmocka_unit_test(products_go_by_their_sizes),
		cmocka_unit_test(a_table_has_its_row_for_every_name_of_its_trace),
		cmocka_unit_test(what_is_no_trace_is_refused),
		cmocka_unit_test(an_event_without_end_is_not_read_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
