/* See timeline.h: the formula, for points and ops. */
#include "timeline/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "timeline/node.h"

#define HOST_NS 100e3 /* a stream that had nothing else to do has taken a call up by then */

/* --- a point -------------------------------------------------------------------------------- */

/* The host has waited for @n at its point @number, and so for all before @n. */
static void cover(struct timeline *t, struct timeline_node *n, uint64_t number)
{
	if (!n || n->covered)
		return;
	n->covered = number;
	for (size_t i = 0; i < n->n_deps; i++)
		cover(t, node_find(t, n->deps[i]), number);
}

/* What a point waits for, once looked up. */
struct before {
	struct timeline_node *deps[65], *host;
	size_t n_deps;
	double wall;    /* the last of deps */
	double work;    /* from host to the stream's first work; -INFINITY: not known */
	double gap;     /* from host to the call, or to the point */
	double segment; /* computation */
	double rest;    /* that no what-if stretches */
	double slowed;  /* what what-ifs have added to it at the real rank */
	bool is_host_bound, is_after_host, is_after_latest;
};

static double wall_after(const struct timeline *t, const struct timeline_dep *dep,
			 const struct timeline_node *n)
{
	return dep && dep->open_ns ? wall_of(t->all, dep->open_ns) : n->wall;
}

static void take_latest(struct timeline *t, const struct timeline_point *p, struct before *b)
{
	struct timeline_node *told = p->latest ? node_find(t, p->latest->name) : NULL;
	struct timeline_node *n = told ? told : t->latest;

	b->deps[b->n_deps++] = n;
	b->wall = wall_after(t, told ? p->latest : NULL, n);
}

static void look_up(struct timeline *t, const struct timeline_point *p, struct before *b)
{
	double wall = wall_of(t->all, p->time_ns), call = wall_of(t->all, p->call_ns);
	double work = wall_of(t->all, p->work_ns), idle;
	bool is_after_host = p->is_host;

	*b = (struct before){.host = node_find(t, p->host), .wall = -INFINITY, .work = -INFINITY};
	for (size_t i = 0; i < p->n_deps && b->n_deps < 64; i++) {
		struct timeline_node *n = node_find(t, p->deps[i].name);

		if (!n)
			continue;
		b->deps[b->n_deps++] = n;
		b->wall = fmax(b->wall, wall_after(t, &p->deps[i], n));
		if (p->is_host || p->deps[i].is_same_stream)
			is_after_host = (is_after_host || !p->is_host) && n->covered && b->host &&
					n->covered <= b->host->number;
	}
	if (is_after_host && b->host) { /* nothing was left to do when the host went on */
		b->deps[b->n_deps++] = b->host;
		b->is_after_host = true;
		b->wall = fmax(b->wall, b->host->wall);
	}
	b->is_after_latest = b->n_deps == 0 && t->latest;
	if (b->is_after_latest)
		take_latest(t, p, b);
	b->is_host_bound = p->call_ns && wall - call <= HOST_NS;
	if (b->host)
		b->gap = fmax(0, (b->is_host_bound ? wall : call) - b->host->wall);
	if (b->n_deps == 0)
		return;
	if (!p->work_ns || (b->host && work < b->host->wall))
		work = -INFINITY;
	else if (b->host)
		b->work = work - b->host->wall;
	idle = b->is_host_bound ? wall - b->wall : fmin(work, wall) - b->wall;
	b->segment = fmax(0, wall - b->wall) - fmax(0, idle);
	if (t->all->topology.gpu_speed > 0)
		b->segment /= t->all->topology.gpu_speed;
	b->rest = b->host ? 0 : fmax(0, idle);
}

static double plain_at(const struct before *b)
{
	double at = -INFINITY;

	for (size_t k = 0; k < b->n_deps; k++)
		at = fmax(at, times_after(b->deps[k])->plain);
	if (b->host)
		at = fmax(at, b->host->at.plain + b->work);
	at += b->segment + b->rest;
	return b->host ? fmax(at, b->host->at.plain + b->gap) : at;
}

static bool has_each(const struct before *b)
{
	for (size_t k = 0; k < b->n_deps; k++)
		if (times_after(b->deps[k])->each)
			return true;
	return b->host && b->host->at.each;
}

/* Not before @x and @ns more. fmax() would cost a call a rank. */
static void wait_for(double *at, uint32_t n, const struct times *x, double ns)
{
	for (uint32_t i = 0; i < n; i++) {
		double then = time_of(x, i) + ns;

		at[i] = then > at[i] ? then : at[i];
	}
}

/* The formula, for the first @n ranks of the timeline. Return: 0; negative errno with the sentence.
 */
