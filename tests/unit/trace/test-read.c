/* Traces of others: what becomes of PyTorch's and dPRO's events, and what is refused. */
#include "cmocka-all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/coll.h"
#include "trace/finish.h"
#include "trace/read.h"

static int read_text(const char *text, const char *file, struct trace *t, struct err *err)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int r;

	assert_non_null(f);
	r = trace_read(f, file, NULL, t, err);
	fclose(f);
	return r;
}

static void read_file(const char *path, const char *file, struct trace *t)
{
	FILE *f = fopen(path, "r");
	struct err err = {""};

	assert_non_null(f);
	assert_int_equal(trace_read(f, file, NULL, t, &err), 0);
	fclose(f);
	assert_int_equal(trace_finish(t), 0);
}

static const struct trace_op *named(const struct trace *t, const char *name, uint32_t rank)
{
	for (uint32_t i = 0; i < t->n_ops; i++)
		if (t->ops[i].rank == rank && strcmp(trace_name(t, t->ops[i].name), name) == 0)
			return &t->ops[i];
	fail_msg("no %s", name);
	return NULL;
}

static void pytorch(void **state)
{
	const struct trace_op *mm, *launch, *gemm, *nccl;
	struct trace t = {0};

	(void)state;
	read_file(CORPUS "/kineto", "dir/node7_4711.1700.pt.trace.json", &t);
	assert_int_equal(t.n_ranks, 1);
	assert_int_equal(t.ranks[0].rank, 1);
	assert_int_equal(t.world, 4);
	assert_string_equal(trace_name(&t, t.hosts[0]), "node7");
	assert_true(t.origin_ns == UINT64_C(1700000000000100000)); /* the first event's us */
	mm = named(&t, "aten::mm", 0);
	launch = named(&t, "cudaLaunchKernel", 0);
	gemm = named(&t, "gemm", 0);
	nccl = named(&t, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0);
	assert_true(mm->start_ns == 1000 && mm->end_ns == 11000);
	assert_int_equal(launch->kind, TRACE_CALL);
	assert_ptr_equal(&t.ops[launch->parent], mm);
	assert_ptr_equal(&t.ops[gemm->launched_by], launch);
	assert_int_equal(gemm->kind, TRACE_COMPUTE);
	assert_int_equal(gemm->step, 3);
	assert_int_equal(nccl->kind, TRACE_COLLECTIVE);
	assert_int_equal(nccl->coll, COLL_ALLREDUCE);
	assert_int_equal(nccl->bytes, 4096);
	assert_int_equal(nccl->seq, 5);
	assert_int_equal(nccl->stream, 20);
	assert_int_equal(t.comms[nccl->comm].n, 4);
	assert_int_equal(t.comms[nccl->comm].members[3], 3); /* by the header: the op has not all */
	assert_int_equal(nccl->n_waits, 1);
	assert_ptr_equal(&t.ops[t.waits[nccl->first_wait].on], gemm);
	assert_int_equal(named(&t, "Memcpy DtoH", 0)->kind, TRACE_COPY);
	assert_int_equal(named(&t, "cudaStreamSynchronize", 0)->kind, TRACE_SYNC);
	trace_deinit(&t);
}

static void dpro(void **state)
{
	const struct trace_op *sent, *received;
	struct trace t = {0};

	(void)state;
	read_file(CORPUS "/dpro", "d.json", &t);
	assert_int_equal(t.n_ranks, 2);
	assert_int_equal(t.n_hosts, 2);
	sent = named(&t, "Comm.0.SEND~>0_0_0_0", 0);
	received = named(&t, "Comm.0.RECV~>0_0_0_0", 1);
	assert_int_equal(sent->kind, TRACE_SEND);
	assert_int_equal(sent->peer, 1); /* the next one of the ring */
	assert_int_equal(sent->join, received->join);
	assert_int_not_equal(sent->join, named(&t, "Comm.0.RECV~>0_0_1_0", 0)->join);
	assert_int_equal(named(&t, "BW.a", 0)->kind, TRACE_COMPUTE);
	assert_int_equal(named(&t, "BW.a", 0)->step, 1);
	trace_deinit(&t);
}

