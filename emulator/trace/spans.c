/* See spans.h. */
#include "trace/spans.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough" /* of uthash's macros */

#include "base/cleanup.h"

#define HOST_NS 100000 /* as in timeline/point.c */

struct place {
	uint64_t name;
	size_t span; /* the last one of that name */
	UT_hash_handle hh;
};

struct finder {
	struct spans *spans;
	struct place *places, *by_name; /* of the rank; places has room for all */
	size_t n_places, n_deps;
};

static int by_order(const void *pa, const void *pb)
{
	const struct span *a = pa, *b = pb;

	if (a->world_rank != b->world_rank)
		return a->world_rank < b->world_rank ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* --- the fields that ops and points share ------------------------------------------------------
 */

struct common {
	uint64_t name, host, wall_ns, call_ns, work_ns;
	const struct record_dep *deps;
	uint32_t n_deps, stream;
};

static struct common common_of(const struct span *s)
{
	const struct record_op *o = s->op;
	const struct record_point *p = s->point;

	if (o)
		return (struct common){o->name,    o->host, o->arrive_ns, o->call_ns,
				       o->work_ns, o->deps, o->n_deps,    o->stream};
	return (struct common){p->name,    p->host, p->time_ns, p->call_ns,
			       p->work_ns, p->deps, p->n_deps,  p->stream};
}

static const struct span *find(const struct finder *f, uint64_t name)
{
	struct place *at;

	HASH_FIND(hh, f->by_name, &name, sizeof(name), at);
	return at ? &f->spans->list[at->span] : NULL;
}

/* Return: 0; -ENOMEM. */
static int remember(struct finder *f, uint64_t name, size_t span)
{
	struct place *at;

	HASH_FIND(hh, f->by_name, &name, sizeof(name), at);
	if (!at) {
		at = &f->places[f->n_places++];
		at->name = name;
		HASH_ADD(hh, f->by_name, name, sizeof(name), at);
		if (!at->hh.tbl)
			return -ENOMEM;
	}
	at->span = span;
	return 0;
}

/* Computation is not what a communication stream has before an op, where it waits for other
 * streams. Where the host was the bound, the stream computes, with gaps, since its first work. */
static bool computes(const struct span *s, const struct common *c, uint64_t from)
{
	if (from >= s->at_ns || (!c->work_ns && c->call_ns && c->wall_ns <= c->call_ns + HOST_NS))
		return false;
	for (uint32_t i = 0; s->op && i < c->n_deps; i++)
		if (!c->deps[i].is_same_stream)
			return false;
	return !s->op || s->at_ns - from > HOST_NS;
}

/* A host point has no stream: what it waited for last computed until then. */
static uint32_t stream_before(const struct finder *f, const struct span *s)
{
	const struct span *last = NULL;

	for (size_t i = 0; i < s->n_deps; i++) {
		const struct span *d = &f->spans->list[s->deps[i]];

		if (!last || (last->op && d->point) ||
		    (!last->op == !d->op && d->end_ns > last->end_ns))
			last = d;
	}
	return last ? last->stream : 0;
}

/* Return: 0; -ENOMEM. */
static int connect_span(struct finder *f, struct span *s)
{
	const struct common c = common_of(s);
	const struct span *host = find(f, c.host);
	size_t *deps = f->spans->deps + f->n_deps;
	uint64_t from = 0;

	for (uint32_t i = 0; i < c.n_deps; i++) {
		const struct span *d = find(f, c.deps[i].name);

		if (!d)
			continue;
		deps[s->n_deps++] = (size_t)(d - f->spans->list);
		from = d->end_ns > from ? d->end_ns : from;
	}
	s->deps = deps;
	s->host = host ? (size_t)(host - f->spans->list) : SPAN_NONE;
	f->n_deps += s->n_deps;
	s->stream =
		s->point && s->point->kind == RECORD_POINT_HOST ? stream_before(f, s) : c.stream;
	if (host && c.work_ns) {
		uint64_t wall = common_of(host).wall_ns, work = host->at_ns + (c.work_ns - wall);

		from = c.work_ns >= wall && work > from ? work : from;
	}
	if (!s->n_deps && c.work_ns && c.work_ns < c.wall_ns) /* the stream's first one */
		from = s->at_ns - (c.wall_ns - c.work_ns);
	s->from_ns = from && computes(s, &c, from) ? from : s->at_ns;
	return c.name ? remember(f, c.name, (size_t)(s - f->spans->list)) : 0;
}

static size_t take_rows(const struct record *rec, struct span *list)
{
	size_t n_deps = 0, n = 0;

	for (uint64_t i = 0; i < rec->n_ops; i++) {
		const struct record_op *o = &rec->ops[i];

		list[n++] = (struct span){.op = o,
					  .order = o->order,
					  .world_rank = o->world_rank,
					  .at_ns = o->virtual_arrive_ns,
					  .end_ns = o->virtual_end_ns};
		n_deps += o->n_deps;
	}
	for (uint64_t i = 0; i < rec->n_points; i++) {
		const struct record_point *p = &rec->points[i];

		list[n++] = (struct span){.point = p,
					  .order = p->order,
					  .world_rank = p->world_rank,
					  .at_ns = p->virtual_ns,
					  .end_ns = p->virtual_ns};
		n_deps += p->n_deps;
	}
	qsort(list, n, sizeof(*list), by_order);
	return n_deps;
}

int spans_find(const struct record *rec, struct spans *ret)
{
	size_t n = rec->n_ops + rec->n_points;
	CLEANUP(freep) struct place *places = calloc(n + 1, sizeof(*places));
	CLEANUP(spans_deinit)
	struct spans s = {.list = calloc(n + 1, sizeof(*s.list)), .n = n};
	struct finder f = {.spans = &s, .places = places};
	int r = 0;

	if (!s.list || !places)
		return -ENOMEM;
	s.deps = calloc(take_rows(rec, s.list) + 1, sizeof(*s.deps));
	if (!s.deps)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (i && s.list[i].world_rank != s.list[i - 1].world_rank)
			HASH_CLEAR(hh, f.by_name);
		r = connect_span(&f, &s.list[i]);
	}
	HASH_CLEAR(hh, f.by_name);
	if (r == 0) {
		*ret = s;
		s = (struct spans){0};
	}
	return r;
}

size_t spans_rank_end(const struct spans *s, size_t first)
{
	size_t end = first;

	while (end < s->n && s->list[end].world_rank == s->list[first].world_rank)
		end++;
	return end;
}

void spans_deinit(struct spans *s)
{
	free(s->list);
	free(s->deps);
	*s = (struct spans){0};
}
