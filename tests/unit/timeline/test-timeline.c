/* Timelines, by hand: each case is a job of a few points whose times anybody can add up. Times are
 * milliseconds after the first point, which lies at BASE_MS by the wall clock. */
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <string.h>

#include "cmocka-all.h"
#include "timeline/timeline.h"

#define BASE_MS 1e6
#define NS 1e6 /* in a millisecond */
#define CAPTURED (UINT64_C(1) << 63)

static struct timelines *world;
static double factor[8]; /* by which computation takes longer, by rank; 0: as long */
static double jitter_ms[8];

static int segment(void *ctx, uint32_t rank, uint64_t number, double ns, double *ret_ns,
		   struct err *err)
{
	(void)ctx;
	(void)number;
	(void)err;
	assert_true(rank < 8);
	if (factor[rank] == 0 && jitter_ms[rank] == 0)
		return 1;
	*ret_ns = ns * (factor[rank] != 0 ? factor[rank] : 1) + jitter_ms[rank] * NS;
	return 0;
}

/* @n ranks, one a node; the first @n_real are real, and the templates of the others in turn. */
static void open_world(uint32_t n, uint32_t n_real)
{
	const struct timeline_what_if what_if = {.segment = segment};
	const struct topology t = {.n_nodes = n, .gpus_per_node = 1};
	static const uint32_t real[] = {0, 1, 2, 3};

	memset(factor, 0, sizeof(factor));
	memset(jitter_ms, 0, sizeof(jitter_ms));
	assert_int_equal(timelines_new(&t, real, n_real, &what_if, &world), 0);
}

static int close_world(void **state)
{
	(void)state;
	world = timelines_free(world);
	return 0;
}

static uint64_t wall(double ms)
{
	return (uint64_t)llround((BASE_MS + ms) * NS);
}

static double ms(uint64_t ns)
{
	return (double)(int64_t)(ns - wall(0)) / NS;
}

/* What lies before a point on its own stream, and on another. */
#define OWN(name) ((struct timeline_dep){(name), true})
#define OTHER(name) ((struct timeline_dep){(name), false})
#define DEPS(...)                                     \
	((const struct timeline_dep[]){__VA_ARGS__}), \
		sizeof((const struct timeline_dep[]){__VA_ARGS__}) / sizeof(struct timeline_dep)
#define NOTHING NULL, 0

struct call {
	double ms; /* of the job's call */
	uint64_t host;
	double work_ms; /* of the stream's first work; 0: not known */
};
#define CALL(at_ms, host_name) ((struct call){.ms = (at_ms), .host = (host_name)})
#define WORK(first_ms, at_ms, host_name) \
	((struct call){.ms = (at_ms), .host = (host_name), .work_ms = (first_ms)})
#define BEFORE_ALL CALL(-1e3, 0) /* long ago: the host is far ahead */

static struct timeline_point point_of(uint64_t name, double at_ms, struct call call,
				      const struct timeline_dep *deps, size_t n)
{
	return (struct timeline_point){
		.name = name,
		.time_ns = wall(at_ms),
		.call_ns = wall(call.ms),
		.work_ns = call.work_ms ? wall(call.work_ms) : 0,
		.host = call.host,
		.deps = deps,
		.n_deps = n,
	};
}

static struct timeline_times pass(const struct timeline_point *p)
{
	struct timeline_times times;
	struct err err = {""};

	if (timelines_point(world, 0, p, &times, &err))
		fail_msg("%s", err.text);
	return times;
}

static struct timeline_times point(uint64_t name, double at_ms, struct call call,
				   const struct timeline_dep *deps, size_t n)
{
	const struct timeline_point p = point_of(name, at_ms, call, deps, n);

	return pass(&p);
}

/* The host waits from the call at @call_ms until @at_ms. */
static struct timeline_times host(uint64_t name, double at_ms, struct call call,
				  const struct timeline_dep *deps, size_t n)
{
	struct timeline_point p = point_of(name, at_ms, call, deps, n);

	p.is_host = true;
	return pass(&p);
}

static struct timeline_node *arrive_at(uint32_t rank, uint64_t name, double at_ms, struct call call,
				       const struct timeline_dep *deps, size_t n,
				       struct timeline_times *ret)
{
	const struct timeline_point p = point_of(name, at_ms, call, deps, n);
	struct timeline_node *node;
	struct err err = {""};

	if (timelines_arrive(world, rank, &p, &node, ret, &err))
		fail_msg("%s", err.text);
	return node;
}

static struct timeline_node *arrive(uint64_t name, double at_ms, const struct timeline_dep *deps,
				    size_t n)
{
	struct timeline_times times;

	return arrive_at(0, name, at_ms, BEFORE_ALL, deps, n, &times);
}

