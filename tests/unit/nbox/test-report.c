/* The report's sums: exposed communication, statistics, the JSON keys that others rely on. */
#include <stdint.h>

#include "cmocka-all.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/timing.h"
#include "members/members.h"
#include "nbox/report/measure.h"
#include "nbox/report/outcome.h"
#include "nbox/report/recall.h"
#include "nbox/report/summary.h"
#include "nbox/report/ways.h"
#include "wire/wire.h"

static struct record_comm comm;

static struct record_op row(uint64_t arrive, uint64_t end)
{
	return (struct record_op){.of = &comm,
				  .arrive_ns = arrive,
				  .due_ns = end,
				  .release_ns = end,
				  .virtual_arrive_ns = arrive,
				  .virtual_end_ns = end,
				  .plain_arrive_ns = arrive,
				  .plain_end_ns = end,
				  .bytes = 64,
				  .model_ns = (double)(end - arrive)};
}

static void time_between_ops_is_not_exposed(void **state)
{
	/* alone: all of it */
	struct record_op alone[] = {row(0, 10), row(100, 130)};
	/* the second arrives while the first is under way: only its own tail counts */
	struct record_op overlapped[] = {row(0, 50), row(30, 60), row(100, 101)};
	/* the first outlives the second */
	struct record_op outlived[] = {row(0, 90), row(30, 40), row(100, 110)};

	(void)state;
	assert_float_equal(report_exposed(alone, 2), 40, 0);
	assert_float_equal(report_exposed(overlapped, 3), 31, 0);
	assert_float_equal(report_exposed(outlived, 3), 70, 0);
	assert_float_equal(report_exposed(alone, 0), 0, 0);
}

/* 10 iterations of 3 ops: 1 ms long by the virtual clock, 0.97 ms without what-ifs; by the wall
 * clock 1.05 ms, of which gates were 5 us late. */
static void make_record(struct record *rec, struct record_op *rows)
{
	comm = (struct record_comm){.n_ranks = 128, .n_real = 1};
	memset(rec, 0, sizeof(*rec));
	rec->header.world_size = 128;
	rec->header.n_nodes = 64;
	rec->header.gpus_per_node = 2;
	rec->header.n_real = 1;
	strcpy(rec->header.model, "ring");
	for (uint64_t i = 0; i < 30; i++) {
		uint64_t at = i / 3 * 1000000 + i % 3 * 300000;

		rows[i] = row(at, at + 100000);
		rows[i].arrive_ns += i / 3 * 50000;
		rows[i].due_ns += i / 3 * 50000;
		rows[i].release_ns = rows[i].due_ns + 5000;
		rows[i].plain_arrive_ns -= i / 3 * 30000;
		rows[i].plain_end_ns -= i / 3 * 30000;
		rows[i].bytes = 1000 + i % 3;
		rows[i].injected_ns = 10000;
	}
	rec->comms = &comm;
	rec->n_comms = 1;
	rec->ops = rows;
	rec->n_ops = 30;
}

static void a_regular_run_has_steps_and_times(void **state)
{
	struct record_op rows[30];
	struct record rec;
	struct report rep;

	(void)state;
	make_record(&rec, rows);
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_int_equal(rep.n_steps, 10);
	assert_int_equal(rep.n_warm_up, 0);
	assert_int_equal(rep.ops_per_step, 3);
	assert_int_equal(rep.step_ns.n, 9);
	assert_float_equal(rep.step_ns.mean, 1e6, 1e-3);
	assert_float_equal(rep.modelled_ns, 300000,
			   1e-3); /* as by kind: without what was injected */
	assert_float_equal(rep.injected_ns, 30000, 1e-3);
	assert_float_equal(rep.virtual_ns, 1e6, 1e-3);
	assert_float_equal(rep.wall_ns, 1.05e6, 1e-3);
	assert_float_equal(rep.exposed_ns, 300000, 1e-3);
	assert_true(rep.is_exposed_bound);
	assert_float_equal(rep.lateness_ns.max, 5000, 0);
	assert_int_equal(rep.kinds[COLL_ALLREDUCE].n_ops, 30);
	assert_int_equal(rep.n_warnings, 0);
}

