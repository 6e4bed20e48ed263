#include "dfg/dfg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/sim-heap.h"

struct device {
	struct sim_heap queue; /* ops that are ready */
	double free_at, busy;
	uint32_t last; /* the op that it did last */
	uint8_t is_working, is_touched;
};

struct edge {
	uint32_t before, after;
	double lag;
};

struct dfg {
	struct dfg_op *ops; /* owned, as all arrays here */
	struct device *devices;
	struct edge *edges;
	uint32_t n_ops, n_devices, n_edges, ops_capacity, devices_capacity, edges_capacity;
	/* edges by the op before, made when needed */
	uint32_t *first, *order;
	uint32_t n_ordered; /* edges that are in it */
	uint32_t n_ordered_ops;
	/* of one play */
	uint32_t *missing; /* how many ops each waits for */
	struct sim_heap events;
	uint32_t *touched, n_touched; /* devices */
	uint32_t n_over;
};

struct dfg *dfg_new(void)
{
	return calloc(1, sizeof(struct dfg));
}

struct dfg *dfg_free(struct dfg *g)
{
	if (!g)
		return NULL;
	for (uint32_t i = 0; i < g->n_devices; i++)
		sim_heap_deinit(&g->devices[i].queue);
	sim_heap_deinit(&g->events);
	free(g->ops);
	free(g->devices);
	free(g->edges);
	free(g->first);
	free(g->order);
	free(g->missing);
	free(g->touched);
	free(g);
	return NULL;
}

/* Room for one more. Return: 0; -ENOMEM. */
static int grow(void *list, uint32_t n, uint32_t *capacity, size_t bytes)
{
	uint32_t wanted = *capacity ? 2 * *capacity : 64;
	void *grown;

	if (n < *capacity)
		return 0;
	if (*capacity > UINT32_MAX / 4)
		return -ENOMEM;
	grown = realloc(*(void **)list, wanted * bytes);
	if (!grown)
		return -ENOMEM;
	*(void **)list = grown;
	*capacity = wanted;
	return 0;
}

int dfg_add_device(struct dfg *g, uint32_t *ret)
{
	int r = grow(&g->devices, g->n_devices, &g->devices_capacity, sizeof(*g->devices));

	if (r)
		return r;
	g->devices[g->n_devices] = (struct device){.last = DFG_NONE};
	*ret = g->n_devices++;
	return 0;
}

int dfg_add_op(struct dfg *g, uint32_t device, double ns, uint32_t priority, uint32_t *ret)
{
	int r = grow(&g->ops, g->n_ops, &g->ops_capacity, sizeof(*g->ops));

	if (r)
		return r;
	g->ops[g->n_ops] =
		(struct dfg_op){.device = device, .priority = priority, .ns = ns, .by = DFG_NONE};
	*ret = g->n_ops++;
	return 0;
}

int dfg_add_edge(struct dfg *g, uint32_t before, uint32_t after, double lag)
{
	int r = grow(&g->edges, g->n_edges, &g->edges_capacity, sizeof(*g->edges));

	if (r)
		return r;
	g->edges[g->n_edges++] = (struct edge){before, after, lag};
	return 0;
}

void dfg_set_ns(struct dfg *g, uint32_t op, double ns)
{
	g->ops[op].ns = ns;
}

uint32_t dfg_ops(const struct dfg *g)
{
	return g->n_ops;
}

uint32_t dfg_devices(const struct dfg *g)
{
	return g->n_devices;
}

const struct dfg_op *dfg_op(const struct dfg *g, uint32_t op)
{
	return &g->ops[op];
}

double dfg_busy(const struct dfg *g, uint32_t device)
{
	return g->devices[device].busy;
}

double dfg_end(const struct dfg *g, uint32_t *ret_last)
{
	uint32_t last = DFG_NONE;

	for (uint32_t i = 0; i < g->n_ops; i++)
		if (last == DFG_NONE || g->ops[i].end > g->ops[last].end)
			last = i;
	if (ret_last)
		*ret_last = last;
	return last == DFG_NONE ? 0 : g->ops[last].end;
}

/* --- before a play -------------------------------------------------------------------------- */

/* Edges by the op before, in the order in which they were added. Return: 0; -ENOMEM. */
static int order_edges(struct dfg *g)
{
	uint32_t *first, *order;

	if (g->first && g->n_ordered == g->n_edges && g->n_ordered_ops == g->n_ops)
		return 0;
	first = calloc((size_t)g->n_ops + 2, sizeof(*first));
	order = malloc(((size_t)g->n_edges + 1) * sizeof(*order));
	if (!first || !order) {
		free(first);
		free(order);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < g->n_edges; i++)
		first[g->edges[i].before + 2]++;
	for (uint32_t i = 0; i < g->n_ops; i++)
		first[i + 2] += first[i + 1];
	for (uint32_t i = 0; i < g->n_edges; i++)
		order[first[g->edges[i].before + 1]++] = i;
	free(g->first);
	free(g->order);
	g->first = first;
	g->order = order;
	g->n_ordered = g->n_edges;
	g->n_ordered_ops = g->n_ops;
	return 0;
}

