/* How long computation waits for communication alone. */
#include "cmocka-all.h"
#include "timeline-world.h"
#include "timeline/timeline.h"

static void an_op_on_the_compute_stream_needs_no_points(void **state)
{
	struct timeline_times times;
	struct timeline_node *op;

	(void)state;
	open_world(2, 1);
	factor[1] = 2;
	play(1, 0, NOTHING, 2, 3);
	op = arrive_at(0, 2, 8, BEFORE_ALL, DEPS(OWN(1)), &times);
	check_ms(timeline_arrival(op, 0), 7);
	check_ms(timeline_arrival(op, 1), 12);
	assert_true(times.exposed_ns == 2 * NS);
	timeline_end_all(op, 13 * NS, 8 * NS);
	assert_true(ms(timeline_due_ns(op)) == 14); /* its computation came 1 late */
}

static void stretches_that_several_places_wait_through_are_exposed_once(void **state)
{
	(void)state;
	start(2);
	play(2, 0, DEPS(OTHER(1)), 10, 0);
	play(3, 0, DEPS(OTHER(1)), 12, 0);
	point(4, 4, BEFORE_ALL, DEPS(OWN(1)));
	point(5, 5, BEFORE_ALL, DEPS(OTHER(1))); /* of another stream that computes */
	assert_true(point(6, 10, BEFORE_ALL, DEPS(OWN(4), OTHER(2))).exposed_ns == 6 * NS);
	assert_true(point(7, 12, BEFORE_ALL, DEPS(OWN(5), OTHER(3))).exposed_ns == 2 * NS);
	assert_true(point(8, 12, BEFORE_ALL, DEPS(OWN(6), OTHER(2))).exposed_ns == 0);
	assert_true(point(9, 20, BEFORE_ALL, DEPS(OWN(8))).exposed_ns == 0);
}

/* Its stream waits for a point, or for nothing but the op before. */
static void an_op_that_waits_for_the_one_before_exposes_nothing(void **state)
{
	struct timeline_times times;
	struct timeline_node *op;

	(void)state;
	start(2);
	play(2, 0, DEPS(OTHER(1)), 10, 0);
	point(3, 4, BEFORE_ALL, DEPS(OWN(1)));
	op = arrive_at(0, 4, 10, BEFORE_ALL, DEPS(OWN(2), OTHER(3)), &times);
	assert_true(times.exposed_ns == 0);
	timeline_end_all(op, 11 * NS, 11 * NS);
	arrive_at(0, 5, 11, BEFORE_ALL, DEPS(OWN(4)), &times);
	assert_true(times.exposed_ns == 0);
}

/* A record's ends are whole nanoseconds: the same comes out. Nor does an op expose what its own
 * stream did before it came. */
static void rounding_exposes_nothing(void **state)
{
	struct timeline_times times;
	struct timeline_node *op;

	(void)state;
	for (uint64_t k = 0; k < 2; k++) {
		start(2);
		op = arrive_at(0, 2, 4, BEFORE_ALL, DEPS(OWN(1)), &times);
		timeline_end_all(op, 4 * NS + 0.5 * k, 4 * NS);
		point(3, 2, BEFORE_ALL, DEPS(OWN(1)));
		arrive_at(0, 4, 5, BEFORE_ALL, DEPS(OWN(2)), &times);
		assert_true(times.exposed_ns == 0);
		assert_true(point(5, 10, BEFORE_ALL, DEPS(OWN(3), OTHER(2))).exposed_ns == 0);
		close_world(NULL);
	}
}

/* The op waits for computation until 9, the host for the op. */
static void what_the_op_itself_waited_for_is_not_exposed(void **state)
{
	(void)state;
	start(2);
	point(2, 9, BEFORE_ALL, DEPS(OWN(1)));
	play(3, 9, DEPS(OTHER(2)), 10, 0);
	assert_true(point(4, 10, CALL(2, 1), DEPS(OTHER(3))).exposed_ns == NS);
}

/* Since the place at which computation waited for an op; that its own stream had one is no wait. */
static void an_ops_window_is_what_was_computed_since_the_last_wait(void **state)
{
	struct timeline_times times;

	(void)state;
	start(2);
	play(2, 0, DEPS(OTHER(1)), 10, 0);
	point(3, 12, BEFORE_ALL, DEPS(OWN(1), OTHER(2)));
	point(4, 15, BEFORE_ALL, DEPS(OWN(3)));
	assert_true(timeline_window(arrive(5, 15, DEPS(OWN(2), OTHER(4)))) == 5 * NS);
	play(6, 15, DEPS(OTHER(4)), 16, 0);
	point(7, 20, BEFORE_ALL, DEPS(OWN(4), OTHER(6))); /* it was over: nothing was waited for */
	assert_true(timeline_window(arrive_at(0, 8, 23, BEFORE_ALL, DEPS(OWN(7)), &times)) ==
		    7 * NS);
	assert_true(timeline_window(arrive(9, 20, DEPS(OTHER(7)))) == 4 * NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_op_on_the_compute_stream_needs_no_points),
		CASE(stretches_that_several_places_wait_through_are_exposed_once),
		CASE(an_op_that_waits_for_the_one_before_exposes_nothing),
		CASE(rounding_exposes_nothing),
		CASE(what_the_op_itself_waited_for_is_not_exposed),
		CASE(an_ops_window_is_what_was_computed_since_the_last_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