/* Where there are points they and the ops say what the computation waited for: in the steps that
 * are timed, by the virtual clock, at the rank that is looked at. */
static void points_and_ops_say_what_was_exposed(void **state)
{
	struct record_point points[64] = {0};
	struct record_op rows[30];
	struct record rec;
	struct report rep;
	char *text = NULL;
	size_t n = 0;
	FILE *f;

	(void)state;
	make_record(&rec, rows);
	rec.points = points;
	rec.n_points = 64;
	for (uint64_t i = 0; i < 64; i++) { /* two a step, backwards; before, and of another rank */
		points[i].virtual_ns = (63 - i) / 2 * 1000000 + 700000;
		points[i].exposed_ns = i % 2 ? 20000 : 700;
		points[i].world_rank = i < 40;
	}
	for (int i = 0; i < 30; i++) { /* three a step */
		rows[i].exposed_ns = 100;
		rows[i].shared_ns = 2e6;
		rows[i].queued_ns = 1e6;
	}
	rec.end.n_debts = 2;
	rec.end.debt_ns = 3000000;
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_float_equal(rep.exposed_ns, 21000, 1e-3);
	assert_false(rep.is_exposed_bound);
	f = open_memstream(&text, &n);
	report_print(&rep, f);
	fclose(f);
	assert_non_null(strstr(text, "exposed 0.021 ms a step\n"));
	assert_non_null(
		strstr(text, "waited 6.000 ms a step for links that other ops used, 3.000 ms for"));
	assert_non_null(strstr(
		text, "debts          2 ops ended later than the job was told, by 3.00 ms in all"));
	assert_non_null(strstr(text, "wall clock     1.050 ms a step (+5.0 %); the times above"));
	assert_null(strstr(text, "what-ifs "));
	free(text);
	rec.n_points = 40; /* none of this rank */
	strcpy(rec.header.model, "ring + slow:rank=3,compute=2");
	assert_int_equal(report_make(&rec, &rep), 0);
	f = open_memstream(&text, &n);
	report_print(&rep, f);
	fclose(f);
	assert_non_null(strstr(text, "exposed at most 0.300 ms"));
	assert_non_null(strstr(text, "what-ifs       injected 0.030 ms a step"));
	free(text);
}

/* Wall times and gates of ranks that a record plays are of another run. */
static void a_rank_with_a_process_is_looked_at(void **state)
{
	struct record_op rows[30];
	struct record rec;
	struct report rep;

	(void)state;
	make_record(&rec, rows);
	for (uint32_t i = 0; i < 30; i++) {
		rows[i].world_rank = i % 2 ? 3 : 1;
		rows[i].flags |= i % 2 ? 0 : RECORD_NO_PROCESS;
	}
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_int_equal(rep.rank, 3);
	assert_int_equal(rep.n_ops, 15);
	assert_int_equal(rep.lateness_ns.n, 15);
	for (uint32_t i = 0; i < 30; i++)
		rows[i].flags |= RECORD_NO_PROCESS;
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_int_equal(rep.rank, 1);
	assert_int_equal(rep.lateness_ns.n, 0);
}

