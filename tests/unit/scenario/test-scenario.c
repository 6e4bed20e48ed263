/* When what-ifs hold, on which ops, and what a step is while a job runs. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "rng.h"
#include "scenario/step-count.h"
#include "scenario/target.h"
#include "scenario/when.h"

static struct when when(const char *from, const char *lasts, const char *every)
{
	struct when w = {0};
	struct err err;

	assert_true(!from || when_take(&w, "from", from, &err) == 0);
	assert_true(!lasts || when_take(&w, "for", lasts, &err) == 0);
	assert_true(!every || when_take(&w, "every", every, &err) == 0);
	assert_int_equal(when_check(&w, &err), 0);
	return w;
}

static bool holds(const struct when *w, double time_ns, int64_t step)
{
	const struct moment at = {time_ns, step, NULL};

	return when_holds(w, &at);
}

static void it_holds_from_for_and_every_so_often(void **state)
{
	struct when always = when(NULL, NULL, NULL), since = when("2s", NULL, NULL);
	struct when once = when("20steps", "15steps", NULL);
	struct when again = when("1s", "2s", "10s");

	(void)state;
	assert_true(when_is_always(&always) && holds(&always, 0, 0));
	assert_false(holds(&since, 1.9e9, 100));
	assert_true(holds(&since, 2e9, 0) && holds(&since, 1e17, 0));
	assert_true(when_has_steps(&once) && !when_has_steps(&again));
	for (int64_t step = 0; step < 100; step++)
		assert_int_equal(holds(&once, 1e12, step), step >= 20 && step < 35);
	for (int ds = 0; ds < 1000; ds++)
		assert_int_equal(holds(&again, ds * 1e8, 0), ds >= 10 && (ds - 10) % 100 < 20);
}

/* Whatever is asked, it holds inside of the window that is told, and not between it and then. */
static void the_window_is_where_it_holds(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 7, 0);
	for (int i = 0; i < 2000; i++) {
		struct when w = {.from = {(double)below(&r, 50), false, true},
				 .lasts = {(double)(1 + below(&r, 20)), false, true}};
		struct moment at = {.time_ns = (double)below(&r, 300)};
		double from, until;

		w.every =
			(struct when_span){w.lasts.x + (double)below(&r, 30), false, below(&r, 2)};
		when_window(&w, &at, &from, &until);
		if (when_holds(&w, &at)) {
			assert_true(from <= at.time_ns && at.time_ns < until);
		} else if (until > at.time_ns) {
			assert_true(from > at.time_ns);
			for (; at.time_ns < from; at.time_ns++)
				assert_false(when_holds(&w, &at));
			assert_true(when_holds(&w, &at));
		} else {
			assert_false(w.every.is_given);
		}
	}
}

static void unlike_units_and_empty_times_are_refused(void **state)
{
	static const char *const bad[][4] = {{"1s", "3steps", NULL},
					     {"1s", "2s", "4steps"},
					     {NULL, NULL, "4s"},
					     {"1s", "2s", "1s"},
					     {"3steps", NULL, "2steps"}};
	struct when w = {0};
	struct err err;

	(void)state;
	assert_int_equal(when_take(&w, "for", "0s", &err), -EINVAL);
	assert_int_equal(when_take(&w, "from", "20", &err), -EINVAL);
	assert_int_equal(when_take(&w, "from", "step20", &err), -EINVAL);
	assert_int_equal(when_take(&w, "from", "20.5steps", &err), -EINVAL);
	assert_int_equal(when_take(&w, "delay", "1s", &err), 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		w = (struct when){0};
		assert_true(!bad[i][0] || when_take(&w, "from", bad[i][0], &err) == 0);
		assert_true(!bad[i][1] || when_take(&w, "for", bad[i][1], &err) == 0);
		assert_true(!bad[i][2] || when_take(&w, "every", bad[i][2], &err) == 0);
		assert_int_equal(when_check(&w, &err), -EINVAL);
	}
}

