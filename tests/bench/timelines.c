/* See timelines.h. One real rank, which is the template of all others, computes, arrives at an op,
 * and waits for it, again and again. */
#include "timelines.h"

#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "timeline/timeline.h"

#define SECONDS_MIN 0.1

struct cost {
	double point_ns, op_ns; /* an op: its arrival and its end */
};

struct job {
	struct timelines *timelines;
	double *ends; /* owned; by world rank */
	uint64_t name;
	double points_s, ops_s;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int segment(void *ctx, uint32_t rank, uint64_t number, double start, double ns,
		   double *ret_ns, struct err *err)
{
	return delay_segment(ctx, rank, number, start, ns, ret_ns, err);
}

/* All ranks leave the op a millisecond after they have come: who lags stays behind. */
static int end(struct job *job, struct timeline_node *op)
{
	double plain = timeline_plain_arrival(op) + 1e6;
	uint32_t n;
	const uint32_t *ranks = timeline_ranks(op, &n);

	if (timeline_is_folded(op))
		return timeline_end_all(op, timeline_arrival(op, 0) + 1e6, plain);
	for (uint32_t i = 0; i < n; i++)
		job->ends[i] = timeline_arrival(op, ranks[i]) + 1e6;
	return timeline_end_each(op, job->ends, plain);
}

/* A point before the wait for the last op, the op. */
static int iterate(struct job *job, struct err *err)
{
	uint64_t name = job->name += 2, at = 1000000000 + name * 1000000;
	const struct timeline_dep waits[] = {{name - 2, true, 0}, {name - 1, false, 0}},
				  op_waits[] = {{name - 1, true, 0}, {name, false, 0}};
	const struct timeline_point point = {.name = name,
					     .time_ns = at,
					     .call_ns = at - 900000,
					     .deps = waits,
					     .n_deps = 2},
				    arrival = {.name = name + 1,
					       .time_ns = at,
					       .call_ns = at - 900000,
					       .deps = op_waits,
					       .n_deps = 2,
					       .queue = 1};
	struct timeline_times times;
	struct timeline_node *op;
	double begin = now_s(), mid;
	int r = timelines_point(job->timelines, 0, &point, &times, err);

	mid = now_s();
	if (r == 0)
		r = timelines_arrive(job->timelines, 0, &arrival, &op, &times, err);
	if (r == 0)
		r = end(job, op);
	if (r == 0) {
		timeline_opened(op, timeline_due_ns(op));
		timeline_node_release(op);
	}
	job->points_s += mid - begin;
	job->ops_s += now_s() - mid;
	return r;
}

/* The best of three. */
static int measure(const struct topology *t, struct delay_chain *d, struct cost *ret)
{
	const struct timeline_what_if what_if = {.segment = delay_has_segments(d) ? segment : NULL,
						 .ctx = d};
	struct cost best = {1e30, 1e30};
	struct err err = {""};
	int r = 0;

	for (int round = 0; round < 3 && r == 0; round++) {
		struct job job = {.ends = malloc(topology_world(t) * sizeof(double)), .name = 2};
		uint64_t n = 0;

		r = job.ends ? timelines_new(t, (uint32_t[]){0}, 1, NULL, &what_if, &job.timelines)
			     : -1;
		for (; r == 0 && (n < 10 || job.points_s + job.ops_s < SECONDS_MIN); n++)
			r = iterate(&job, &err);
		timelines_free(job.timelines);
		free(job.ends);
		if (job.points_s / (double)n < best.point_ns / 1e9)
			best.point_ns = job.points_s / (double)n * 1e9;
		if (job.ops_s / (double)n < best.op_ns / 1e9)
			best.op_ns = job.ops_s / (double)n * 1e9;
	}
	if (r)
		fprintf(stderr, "bench-scale: timelines: %s\n", err.text);
	*ret = best;
	return r;
}

int timelines_rows(struct delay_chain *(*open)(const char *what_if, const struct topology *t),
		   FILE *json)
{
	static const char *const what_ifs[] = {NULL, "slow:rank=1,compute=1.5",
					       "jitter:on=compute,max=10%"};
	static const uint32_t ranks[] = {8, 1024, 16384, 65536};

	printf("\ntimelines of 1 real rank and the virtual ranks that copy it: a point and an op "
	       "(arrival and end)\n%-34s %7s %12s %12s\n",
	       "what-if", "ranks", "point", "op");
	for (size_t i = 0; i < ARRAY_SIZE(ranks) * ARRAY_SIZE(what_ifs); i++) {
		const char *what_if = what_ifs[i / ARRAY_SIZE(ranks)];
		const struct topology t = {.n_nodes = ranks[i % ARRAY_SIZE(ranks)],
					   .gpus_per_node = 1};
		struct delay_chain *d = open(what_if, &t);
		struct cost c;

		if (!d || measure(&t, d, &c))
			return 1;
		delay_free(d);
		printf("%-34s %7u %9.3f us %9.3f us\n", what_if ? what_if : "none: folded",
		       t.n_nodes, c.point_ns / 1e3, c.op_ns / 1e3);
		fflush(stdout);
		if (json)
			fprintf(json,
				",\n  {\"what\": \"timelines\", \"what_if\": \"%s\", \"ranks\": "
				"%u, \"point_ns\": %.1f, \"op_ns\": %.1f}",
				what_if ? what_if : "", t.n_nodes, c.point_ns, c.op_ns);
	}
	return 0;
}
