/* When points of a rank and its copy are reached: behind gates, behind their host, behind what they
 * wait for. */
#include <errno.h>
#include <math.h>

#include "cmocka-all.h"
#include "timeline-world.h"
#include "timeline/timeline.h"

/* Due at 3; opens at 5, late or because the op's own work was so long. */
static void a_gate_that_opens_late_does_not_reach_virtual_time(void **state)
{
	struct timeline_node *op;

	(void)state;
	start(2);
	play(2, 1, DEPS(OTHER(1)), 3, 5);
	point(3, 1, BEFORE_ALL, DEPS(OWN(1)));
	assert_true(ms(point(4, 6, BEFORE_ALL, DEPS(OWN(3), OTHER(2))).time_ns) == 4);
	op = arrives(5, 6, DEPS(OWN(2), OTHER(4)), 0, 4);
	check_ms(timeline_arrival(op, 1), 4);
	timeline_end_all(op, 5 * NS, 5 * NS);
	assert_true(ms(timeline_due_ns(op)) == 7); /* the wall clock has lost 2 */
}

/* A communication stream that is late by itself makes none of its gates later. */
static void late_gates_do_not_add_up_on_a_stream_of_ops(void **state)
{
	struct timeline_node *op;

	(void)state;
	start(2);
	play(2, 0, DEPS(OTHER(1)), 3, 5);
	point(3, 1, BEFORE_ALL, DEPS(OWN(1)));
	op = arrives(4, 5, DEPS(OWN(2), OTHER(3)), 1, 3);
	timeline_end_all(op, 4 * NS, 4 * NS);
	assert_true(ms(timeline_due_ns(op)) == 4); /* a gate does not open before its op arrives */
	op = arrives(5, 5, DEPS(OWN(4)), 1, 4);
}

/* Ends are fractions of a nanosecond, gates open at whole ones. */
static void what_rounding_up_adds_is_no_lateness(void **state)
{
	struct timeline_node *op;

	(void)state;
	open_world(2, 1);
	op = arrive(1, 0, NOTHING);
	timeline_end_all(op, 3 * NS + 0.25, 3 * NS + 0.25);
	assert_true(timeline_due_ns(op) == wall(3) + 1);
	timeline_opened(op, wall(3) + 1);
	op = arrive(2, 3 + 1 / NS, DEPS(OWN(1)));
	assert_true(fabs(timeline_arrival(op, 1) - 3 * NS - 1) < 0.01);
}

static void a_point_is_not_before_what_it_waited_for(void **state)
{
	(void)state;
	open_world(2, 1);
	play(1, 0, NOTHING, 3, 0);
	/* an error of the clocks' offset */
	assert_true(ms(point(2, 2.5, BEFORE_ALL, DEPS(OWN(1))).time_ns) == 3);
}

/* 4 of computation take 2; the copy is slow by 3. */
static void faster_GPUs_need_less_and_slow_ones_of_them_as_much_more(void **state)
{
	struct timeline_node *op;

	(void)state;
	gpu_speed = 2;
	open_world(2, 1);
	factor[1] = 3;
	point(1, 0, BEFORE_ALL, NOTHING);
	op = arrive(2, 4, DEPS(OWN(1)));
	check_ms(timeline_arrival(op, 0), 2);
	check_ms(timeline_plain_arrival(op), 2);
	check_ms(timeline_arrival(op, 1), 6);
	timeline_end_all(op, 7 * NS, 3 * NS);
}

static void lag_grows_with_slow_and_is_lost_only_at_a_wait(void **state)
{
	struct timeline_node *op;

	(void)state;
	start(2);
	factor[1] = 1.5;
	both(2, 10, BEFORE_ALL, DEPS(OWN(1)), 10, 15);
	both(3, 20, BEFORE_ALL, DEPS(OWN(2)), 20, 30);
	op = arrive(4, 20, DEPS(OTHER(3)));
	timeline_end_all(op, 35 * NS, 25 * NS);
	both(5, 24, BEFORE_ALL, DEPS(OWN(3)), 24, 36); /* directly before the wait */
	/* the real rank waited until 35 */
	both(6, 40, BEFORE_ALL, DEPS(OWN(5), OTHER(4)), 40, 43.5);
}

