/* See table.h. */
#include "shim/edges/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/wire.h"

static size_t slot_of(const void *handle, size_t slots)
{
	uint64_t x = (uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(x >> 40) % slots;
}

uint64_t table_name(struct table *t, uint64_t capture)
{
	return ++t->name | (capture ? WIRE_NAME_CAPTURED : 0);
}

/* --- streams -------------------------------------------------------------------------- */

struct table_stream *table_stream(struct table *t, device_stream handle, int device,
				  uintptr_t thread)
{
	struct table_stream **slot = &t->streams[slot_of(handle, ARRAY_SIZE(t->streams))], *s;

	for (s = *slot; s; s = s->next)
		if (s->handle == handle && s->thread == thread &&
		    (s->device == device || !(s->is_legacy || thread)))
			return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->handle = handle;
	s->device = device;
	s->thread = thread;
	s->next = *slot;
	*slot = s;
	return s;
}

void table_idle(struct table_stream *s)
{
	s->work_ns = s->later_work_ns = 0;
}

static struct table_graph *graph_of(struct table *t, uint64_t capture)
{
	struct table_graph *graph = t->graphs;

	while (graph && graph->capture != capture)
		graph = graph->next;
	if (graph)
		return graph;
	graph = calloc(1, sizeof(*graph));
	if (!graph)
		return NULL;
	graph->capture = capture;
	graph->launch = (struct edge){.name = table_name(t, capture), .stream = ++t->n_streams};
	graph->next = t->graphs;
	t->graphs = graph;
	return graph;
}

static void enter(struct table *t, struct table_stream *s, uint64_t capture)
{
	const struct table_graph *graph;

	if (s->capture == capture)
		return;
	if (!s->capture)
		s->eager = s->behind;
	s->behind.n = 0;
	graph = capture ? graph_of(t, capture) : NULL;
	if (graph)
		behind_add(&s->behind, &graph->launch);
	if (!capture)
		s->behind = s->eager;
	s->capture = capture;
	table_idle(s);
	s->last = NULL;
}

void table_use(struct table *t, struct table_stream *s, uint64_t capture)
{
	enter(t, s, capture);
	if (capture || !s->is_blocking)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(t->streams); i++)
		for (const struct table_stream *o = t->streams[i]; o; o = o->next)
			if (o != s && o->device == s->device && o->is_blocking && !o->capture &&
			    (o->is_legacy || s->is_legacy))
				behind_merge(&s->behind, &o->behind);
}

void table_device(struct table *t, int device, struct behind *ret)
{
	ret->n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(t->streams); i++)
		for (struct table_stream *s = t->streams[i]; s; s = s->next) {
			if (s->device != device)
				continue;
			behind_merge(ret, s->capture ? &s->eager : &s->behind);
			table_idle(s);
		}
}

struct stamper *table_forget_stream(struct table *t, struct table_stream *s)
{
	struct table_stream **p = &t->streams[slot_of(s->handle, ARRAY_SIZE(t->streams))];
	struct stamper *stamper = s->stamper;

	for (size_t i = 0; i < ARRAY_SIZE(t->events); i++)
		for (struct table_event *ev = t->events[i]; ev; ev = ev->next)
			if (ev->stream == s)
				ev->stream = NULL;
	while (*p != s)
		p = &(*p)->next;
	*p = s->next;
	free(s);
	return stamper;
}

/* --- events --------------------------------------------------------------------------- */

struct table_event *table_event(struct table *t, device_event handle)
{
	struct table_event *ev = t->events[slot_of(handle, ARRAY_SIZE(t->events))];

	while (ev && ev->handle != handle)
		ev = ev->next;
	return ev;
}

/* The record before, if it was the stream's last, is of no use any more. */
static void detach(struct table_event *ev)
{
	if (ev->stream && ev->stream->last == ev)
		ev->stream->last = NULL;
}

void table_forget_event(struct table *t, device_event handle)
{
	struct table_event **p = &t->events[slot_of(handle, ARRAY_SIZE(t->events))], *ev;

	while (*p && (*p)->handle != handle)
		p = &(*p)->next;
	ev = *p;
	if (!ev)
		return;
	detach(ev);
	*p = ev->next;
	free(ev);
}

void table_work(struct table_stream *s, uint64_t call_ns)
{
	s->has_work = s->has_later = true;
	if (s->capture)
		return;
	if (!s->work_ns)
		s->work_ns = call_ns;
	if (!s->later_work_ns)
		s->later_work_ns = call_ns;
}

void table_record(struct table *t, device_event handle, struct table_stream *s, uint64_t call_ns)
{
	struct table_event *ev = table_event(t, handle);

	if (!ev) {
		struct table_event **slot = &t->events[slot_of(handle, ARRAY_SIZE(t->events))];

		ev = calloc(1, sizeof(*ev));
		if (!ev)
			return;
		ev->handle = handle;
		ev->next = *slot;
		*slot = ev;
	}
	detach(ev);
	ev->stream = s;
	ev->device = s->device;
	ev->behind = s->behind;
	ev->at = ++t->at;
	ev->call_ns = s->capture ? 0 : call_ns;
	ev->work_ns = s->work_ns;
	ev->host = s->capture ? 0 : t->hosts[s->device].last;
	ev->capture = s->capture;
	ev->is_point = false;
	s->last = ev;
	s->later_work_ns = 0;
	s->has_later = s->is_legacy || s->thread;
}

/* --- points --------------------------------------------------------------------------- */

/* A point that the stream got since, but that lies before this record, lies behind it. */
static void see_own(struct table_event *ev)
{
	const struct edge *own = behind_own(&ev->stream->behind, ev->stream->number);

	if (own && own->at < ev->at)
		behind_add(&ev->behind, own);
}

