/* Planners of resharding against all orders and senders, on random instances. */
#include "cmocka-all.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "mesh/turns.h"
#include "rng.h"

#define TASKS 7
#define SENDERS 4
#define RECEIVERS 4
#define WAYS_MAX 300000

static const struct turns_effort effort = {.seed = 7, .nodes = UINT64_MAX};

/* The end of the best of all plans below this one. */
static double brute(const struct turns_task *tasks, uint32_t n, unsigned int done,
		    const double *sends, const double *receives, double end)
{
	double best = INFINITY;

	if (done == (1u << n) - 1)
		return end;
	for (uint32_t i = 0; i < n; i++) {
		for (int s = 0; s < SENDERS && !(done >> i & 1); s++) {
			double out[SENDERS], in[RECEIVERS], at;

			if (!(tasks[i].senders >> s & 1))
				continue;
			memcpy(out, sends, sizeof(out));
			memcpy(in, receives, sizeof(in));
			at = out[s];
			for (int h = 0; h < RECEIVERS; h++)
				if (tasks[i].receivers >> h & 1)
					at = fmax(at, in[h]);
			at += tasks[i].ns;
			out[s] = at;
			for (int h = 0; h < RECEIVERS; h++)
				if (tasks[i].receivers >> h & 1)
					in[h] = at;
			best = fmin(best, brute(tasks, n, done | 1u << i, out, in, fmax(end, at)));
		}
	}
	return best;
}

static uint64_t some_hosts(struct rng *g, int of)
{
	return 1 + (uint32_t)below(g, (1u << of) - 1);
}

/* Return: how many tasks; not more orders and senders than brute() can try. */
static uint32_t make(struct rng *g, struct turns_task *tasks)
{
	uint32_t n, kinds = 1 + (uint32_t)below(g, 3);
	double ways;

	do {
		n = 1 + (uint32_t)below(g, TASKS);
		ways = 1;
		for (uint32_t i = 0; i < n; i++) {
			tasks[i] = (struct turns_task){
				.senders = some_hosts(g, SENDERS),
				.receivers = some_hosts(g, RECEIVERS),
				.ns = 1 + (uint32_t)below(g, kinds == 1 ? 1 : kinds * 4),
			};
			ways *= (i + 1) * __builtin_popcountll(tasks[i].senders);
		}
	} while (ways > WAYS_MAX);
	return n;
}

static double end_of(const struct turns_task *tasks, uint32_t n, enum turns_algo algo,
		     struct turns *ret)
{
	struct err err = {""};

	assert_int_equal(turns_make(tasks, n, algo, &effort, ret, &err), 0);
	assert_int_equal(turns_check(tasks, n, ret, &err), 0);
	return ret->end_ns;
}

static void test_exact_is_the_best_of_all_and_ours_no_worse_than_any_other(void **state)
{
	struct turns_task tasks[TASKS];
	struct rng g;
	int met = 0;

	(void)state;
	rng_seed(&g, 3, 0);
	for (int i = 0; i < 200; i++) {
		uint32_t n = make(&g, tasks);
		double none[RECEIVERS] = {0}, best = brute(tasks, n, 0, none, none, 0);
		double end[TURNS_ALGOS];

		for (int a = 0; a < TURNS_ALGOS; a++) {
			struct turns plan;

			end[a] = end_of(tasks, n, (enum turns_algo)a, &plan);
			assert_true(plan.bound_ns <= best + 1e-9);
			assert_true(!plan.is_optimal || fabs(end[a] - best) < 1e-9);
			assert_true(a < TURNS_OURS || plan.is_optimal);
			met += a == TURNS_EXACT && plan.bound_ns > best - 1e-9;
			turns_deinit(&plan);
		}
		assert_true(fabs(end[TURNS_EXACT] - best) < 1e-9);
		for (int a = 0; a < TURNS_OURS; a++)
			assert_true(end[TURNS_OURS] <= end[a]);
	}
	assert_in_range(met, 20, 199); /* the bound alone does not prove all */
}