static int begin(struct dfg *g)
{
	uint32_t *missing, *touched;
	int r = order_edges(g);

	if (r)
		return r;
	missing = realloc(g->missing, ((size_t)g->n_ops + 1) * sizeof(*missing));
	g->missing = missing ? missing : g->missing;
	touched = realloc(g->touched, ((size_t)g->n_devices + 1) * sizeof(*touched));
	g->touched = touched ? touched : g->touched;
	if (!missing || !touched)
		return -ENOMEM;
	memset(missing, 0, g->n_ops * sizeof(*missing));
	for (uint32_t i = 0; i < g->n_edges; i++)
		missing[g->edges[i].after]++;
	for (uint32_t i = 0; i < g->n_ops; i++) {
		g->ops[i].ready = g->ops[i].start = g->ops[i].end = 0;
		g->ops[i].by = DFG_NONE;
	}
	for (uint32_t i = 0; i < g->n_devices; i++) {
		struct device *d = &g->devices[i];

		d->queue.n = 0;
		d->free_at = d->busy = 0;
		d->last = DFG_NONE;
		d->is_working = d->is_touched = 0;
	}
	g->events.n = 0;
	g->events.has_hole = false;
	g->n_touched = g->n_over = 0;
	return 0;
}

/* --- a play --------------------------------------------------------------------------------- */

/* Into the queue of its device: priority, then ready time, then number, in 128 bits. */
static int enqueue(struct dfg *g, uint32_t op)
{
	const struct dfg_op *o = &g->ops[op];
	struct sim_heap *q = &g->devices[o->device].queue;
	uint64_t ready = sim_heap_time(o->ready);

	if (q->n == q->capacity && sim_heap_reserve(q, q->n + 1))
		return -ENOMEM;
	q->items[q->n] = (struct sim_event){.time = (uint64_t)o->priority << 48 | ready >> 16,
					    .tie = ready << 48 | op};
	sim_heap_sift_up(q, q->n++);
	return 0;
}

static uint32_t dequeue(struct device *d)
{
	uint32_t op = (uint32_t)d->queue.items[0].tie;

	sim_heap_drop(&d->queue);
	return op;
}

/* Its times, where it starts as soon as it is ready and its device is free. */
static void start(struct dfg *g, uint32_t op)
{
	struct dfg_op *o = &g->ops[op];

	o->start = o->ready;
	if (o->device != DFG_PARALLEL) {
		struct device *d = &g->devices[o->device];

		if (d->free_at > o->start) {
			o->start = d->free_at;
			o->by = d->last;
		}
		d->free_at = o->start + o->ns;
		d->busy += o->ns;
		d->last = op;
	}
	o->end = o->start + o->ns;
}

/* One op that it waited for is over. Return: whether that was the last. */
static int is_ready(struct dfg *g, const struct edge *e)
{
	struct dfg_op *o = &g->ops[e->after];
	double ready = g->ops[e->before].end + e->lag;

	if (ready > o->ready || o->by == DFG_NONE) {
		o->ready = ready;
		o->by = e->before;
	}
	return --g->missing[e->after] == 0;
}

static void touch(struct dfg *g, uint32_t device)
{
	if (!g->devices[device].is_touched)
		g->touched[g->n_touched++] = device;
	g->devices[device].is_touched = 1;
}

/* --- what starts first is played first ------------------------------------------------------ */

enum { ENDS, BECOMES_READY }; /* the 33rd bit of an event's tie; the rest is the op */

static int post(struct dfg *g, double ns, unsigned kind, uint32_t op)
{
	return sim_heap_push(&g->events, ns, (uint64_t)kind << 32 | op);
}

static int take(struct dfg *g, uint32_t op)
{
	start(g, op);
	if (g->ops[op].device != DFG_PARALLEL)
		g->devices[g->ops[op].device].is_working = 1;
	return post(g, g->ops[op].end, ENDS, op);
}

static int now_ready(struct dfg *g, uint32_t op)
{
	if (g->ops[op].device == DFG_PARALLEL)
		return take(g, op);
	touch(g, g->ops[op].device);
	return enqueue(g, op);
}