/* Lateness has a sign: a gate that opened early is counted, told, and not taken for one in time. */
static void a_gate_that_opened_early_is_told(void **state)
{
	struct record_op rows[30];
	struct record rec;
	struct report rep;
	char *text = NULL;
	size_t n = 0;
	FILE *f;

	(void)state;
	make_record(&rec, rows);
	rows[3].release_ns = rows[3].due_ns; /* in time */
	rows[7].release_ns = rows[7].due_ns - 2500;
	rows[8].release_ns = rows[8].due_ns - 1;
	rec.end.clock_error_ns = 12300;
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_int_equal(rep.n_early, 2);
	assert_float_equal(rep.lateness_ns.min, -2500, 0);
	assert_float_equal(rep.lateness_ns.max, 5000, 0);
	assert_int_equal(rep.n_warnings, 1);
	assert_non_null(strstr(rep.warnings[0],
			       "2 of 30 gates opened before they were due, by up to 2.50 us"));
	f = open_memstream(&text, &n);
	report_print(&rep, f);
	fclose(f);
	assert_non_null(strstr(text, "(of 30 released gates; 2 EARLY, by up to 2.50 us)"));
	assert_non_null(strstr(text, "within 12.3 us of nboxd's"));
	free(text);
	rows[7].release_ns += 2500;
	rows[8].release_ns += 1;
	rec.end.clock_error_ns = 0;
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_int_equal(rep.n_early, 0);
	assert_int_equal(rep.n_warnings, 0);
	f = open_memstream(&text, &n);
	report_print(&rep, f);
	fclose(f);
	assert_non_null(strstr(text, "(of 30 released gates; none early)"));
	assert_null(strstr(text, "clocks"));
	free(text);
}

static void figures_not_to_be_believed_are_warned_of(void **state)
{
	struct record_op rows[30];
	struct record rec;
	struct report rep;

	(void)state;
	make_record(&rec, rows);
	rec.n_ops = 0;
	assert_int_equal(report_make(&rec, &rep), 0);
	/* guesses only where nothing is known */
	report_outcome(&rep, -1, NULL);
	report_outcome(&rep, 0, "/nowhere");
	report_outcome(&rep, 3, NULL);
	assert_int_equal(rep.n_warnings, 3);
	assert_non_null(strstr(
		rep.warnings[0],
		"no op was recorded: the job ended before its first op was over, called NCCL not at all"));
	assert_string_equal(rep.warnings[1], rep.warnings[0]);
	assert_string_equal(
		rep.warnings[2],
		"no op was recorded: the job ended with exit code 3 before its first op was over");
	rec.n_ops = 30;
	comm.source = MEMBERS_GUESS;
	comm.sure = MEMBERS_GUESSED;
	rows[4].flags = RECORD_BELOW_BOUND;
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_int_equal(rep.n_warnings, 2);
	rows[5].flags = RECORD_FAR_ABOVE;
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_int_equal(rep.n_warnings, 3);
	assert_non_null(strstr(rep.warnings[2],
			       "1 of 30 modelled times are more than twice the bound, such as "));
	strcpy(rec.header.model, "none");
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_int_equal(rep.n_warnings, 1);
}

/* What workers told: warnings, but for where bodies lay. */
static void what_workers_said_is_in_the_report(void **state)
{
	char dir[] = "/tmp/nbox-report-XXXXXX", path[64];
	struct record_op rows[30];
	struct record rec;
	struct report rep;
	struct err err;
	json_t *o;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/" RECORD_NOTES, dir);
	f = fopen(path, "w");
	assert_non_null(f);
	/* a worker's words need be neither UTF-8 nor well meant */
	fputs(WIRE_NOTE_PAYLOAD
	      "device (8 MiB)\nno driver in /tmp/\xff\x1b[2J\n\n" WIRE_NOTE_PAYLOAD
	      "host (\xc3)\n" WIRE_NOTE_TOOK "AllReduce ring LL\n" WIRE_NOTE_TRAFFIC
	      "12 from real ranks\n",
	      f);
	assert_int_equal(fclose(f), 0);
	make_record(&rec, rows);
	assert_int_equal(report_make(&rec, &rep), 0);
	report_outcome(&rep, 0, dir);
	assert_string_equal(rep.payload_memory, "device (8 MiB); host (?)");
	assert_string_equal(rep.took, "AllReduce ring LL");
	assert_string_equal(rep.messages, "12 from real ranks");
	assert_int_equal(rep.n_warnings, 1);
	assert_string_equal(rep.warnings[0], "no driver in /tmp/??[2J");
	assert_int_equal(report_write_json(&rep, 0, path, &err), 0);
	o = json_load_file(path, 0, NULL);
	assert_string_equal(json_string_value(json_array_get(json_object_get(o, "warnings"), 0)),
			    "no driver in /tmp/??[2J");
	assert_string_equal(json_string_value(json_object_get(o, "payload_memory")),
			    "device (8 MiB); host (?)");
	assert_string_equal(json_string_value(json_object_get(o, "nccl_took")),
			    "AllReduce ring LL");
	assert_string_equal(json_string_value(json_object_get(o, "nccl_messages")),
			    "12 from real ranks");
	assert_string_equal(json_string_value(json_object_get(o, "nccl")), "gate");
	json_decref(o);
	unlink(path);
	rmdir(dir);
}

