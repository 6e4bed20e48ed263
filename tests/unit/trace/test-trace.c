/* Ops of several ranks, put in order: who contains whom, who is joined with whom. */
#include "cmocka-all.h"

#include <errno.h>
#include <string.h>

#include "trace/finish.h"
#include "trace/guess.h"

static uint32_t add(struct trace *t, uint32_t rank, uint32_t kind, double start, double end)
{
	struct trace_op op = {.start_ns = start,
			      .end_ns = end,
			      .kind = kind,
			      .rank = rank,
			      .stream = kind >= TRACE_COMPUTE ? 7 : 1,
			      .peer = TRACE_NONE,
			      .launched_by = TRACE_NONE};
	struct err err;
	uint32_t n;

	assert_int_equal(trace_add_name(t, "op", &op.name), 0);
	assert_int_equal(trace_add_op(t, &op, &n, &err), 0);
	return n;
}

static uint32_t at(const struct trace *t, double start)
{
	for (uint32_t i = 0; i < t->n_ops; i++)
		if (t->ops[i].start_ns == start)
			return i;
	fail();
	return 0;
}

static void in_order(void **state __attribute__((unused)))
{
	struct trace t = {0};
	uint32_t host, rank[2], kernel, call, members[] = {9, 4}, comm, again;

	assert_int_equal(trace_add_host(&t, "b", &host), 0);
	assert_int_equal(trace_add_rank(&t, 9, host, &rank[0]), 0);
	assert_int_equal(trace_add_host(&t, "a", &host), 0);
	assert_int_equal(trace_add_rank(&t, 4, host, &rank[1]), 0);
	assert_int_equal(trace_add_rank(&t, 9, host, &again), -EEXIST);
	assert_int_equal(again, rank[0]);
	assert_int_equal(trace_add_comm(&t, "c", 2, members, &comm), 0);
	assert_int_equal(trace_add_comm(&t, "c", 2, NULL, &again), 0);
	assert_int_not_equal(comm, again);
	assert_int_equal(trace_add_comm(&t, "c", 2, members, &again), 0);
	assert_int_equal(comm, again);

	kernel = add(&t, rank[0], TRACE_COLLECTIVE, 50, 60);
	add(&t, rank[0], TRACE_HOST, 20, 30);
	call = add(&t, rank[0], TRACE_CALL, 21, 22);
	add(&t, rank[0], TRACE_HOST, 10, 40);
	add(&t, rank[0], TRACE_HOST, 41, 42);
	t.ops[kernel].launched_by = call;
	add(&t, rank[1], TRACE_COLLECTIVE, 51, 61);
	t.ops[add(&t, rank[1], TRACE_SEND, 70, 71)].peer = 7; /* who has no trace */
	assert_int_equal(trace_add_wait(&t, kernel, call), 0);
	assert_int_equal(trace_add_wait(&t, kernel, 3), 0);
	assert_int_equal(trace_finish(&t), 0);

	assert_int_equal(t.world, 10);
	assert_int_equal(trace_rank(&t, 4), 0);
	assert_int_equal(trace_rank(&t, 9), 1);
	assert_int_equal(trace_rank(&t, 5), TRACE_NONE);
	assert_string_equal(trace_name(&t, t.hosts[t.ranks[0].host]), "a");
	assert_int_equal(t.ranks[0].first + t.ranks[0].n, t.ranks[1].first);
	assert_int_equal(t.ranks[1].n, 5);
	assert_int_equal(t.ops[at(&t, 20)].parent, at(&t, 10));
	assert_int_equal(t.ops[at(&t, 21)].parent, at(&t, 20));
	assert_int_equal(t.ops[at(&t, 41)].parent, TRACE_NONE);
	kernel = at(&t, 50);
	assert_int_equal(t.ops[kernel].launched_by, at(&t, 21));
	assert_int_equal(t.ops[kernel].n_waits, 2);
	assert_int_equal(t.waits[t.ops[kernel].first_wait].on, at(&t, 10));
	assert_int_equal(t.n_joins, 2);
	assert_int_equal(t.first_joined[0], 0);
	assert_int_equal(t.first_joined[1], 2);
	assert_int_equal(t.first_joined[2], 3);
	assert_int_equal(t.joined[0], at(&t, 51));
	assert_int_equal(t.joined[1], kernel);
	assert_int_equal(t.joined[2], at(&t, 70));
	trace_deinit(&t);
}

static void no_time(void **state __attribute__((unused)))
{
	struct trace_op op = {.start_ns = 5000, .end_ns = 3000};
	struct trace t = {0};
	struct err err;

	assert_int_equal(trace_add_op(&t, &op, NULL, &err), -EINVAL);
	assert_string_equal(err.text, "it ends 2 us before it begins");
	op.end_ns = 1e300;
	assert_int_equal(trace_add_op(&t, &op, NULL, &err), -EINVAL);
	op.start_ns = op.end_ns = 0.0 / 0.0;
	assert_int_equal(trace_add_op(&t, &op, NULL, &err), -EINVAL);
	assert_int_equal(trace_finish(&t), 0);
	trace_deinit(&t);
}

static uint32_t awaited(const struct trace *t, double start)
{
	const struct trace_op *op = &t->ops[at(t, start)];

	return op->n_waits == 1 ? (uint32_t)t->ops[t->waits[op->first_wait].on].start_ns
				: 1000 + op->n_waits;
}

/* Kernels of one stream, collectives of another. */
static void waits_are_guessed(void **state __attribute__((unused)))
{
	struct trace t = {0};
	uint32_t host, rank;

	assert_int_equal(trace_add_host(&t, "a", &host), 0);
	assert_int_equal(trace_add_rank(&t, 0, host, &rank), 0);
	for (double ns = 10; ns < 50; ns += 10) /* two of the first iteration */
		add(&t, rank, TRACE_COMPUTE, ns, ns + 10);
	add(&t, rank, TRACE_COLLECTIVE, 21, 25); /* behind 10 */
	add(&t, rank, TRACE_COLLECTIVE, 41, 60); /* behind 30 */
	add(&t, rank, TRACE_COMPUTE, 61, 70);
	add(&t, rank, TRACE_CALL, 62, 63);
	for (uint32_t i = 0; i < t.n_ops; i++) {
		t.ops[i].step = t.ops[i].start_ns >= 30;
		t.ops[i].stream += t.ops[i].kind == TRACE_COLLECTIVE;
	}
	assert_int_equal(trace_finish(&t), 0);
	assert_int_equal(trace_guess_waits(&t), 0);
	assert_true(t.has_guessed_waits);
	assert_int_equal(awaited(&t, 10), 1000);
	assert_int_equal(awaited(&t, 20), 1000);
	assert_int_equal(awaited(&t, 21), 10);
	assert_int_equal(awaited(&t, 30), 21);   /* the first of its iteration */
	assert_int_equal(awaited(&t, 40), 1000); /* what is over was waited for */
	assert_int_equal(awaited(&t, 41), 30);
	assert_int_equal(awaited(&t, 61), 41); /* it began late */
	assert_int_equal(awaited(&t, 62), 1000);
	trace_deinit(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(in_order), cmocka_unit_test(no_time),
					   cmocka_unit_test(waits_are_guessed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
