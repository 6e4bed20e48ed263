/* Ranks that something tells apart, and the templates that they copy. */
#include <errno.h>
#include <malloc.h>

#include "cmocka-all.h"
#include "timeline-world.h"
#include "timeline/timeline.h"

static void ranks_are_one_until_something_tells_them_apart(void **state)
{
	struct timeline_node *op;
	uint32_t n;

	(void)state;
	start(4);
	point(2, 5, BEFORE_ALL, DEPS(OWN(1)));
	op = arrive(3, 5, DEPS(OTHER(2)));
	assert_true(timeline_is_folded(op));
	assert_int_equal(timeline_ranks(op, &n)[3], 3);
	assert_int_equal(n, 4);
	for (int i = 0; i < 4; i++)
		factor[i] = 2;
	point(4, 10, BEFORE_ALL, DEPS(OWN(2))); /* all alike */
	op = arrives(5, 10, DEPS(OTHER(4)), 3, 15);
	assert_true(timeline_is_folded(op));
	factor[3] = 1;
	point(6, 15, BEFORE_ALL, DEPS(OWN(4)));
	op = arrives(7, 15, DEPS(OTHER(6)), 3, 20);
	assert_false(timeline_is_folded(op));
	timeline_end_each(op, (double[]){30 * NS, 30 * NS, 30 * NS, 30 * NS}, 30 * NS);
	op = arrive(8, 30, DEPS(OWN(7))); /* all have waited */
	assert_true(timeline_is_folded(op));
	timeline_end_each(op, (double[]){31 * NS, 31 * NS, 32 * NS, 31 * NS}, 31 * NS);
	op = arrives(9, 31, DEPS(OWN(8)), 2, 32);
	assert_false(timeline_is_folded(op));
}

/* Ranks 2 and 3 copy ranks 0 and 1. */
static void a_rank_of_another_template_is_as_late_as_it_was_last_seen(void **state)
{
	struct timeline_node *op, *other;
	struct timeline_times times;

	(void)state;
	open_world(4, 2);
	factor[3] = 2;
	op = arrives(1, 0, NOTHING, 3, 0); /* it was not seen yet */
	timeline_end_all(op, 1 * NS, 1 * NS);
	arrive_at(1, 1, 1, BEFORE_ALL, NOTHING, &times);
	assert_true(timelines_are_folded(world));
	other = arrive_at(1, 2, 11, BEFORE_ALL, DEPS(OWN(1)), &times);
	timeline_end_each(other, (double[]){12 * NS, 24 * NS}, 12 * NS);
	assert_false(timelines_are_folded(world));
	op = arrives(2, 11, DEPS(OWN(1)), 2, 11);
	check_ms(timeline_arrival(op, 3), 21);
	timeline_end_all(op, 12 * NS, 12 * NS);
	op = arrives(3, 20, DEPS(OWN(2)), 3, 32); /* after the other's end */
}

static void each_template_has_a_timeline_of_its_own(void **state)
{
	struct timeline_times times;
	struct timeline_node *a, *b;
	struct err err = {""};
	uint32_t n;

	(void)state;
	open_world(5, 2);
	factor[2] = factor[3] = 2;
	assert_int_equal(timelines_template(world, 4), 0);
	assert_int_equal(timelines_template(world, 3), 1);
	point(1, 0, BEFORE_ALL, NOTHING);
	arrive_at(1, 1, 5, BEFORE_ALL, NOTHING, &times); /* the same name, of another process */
	a = arrive_at(0, 2, 10, BEFORE_ALL, DEPS(OTHER(1)), &times);
	b = arrive_at(1, 2, 10, BEFORE_ALL, DEPS(OTHER(1)), &times);
	assert_int_equal(timeline_ranks(a, &n)[2], 4);
	assert_int_equal(n, 3);
	check_ms(timeline_arrival(a, 2), 20);
	check_ms(timeline_arrival(a, 4), 10);
	check_ms(timeline_arrival(b, 3), 15);
	assert_int_equal(timelines_arrive(world, 3, &(struct timeline_point){.name = 9}, &a, &times,
					  &err),
			 -EINVAL);
	assert_string_equal(err.text, "rank 3 is not real");
}

static int all_apart(void *ctx, uint32_t rank, uint64_t number, double start, double ns,
		     double *ret_ns, struct err *err)
{
	(void)start;
	(void)ctx;
	(void)number;
	(void)err;
	*ret_ns = ns + rank;
	return 0;
}

/* 200 ops with two times a rank would take 210 MB. */
static void ranks_that_are_told_apart_need_no_more_than_64_mib(void **state)
{
	const struct timeline_what_if what_if = {.segment = all_apart};
	const struct topology t = {.n_nodes = 65536, .gpus_per_node = 1};
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd, used, most = 0;

	(void)state;
	assert_int_equal(timelines_new(&t, (uint32_t[]){0}, 1, NULL, &what_if, &world), 0);
	point(1, 0, BEFORE_ALL, NOTHING);
	for (int i = 1; i <= 200; i++) {
		struct timeline_node *op = arrive((uint64_t)i + 1, i, DEPS(OWN((uint64_t)i)));
		uint32_t n;
		const uint32_t *ranks = timeline_ranks(op, &n);
		double *ends = test_malloc(n * sizeof(*ends));

		for (uint32_t k = 0; k < n; k++)
			ends[k] = timeline_arrival(op, ranks[k]);
		assert_true(ends[65535] - ends[0] == 65535. * i);
		assert_int_equal(timeline_end_each(op, ends, i * NS), 0);
		test_free(ends);
		timeline_node_release(op);
		used = mallinfo2().uordblks + mallinfo2().hblkhd - before;
		most = used > most ? used : most;
	}
	if (most > 68 << 20)
		fail_msg("%zu bytes", most);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ranks_are_one_until_something_tells_them_apart),
		CASE(a_rank_of_another_template_is_as_late_as_it_was_last_seen),
		CASE(each_template_has_a_timeline_of_its_own),
		CASE(ranks_that_are_told_apart_need_no_more_than_64_mib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
