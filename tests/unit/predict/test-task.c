/* From a trace to a task: the digest's task A, as a profiler would have seen it, comes out again;
 * overheads, copies of ranks, other speeds, what is refused. */
#include "cmocka-all.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "predict/task.h"
#include "schedule/coll.h"
#include "trace/finish.h"
#include "trace/guess.h"

static const struct predict_host paper = {5000, 3000, 2000, 4000, 1000, 1000};

enum { LOOKUP, EXCHANGE, MLP, INTER, VIEW, REDUCE, BESIDE, BEHIND, OPS };

static const struct {
	const char *name;
	double us[2];
	int comm, after; /* -1 */
} ops[OPS] = {
	{"fbgemm::lookup", {100, 0}, -1, -1}, {"c10d::alltoall", {50, 0}, 0, -1},
	{"aten::mlp", {80, 0}, -1, -1},       {"aten::inter", {30, 10}, -1, EXCHANGE},
	{"aten::view", {0, 0}, -1, -1},       {"c10d::allreduce", {40, 0}, 1, -1},
	{"aten::beside", {25, 0}, -1, -1},    {"aten::behind", {20, 0}, -1, REDUCE},
};

/* Two ranks; the second one looks up for 160 us. */
struct golden {
	struct predict_rank ranks[2];
	struct predict_op ops[2 * OPS];
	struct predict_kernel kernels[40];
	struct predict_task t;
	struct predict p;
};

static void play_golden(struct golden *g)
{
	uint32_t op;

	memset(g, 0, sizeof(*g));
	for (uint32_t r = 0; r < 2; r++) {
		g->ranks[r] = (struct predict_rank){.first = g->t.n_ops, .n = OPS};
		for (uint32_t i = 0; i < OPS; i++) {
			struct predict_op *o = &g->ops[g->t.n_ops++];
			uint32_t n = (ops[i].us[0] > 0) + (ops[i].us[1] > 0);

			*o = (struct predict_op){.first = g->t.n_kernels,
						 .n = n,
						 .join = PREDICT_NONE,
						 .after = PREDICT_NONE,
						 .host = &paper};
			if (ops[i].comm >= 0)
				o->join = (uint32_t)ops[i].comm;
			if (ops[i].after >= 0)
				o->after = g->ranks[r].first + (uint32_t)ops[i].after;
			for (uint32_t k = 0; k < n; k++)
				g->kernels[g->t.n_kernels++] = (struct predict_kernel){
					1000 * (ops[i].us[k] + (r && i == LOOKUP ? 60 : 0)), 0,
					ops[i].comm >= 0 ? PREDICT_COLLECTIVE : PREDICT_COMPUTE,
					false};
		}
	}
	g->t = (struct predict_task){.ranks = g->ranks,
				     .ops = g->ops,
				     .kernels = g->kernels,
				     .n_ranks = 2,
				     .n_ops = 2 * OPS,
				     .n_kernels = g->t.n_kernels,
				     .n_joins = 2};
	assert_int_equal(predict_play(&g->t, PREDICT_EVENT, &g->p, &op), 0);
}

static uint32_t add(struct trace *t, uint32_t kind, uint32_t rank, const char *name, double start,
		    double end, uint32_t launched_by)
{
	struct trace_op op = {.start_ns = start,
			      .end_ns = end,
			      .seq = UINT64_MAX,
			      .kind = kind,
			      .rank = rank,
			      .stream = kind == TRACE_COLLECTIVE ? 20 : 7,
			      .step = 0,
			      .coll = TRACE_NONE,
			      .comm = TRACE_NONE,
			      .peer = TRACE_NONE,
			      .launched_by = launched_by,
			      .parent = TRACE_NONE};
	struct err err = {""};
	uint32_t n;

	assert_int_equal(trace_add_name(t, name, &op.name), 0);
	assert_int_equal(trace_add_op(t, &op, &n, &err), 0);
	return n;
}

