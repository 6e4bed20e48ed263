/* A node, by its name: ends, replays, queues, and what is forgotten when there are too many. */
#include "cmocka-all.h"
#include "timeline-world.h"
#include "timeline/timeline.h"

static void of_several_ends_of_an_op_the_latest_counts(void **state)
{
	struct timeline_node *op;

	(void)state;
	open_world(2, 1);
	op = arrive(1, 0, NOTHING);
	timeline_end_all(op, 5 * NS, 6 * NS);
	timeline_end_all(op, 4 * NS, 5 * NS);
	assert_true(ms(timeline_due_ns(op)) == 5);
	timeline_end_each(op, (double[]){3 * NS, 7 * NS}, 4 * NS);
	assert_true(ms(timeline_due_ns(op)) == 5 && ms(timeline_end(op).plain_ns) == 6);
	check_at(1, 1, 5, 7);
	timeline_end_each(op, (double[]){6 * NS, 4 * NS}, 4 * NS);
	assert_true(ms(timeline_due_ns(op)) == 6);
	check_at(1, 1, 6, 7);
	timeline_end_all(op, 6.5 * NS, 8 * NS);
	assert_true(ms(timeline_due_ns(op)) == 6.5 && ms(timeline_end(op).plain_ns) == 8);
	check_at(1, 1, 6.5, 7);
}

static void a_name_of_a_captured_graph_means_its_last_replay(void **state)
{
	struct timeline_node *first, *second;

	(void)state;
	start(2);
	factor[1] = 2;
	first = arrive(CAPTURED | 1, 0, DEPS(OTHER(1)));
	timeline_end_all(first, 1 * NS, 1 * NS);
	point(CAPTURED | 2, 3, BEFORE_ALL, DEPS(OTHER(CAPTURED | 1)));
	check_at(1, CAPTURED | 2, 3, 5);
	second = arrives(CAPTURED | 1, 3, DEPS(OTHER(CAPTURED | 2)), 1, 5);
	timeline_end_all(second, 6 * NS, 4 * NS);
	point(CAPTURED | 2, 8, BEFORE_ALL, DEPS(OTHER(CAPTURED | 1)));
	check_at(1, CAPTURED | 2, 8, 10);
	timeline_end_all(first, 7 * NS, 7 * NS); /* its owner still holds it */
	assert_true(ms(timeline_due_ns(first)) == 7);
	timeline_node_release(first);
	timeline_node_release(second);
}

static struct timeline_node *line_up(uint32_t queue, uint64_t name, double at_ms)
{
	struct timeline_point p = point_of(name, at_ms, BEFORE_ALL, DEPS(OTHER(1)));
	struct timeline_times times;
	struct timeline_node *n;
	struct err err;

	p.queue = queue;
	assert_int_equal(timelines_arrive(world, 0, &p, &n, &times, &err), 0);
	return n;
}

/* Nobody starts before the op before it in its queue is over there. */
static void a_queue_is_first_come_first_served(void **state)
{
	struct timeline_node *a, *b, *c, *other;
	double ends[] = {5 * NS, 8 * NS};

	(void)state;
	start(2);
	a = line_up(7, 2, 1);
	b = line_up(7, 3, 1);
	other = line_up(8, 4, 1);
	check_ms(timeline_start(b, 0), 1); /* when that is over is not known yet */
	timeline_end_each(a, ends, 4 * NS);
	timeline_node_release(a); /* the one behind it asks for it still */
	for (uint64_t name = 5; name < 5000; name++)
		point(name, (double)name - 1, BEFORE_ALL, DEPS(OWN(name - 1)));
	check_ms(timeline_start(b, 0), 5);
	check_ms(timeline_start(b, 1), 8);
	check_ms(timeline_plain_start(b), 4);
	check_ms(timeline_arrival(b, 1), 1);
	assert_false(timeline_is_folded(b));
	assert_true(timeline_is_folded(other));
	check_ms(timeline_start(other, 1), 1);
	timeline_end_all(b, 9 * NS, 6 * NS);
	c = line_up(7, 3, 5001);
	check_ms(timeline_start(c, 1), 5001);
	timeline_node_release(b);
	timeline_node_release(c);
	timeline_node_release(other);
}

static double two_ms_later(void *ctx, double end)
{
	(void)ctx;
	return end + 2 * NS;
}

/* What nobody has waited for yet is seen by those that do; what has been, moves; an op that is over
 * stays. */
static void an_end_that_moves_takes_along_what_has_waited_for_it(void **state)
{
	struct timeline_node *op;

	(void)state;
	start(2);
	op = arrive(2, 1, DEPS(OWN(1)));
	timeline_end_all(op, 3 * NS, 3 * NS);
	check_ms(timeline_move_end(op, false, two_ms_later, NULL), 0);
	check_at(1, 2, 5, 5);
	timeline_opened(op, wall(3)); /* when it was due before */
	point(3, 4, BEFORE_ALL, DEPS(OWN(2)));
	check_at(1, 3, 4, 6);
	play(4, 4, DEPS(OTHER(3)), 7, 7);
	point(5, 7, BEFORE_ALL, DEPS(OWN(4)));
	point(6, 5, BEFORE_ALL, DEPS(OWN(3)));
	point(7, 5, BEFORE_ALL, DEPS(OWN(1)));
	check_ms(timeline_move_end(op, false, two_ms_later, NULL), 2);
	check_at(1, 3, 4, 8);
	check_at(0, 6, 5, 9);
	check_at(1, 5, 7, 7);
	check_at(1, 7, 5, 5);
	check_ms(timeline_move_end(op, true, two_ms_later, NULL), 2);
	timeline_node_release(op);
}

static void the_latest_point_takes_the_place_of_one_that_is_forgotten(void **state)
{
	struct timeline_node *op;
	uint64_t name;

	(void)state;
	open_world(2, 1);
	jitter_ms[1] = 1;
	op = arrive(1, 0, NOTHING);
	timeline_end_all(op, 1 * NS, 1 * NS);
	point(2, 1, BEFORE_ALL, DEPS(OTHER(1)));
	for (name = 3; name < 5000; name++)
		point(name, (double)name - 1, BEFORE_ALL, DEPS(OWN(name - 1)));
	check_at(1, name - 1, 4998, 4998 + 4997);
	check_at(1, 2, 4998, 4998 + 4997);
	timeline_end_all(op, 3 * NS, 3 * NS);
	assert_true(ms(timeline_due_ns(op)) == 3);
	timeline_node_release(op);
}

static void a_host_point_that_calls_still_follow_is_not_forgotten(void **state)
{
	uint64_t name;

	(void)state;
	start(2);
	factor[1] = 2;
	for (name = 2; name < 5000; name++) {
		double at = (double)name, call = name == 4990 ? 0 : at; /* 4,990 is computation */

		point(name, at, CALL(call, 1), DEPS(OWN(name - 1)));
	}
	check_at(1, 4990, 4990, 4991); /* ... that the other rank is 1 late with */
	check_at(1, 4999, 4999, 4999); /* its host is not late */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(of_several_ends_of_an_op_the_latest_counts),
		CASE(a_name_of_a_captured_graph_means_its_last_replay),
		CASE(a_queue_is_first_come_first_served),
		CASE(an_end_that_moves_takes_along_what_has_waited_for_it),
		CASE(the_latest_point_takes_the_place_of_one_that_is_forgotten),
		CASE(a_host_point_that_calls_still_follow_is_not_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