static void two_files(void **state)
{
	static const char form[] =
		"{\"distributedInfo\": {\"rank\": %u, \"world_size\": 2}, \"traceEvents\": ["
		"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclKernel\", \"pid\": 0, \"tid\": 1,"
		"\"ts\": %u.5, \"dur\": 3, \"args\": {\"Collective name\": \"send\", \"Dst Rank\": 1,"
		"\"Group size\": 2, \"Process Group Name\": \"pp\", \"Process Group Ranks\": \"[0, 1]\"}}],"
		"\"baseTimeNanoseconds\": %u000}";
	struct trace t = {0};
	struct err err;
	char text[1000];

	(void)state;
	snprintf(text, sizeof(text), form, 1, 100, 5000);
	assert_int_equal(read_text(text, "b", &t, &err), 0);
	snprintf(text, sizeof(text), form, 0, 40, 5020);
	assert_int_equal(read_text(text, "a", &t, &err), 0);
	assert_int_equal(trace_finish(&t), 0);
	assert_int_equal(t.ranks[0].rank, 0);
	assert_true(t.origin_ns == 5100000);
	assert_true(t.ops[t.ranks[0].first].start_ns == -39500);
	assert_true(t.ops[t.ranks[1].first].start_ns == 500);
	assert_int_equal(t.n_comms, 1);
	assert_int_equal(t.ops[0].kind, TRACE_SEND);
	assert_int_equal(t.ops[0].peer, 1);
	trace_deinit(&t);

	assert_int_equal(read_text(text, "a", &t, &err), 0);
	assert_int_equal(read_text(text, "again", &t, &err), -EEXIST);
	assert_non_null(strstr(err.text, "again: is of rank 0, as what was read before it"));
	trace_deinit(&t);
}

/* In doubles 0.952 + 0.049 is later than 1.001. */
static void what_begins_at_an_end_is_not_before_it(void **state)
{
	struct trace t = {0};
	struct err err = {""};

	(void)state;
	assert_int_equal(
		read_text("[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"a\", \"pid\": 0, "
			  "\"ts\": 0.952, \"dur\": 0.049}, "
			  "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"b\", \"pid\": 0, "
			  "\"ts\": 1.001, \"dur\": 1}]",
			  "f", &t, &err),
		0);
	assert_true(named(&t, "a", 0)->end_ns == named(&t, "b", 0)->start_ns);
	trace_deinit(&t);
}

/* A terminal obeys no name. */
static void names_are_safe(void **state)
{
	struct trace t = {0};
	struct err err = {""};

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			read_text(
				"[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"a\\u001b[2J \\u00e9\", "
				"\"pid\": \"h.rank3\", \"ts\": 1, \"dur\": 1}]",
				"f", &t, &err),
			i ? -EEXIST : 0);
	named(&t, "a?[2J \xc3\xa9", 0);
	trace_deinit(&t);
}