/* An op that is over at @end_ms. Its gate opens at @opened_ms; 0: when it is due. */
static void play(uint64_t name, double at_ms, const struct timeline_dep *deps, size_t n,
		 double end_ms, double opened_ms)
{
	struct timeline_node *op = arrive(name, at_ms, deps, n);

	timeline_end_all(op, end_ms * NS, end_ms * NS);
	if (opened_ms != 0)
		timeline_opened(op, wall(opened_ms));
	timeline_node_release(op);
}

static void check_ms(double ns, double expected_ms)
{
	if (fabs(ns / NS - expected_ms) > 1e-6)
		fail_msg("%.9g ms, not %.9g", ns / NS, expected_ms);
}

/* @n ranks, all but the first virtual, and point 1, before all else. */
static void start(uint32_t n)
{
	open_world(n, 1);
	point(1, 0, BEFORE_ALL, NOTHING);
}

/* When @rank passes the point @name, which its template passed at @at_ms. */
static void check_at(uint32_t rank, uint64_t name, double at_ms, double expected_ms)
{
	static uint64_t probes = 1 << 30;
	struct timeline_node *n = arrive(probes++, at_ms, DEPS(OTHER(name)));

	check_ms(timeline_arrival(n, rank), expected_ms);
	timeline_node_release(n);
}

/* A point that rank 0 and its copy, rank 1, pass then. */
static struct timeline_times both(uint64_t name, double at_ms, struct call call,
				  const struct timeline_dep *deps, size_t n, double real_ms,
				  double copy_ms)
{
	struct timeline_times times = point(name, at_ms, call, deps, n);

	check_at(0, name, at_ms, real_ms);
	check_at(1, name, at_ms, copy_ms);
	return times;
}

/* An op, and when @rank arrives. */
static struct timeline_node *arrives(uint64_t name, double at_ms, const struct timeline_dep *deps,
				     size_t n, uint32_t rank, double expected_ms)
{
	struct timeline_node *op = arrive(name, at_ms, deps, n);

	check_ms(timeline_arrival(op, rank), expected_ms);
	return op;
}

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

/* A record's ends are whole nanoseconds: the same comes out. */
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
		assert_true(point(5, 10, BEFORE_ALL, DEPS(OWN(3), OTHER(2))).exposed_ns == 2 * NS);
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

static int fails(void *ctx, uint32_t rank, uint64_t number, double ns, double *ret_ns,
		 struct err *err)
{
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
	assert_int_equal(timelines_new(&t, (uint32_t[]){0}, 1, &what_if, &world), 0);
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

static int all_apart(void *ctx, uint32_t rank, uint64_t number, double ns, double *ret_ns,
		     struct err *err)
{
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
	assert_int_equal(timelines_new(&t, (uint32_t[]){0}, 1, &what_if, &world), 0);
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

#define CASE(name) cmocka_unit_test_teardown(name, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_gate_that_opens_late_does_not_reach_virtual_time),
		CASE(late_gates_do_not_add_up_on_a_stream_of_ops),
		CASE(what_rounding_up_adds_is_no_lateness),
		CASE(a_point_is_not_before_what_it_waited_for),
		CASE(lag_grows_with_slow_and_is_lost_only_at_a_wait),
		CASE(the_hosts_part_is_not_stretched),
		CASE(a_point_without_a_call_is_not_the_hosts),
		CASE(a_slow_rank_whose_host_waits_makes_its_calls_later),
		CASE(a_stream_without_work_does_not_compute),
		CASE(what_follows_a_wait_of_the_host_counts_from_there),
		CASE(a_second_wait_of_the_host_counts_from_the_first),
		CASE(nothing_is_reached_before_its_call),
		CASE(an_op_on_the_compute_stream_needs_no_points),
		CASE(stretches_that_several_places_wait_through_are_exposed_once),
		CASE(an_op_that_waits_for_the_one_before_exposes_nothing),
		CASE(rounding_exposes_nothing),
		CASE(what_the_op_itself_waited_for_is_not_exposed),
		CASE(a_plain_time_knows_of_no_what_ifs),
		CASE(a_real_rank_that_is_slowed_is_held_at_the_gate),
		CASE(ranks_are_one_until_something_tells_them_apart),
		CASE(a_rank_of_another_template_is_as_late_as_it_was_last_seen),
		CASE(of_several_ends_of_an_op_the_latest_counts),
		CASE(a_name_of_a_captured_graph_means_its_last_replay),
		CASE(the_latest_point_takes_the_place_of_one_that_is_forgotten),
		CASE(a_host_point_that_calls_still_follow_is_not_forgotten),
		CASE(each_template_has_a_timeline_of_its_own),
		CASE(what_a_what_if_cannot_do_is_told),
		CASE(ranks_that_are_told_apart_need_no_more_than_64_mib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