static void make_point(struct table_event *ev, uint64_t name, struct table_point *ret)
{
	struct table_stream *s = ev->stream;
	struct edge e = {.name = name, .at = ev->at, .stream = s->number};

	if (s->capture == ev->capture)
		see_own(ev);
	*ret = (struct table_point){.name = e.name,
				    .call_ns = ev->call_ns,
				    .work_ns = ev->work_ns,
				    .host = ev->host,
				    .stream = s->number,
				    .device = s->device,
				    .behind = ev->behind,
				    .event = ev->handle,
				    .capture = ev->capture,
				    .stamper = s->stamper};
	ev->is_point = true;
	ev->behind.n = 0;
	behind_add(&ev->behind, &e);
	if (s->capture != ev->capture)
		return;
	if (s->last == ev)
		s->work_ns = s->later_work_ns;
	behind_drop(&s->behind, &ret->behind, s->number);
	behind_add(&s->behind, &e);
}

void table_op(struct table_stream *s)
{
	if (s->has_work)
		s->n_worked = TABLE_WORKED;
	else if (s->is_comm && s->n_worked)
		s->n_worked--;
	s->is_comm = true;
	s->has_work = false;
	table_idle(s);
}

/* Work on the default streams may name no stream. */
bool table_computes(const struct table_stream *s)
{
	return !s->is_comm || s->has_work || s->n_worked || s->is_legacy || s->thread;
}

/* The place just before a wait: the last record, if no point or op of the stream is later. */
static bool is_place(const struct table_stream *s)
{
	const struct edge *own = behind_own(&s->behind, s->number);

	return s->last && !s->last->is_point && (!own || own->at < s->last->at) &&
	       table_computes(s);
}

static bool has_new_op(const struct table_stream *s, const struct behind *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (b->edges[i].is_op && !behind_has(&s->behind, &b->edges[i]))
			return true;
	return false;
}

bool table_lacks_place(const struct table_stream *s, const struct table_event *ev)
{
	return ev->capture == s->capture && ev->stream != s && has_new_op(s, &ev->behind) &&
	       table_computes(s) && (s->has_later || !is_place(s));
}

unsigned int table_wait(struct table *t, struct table_stream *s, struct table_event *ev,
			struct table_point ret[2])
{
	unsigned int n = 0;

	if (ev->capture != s->capture || ev->stream == s)
		return 0;
	if (has_new_op(s, &ev->behind) && is_place(s))
		make_point(s->last, table_name(t, s->capture), &ret[n++]);
	/* A stream of nothing but ops has no place between them. */
	if (s->is_comm && ev->stream && !ev->is_point && table_computes(ev->stream)) {
		make_point(ev, table_name(t, ev->capture), &ret[n]);
		behind_drop(&s->behind, &ret[n++].behind, s->number);
	}
	behind_merge(&s->behind, &ev->behind);
	return n;
}

bool table_sync(struct table *t, int device, const struct behind *behind, bool has_waited,
		struct table_point *ret)
{
	struct behind *known = &t->hosts[device].behind;

	if (!has_waited && behind_covers(known, behind))
		return false;
	*ret = (struct table_point){.name = table_name(t, 0),
				    .host = t->hosts[device].last,
				    .device = device,
				    .behind = *behind};
	behind_drop(&ret->behind, known, 0);
	behind_merge(known, behind);
	t->hosts[device].last = ret->name;
	return true;
}

/* --- graphs --------------------------------------------------------------------------- */

static struct table_handle **handle_slot(struct table *t, const void *handle)
{
	struct table_handle **p = &t->handles[slot_of(handle, ARRAY_SIZE(t->handles))];

	while (*p && (*p)->handle != handle)
		p = &(*p)->next;
	return p;
}

struct table_graph *table_graph(struct table *t, const void *handle)
{
	const struct table_handle *h = *handle_slot(t, handle);

	return h ? h->graph : NULL;
}

static void set_graph(struct table *t, const void *handle, struct table_graph *graph)
{
	struct table_handle **p = handle_slot(t, handle), *h = *p;

	if (h && !graph) {
		*p = h->next;
		free(h);
	}
	if (!graph)
		return;
	if (!h)
		h = *p = calloc(1, sizeof(*h));
	if (!h)
		return;
	h->handle = handle;
	h->graph = graph;
}

void table_copy_graph(struct table *t, const void *to, const void *from)
{
	set_graph(t, to, from ? table_graph(t, from) : NULL);
}

void table_captured(struct table *t, struct table_stream *s, uint64_t capture, const void *handle)
{
	struct table_graph **p = &t->graphs, *graph;

	while (*p && (s->capture != capture || (*p)->capture != capture))
		p = &(*p)->next;
	graph = *p;
	for (uint32_t i = 0; graph && i < s->behind.n; i++) {
		struct edge e = s->behind.edges[i];

		e.stream = e.stream == s->number ? 0 : graph->launch.stream;
		if (e.name != graph->launch.name)
			graph->end.edges[graph->end.n++] = e;
	}
	if (graph && !graph->end.n) {
		*p = graph->next;
		free(graph);
		graph = NULL;
	}
	set_graph(t, handle, graph);
}

void table_launch(struct table *t, struct table_event *ev, struct table_graph *graph,
		  struct table_point *ret)
{
	struct table_stream *s = ev->stream;
	uint64_t at = ++t->at;

	make_point(ev, graph->launch.name, ret);
	ret->launch = ++graph->n_launches;
	table_work(s, ev->call_ns);
	for (uint32_t i = 0; i < graph->end.n; i++) {
		struct edge e = graph->end.edges[i];

		e.at = at;
		if (!e.stream)
			e.stream = s->number;
		behind_add(&s->behind, &e);
	}
}
