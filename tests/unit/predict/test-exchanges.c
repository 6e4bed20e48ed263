/* What meets in a trace: sends and receives of groups pair with those of others, groups to all are
 * collectives, and no exchange is in two iterations. */
#include "cmocka-all.h"

#include <math.h>

#include "predict/exchanges.h"
#include "predict/iterations.h"
#include "predict/task.h"
#include "schedule/coll.h"
#include "trace/finish.h"

#define ALL_RANKS 3

static void begin(struct trace *t, uint32_t n_ranks)
{
	const uint32_t members[ALL_RANKS] = {0, 1, 2};
	uint32_t host, n;

	*t = (struct trace){0};
	assert_int_equal(trace_add_host(t, "node", &host), 0);
	assert_int_equal(trace_add_comm(t, "pp", n_ranks, members, &n), 0);
	for (uint32_t r = 0; r < n_ranks; r++)
		assert_int_equal(trace_add_rank(t, r, host, &n), 0);
}

static uint32_t add(struct trace *t, uint32_t kind, uint32_t rank, double start, double end,
		    uint32_t step)
{
	struct trace_op op = {.start_ns = start,
			      .end_ns = end,
			      .seq = UINT64_MAX,
			      .kind = kind,
			      .rank = rank,
			      .step = step,
			      .coll = kind == TRACE_COLLECTIVE ? COLL_SENDRECV : TRACE_NONE,
			      .comm = kind == TRACE_COMPUTE ? TRACE_NONE : 0,
			      .peer = TRACE_NONE,
			      .launched_by = TRACE_NONE,
			      .parent = TRACE_NONE};
	struct err err = {""};
	uint32_t n;

	assert_int_equal(trace_add_name(t, "op", &op.name), 0);
	assert_int_equal(trace_add_op(t, &op, &n, &err), 0);
	return n;
}

static void call(struct trace *t, uint32_t op, uint32_t peer, bool is_send, uint64_t bytes)
{
	const struct trace_call c = {peer, is_send, bytes};

	if (!t->ops[op].n_calls++)
		t->ops[op].first_call = t->n_calls;
	assert_int_equal(trace_add_call(t, &c), 0);
}

static uint32_t first_of(const struct trace *t, uint32_t rank, uint32_t nth)
{
	return t->ranks[rank].first + nth;
}

/* Rank 0 sends twice, the second time in a group that receives, too; rank 1 receives both, and is
 * late for the second one, which does not make the message longer. */
static void calls_of_groups_meet_in_their_order(void **state)
{
	struct exchanges x;
	struct trace t;
	uint32_t op;

	(void)state;
	begin(&t, 2);
	op = add(&t, TRACE_SEND, 0, 100, 100, TRACE_NONE);
	call(&t, op, 1, true, 1000);
	op = add(&t, TRACE_COLLECTIVE, 0, 200, 900, TRACE_NONE);
	call(&t, op, 1, true, 1000);
	call(&t, op, 1, false, 2000);
	op = add(&t, TRACE_RECV, 1, 50, 130, TRACE_NONE);
	call(&t, op, 0, false, 1000);
	op = add(&t, TRACE_COLLECTIVE, 1, 800, 800, TRACE_NONE);
	call(&t, op, 0, false, 1000);
	call(&t, op, 0, true, 2000);
	assert_int_equal(trace_finish(&t), 0);
	assert_int_equal(exchanges_find(&t, &x), 0);
	assert_int_equal(x.n_messages, 3);
	for (uint32_t m = 0; m < 3; m++) {
		const struct exchange_message *it = &x.messages[m];
		uint32_t nth = it->send == first_of(&t, 0, 0) ? 0 : 1;

		assert_int_equal(it->receive, first_of(&t, it->dst, nth));
		assert_int_equal(it->send, first_of(&t, it->src, nth));
		assert_true(fabs(it->ns - (it->src ? 100 : 30)) < 1e-9);
	}
	assert_int_equal(x.first_end[first_of(&t, 0, 1) + 1] - x.first_end[first_of(&t, 0, 1)], 2);
	exchanges_deinit(&x);
	trace_deinit(&t);
}