static int end(struct dfg *g, uint32_t op)
{
	const struct dfg_op *o = &g->ops[op];
	int r = 0;

	g->n_over++;
	if (o->device != DFG_PARALLEL) {
		g->devices[o->device].is_working = 0;
		touch(g, o->device);
	}
	for (uint32_t i = g->first[op]; r == 0 && i < g->first[op + 1]; i++) {
		const struct edge *e = &g->edges[g->order[i]];

		if (!is_ready(g, e))
			continue;
		r = g->ops[e->after].ready > o->end
			    ? post(g, g->ops[e->after].ready, BECOMES_READY, e->after)
			    : now_ready(g, e->after);
	}
	return r;
}

/* Devices that nobody works at take what is first in their queues. */
static int serve(struct dfg *g)
{
	int r = 0;

	for (uint32_t i = 0; i < g->n_touched; i++) {
		struct device *d = &g->devices[g->touched[i]];

		d->is_touched = 0;
		if (r == 0 && !d->is_working && d->queue.n)
			r = take(g, dequeue(d));
	}
	g->n_touched = 0;
	return r;
}

static int play_events(struct dfg *g)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < g->n_ops; i++)
		if (!g->missing[i])
			r = now_ready(g, i);
	r = r ? r : serve(g);
	while (r == 0 && g->events.n) {
		uint64_t time = g->events.items[0].time;

		while (r == 0 && g->events.n && g->events.items[0].time == time) {
			uint64_t tie = g->events.items[0].tie;

			sim_heap_drop(&g->events);
			r = tie >> 32 == ENDS ? end(g, (uint32_t)tie) : now_ready(g, (uint32_t)tie);
		}
		r = r ? r : serve(g);
	}
	return r;
}

/* --- the device whose last op ended first is served next ------------------------------------ */

/* @op is ready. The events are the devices that have something in their queues. */
static int offer(struct dfg *g, uint32_t op)
{
	struct device *d = &g->devices[g->ops[op].device];

	if (d->queue.n == 0 && !d->is_working &&
	    sim_heap_push(&g->events, d->free_at, g->ops[op].device))
		return -ENOMEM;
	return enqueue(g, op);
}

/* Plays @op, and those on no device that can begin after it. @todo has room for all ops. */
static int play_one(struct dfg *g, uint32_t op, uint32_t *todo)
{
	uint32_t n = 0;
	int r = 0;

	for (todo[n++] = op; n && r == 0;) {
		uint32_t now = todo[--n];

		start(g, now);
		g->n_over++;
		for (uint32_t i = g->first[now]; r == 0 && i < g->first[now + 1]; i++) {
			const struct edge *e = &g->edges[g->order[i]];

			if (!is_ready(g, e))
				continue;
			if (g->ops[e->after].device == DFG_PARALLEL)
				todo[n++] = e->after;
			else
				r = offer(g, e->after);
		}
	}
	return r;
}

static int play_devices(struct dfg *g)
{
	CLEANUP(freep) uint32_t *todo = malloc(((size_t)g->n_ops + 1) * sizeof(*todo));
	CLEANUP(freep) uint32_t *roots = malloc(((size_t)g->n_ops + 1) * sizeof(*roots));
	uint32_t n_roots = 0;
	int r = todo && roots ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < g->n_ops; i++)
		if (!g->missing[i])
			roots[n_roots++] = i;
	for (uint32_t i = 0; r == 0 && i < n_roots; i++)
		r = g->ops[roots[i]].device == DFG_PARALLEL ? play_one(g, roots[i], todo)
							    : offer(g, roots[i]);
	while (r == 0 && g->events.n) {
		uint32_t device = (uint32_t)g->events.items[0].tie, op;

		sim_heap_drop(&g->events);
		op = dequeue(&g->devices[device]);
		g->devices[device].is_working = 1;
		r = play_one(g, op, todo);
		g->devices[device].is_working = 0;
		if (r == 0 && g->devices[device].queue.n)
			r = sim_heap_push(&g->events, g->devices[device].free_at, device);
	}
	return r;
}

/* An op of a circle: back from one that was not played, over ops that were not. */
static uint32_t find_circle(const struct dfg *g)
{
	CLEANUP(freep) uint32_t *before = malloc(((size_t)g->n_ops + 1) * sizeof(*before));
	uint32_t at = 0;

	while (!g->missing[at])
		at++;
	if (!before)
		return at;
	for (uint32_t i = 0; i < g->n_edges; i++)
		if (g->missing[g->edges[i].before])
			before[g->edges[i].after] = g->edges[i].before;
	for (uint32_t i = 0; i < g->n_ops; i++)
		at = before[at];
	return at;
}

int dfg_play(struct dfg *g, enum dfg_policy policy, uint32_t *ret_op)
{
	int r = begin(g);

	if (r == 0)
		r = policy == DFG_EVENT ? play_events(g) : play_devices(g);
	if (r == 0 && g->n_over < g->n_ops) {
		*ret_op = find_circle(g);
		r = -ELOOP;
	}
	return r;
}