/* {3, 3, 2, 2, 2} on two senders: the paper calls the greedy one optimal. */
static void test_longest_first_is_not_the_best_balance(void **state)
{
	struct turns_task tasks[5];
	struct turns plan;

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		tasks[i] = (struct turns_task){3, UINT64_C(1) << i, i < 2 ? 3 : 2};
	assert_true(end_of(tasks, 5, TURNS_LB, &plan) == 7);
	turns_deinit(&plan);
	assert_true(end_of(tasks, 5, TURNS_EXACT, &plan) == 6);
	turns_deinit(&plan);
}

static void test_a_seed_makes_one_plan(void **state)
{
	struct turns_task tasks[40];
	struct turns_effort other = effort;
	struct turns a, b;
	struct err err;
	struct rng g;

	(void)state;
	rng_seed(&g, 5, 0);
	other.nodes = 1000;
	for (uint32_t i = 0; i < 40; i++)
		tasks[i] = (struct turns_task){some_hosts(&g, SENDERS), some_hosts(&g, RECEIVERS),
					       1 + (uint32_t)below(&g, 9)};
	assert_int_equal(turns_make(tasks, 40, TURNS_OURS, &other, &a, &err), 0);
	assert_int_equal(turns_make(tasks, 40, TURNS_OURS, &other, &b, &err), 0);
	assert_memory_equal(a.turns, b.turns, 40 * sizeof(*a.turns));
	turns_deinit(&a);
	turns_deinit(&b);
}

static void test_the_check_finds_what_is_wrong(void **state)
{
	struct turns_task tasks[2] = {{1, 1, 5}, {3, 1, 5}};
	struct turns plan;
	struct turn *t;
	struct err err;

	(void)state;
	assert_true(end_of(tasks, 2, TURNS_OURS, &plan) == 10);
	t = plan.turns;
	t[1].start_ns = 4, t[1].end_ns = 9; /* the receiver is busy */
	assert_int_equal(turns_check(tasks, 2, &plan, &err), -EPROTO);
	t[1].start_ns = 5, t[1].end_ns = 9; /* too short */
	assert_int_equal(turns_check(tasks, 2, &plan, &err), -EPROTO);
	t[1].end_ns = 10, t[1].sender = 2; /* does not have it */
	assert_int_equal(turns_check(tasks, 2, &plan, &err), -EPROTO);
	t[1].sender = 0, t[1].task = t[0].task; /* twice */
	assert_int_equal(turns_check(tasks, 2, &plan, &err), -EPROTO);
	t[1].task = !t[0].task;
	assert_int_equal(turns_check(tasks, 2, &plan, &err), 0);
	turns_deinit(&plan);
}

static void test_no_task_is_cut_in_the_bound(void **state)
{
	struct turns_task tasks[5];
	struct turns plan;

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		tasks[i] = (struct turns_task){3, UINT64_C(1) << i, 1};
	assert_true(end_of(tasks, 5, TURNS_LB, &plan) == 3);
	assert_true(plan.bound_ns == 3 && plan.is_optimal);
	turns_deinit(&plan);
}

static void test_more_tasks_than_a_search_takes_are_planned(void **state)
{
	static struct turns_task tasks[5000];
	struct turns plan;
	struct rng g;

	(void)state;
	rng_seed(&g, 6, 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(tasks); i++)
		tasks[i] = (struct turns_task){UINT64_C(1) << below(&g, 64),
					       UINT64_C(1) << below(&g, 64), 1};
	end_of(tasks, ARRAY_SIZE(tasks), TURNS_EXACT, &plan);
	assert_int_equal(plan.by, TURNS_GREEDY);
	turns_deinit(&plan);
}

static void test_impossible_tasks_are_refused(void **state)
{
	const struct turns_task wrong[] = {{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {1, 1, INFINITY}};
	struct turns plan;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct err err = {""};

		assert_int_equal(turns_make(&wrong[i], 1, TURNS_OURS, &effort, &plan, &err),
				 -EINVAL);
		assert_true(err.text[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_is_the_best_of_all_and_ours_no_worse_than_any_other),
		cmocka_unit_test(test_longest_first_is_not_the_best_balance),
		cmocka_unit_test(test_a_seed_makes_one_plan),
		cmocka_unit_test(test_the_check_finds_what_is_wrong),
		cmocka_unit_test(test_no_task_is_cut_in_the_bound),
		cmocka_unit_test(test_more_tasks_than_a_search_takes_are_planned),
		cmocka_unit_test(test_impossible_tasks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