static int find_times(const struct timeline *t, struct before *b, double *at, uint32_t n,
		      struct err *err)
{
	const struct timeline_what_if *w = &t->all->what_if;
	bool is_stretched = w->segment && b->segment > 0;

	for (uint32_t i = 0; i < n; i++)
		at[i] = -INFINITY;
	for (size_t k = 0; k < b->n_deps; k++)
		wait_for(at, n, times_after(b->deps[k]), 0);
	if (b->host)
		wait_for(at, n, &b->host->at, b->work);
	for (uint32_t i = 0; i < n; i++) {
		double ns = b->segment;
		int r = is_stretched ? w->segment(w->ctx, t->ranks[i], t->n_segments, at[i],
						  b->segment, &ns, err)
				     : 0;

		if (r < 0)
			return r;
		b->slowed = i == t->self ? ns - b->segment : b->slowed;
		at[i] += ns + b->rest;
	}
	if (b->host)
		wait_for(at, n, &b->host->at, b->gap);
	return 0;
}

static int times_make(struct timeline *t, const struct timeline_point *p, struct before *b,
		      struct times *ret, struct err *err)
{
	int r;

	t->n_segments = p->number ? p->number : t->n_segments + 1;
	*ret = (struct times){0};
	if (b->n_deps == 0) { /* the first one */
		ret->all = ret->plain = wall_of(t->all, p->time_ns);
		return 0;
	}
	ret->plain = plain_at(b);
	if (!has_each(b) && !(t->all->what_if.segment && b->segment > 0))
		return find_times(t, b, &ret->all, 1, err);
	ret->each = each_new(t);
	if (!ret->each)
		return err_set(err, ENOMEM, "no memory for the times of %u ranks", t->n_ranks);
	r = find_times(t, b, ret->each, t->n_ranks, err);
	if (r < 0)
		each_free(t, &ret->each);
	else
		times_fold(t, ret);
	return r;
}

/* Computation that waits waits for the end of ops beyond all else: its own stream, the host, and
 * what the op itself waited for. Time in which nothing kept the op but whoever starts it is no
 * communication. Stretches that several places wait through count once. */
static double exposed(struct timeline *t, const struct timeline_point *p, const struct before *b)
{
	double free_at = -INFINITY, end = -INFINITY, from;
	const struct timeline_node *last = NULL;

	for (size_t i = 0; i < p->n_deps; i++) {
		const struct timeline_node *n = node_find(t, p->deps[i].name);

		if (!n)
			continue;
		if (!n->is_op || p->deps[i].is_same_stream)
			free_at = fmax(free_at, real_time(n, &n->at));
		if (n->is_op && real_time(n, times_after(n)) > end) {
			end = real_time(n, times_after(n));
			last = n;
		}
	}
	if (b->host)
		free_at = fmax(free_at, real_time(b->host, &b->host->at) +
						(isfinite(b->work) ? b->work : b->gap));
	if (!last || !isfinite(free_at))
		return 0;
	from = fmax(fmax(free_at, last->ready), t->exposed_until);
	if (end - from < 1) /* less is what rounding up has added */
		return 0;
	t->exposed_until = end;
	return end - from - fmax(0, real_time(last, &last->at) - fmax(from, last->startable));
}

/* A communication stream waits for points of others; a stream that waits for nothing but itself
 * computes between its ops. */
static bool computes(struct timeline *t, const struct timeline_point *p, const struct before *b)
{
	for (size_t i = 0; i < p->n_deps; i++) {
		const struct timeline_node *n = node_find(t, p->deps[i].name);

		if (n && !p->deps[i].is_same_stream)
			return false;
	}
	return b->segment > HOST_NS;
}

/* An op whose own stream is all that it waits for, or other ops, is as late as it came; else a gate
 * of its stream that opened late has delayed no computation. */
static double slip_of(const struct before *b, bool is_op, double wall, double at)
{
	double of_points = -INFINITY;

	for (size_t k = 0; is_op && k < b->n_deps; k++)
		if (!b->deps[k]->is_op && b->deps[k] != b->host)
			of_points = fmax(of_points, b->deps[k]->slip);
	return isfinite(of_points) ? of_points : fmax(0, wall - at);
}

/* Another stream's op, or the host's: what comes next may need its result. An op before on the own
 * stream only keeps the order. */
static bool needs_op(struct timeline *t, const struct timeline_point *p)
{
	for (size_t i = 0; i < p->n_deps; i++) {
		const struct timeline_node *n = node_find(t, p->deps[i].name);

		if (n && n->is_op && !p->deps[i].is_same_stream)
			return true;
	}
	return false;
}