static void the_hosts_part_is_not_stretched(void **state)
{
	(void)state;
	start(2);
	factor[1] = 2;
	/* no host point is known */
	assert_true(both(2, 10, CALL(9.95, 0), DEPS(OWN(1)), 10, 10).is_host_bound);
	point(3, 12, CALL(11.99, 0), DEPS(OWN(2))); /* the host has it now */
	assert_true(both(4, 20, CALL(19.95, 3), DEPS(OWN(2)), 20, 20).is_host_bound);
	/* the device was busy */
	assert_false(both(5, 20, CALL(19.8, 3), DEPS(OWN(2)), 20, 30).is_host_bound);
}

/* The call of a graph's point is not known. */
static void a_point_without_a_call_is_not_the_hosts(void **state)
{
	const struct timeline_point p = {.name = 2, .time_ns = wall(10), .deps = DEPS(OWN(1))};

	(void)state;
	start(2);
	factor[1] = 2;
	assert_false(pass(&p).is_host_bound);
	check_at(1, 2, 10, 20);
}

static void a_slow_rank_whose_host_waits_makes_its_calls_later(void **state)
{
	(void)state;
	start(2);
	factor[1] = 2;
	point(2, 10, CALL(0, 1), DEPS(OWN(1)));
	/* the host waited for 2 */
	assert_false(point(3, 10, CALL(1, 1), DEPS(OTHER(2))).is_host_bound);
	/* of a stream with nothing to do */
	assert_true(both(4, 12, CALL(12, 3), DEPS(OTHER(1)), 12, 22).is_host_bound);
	/* computation that hides behind the host's way from 3 to the call */
	both(5, 14, CALL(13, 3), DEPS(OTHER(1), OWN(4)), 14, 26);
	both(6, 25, CALL(24, 3), DEPS(OWN(5)), 25, 48);
}

static void a_stream_without_work_does_not_compute(void **state)
{
	(void)state;
	start(2);
	factor[1] = 2;
	point(2, 10, CALL(1, 1), DEPS(OWN(1)));
	both(3, 30, WORK(20, 25, 1), DEPS(OWN(2)), 30, 40);
	/* while rank 0's stream has no work, rank 1 still has some */
	both(4, 40, WORK(31, 36, 1), DEPS(OWN(3)), 40, 40 + 2 * 9);
	/* since when the host calls is not known: the time without work is as long for all */
	both(5, 60, WORK(50, 55, 0), DEPS(OWN(4)), 60, 58 + 10 + 2 * 10);
	/* the host has waited since it gave the work: it says nothing of what came after the wait
	 */
	point(6, 65, CALL(61, 1), DEPS(OTHER(5)));
	both(7, 80, WORK(64, 75, 6), DEPS(OWN(5)), 80, 88 + 2 * 20);
}

/* What its streams do next begins when the host went on. */
static void what_follows_a_wait_of_the_host_counts_from_there(void **state)
{
	(void)state;
	start(2);
	factor[1] = 2;
	point(2, 1, BEFORE_ALL, DEPS(OWN(1)));
	play(3, 1, DEPS(OTHER(2)), 30, 31); /* late */
	assert_true(ms(host(4, 31, CALL(1, 1), DEPS(OTHER(3))).time_ns) == 30);
	both(5, 41, CALL(31, 4), DEPS(OWN(2)), 40, 50);
	/* called before the host waited: computation since 2 */
	both(6, 41, CALL(1, 1), DEPS(OWN(2)), 41, 2 + 80);
	/* of a stream that the host has not waited for */
	point(7, 11, CALL(1, 1), DEPS(OTHER(1)));
	both(8, 51, CALL(32, 4), DEPS(OWN(7)), 51, 22 + 80);
}

/* It waits for computation that no point lies behind. */
static void a_second_wait_of_the_host_counts_from_the_first(void **state)
{
	(void)state;
	start(2);
	factor[1] = 2;
	point(2, 10, BEFORE_ALL, DEPS(OWN(1)));
	host(3, 20, CALL(1, 1), DEPS(OTHER(1), OTHER(2)));
	check_at(1, 3, 20, 40);
	host(4, 30, CALL(21, 3), DEPS(OTHER(1), OTHER(2)));
	check_at(1, 4, 30, 60);
	point(5, 15, BEFORE_ALL, DEPS(OTHER(1))); /* one that it has not waited for */
	host(6, 40, CALL(31, 4), DEPS(OTHER(2), OTHER(5)));
	check_at(1, 6, 40, 30 + 50);
}