static void groups_to_all_are_collectives(void **state)
{
	struct exchanges x;
	struct trace t;

	(void)state;
	begin(&t, ALL_RANKS);
	for (uint32_t r = 0; r < ALL_RANKS; r++)
		for (uint32_t k = 0; k < 2; k++) {
			uint32_t op = add(&t, TRACE_COLLECTIVE, r, 100 * k, 100 * k + 50, r + k);

			for (uint32_t peer = 0; peer < ALL_RANKS; peer++) {
				call(&t, op, peer, true, 10);
				call(&t, op, peer, false, 10);
			}
		}
	assert_int_equal(trace_finish(&t), 0);
	assert_int_equal(exchanges_find(&t, &x), 0);
	assert_int_equal(x.n_messages, 0);
	for (uint32_t r = 1; r < ALL_RANKS; r++)
		for (uint32_t k = 0; k < 2; k++)
			assert_int_equal(x.joins[first_of(&t, r, k)], x.joins[first_of(&t, 0, k)]);
	assert_true(x.joins[first_of(&t, 0, 0)] != x.joins[first_of(&t, 0, 1)]);
	exchanges_deinit(&x);
	trace_deinit(&t);
}

/* Of a run, or of the same trace in a file, which names the peer alone. */
static void name_peer(struct trace *t, uint32_t op, uint32_t peer, bool has_calls)
{
	t->ops[op].peer = peer;
	t->ops[op].bytes = 1000;
	if (has_calls)
		call(t, op, peer, t->ops[op].kind == TRACE_SEND, 1000);
}

/* Two stages: 0 sends, 1 answers. Rank 1's own iterations are counted from its answers: a message
 * would be in two of them. What rank 0 computes while the last answer of an iteration is on its way
 * is of the next one. */
static void check_stages(bool has_calls)
{
	const struct task_settings s = {.n_ranks = 0};
	struct exchanges x;
	struct predict p;
	struct task task;
	struct err err = {""};
	struct calls *calls;
	struct trace t;
	uint32_t op, got, answer = 0;

	begin(&t, 2);
	for (uint32_t i = 0; i < 4; i++) {
		double at = 1000 * i;

		op = add(&t, TRACE_COMPUTE, 0, at, at + 300, i + 1);
		if (i)
			assert_int_equal(trace_add_wait(&t, op, answer), 0);
		op = add(&t, TRACE_SEND, 0, at + 300, at + 300, i + 1);
		name_peer(&t, op, 1, has_calls);
		answer = add(&t, TRACE_RECV, 0, at + 350, at + 1000, i + 1);
		name_peer(&t, answer, 1, has_calls);
		got = add(&t, TRACE_RECV, 1, at, at + 400, i);
		name_peer(&t, got, 0, has_calls);
		op = add(&t, TRACE_COMPUTE, 1, at + 400, at + 900, i);
		assert_int_equal(trace_add_wait(&t, op, got), 0);
		op = add(&t, TRACE_SEND, 1, at + 900, at + 900, i + 1);
		name_peer(&t, op, 0, has_calls);
	}
	assert_int_equal(trace_finish(&t), 0);
	assert_int_equal(exchanges_find(&t, &x), 0);
	assert_int_equal(iterations_settle(&t, &x), 0);
	for (uint32_t m = 0; m < x.n_messages; m++) {
		uint32_t step;

		assert_true(x.messages[m].send != TRACE_NONE &&
			    x.messages[m].receive != TRACE_NONE);
		step = t.ops[x.messages[m].send].step;
		assert_true(step >= 1 && step <= 4);
		assert_int_equal(step, t.ops[x.messages[m].receive].step);
	}
	calls = host_calls_by_step(&t);
	assert_non_null(calls);
	for (uint32_t step = 1; step <= 4; step++) {
		assert_int_equal(task_make(&t, &x, calls, step, &s, &task, &err), 0);
		assert_int_equal(task.t.n_messages, step > 1 ? 4 : 2); /* with what leads in */
		assert_int_equal(predict_play(&task.t, PREDICT_EVENT, &p, &op), 0);
		if (fabs(p.ns - 1000) > 1e-6)
			fail_msg("iteration %u takes %g ns", step, p.ns);
		predict_deinit(&p);
		task_deinit(&task);
	}
	host_calls_free(calls, t.n_ranks);
	exchanges_deinit(&x);
	trace_deinit(&t);
}

static void no_message_is_in_two_iterations(void **state)
{
	(void)state;
	check_stages(true);
	check_stages(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_groups_meet_in_their_order),
		cmocka_unit_test(groups_to_all_are_collectives),
		cmocka_unit_test(no_message_is_in_two_iterations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
