/* See point.h. */
#include "nboxd/op/point.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "engine/record-write.h"
#include "nboxd/loop/warn.h"
#include "timeline/timeline.h"

/* An error of the clocks' offset: nothing happens later than now, nor before HELLO. */
static uint64_t possible(const struct worker *w, uint64_t ns, uint64_t now_ns)
{
	if (ns > now_ns)
		return now_ns;
	return ns && ns < w->hello_ns ? w->hello_ns : ns;
}

static void take_deps(const char *deps, uint32_t n, struct timeline_dep *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		struct wire_dep dep;

		memcpy(&dep, deps + i * sizeof(dep), sizeof(dep));
		ret[i] = (struct timeline_dep){dep.name, dep.is_same_stream};
	}
}

static void record(struct ops *ops, uint32_t world_rank, const struct wire_point *m,
		   const char *list, const struct timeline_times *times)
{
	struct record_dep deps[WIRE_DEPS_MAX];

	_Static_assert(sizeof(deps[0]) == sizeof(struct wire_dep), "one form");
	memcpy(deps, list, m->n_deps * sizeof(deps[0]));
	record_point(ops->record, &(struct record_point){
					  .name = m->name,
					  .host = m->host,
					  .call_ns = m->call_ns,
					  .time_ns = m->time_ns,
					  .virtual_ns = times->time_ns,
					  .plain_ns = times->plain_ns,
					  .exposed_ns = times->exposed_ns,
					  .world_rank = world_rank,
					  .stream = m->stream,
					  .kind = m->kind,
					  .is_host_bound = times->is_host_bound,
					  .work_ns = m->work_ns,
					  .order = ops->n_points++,
					  .n_deps = m->n_deps,
					  .deps = deps,
				  });
}

int op_on_point(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct timeline_dep deps[WIRE_DEPS_MAX];
	struct timeline_times times;
	struct err err = {""};
	struct wire_point m;
	uint64_t now = clock_now_ns();
	int r;

	memcpy(&m, body, sizeof(m));
	m.time_ns = possible(w, m.time_ns, now);
	m.call_ns = possible(w, m.call_ns, now);
	m.work_ns = possible(w, m.work_ns, now);
	take_deps((const char *)body + sizeof(m), m.n_deps, deps);
	r = timelines_point(ops->timelines, h->rank,
			    &(struct timeline_point){
				    .name = m.name,
				    .time_ns = m.time_ns,
				    .call_ns = m.call_ns,
				    .work_ns = m.work_ns,
				    .host = m.host,
				    .deps = deps,
				    .n_deps = m.n_deps,
				    .is_host = m.kind == WIRE_POINT_HOST,
			    },
			    &times, &err);
	if (r < 0)
		return worker_refuse(w, -r, "POINT of rank %u: %s", h->rank, err.text);
	record(ops, h->rank, &m, (const char *)body + sizeof(m), &times);
	return 0;
}

int point_arrive(struct post *post, const char *list, struct err *err)
{
	const struct wire_arrive *a = &post->arrive;
	struct ops *ops = post->op->comm->comms->ops;
	struct timeline_dep deps[WIRE_DEPS_MAX];

	post->order = ops->n_points++;
	take_deps(list, a->n_deps, deps);
	return timelines_arrive(ops->timelines, post->member->world_rank,
				&(struct timeline_point){
					.name = a->name,
					.time_ns = a->arrive_ns,
					.call_ns = a->call_ns,
					.work_ns = a->work_ns,
					.host = a->host,
					.deps = deps,
					.n_deps = a->n_deps,
					.queue = post->op->comm->number + 1,
				},
				&post->node, &post->arrival, err);
}

static int segment(void *ctx, uint32_t world_rank, uint64_t number, double ns, double *ret_ns,
		   struct err *err)
{
	return delay_segment(ctx, world_rank, number, ns, ret_ns, err);
}

void point_what_if(const struct ops *ops, struct timeline_what_if *ret)
{
	*ret = (struct timeline_what_if){
		.segment = delay_has_segments(ops->delay) ? segment : NULL,
		.ctx = ops->delay,
	};
}