static void a_target_has_kinds_sizes_and_communicators(void **state)
{
	const struct target_comm world = {1, true, "dp"}, tp = {2, false, "tp"};
	struct target t = {0};
	struct err err;

	(void)state;
	assert_true(target_is_any(&t) && target_has_op(&t, 3, 9) && target_has_comm(&t, &tp));
	assert_int_equal(target_take(&t, "op", "allreduce+broadcast", &err), 0);
	assert_int_equal(target_take(&t, "bytes", "1KiB-4KiB", &err), 0);
	assert_true(target_has_op(&t, 0, 1024) && target_has_op(&t, 3, 4096));
	assert_false(target_has_op(&t, 1, 1024) || target_has_op(&t, 0, 1023) ||
		     target_has_op(&t, 0, 4097));
	assert_int_equal(target_take(&t, "bytes", "1KiB-", &err), 0);
	assert_true(target_has_op(&t, 0, UINT64_MAX));
	assert_int_equal(target_take(&t, "communicator", "world", &err), 0);
	assert_true(target_has_comm(&t, &world) && !target_has_comm(&t, &tp));
	assert_int_equal(target_take(&t, "communicator", "2", &err), 0);
	assert_true(!target_has_comm(&t, &world) && target_has_comm(&t, &tp));
	assert_int_equal(target_take(&t, "communicator", "dp", &err), 0);
	assert_true(target_has_comm(&t, &world) && !target_has_comm(&t, &tp));
	assert_int_equal(target_take(&t, "op", "allredcue", &err), -EINVAL);
	assert_int_equal(target_take(&t, "rank", "3", &err), 1);
}

static void a_step_begins_with_each_so_many_th_op_of_its_kind(void **state)
{
	const struct target_comm world = {1, true, ""};
	struct step_count *s = NULL;
	struct step_rule rule;
	struct err err;
	int n = 0;

	(void)state;
	assert_int_equal(step_rule_parse("op=allreduce", &rule, &err), -EINVAL);
	assert_int_equal(step_rule_parse("ops=3,op=allreduce,communicator=world,skip=2", &rule,
					 &err),
			 0);
	assert_int_equal(step_count_new(&rule, 2, &s), 0);
	assert_int_equal(step_count_of(s, 0), 0);
	for (uint32_t i = 0; i < 400; i++) {
		uint32_t rank = i % 2, kind = i / 2 % 2 ? 0 : 1; /* every other one counts */

		if (step_count_arrive(s, rank, kind, 8, &world, i) == 1)
			assert_true(step_count_began(s, ++n) == i);
		assert_int_equal(step_count_of(s, rank),
				 i < 10 ? 0 : ((int)(i + 2) / 4 - 3) / 3 + 1);
	}
	assert_int_equal(step_count_last(s), n);
	assert_true(isinf(step_count_began(s, n + 1)) && isinf(step_count_began(s, 0)));
	step_count_free(s);
}

/* What begins at a step may last for a time. */
static void a_time_may_follow_a_step(void **state)
{
	struct step_rule rule = {.n_ops = 1};
	struct when w = when("2steps", "5s", NULL);
	struct step_count *s = NULL;
	double from, until;

	(void)state;
	assert_int_equal(step_count_new(&rule, 1, &s), 0);
	for (int step = 1; step < 10; step++) {
		double time_ns = step * 2e9;
		struct moment at = {time_ns, step, s};

		assert_true(step_count_arrive(s, 0, 0, 8, NULL, time_ns) == 1);
		assert_int_equal(when_holds(&w, &at), step >= 2 && time_ns < 9e9);
		when_window(&w, &at, &from, &until);
		assert_true(step < 2 ? isinf(from) : from == 4e9 && until == 9e9);
	}
	step_count_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_holds_from_for_and_every_so_often),
		cmocka_unit_test(the_window_is_where_it_holds),
		cmocka_unit_test(unlike_units_and_empty_times_are_refused),
		cmocka_unit_test(a_target_has_kinds_sizes_and_communicators),
		cmocka_unit_test(a_step_begins_with_each_so_many_th_op_of_its_kind),
		cmocka_unit_test(a_time_may_follow_a_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