static void nothing_is_reached_before_its_call(void **state)
{
	(void)state;
	start(2);
	factor[1] = 0.25;
	both(2, 40, CALL(30, 1), DEPS(OWN(1)), 40, 30);
}

static void a_plain_time_knows_of_no_what_ifs(void **state)
{
	struct timeline_times times;
	struct timeline_node *op;

	(void)state;
	start(2);
	factor[0] = 1.5;
	factor[1] = 3;
	times = point(2, 10, CALL(0, 1), DEPS(OWN(1)));
	assert_true(ms(times.time_ns) == 15 && ms(times.plain_ns) == 10);
	op = arrive(3, 10, DEPS(OTHER(2)));
	check_ms(timeline_plain_arrival(op), 10);
	timeline_end_all(op, 34 * NS, 12 * NS);
	assert_true(ms(timeline_end(op).plain_ns) == 12 && ms(timeline_end(op).time_ns) == 34);
	times = point(4, 36, CALL(1, 1), DEPS(OWN(2), OTHER(3))); /* opened at 34 */
	assert_true(ms(times.time_ns) == 37 && ms(times.plain_ns) == 14);
	times = point(5, 37, CALL(2, 1), DEPS(OTHER(4))); /* the host waits */
	assert_true(ms(times.plain_ns) == 15);
	times = point(6, 40, CALL(40, 5), DEPS(OTHER(1)));
	assert_true(ms(times.plain_ns) == 18);
}

/* The wall clock is at 10, the rank by its time at 15: it has to be held. */
static void a_real_rank_that_is_slowed_is_held_at_the_gate(void **state)
{
	struct timeline_node *op;

	(void)state;
	start(2);
	factor[0] = 1.5;
	point(2, 10, BEFORE_ALL, DEPS(OWN(1)));
	op = arrives(3, 10, DEPS(OTHER(2)), 0, 15);
	check_ms(timeline_arrival(op, 1), 10);
	timeline_end_all(op, 16 * NS, 11 * NS);
	assert_true(ms(timeline_due_ns(op)) == 16);
	assert_true(ms(point(4, 17, BEFORE_ALL, DEPS(OWN(2), OTHER(3))).time_ns) == 18 - 0.5);
}

static int fails(void *ctx, uint32_t rank, uint64_t number, double start, double ns, double *ret_ns,
		 struct err *err)
{
	(void)start;
	(void)ctx;
	(void)number;
	(void)ns;
	(void)ret_ns;
	return err_set(err, ERANGE, "rank %u computes too long", rank);
}

static void what_a_what_if_cannot_do_is_told(void **state)
{
	const struct timeline_what_if what_if = {.segment = fails};
	const struct timeline_dep deps[] = {OWN(1)};
	const struct topology t = {.n_nodes = 4, .gpus_per_node = 1};
	struct timeline_times times;
	struct err err = {""};

	(void)state;
	assert_int_equal(timelines_new(&t, (uint32_t[]){0}, 1, NULL, &what_if, &world), 0);
	point(1, 0, BEFORE_ALL, NOTHING);
	assert_int_equal(timelines_point(world, 0,
					 &(struct timeline_point){.name = 2,
								  .time_ns = wall(1),
								  .deps = deps,
								  .n_deps = 1},
					 &times, &err),
			 -ERANGE);
	assert_string_equal(err.text, "rank 0 computes too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_gate_that_opens_late_does_not_reach_virtual_time),
		CASE(late_gates_do_not_add_up_on_a_stream_of_ops),
		CASE(what_rounding_up_adds_is_no_lateness),
		CASE(a_point_is_not_before_what_it_waited_for),
		CASE(faster_GPUs_need_less_and_slow_ones_of_them_as_much_more),
		CASE(lag_grows_with_slow_and_is_lost_only_at_a_wait),
		CASE(the_hosts_part_is_not_stretched),
		CASE(a_point_without_a_call_is_not_the_hosts),
		CASE(a_slow_rank_whose_host_waits_makes_its_calls_later),
		CASE(a_stream_without_work_does_not_compute),
		CASE(what_follows_a_wait_of_the_host_counts_from_there),
		CASE(a_second_wait_of_the_host_counts_from_the_first),
		CASE(nothing_is_reached_before_its_call),
		CASE(a_plain_time_knows_of_no_what_ifs),
		CASE(a_real_rank_that_is_slowed_is_held_at_the_gate),
		CASE(what_a_what_if_cannot_do_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