/* What a profiler would have written. */
static void trace_golden(const struct golden *g, struct trace *t, bool has_waits)
{
	uint32_t host, rank, comm, comm_ops[OPS];

	memset(t, 0, sizeof(*t));
	assert_int_equal(trace_add_host(t, "node", &host), 0);
	assert_int_equal(trace_add_comm(t, "dp", 2, NULL, &comm), 0);
	for (uint32_t r = 0; r < 2; r++) {
		double at = 0;

		assert_int_equal(trace_add_rank(t, r, host, &rank), 0);
		add(t, TRACE_HOST, rank, "ProfilerStep#0", 0, 500e3, TRACE_NONE);
		for (uint32_t i = 0; i < OPS; i++) {
			const struct predict_op *o = &g->ops[g->ranks[r].first + i];
			double begin = at + paper.before, end = begin + paper.next;

			if (o->n)
				end = begin + paper.first + o->n * paper.launch +
				      (o->n - 1) * paper.next + paper.last;
			add(t, TRACE_HOST, rank, ops[i].name, begin, end, TRACE_NONE);
			for (uint32_t k = o->first; k < o->first + o->n; k++) {
				const struct predict_time *time = &g->p.kernels[k];
				uint32_t call =
					add(t, TRACE_CALL, rank, "cudaLaunchKernel", time->host,
					    time->host + paper.launch, TRACE_NONE);
				bool is_comm = ops[i].comm >= 0;
				uint32_t kernel =
					add(t, is_comm ? TRACE_COLLECTIVE : TRACE_COMPUTE, rank,
					    is_comm ? "ncclDevKernel" : "kernel",
					    is_comm ? time->ready : time->start, time->end, call);

				if (is_comm) {
					comm_ops[i] = kernel;
					t->ops[kernel].coll = COLL_ALLREDUCE;
					t->ops[kernel].comm = comm;
					t->ops[kernel].seq = i; /* joined by it */
				}
				if (has_waits && ops[i].after >= 0 && k == o->first)
					assert_int_equal(trace_add_wait(t, kernel,
									comm_ops[ops[i].after]),
							 0);
			}
			at = end;
		}
	}
	assert_int_equal(trace_finish(t), 0);
}

static double predict_ns(const struct trace *t, const struct task_settings *s)
{
	struct calls *calls = host_calls_by_step(t);
	struct exchanges x;
	struct task task;
	struct predict p;
	struct err err = {""};
	uint32_t op;
	double ns;

	assert_int_equal(exchanges_find(t, &x), 0);
	assert_non_null(calls);
	if (task_make(t, &x, calls, TRACE_NONE, s, &task, &err) < 0)
		fail_msg("%s", err.text);
	host_calls_free(calls, t->n_ranks);
	exchanges_deinit(&x);
	assert_true(task.has_host);
	assert_int_equal(predict_play(&task.t, PREDICT_EVENT, &p, &op), 0);
	ns = p.ns;
	predict_deinit(&p);
	task_deinit(&task);
	return ns;
}

static void near(double got, double want)
{
	if (fabs(got - want) > 1e-6 * want)
		fail_msg("%.9g is not %.9g", got, want);
}

static void a_traced_task_comes_out_again(void **state)
{
	const struct overhead_profiler none = {0, 0};
	struct overheads ov;
	struct golden g;
	struct trace t;

	(void)state;
	play_golden(&g);
	near(g.p.ns, 355e3);
	for (int has_waits = 0; has_waits < 2; has_waits++) {
		trace_golden(&g, &t, has_waits);
		assert_int_equal(trace_guess_waits(&t), 0);
		assert_true(t.has_guessed_waits == !has_waits);
		assert_int_equal(overheads_find(&t, &none, &ov), 0);
		near(ov.all[OVERHEAD_T1].mean_ns, paper.before);
		near(ov.all[OVERHEAD_T2].mean_ns, paper.first);
		near(ov.all[OVERHEAD_T3].mean_ns, paper.last);
		near(ov.all[OVERHEAD_T4].mean_ns, paper.launch);
		near(ov.all[OVERHEAD_T5].mean_ns, paper.next);
		assert_true(ov.all[OVERHEAD_T1].n == 14 && ov.all[OVERHEAD_T4].n == 16);
		near(predict_ns(&t, &(struct task_settings){.overheads = &ov}), 355e3);
		near(predict_ns(&t, &(struct task_settings){.overheads = &ov, .n_ranks = 4}),
		     355e3);
		overheads_deinit(&ov);
		trace_deinit(&t);
	}
	predict_deinit(&g.p);
}

