/* See point.h. */
#include "nboxd/op/point.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "engine/record-write.h"
#include "nboxd/loop/warn.h"
#include "nboxd/op/recorded.h"
#include "op/arrive.h"

/* An error of the clocks' offset: nothing happens later than now, nor before HELLO. */
static uint64_t possible(const struct worker *w, uint64_t ns, uint64_t now_ns)
{
	if (ns > now_ns)
		return now_ns;
	return ns && ns < w->hello_ns ? w->hello_ns : ns;
}

void point_deps(const char *list, uint32_t n, struct timeline_dep *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		struct wire_dep dep;

		memcpy(&dep, list + i * sizeof(dep), sizeof(dep));
		ret[i] = (struct timeline_dep){.name = dep.name,
					       .is_same_stream = dep.is_same_stream};
	}
}

static void record(struct live *live, uint32_t world_rank, const struct wire_point *m,
		   const char *list, const struct timeline_times *times)
{
	struct record_dep deps[WIRE_DEPS_MAX];
	const struct record_point point = {
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
		.order = live->n_points++,
		.n_deps = m->n_deps,
		.deps = deps,
	};

	_Static_assert(sizeof(deps[0]) == sizeof(struct wire_dep), "one form");
	memcpy(deps, list, m->n_deps * sizeof(deps[0]));
	record_point(live->record, &point);
	totals_point(&live->totals, &point);
}

int op_on_point(struct live *live, struct worker *w, const struct wire_hdr *h, const void *body)
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
	point_deps((const char *)body + sizeof(m), m.n_deps, deps);
	r = ops_point(&live->ops, h->rank,
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
	recorded_on_row(live);
	record(live, h->rank, &m, (const char *)body + sizeof(m), &times);
	return 0;
}