static void refused(void **state)
{
#define X "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"ts\": "
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "f: is no trace: it does not begin as JSON does"},
		{"{\"traceEvents\": []}", "f: no event is an op that PyTorch's profiler"},
		{"[" X "1, \"dur\": 1}, " X "2, \"dur\": -3}]", "f: event 2: 'k': it lasts -3 us"},
		{"[" X "1, \"dur\": 1}, " X "2}]", "f: event 2: 'k': it has no time"},
		{"[" X "1e300, \"dur\": 1}]", "f: event 1: 'k': its time of 1e+300 us is none"},
		{"[" X "1, \"dur\": 1e200}]", "f: event 1: 'k': its time is none"},
		{"[" X "1, \"dur\": 1}, " X "2, \"du",
		 "f: ends in the middle: in event 2, or behind it"},
		{"[" X "1, \"dur\": 1}", "f: ends in the middle: in event 1, or behind it"},
		{"{\"traceEvents\": [" X "1, \"dur\": 1}]",
		 "f: ends in the middle: in event 1, or behind it"},
		{"[" X "1, \"dur\": 1, \"args\": {\"waits\": [7]}}]",
		 "f: an op waits for op 7, which is not there"},
		{"[" X "1, \"dur\": 1, \"args\": {\"op\": 1, \"waits\": [2]}}, " X
		 "3, \"dur\": 1, \"args\": {\"op\": 2, \"waits\": [1]}}]",
		 "f: 'k' at 1.000 us waits for itself, by way of what it waits for"},
		{"[" X "-5, \"dur\": 1}]", "f: its times begin at -5 us"},
		{"[" X "\"1\", \"dur\": 1}]", "f: event 1: 'k': it has no time"},
		{"[" X "NaN, \"dur\": 1}]",
		 "f: event 1: at byte 60: lexical error: invalid char in json text."},
		{"[" X "1, \"dur\": 1, \"args\": {\"step\": -1}}]",
		 "f: event 1: 'k': step: -1 is no count"},
		{"[" X "1, \"dur\": 1, \"args\": {\"step\": \"x\"}}]",
		 "f: event 1: 'k': step: 'x' is no number"},
		{"[" X "1, \"dur\": 1, \"args\": {\"step\": 4294967295}}]",
		 "f: event 1: 'k': step: 4294967295 is too large"},
		{"[" X "1, \"dur\": 1, \"args\": {\"waits\": [\"x\"]}}]",
		 "f: event 1: 'k': it waits for what has no number of an op"},
		{"[" X "1, \"dur\": 1, \"pid\": \"h.rank4294967295\"}]",
		 "f: event 1: 'k': 'h.rank4294967295': ranks are below 1048576"},
		{"{\"distributedInfo\": {\"rank\": 1048576}, \"traceEvents\": [" X
		 "1, \"dur\": 1}]}",
		 "f: is of rank 1048576, as its distributedInfo or its name says"},
		{"{\"distributedInfo\": {\"rank\": \"3\"}, \"traceEvents\": [" X "1, \"dur\": 1}]}",
		 "f: distributedInfo: rank: '3' is no number"},
		{"{\"distributedInfo\": {\"rank\": -1}, \"traceEvents\": [" X "1, \"dur\": 1}]}",
		 "f: distributedInfo: rank: -1 is no count"},
		{"{\"distributedInfo\": {\"world_size\": 1e12}, \"traceEvents\": [" X
		 "1, \"dur\": 1}]}",
		 "f: distributedInfo: world_size: 1e+12: a world has at most 1048576 ranks"},
		{"[" X "1, \"dur\": 1, \"args\": {\"step\": 1.5}}]",
		 "f: event 1: 'k': step: 1.5 is no count"},
		{"\xef\xbb\xbf[]", "f: no event is an op"},
		{"\xff\xfe[", "f: is UTF-16: convert it first (iconv -f UTF-16 -t UTF-8)"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct trace t = {0};
		struct err err = {""};

		assert_int_equal(read_text(cases[i].text[0] ? cases[i].text : " ", "f", &t, &err),
				 -EINVAL);
		if (strncmp(err.text, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("'%s' instead of '%s'", err.text, cases[i].says);
		trace_deinit(&t);
	}
}

/* A trace of TRACE_OPS_MAX ops has room for no other: told at that event, not behind the last. */
static void too_many_ops(void **state)
{
	struct trace t = {.n_ops = TRACE_OPS_MAX};
	struct err err = {""};

	(void)state;
	assert_int_equal(read_text("[" X "1, \"dur\": 1}, " X "2, \"du", "f", &t, &err), -EFBIG);
	assert_string_equal(err.text, "f: event 1: 'k': more than 16777216 ops: profile fewer "
				      "steps, or merge fewer ranks");
	trace_deinit(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(pytorch),
					   cmocka_unit_test(dpro),
					   cmocka_unit_test(two_files),
					   cmocka_unit_test(what_begins_at_an_end_is_not_before_it),
					   cmocka_unit_test(names_are_safe),
					   cmocka_unit_test(refused),
					   cmocka_unit_test(too_many_ops)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