static void ranks_may_compute_otherwise(void **state)
{
	const double alike[] = {1, 1, 1, 2}, slow[] = {2, 1};
	const struct overhead_profiler none = {0, 0};
	struct overheads ov;
	struct golden g;
	struct trace t;

	(void)state;
	play_golden(&g);
	trace_golden(&g, &t, true);
	assert_int_equal(overheads_find(&t, &none, &ov), 0);
	/* By hand, at rank 0: the lookup ends at 210, mlp at 371, inter at 453, beside at 504,
	 * which is later than the all-reduce, and what is behind them at 545. */
	near(predict_ns(&t, &(struct task_settings){.overheads = &ov, .scales = slow}), 545e3);
	/* a fourth rank, a copy of rank 1, at half its speed */
	assert_true(predict_ns(&t, &(struct task_settings){.overheads = &ov,
							   .n_ranks = 4,
							   .scales = alike}) > 600e3);
	overheads_deinit(&ov);
	trace_deinit(&t);
	predict_deinit(&g.p);
}

/* The paper's own corrections: of 2 us an event and 4 us a launch nothing is left of these, and
 * nothing is negative. */
static void the_profilers_part_is_left_out(void **state)
{
	struct overheads ov;
	struct golden g;
	struct trace t;

	(void)state;
	play_golden(&g);
	trace_golden(&g, &t, true);
	assert_int_equal(overheads_find(&t, &overhead_profiler_paper, &ov), 0);
	near(ov.all[OVERHEAD_T1].mean_ns, paper.before - 2000);
	near(ov.all[OVERHEAD_T2].mean_ns, paper.first - 2000);
	assert_true(ov.all[OVERHEAD_T4].mean_ns == 0);
	overheads_deinit(&ov);
	trace_deinit(&t);
	predict_deinit(&g.p);
}

static void overheads_are_written_and_read(void **state)
{
	const struct overhead_profiler none = {0, 0};
	CLEANUP(freep) char *text = NULL;
	struct overheads ov, again;
	struct golden g;
	struct trace t;
	struct err err = {""};
	size_t len;
	FILE *to = open_memstream(&text, &len);

	(void)state;
	play_golden(&g);
	trace_golden(&g, &t, true);
	assert_int_equal(overheads_find(&t, &none, &ov), 0);
	assert_int_equal(overheads_write(&ov, to), 0);
	fclose(to);
	if (overheads_parse("ov", text, len, &again, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(again.n, ov.n);
	for (uint32_t i = 0; i < ov.n; i++) {
		struct predict_host a = overheads_of(&ov, ov.names[i].name, "cudaLaunchKernel"),
				    b = overheads_of(&again, ov.names[i].name, "cudaLaunchKernel");

		assert_memory_equal(&a, &b, sizeof(a));
	}
	overheads_deinit(&again);
	assert_int_equal(overheads_parse("ov", "{\"all\": {\"T1\": {\"mean_ns\": -1}}}", 32, &again,
					 &err),
			 -EINVAL);
	assert_string_equal(err.text, "ov: T1 of 'all': mean_ns is no time from 0 to a minute");
	assert_int_equal(overheads_parse("ov", "[]", 2, &again, &err), -EINVAL);
	overheads_deinit(&ov);
	trace_deinit(&t);
	predict_deinit(&g.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_traced_task_comes_out_again),
		cmocka_unit_test(ranks_may_compute_otherwise),
		cmocka_unit_test(the_profilers_part_is_left_out),
		cmocka_unit_test(overheads_are_written_and_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