static void the_summary_has_its_keys(void **state)
{
	static const char *const keys[] = {"world_size", "nodes",      "real_ranks",  "ops",
					   "steps",      "exposed_ms", "injected_ms", "data",
					   "model",      "seed",       "exit_code",   "warnings"};
	char path[] = "/tmp/nbox-report-XXXXXX";
	struct record_op rows[30];
	struct record rec;
	struct report rep;
	struct err err;
	json_t *o, *it;

	(void)state;
	make_record(&rec, rows);
	assert_int_equal(report_make(&rec, &rep), 0);
	close(mkstemp(path));
	assert_int_equal(report_write_json(&rep, 3, path, &err), 0);
	o = json_load_file(path, 0, NULL);
	unlink(path);
	assert_non_null(o);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		assert_non_null(json_object_get(o, keys[i]));
	it = json_object_get(json_object_get(o, "steps"), "ms");
	assert_true(json_real_value(json_object_get(it, "mean")) == 1.0);
	assert_non_null(json_object_get(it, "p50"));
	assert_non_null(json_object_get(it, "p95"));
	it = json_object_get(o, "lateness_us");
	assert_true(json_real_value(json_object_get(it, "max")) == 5.0);
	assert_int_equal(json_integer_value(json_object_get(o, "exit_code")), 3);
	json_decref(o);
	assert_true(report_write_json(&rep, 0, "/nowhere/x.json", &err) < 0);
	assert_non_null(strstr(err.text, "/nowhere/x.json"));
}

/* Communicators by size and by how their members are known; a guess is a warning. */
static char *printed(const struct report *r)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	report_print(r, f);
	fclose(f);
	return text;
}

/* Which of its two ways made the numbers, and what they are worth. */
static void the_way_is_told(void **state)
{
	static const struct {
		uint32_t nccl, exchange, data, kind;
		const char *const want[4];
	} cases[] = {
		{NCCL_GATE,
		 EXCHANGE_NONE,
		 DATA_MIRROR,
		 COLL_ALLREDUCE,
		 {"real; exchange none; model ring",
		  "nccl           gate: nbox's decisions and messages, times by the model\n",
		  "data           mirror\n"}},
		{NCCL_FULL,
		 EXCHANGE_PAYLOAD,
		 DATA_MIRROR,
		 COLL_ALLREDUCE,
		 {"real; nccl full; exchange payload; model ring",
		  "nccl           full: NCCL's own decisions and messages, times by the model\n",
		  "data           mirror: reductions are right, as with the gate\n"}},
		{NCCL_FULL,
		 EXCHANGE_PAYLOAD,
		 DATA_MIRROR,
		 COLL_SENDRECV,
		 {"data           mirror: reductions are right, as with the gate; receives that no "
		  "template's send mirrors are zeros\n"}},
		{NCCL_FULL,
		 EXCHANGE_PAYLOAD,
		 DATA_IDENTITY,
		 COLL_ALLGATHER,
		 {"data           identity: what virtual ranks send comes as zeros\n"}},
		{NCCL_FULL,
		 EXCHANGE_PAYLOAD,
		 DATA_NONE,
		 COLL_ALLREDUCE,
		 {"data           none: values are not cared for, and the loss means nothing\n"}},
		{NCCL_FULL,
		 EXCHANGE_MESSAGES,
		 DATA_MIRROR,
		 COLL_ALLREDUCE,
		 {"real; nccl full; exchange messages; model ring",
		  "data           mirror: NCCL's messages had no bytes: reductions are wrong, and the "
		  "loss means nothing\n"}},
	};
	struct record_op rows[30];
	struct record rec;
	struct report rep;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text;

		make_record(&rec, rows);
		for (size_t k = 0; k < 30; k++)
			rows[k].kind = cases[i].kind;
		rec.header.nccl = cases[i].nccl;
		rec.header.exchange = cases[i].exchange;
		rec.header.data = cases[i].data;
		assert_int_equal(report_make(&rec, &rep), 0);
		text = printed(&rep);
		for (size_t k = 0; cases[i].want[k]; k++)
			if (!strstr(text, cases[i].want[k]))
				fail_msg("no '%s' in\n%s", cases[i].want[k], text);
		free(text);
	}
	strcpy(rep.header.retimed_of, "run");
	assert_string_equal(report_way(&rep.header), "full: NCCL's own decisions and messages in "
						     "the run; times anew by the model");
}

