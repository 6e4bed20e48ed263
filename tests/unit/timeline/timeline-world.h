/* Timelines, by hand: each case is a job of a few points whose times anybody can add up. Times are
 * milliseconds after the first point, which lies at BASE_MS by the wall clock. */
#pragma once

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
static double gpu_speed; /* for the next open_world(); 0: as fast */

static inline int segment(void *ctx, uint32_t rank, uint64_t number, double start, double ns,
			  double *ret_ns, struct err *err)
{
	(void)start;
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
static inline void open_world(uint32_t n, uint32_t n_real)
{
	const struct timeline_what_if what_if = {.segment = segment};
	const struct topology t = {.n_nodes = n, .gpus_per_node = 1, .gpu_speed = gpu_speed};
	static const uint32_t real[] = {0, 1, 2, 3};

	memset(factor, 0, sizeof(factor));
	memset(jitter_ms, 0, sizeof(jitter_ms));
	assert_int_equal(timelines_new(&t, real, n_real, NULL, &what_if, &world), 0);
}

static inline int close_world(void **state)
{
	(void)state;
	world = timelines_free(world);
	gpu_speed = 0;
	return 0;
}

static inline uint64_t wall(double ms)
{
	return (uint64_t)llround((BASE_MS + ms) * NS);
}

static inline double ms(uint64_t ns)
{
	return (double)(int64_t)(ns - wall(0)) / NS;
}

/* What lies before a point on its own stream, and on another. */
#define OWN(n) ((struct timeline_dep){.name = (n), .is_same_stream = true})
#define OTHER(n) ((struct timeline_dep){.name = (n)})
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

static inline struct timeline_point point_of(uint64_t name, double at_ms, struct call call,
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

static inline struct timeline_times pass(const struct timeline_point *p)
{
	struct timeline_times times;
	struct err err = {""};

	if (timelines_point(world, 0, p, &times, &err))
		fail_msg("%s", err.text);
	return times;
}

static inline struct timeline_times point(uint64_t name, double at_ms, struct call call,
					  const struct timeline_dep *deps, size_t n)
{
	const struct timeline_point p = point_of(name, at_ms, call, deps, n);

	return pass(&p);
}

/* The host waits from the call at @call_ms until @at_ms. */
static inline struct timeline_times host(uint64_t name, double at_ms, struct call call,
					 const struct timeline_dep *deps, size_t n)
{
	struct timeline_point p = point_of(name, at_ms, call, deps, n);

	p.is_host = true;
	return pass(&p);
}

static inline struct timeline_node *arrive_at(uint32_t rank, uint64_t name, double at_ms,
					      struct call call, const struct timeline_dep *deps,
					      size_t n, struct timeline_times *ret)
{
	const struct timeline_point p = point_of(name, at_ms, call, deps, n);
	struct timeline_node *node;
	struct err err = {""};

	if (timelines_arrive(world, rank, &p, &node, ret, &err))
		fail_msg("%s", err.text);
	return node;
}

static inline struct timeline_node *arrive(uint64_t name, double at_ms,
					   const struct timeline_dep *deps, size_t n)
{
	struct timeline_times times;

	return arrive_at(0, name, at_ms, BEFORE_ALL, deps, n, &times);
}

/* An op that is over at @end_ms. Its gate opens at @opened_ms; 0: when it is due. */
static inline void play(uint64_t name, double at_ms, const struct timeline_dep *deps, size_t n,
			double end_ms, double opened_ms)
{
	struct timeline_node *op = arrive(name, at_ms, deps, n);

	timeline_end_all(op, end_ms * NS, end_ms * NS);
	if (opened_ms != 0)
		timeline_opened(op, wall(opened_ms));
	timeline_node_release(op);
}

static inline void check_ms(double ns, double expected_ms)
{
	if (fabs(ns / NS - expected_ms) > 1e-6)
		fail_msg("%.9g ms, not %.9g", ns / NS, expected_ms);
}

/* @n ranks, all but the first virtual, and point 1, before all else. */
static inline void start(uint32_t n)
{
	open_world(n, 1);
	point(1, 0, BEFORE_ALL, NOTHING);
}

/* When @rank passes the point @name, which its template passed at @at_ms. */
static inline void check_at(uint32_t rank, uint64_t name, double at_ms, double expected_ms)
{
	static uint64_t probes = 1 << 30;
	struct timeline_node *n = arrive(probes++, at_ms, DEPS(OTHER(name)));

	check_ms(timeline_arrival(n, rank), expected_ms);
	timeline_node_release(n);
}

/* A point that rank 0 and its copy, rank 1, pass then. */
static inline struct timeline_times both(uint64_t name, double at_ms, struct call call,
					 const struct timeline_dep *deps, size_t n, double real_ms,
					 double copy_ms)
{
	struct timeline_times times = point(name, at_ms, call, deps, n);

	check_at(0, name, at_ms, real_ms);
	check_at(1, name, at_ms, copy_ms);
	return times;
}

/* An op, and when @rank arrives. */
static inline struct timeline_node *arrives(uint64_t name, double at_ms,
					    const struct timeline_dep *deps, size_t n,
					    uint32_t rank, double expected_ms)
{
	struct timeline_node *op = arrive(name, at_ms, deps, n);

	check_ms(timeline_arrival(op, rank), expected_ms);
	return op;
}

#define CASE(name) cmocka_unit_test_teardown(name, close_world)
