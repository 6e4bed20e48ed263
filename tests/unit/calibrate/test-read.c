/* The readers of measured times: what each sort of text gives, and the place of what is wrong. */
#include "cmocka-all.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "calibrate/read.h"
#include "nbox-delaymodel.h"

static const struct read_hints nothing = {.kind = -1};

static struct samples must_read(const char *text, const struct read_hints *hints)
{
	struct samples s = {.list = NULL};
	struct err err = {""};

	if (read_text("f", text, strlen(text), hints, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static void must_be(const struct sample *s, uint32_t kind, uint32_t n_ranks, uint32_t n_nodes,
		    double bytes, double us)
{
	assert_int_equal(s->kind, kind);
	assert_int_equal(s->n_ranks, n_ranks);
	assert_int_equal(s->n_nodes, n_nodes);
	assert_true(s->bytes == bytes);
	assert_true(fabs(s->ns / 1e3 - us) < 1e-9 * us);
}

#define RANK(n, host) \
	"#  Rank  " n " Group  0 Pid   6899 on " host " device  0 [0000:04:00] NVIDIA H100\n"
#define COLUMNS                                                                                       \
	"#                                                              out-of-place                " \
	"       in-place          \n"                                                                 \
	"#       size         count      type   redop    root     time   algbw   busbw #wrong     "   \
	"time   algbw   busbw #wrong\n"                                                               \
	"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "   \
	"(us)  (GB/s)  (GB/s)       \n"

static const char two_runs[] =
	"host1:77:88 [0] NCCL INFO Bootstrap : Using eth0\n"
	"# nccl-tests version 2.17.1 nccl-headers=22707 nccl-library=22707\n"
	"# Collective test starting: all_reduce_perf\n"
	"# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20\n"
	"#\n# Using devices\n" RANK("0", "host1") RANK("1", "host1") RANK("2", "host2") RANK(
		"3",
		"host2") "#  Rank  4 Group  1 Pid 7 on host3 device  0 [0000:04:00] H100\n"
			 "#\n" COLUMNS
			 "           0             0     float     sum      -1     0.11    0.00    0.00      0     0.10  "
			 "  0.00    0.00      0\n"
			 "           8             2     float     sum      -1    68.52    0.00    0.00      0    24.70  "
			 "  0.00    0.00      0\n"
			 "[1,0]<stdout>:          16             4     float     sum      -1    24.96    0.00    0.00      "
			 "0    24.50    0.00    0.00    N/A\n"
			 "host1:77:88 [0] NCCL INFO comm 0x1234 rank 0 nranks 4 - Destroy COMPLETE\n"
			 "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.000123 \n#\n"
			 "# Collective test concluded: all_reduce_perf\n\n"
			 "$ mpirun -np 2 ./build/alltoall_perf -b 1M -e 1M\n"
			 "# nThread 1 nGpus 2 minBytes 1048576 maxBytes 1048576\n" RANK("0",
											"host9")
				 RANK("1", "host9") COLUMNS
	"     1048576        131072     float    none      -1  1.2e+03   42.00   21.00    N/A    100.0   "
	"42.00   21.00    N/A\n";

static void the_text_of_nccl_tests_gives_each_run(void **state)
{
	struct read_hints hints = nothing;
	struct samples s = must_read(two_runs, &hints);

	(void)state;
	assert_int_equal(s.n, 3);
	must_be(&s.list[0], COLL_ALLREDUCE, 4, 2, 8, 68.52);
	must_be(&s.list[1], COLL_ALLREDUCE, 4, 2, 16, 24.96);
	must_be(&s.list[2], COLL_ALLTOALL, 2, 1, 1048576, 1200);
	samples_deinit(&s);
	hints.in_place = true;
	hints.kind = COLL_ALLREDUCE;
	s = must_read(two_runs, &hints);
	assert_int_equal(s.n, 2);
	must_be(&s.list[0], COLL_ALLREDUCE, 4, 2, 8, 24.70);
	samples_deinit(&s);
}

static const char document[] =
	"{\"version\":2,\"start_time\":\"2026-01-02 03:04:05\",\"args\":[\"/opt/all_gather_perf\",\"-b\"],"
	"\"env\":[\"A=b\"],\"nccl_version\":22907,\"config\":{\"nthreads\":1,\"devices\":["
	"{\"rank\":0,\"group\":0,\"hostname\":\"a\"},{\"rank\":1,\"group\":0,\"hostname\":\"b\"},"
	"{\"rank\":2,\"group\":1,\"hostname\":\"c\"}]},\n\"results\":["
	"{\"size\":0,\"count\":0,\"type\":\"float\",\"out_of_place\":{\"time\":0.1,\"nwrong\":null}},"
	"{\"size\":1024,\"count\":128,\"type\":\"float\",\"redop\":\"none\",\"root\":\"    -1\","
	"\"out_of_place\":{\"time\":34.050000,\"alg_bw\":0.03,\"bus_bw\":0.015,\"nwrong\":0.000000},"
	"\"in_place\":{\"time\":33.5,\"alg_bw\":0.03,\"bus_bw\":0.015,\"nwrong\":null},"
	"\"actual_iterations\":20,\"experiment_name\":\"\"}],\"errors\":[]}\n";

static void the_json_of_nccl_tests_gives_its_results(void **state)
{
	struct samples s = must_read(document, &nothing);

	(void)state;
	assert_int_equal(s.n, 1);
	must_be(&s.list[0], COLL_ALLGATHER, 2, 2, 1024, 34.05);
	samples_deinit(&s);
}

#define RECORD(coll, bytes, us, more)                                                          \
	"{\"header\":{\"id\":\"0x9e\",\"rank\":31,\"n_ranks\":32,\"nnodes\":4},\"metadata\":{" \
	"\"inspector_output_format_version\":\"v4.0\",\"hostname\":\"h\",\"pid\":4},"          \
	"\"coll_perf\":{\"coll\":\"" coll "\",\"coll_sn\":129,\"coll_msg_size_bytes\":" bytes  \
	",\"coll_exec_time_us\":" us ",\"coll_timing_source\":\"kernel_gpu\"" more "}}\n"

/* Inspector counts one rank's part, and its own bandwidth is that of all parts. */
static void the_records_of_inspector_give_sizes_of_all_parts(void **state)
{
	struct samples s = must_read(
		RECORD("ReduceScatter", "65536", "110", ",\"coll_algobw_gbs\":19.065018") RECORD(
			"AllReduce", "4096", "21",
			",\"coll_proto\":\"LL128\"") "{\"header\":{\"n_ranks\":2},\"p2p_perf\":{\"p2p\":\"Send\"}}\n",
		&nothing);

	(void)state;
	assert_int_equal(s.n, 2);
	must_be(&s.list[0], COLL_REDUCESCATTER, 32, 4, 65536 * 32, 110);
	assert_true(fabs(s.list[0].bytes / s.list[0].ns - 19.065018) < 1e-5);
	assert_int_equal(s.list[0].proto, CURVE_ANY_PROTO);
	must_be(&s.list[1], COLL_ALLREDUCE, 32, 4, 4096, 21);
	assert_int_equal(s.list[1].proto, NBOX_LL128);
	samples_deinit(&s);
}

static void the_text_of_param_gives_medians(void **state)
{
	static const char text[] =
		"\tCOMMS-RES    size (B)  nElementsPerRank  Latency(us):p50   p75   p95   Min   Max  "
		"AlgBW(GB/s)  BusBW(GB/s)\n"
		"\tCOMMS-RES-all_to_allv-float32\t    4096    1024   33.1   34.0  35.2   30.0  40.1   "
		"0.124   0.062\n"
		"0: \tCOMMS-RES-all_gather_base-float32   8192   1024   43.1   34.0  35.2   30.0  40.1   "
		"0.124   0.062\n";
	const struct read_hints hints = {.kind = -1, .n_ranks = 16, .n_nodes = 2};
	struct samples s = must_read(text, &hints);

	(void)state;
	assert_int_equal(s.n, 2);
	must_be(&s.list[0], COLL_ALLTOALL, 16, 2, 4096, 33.1);
	must_be(&s.list[1], COLL_ALLGATHER, 16, 2, 8192, 43.1);
	samples_deinit(&s);
}

static void csv_has_named_columns(void **state)
{
	struct samples s = must_read("# old cluster\n\nkind, bytes,ms,note,ranks,nodes\n"
				     "all_reduce, 4M,0.25,x,16,2\nsendrecv,1048576,3,,2,2\r\n",
				     &nothing);

	(void)state;
	assert_int_equal(s.n, 2);
	must_be(&s.list[0], COLL_ALLREDUCE, 16, 2, 4 << 20, 250);
	must_be(&s.list[1], COLL_SENDRECV, 2, 2, 1 << 20, 3000);
	samples_deinit(&s);
}

static void what_is_wrong_has_its_place(void **state)
{
	static const struct {
		const char *text, *sentence;
		struct read_hints hints;
	} rows[] = {
		{"", "f:0: there is no row of nccl-tests", {.kind = -1}},
		{"hello\nworld\n", "f:2: there is no row of nccl-tests", {.kind = -1}},
		{COLUMNS "8 2 float sum -1 5.0 0 0 0 5 0 0 0\n",
		 "f:4: of which collective? The file does not say: --coll",
		 {.kind = -1}},
		{COLUMNS "8 2 float sum -1 5.0 0 0 0 5 0 0 0\n",
		 "f:4: on how many ranks? The file does not say: --ranks N",
		 {.kind = COLL_ALLREDUCE}},
		{COLUMNS "8 2 float sum -1 5.0 0 0 0 5 0 0 0\n",
		 "f:4: on how many nodes? The file does not say: --nodes N",
		 {.kind = COLL_ALLREDUCE, .n_ranks = 8}},
		{COLUMNS "8 2 float sum -1 5.0 0 0 0 5 0 0 0\n",
		 "f:4: 8 ranks on 9 nodes",
		 {.kind = COLL_ALLREDUCE, .n_ranks = 8, .n_nodes = 9}},
		{"# all_reduce_perf\n" RANK("0", "a") RANK("1", "a") COLUMNS
		 "8 2 float sum -1 5.0 0 0 0 5 0 0 0\n",
		 "f:7: measured on 2 ranks, not on 4 (--ranks)",
		 {.kind = -1, .n_ranks = 4}},
		{"8 2 float sum -1 5.0 0 0 0 5 0 0 0\n",
		 "f:1: a row, but no line above it names the columns",
		 {.kind = 0, .n_ranks = 8, .n_nodes = 1}},
		{COLUMNS "8 2 float sum -1 5.0\n",
		 "f:4: the row has 6 columns; its time is the 6th",
		 {.kind = 0, .n_ranks = 8, .n_nodes = 1}},
		{COLUMNS "8 2 float sum -1 -5.0 0 0 0 5 0 0 0\n",
		 "f:4: time: '-5.0' is no number above 0",
		 {.kind = 0, .n_ranks = 8, .n_nodes = 1}},
		{COLUMNS "8 2 float sum -1 5.0 0 0 7 5 0 0 0\n",
		 "f:4: 7 results were wrong: no time to trust",
		 {.kind = 0, .n_ranks = 8, .n_nodes = 1}},
		{"# size count type redop root cputime algbw\n",
		 "f:1: the times are the CPU's (-C), not the ops'",
		 {.kind = -1}},
		{"{\"results\":1}", "f:1: neither nccl-tests' JSON (no results)", {.kind = -1}},
		{"{\n\"results\":[\n}", "f:3: no JSON: ", {.kind = -1}},
		{"{\"results\":[{\"size\":8,\"out_of_place\":null}]}",
		 "f:1: results[0].out_of_place has no time above 0",
		 {.kind = -1}},
		{"{\"results\":[{\"size\":8,\"out_of_place\":{\"cpu_time\":5}}]}",
		 "f:1: results[0].out_of_place: the times are the CPU's",
		 {.kind = -1}},
		{"{\"results\":[]}", "f has no time of a collective", {.kind = -1}},
		{RECORD("AllReduce", "8", "5", "") RECORD("AllReduce", "8", "0", ""),
		 "f:2: coll_perf has no coll_exec_time_us above 0",
		 {.kind = -1}},
		{RECORD("AllReduce", "8", "5", "") RECORD("AllSums", "8", "5", ""),
		 "f:2: nbox knows no collective 'AllSums'",
		 {.kind = -1}},
		{RECORD("AllReduce", "8", "5", ""),
		 "f has no time of Reduce",
		 {.kind = COLL_REDUCE}},
		{"COMMS-RES-all_reduce-float32 8 2 5\n",
		 "f:1: 3 columns behind COMMS-RES-...; a row has",
		 {.kind = -1}},
		{"COMMS-RES-pt2pt-float32 8 2 5 5 5 5 5 5 5\n",
		 "f:1: nbox knows no collective 'pt2pt'",
		 {.kind = -1}},
		{"COMMS-RES-QUANT-all_reduce-float32 8 2 5 5 5 5\n",
		 "f:1: 'COMMS-RES-QUANT-all_reduce-float32' is no time of a plain collective",
		 {.kind = -1}},
		{"kind,bytes,us,ms\n",
		 "f:1: the columns must have bytes, and one of ns",
		 {.kind = -1}},
		{"kind,bytes,us,us\n", "f:1: the column us stands there twice", {.kind = -1}},
		{"kind,bytes,us\nallreduce,8\n", "f:2: 2 cells; there are 3 columns", {.kind = -1}},
		{"kind,bytes,us\nalreduce,8,1\n",
		 "f:2: nbox knows no collective 'alreduce'",
		 {.kind = -1}},
		{"kind,bytes,us\nallreduce,8 apples,1\n",
		 "f:2: bytes: '8 apples' is no size",
		 {.kind = -1}},
		{"bytes,us,ranks\n8,1,2.5\n", "f:2: ranks: '2.5' is no whole number", {.kind = 0}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct samples s = {.list = NULL};
		struct err err = {""};

		assert_int_equal(read_text("f", rows[i].text, strlen(rows[i].text), &rows[i].hints,
					   &s, &err),
				 -EINVAL);
		if (strncmp(err.text, rows[i].sentence, strlen(rows[i].sentence)) != 0)
			fail_msg("%s\nis not\n%s", err.text, rows[i].sentence);
		samples_deinit(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_of_nccl_tests_gives_each_run),
		cmocka_unit_test(the_json_of_nccl_tests_gives_its_results),
		cmocka_unit_test(the_records_of_inspector_give_sizes_of_all_parts),
		cmocka_unit_test(the_text_of_param_gives_medians),
		cmocka_unit_test(csv_has_named_columns),
		cmocka_unit_test(what_is_wrong_has_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