/* How long the rank has computed at @at since it waited for an op. */
static double window_of(struct timeline *t, const struct timeline_point *p, const struct before *b,
			double at)
{
	const struct timeline_node *last = b->host;
	double over = last ? real_time(last, &last->at) : -INFINITY;

	for (size_t k = 0; k < b->n_deps; k++)
		if (real_time(b->deps[k], times_after(b->deps[k])) >= over) {
			last = b->deps[k];
			over = real_time(last, times_after(last));
		}
	if (!last)
		return 0;
	return fmax(0, at - over) + (last->is_over || needs_op(t, p) ? 0 : last->window);
}

uint64_t timelines_epoch_ns(const struct timelines *t)
{
	return t->epoch_ns;
}

uint32_t timelines_template(const struct timelines *t, uint32_t world_rank)
{
	return t->real[t->template[world_rank]];
}

static struct timeline *timeline_of(const struct timelines *t, uint32_t real_rank)
{
	uint32_t i = real_rank < topology_world(&t->topology) ? t->template[real_rank] : 0;

	return t->real[i] == real_rank ? &t->of[i] : NULL;
}

const struct timeline_node *timelines_latest(const struct timelines *t, uint32_t real_rank)
{
	return timeline_of(t, real_rank)->latest;
}

static int make(struct timelines *all, uint32_t real_rank, const struct timeline_point *p,
		bool is_op, struct timeline_node **ret, struct timeline_times *ret_times,
		struct err *err)
{
	struct timeline *t = timeline_of(all, real_rank);
	struct timeline_node *n;
	struct before b;
	double at;
	int r;

	if (!t)
		return err_set(err, EINVAL, "rank %u is not real", real_rank);
	if (!all->epoch_ns)
		all->epoch_ns = p->time_ns;
	n = calloc(1, sizeof(*n) + p->n_deps * sizeof(n->deps[0]));
	if (!n)
		return err_set(err, ENOMEM, "no memory for a point of a timeline");
	n->of = t;
	n->name = p->name;
	n->host = p->host;
	n->is_op = is_op;
	n->n_holders = is_op;
	n->wall = n->reached = wall_of(all, p->time_ns);
	look_up(t, p, &b);
	r = times_make(t, p, &b, &n->at, err);
	if (r >= 0 && p->queue && node_line_up(n, p->queue) < 0) {
		each_free(t, &n->at.each);
		r = err_set(err, ENOMEM, "no memory for an op of a timeline");
	}
	if (r < 0) {
		free(n);
		return r;
	}
	n->number = t->n_segments;
	for (; n->n_deps < p->n_deps; n->n_deps++)
		n->deps[n->n_deps] = p->deps[n->n_deps].name;
	for (size_t i = 0; p->is_host && i < n->n_deps; i++)
		cover(t, node_find(t, n->deps[i]), n->number);
	at = real_time(n, &n->at);
	n->slip = slip_of(&b, is_op, n->wall, at);
	n->window = window_of(t, p, &b, at);
	n->ready = n->startable = -INFINITY;
	for (size_t k = 0; k < b.n_deps; k++) {
		double over = real_time(b.deps[k], times_after(b.deps[k]));

		n->startable = fmax(n->startable, over);
		if (!b.deps[k]->is_op)
			n->ready = fmax(n->ready, over);
	}
	*ret_times = (struct timeline_times){
		.time_ns = ns_of(all, at),
		.plain_ns = ns_of(all, n->at.plain),
		.is_host_bound = b.is_host_bound,
		.terms = {b.segment + b.slowed, b.slowed, b.rest, b.work, b.gap, b.is_after_host,
			  b.is_after_latest},
	};
	if (!is_op || computes(t, p, &b))
		ret_times->exposed_ns = (uint64_t)exposed(t, p, &b);
	for (size_t k = 0; k < b.n_deps; k++)
		b.deps[k]->is_used |= b.deps[k]->is_over;
	node_add(t, n);
	*ret = n;
	return 0;
}

int timelines_point(struct timelines *t, uint32_t real_rank, const struct timeline_point *p,
		    struct timeline_times *ret, struct err *err)
{
	struct timeline_node *n;

	return make(t, real_rank, p, false, &n, ret, err);
}

int timelines_arrive(struct timelines *t, uint32_t real_rank, const struct timeline_point *p,
		     struct timeline_node **ret, struct timeline_times *ret_times, struct err *err)
{
	return make(t, real_rank, p, true, ret, ret_times, err);
}

bool timelines_are_folded(const struct timelines *t)
{
	for (uint32_t i = 0; i < t->n_real; i++) {
		const struct timeline_node *n = t->of[i].latest;

		if (n && (n->at.each || n->end.each))
			return false;
	}
	return true;
}