static void communicators_that_are_alike_share_a_line(void **state)
{
	static const struct record_comm of_dp = {.n_ranks = 64,
						 .n_real = 1,
						 .source = MEMBERS_LAYOUT,
						 .axes = 2};
	struct record_comm comms[4] = {{.n_ranks = 128, .n_real = 1}, of_dp, of_dp, of_dp};
	struct record_op rows[30];
	struct record rec;
	struct report rep;
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	(void)state;
	make_record(&rec, rows);
	strcpy(rec.header.layout, "tp=2,dp=64");
	rec.comms = comms;
	rec.n_comms = 4; /* the last one has no ops */
	for (uint32_t i = 0; i < 30; i++)
		rows[i].of = &comms[i % 3];
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_int_equal(rep.n_comms, 2);
	assert_int_equal(rep.comms[0].n_ranks, 128);
	assert_int_equal(rep.comms[1].n, 2);
	assert_int_equal(rep.comms[1].n_ops, 20);
	assert_int_equal(rep.n_warnings, 0);
	f = open_memstream(&text, &size);
	report_print(&rep, f);
	fclose(f);
	assert_non_null(strstr(text, "2 of 64 ranks, dp, 1 real: layout, exact"));
	free(text);
	for (uint32_t i = 0; i < 3; i++)
		comms[i].sure = MEMBERS_GUESSED;
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_int_equal(rep.n_warnings, 1);
	assert_non_null(strstr(rep.warnings[0], "fits more than one group of --layout"));
	/* a world that the job does not believe in */
	for (uint32_t i = 0; i < 3; i++)
		comms[i] = (struct record_comm){.n_ranks = 2, .n_real = 2};
	rec.header.world_size = 128;
	rec.header.n_real = 2;
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_int_equal(rep.n_warnings, 1);
	assert_non_null(strstr(
		rep.warnings[0],
		"no virtual rank took part in any op: the largest communicator has 2 ranks, the world 128"));
	rec.header.n_real = 128;
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_int_equal(rep.n_warnings, 0);
	for (uint32_t i = 0; i < 3; i++)
		comms[i].sure = MEMBERS_GUESSED;
	rec.header.layout[0] = '\0';
	assert_int_equal(report_make(&rec, &rep), 0);
	assert_non_null(strstr(rep.warnings[0], "declare the axes"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(communicators_that_are_alike_share_a_line),
		cmocka_unit_test(the_way_is_told),
		cmocka_unit_test(time_between_ops_is_not_exposed),
		cmocka_unit_test(a_regular_run_has_steps_and_times),
		cmocka_unit_test(points_and_ops_say_what_was_exposed),
		cmocka_unit_test(a_rank_with_a_process_is_looked_at),
		cmocka_unit_test(a_gate_that_opened_early_is_told),
		cmocka_unit_test(figures_not_to_be_believed_are_warned_of),
		cmocka_unit_test(what_workers_said_is_in_the_report),
		cmocka_unit_test(the_summary_has_its_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
