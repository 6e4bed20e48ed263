/* See view.h. */
#include "nbox/page/view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "schedule/coll.h"
#include "trace/spans.h"

#define LANES_MAX 24
#define LEAST .003 /* of the iteration: a lane of computation with less is not shown */

char *view_op_name(const struct record_op *op, char *buf, size_t size)
{
	char bytes[32];

	snprintf(buf, size, "%s, %s, %u ranks", coll_kind_name(op->kind),
		 units_print_bytes(op->bytes, bytes, sizeof(bytes)), op->of->n_ranks);
	return buf;
}

/* What the op itself takes at its rank; the rest of the way from its arrival it waits for others.
 */
static double op_takes_ns(const struct record_op *op)
{
	double all = (double)(op->virtual_end_ns - op->virtual_arrive_ns);

	return fmax(0, fmin(all, op->model_ns + op->injected_ns + op->shared_ns));
}

static double op_injected_ns(const struct record_op *op)
{
	return fmin(fmax(op->injected_ns, 0), op_takes_ns(op));
}

/* --- iterations ------------------------------------------------------------------------------ */

static double step_ns(const struct view *v, const struct step *s)
{
	return (double)(v->ops[s->end].virtual_arrive_ns - v->ops[s->first].virtual_arrive_ns);
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

/* The step whose time is nearest to the median of those that count. */
static int choose_step(struct view *v)
{
	uint64_t n = v->n_timed - v->n_warm_up;
	CLEANUP(freep) double *sorted = calloc(n + 1, sizeof(*sorted));
	double best = INFINITY, median;

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, v->step_ms + v->n_warm_up, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	median = sorted[n / 2];
	for (uint64_t i = v->steps.n_warm_up; i < v->steps.n; i++) {
		const struct step *s = &v->steps.list[i];
		double apart = s->is_timed ? fabs(step_ns(v, s) / 1e6 - median) : INFINITY;

		if (apart >= best)
			continue;
		best = apart;
		v->shown = i + 1;
		v->begin_ns = (double)v->ops[s->first].virtual_arrive_ns;
		v->length_ns = step_ns(v, s);
	}
	return 0;
}

static int find_steps(struct view *v)
{
	int r = steps_find(v->rec, v->ops, v->n_ops, &v->steps);

	if (r < 0)
		return r;
	v->step_number = calloc(2 * v->steps.n + 2, sizeof(*v->step_number));
	if (!v->step_number)
		return -ENOMEM;
	v->step_ms = v->step_number + v->steps.n + 1;
	for (uint64_t i = 0; i < v->steps.n; i++) {
		if (!v->steps.list[i].is_timed)
			continue;
		v->n_warm_up += i < v->steps.n_warm_up;
		v->step_number[v->n_timed] = (double)(i + 1);
		v->step_ms[v->n_timed++] = step_ns(v, &v->steps.list[i]) / 1e6;
	}
	if (v->n_timed > v->n_warm_up)
		return choose_step(v);
	for (uint64_t i = 0; i < v->n_ops; i++) {
		double end = (double)v->ops[i].virtual_end_ns;

		v->begin_ns = (double)v->ops[0].virtual_arrive_ns;
		v->length_ns = fmax(v->length_ns, end - v->begin_ns);
	}
	return 0;
}

/* --- lanes ----------------------------------------------------------------------------------- */

static struct lane *lane_of(struct view *v, const char *name)
{
	for (size_t i = 0; i < v->n_lanes; i++)
		if (!strcmp(v->lanes[i].name, name))
			return &v->lanes[i];
	if (v->n_lanes == LANES_MAX)
		return NULL;
	snprintf(v->lanes[v->n_lanes].name, sizeof(v->lanes[0].name), "%s", name);
	return &v->lanes[v->n_lanes++];
}

/* From @from to @to, absolute ns; what does not reach into the iteration is left out. */
static int add_bar(struct view *v, const char *lane, double from, double to, enum svg_role role,
		   const char *what)
{
	struct lane_bar *grown;
	struct lane *l;
	char time[32];

	from -= v->begin_ns;
	to -= v->begin_ns;
	if (to <= from || to <= 0 || from >= v->length_ns || !(l = lane_of(v, lane)))
		return 0;
	if ((l->n & (l->n - 1)) == 0) { /* it is full: 0, or a power of 2 */
		grown = reallocarray(l->bars, l->n ? 2 * l->n : 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		l->bars = grown;
	}
	l->bars[l->n] = (struct lane_bar){.from = from / 1e6, .to = to / 1e6, .role = role};
	snprintf(l->bars[l->n].tip, sizeof(l->bars[0].tip), "%s: %s", what,
		 units_print_time(to - from, time, sizeof(time)));
	l->n++;
	return 0;
}

/* Computation, and before it the waiting that is exposed. */
static int add_span(struct view *v, const struct span *s)
{
	double from = (double)s->from_ns;
	uint64_t exposed = s->op ? s->op->exposed_ns : s->point->exposed_ns;
	char lane[64];
	int r;

	snprintf(lane, sizeof(lane), "computation, stream %u", s->stream);
	r = add_bar(v, lane, from - (double)exposed, from, SVG_EXPOSED, "waits for communication");
	return r < 0 ? r : add_bar(v, lane, from, (double)s->at_ns, SVG_COMPUTE, "computation");
}

/* Streams of ops have places, too, with next to nothing between them. */
static void drop_empty_lanes(struct view *v)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->n_lanes; i++) {
		double sum = 0;

		for (size_t k = 0; k < v->lanes[i].n; k++)
			sum += v->lanes[i].bars[k].to - v->lanes[i].bars[k].from;
		if (sum * 1e6 < v->length_ns * LEAST)
			free(v->lanes[i].bars);
		else
			v->lanes[kept++] = v->lanes[i];
	}
	memset(v->lanes + kept, 0, (v->n_lanes - kept) * sizeof(*v->lanes));
	v->n_lanes = kept;
}

static int add_computation(struct view *v, uint32_t world_rank)
{
	CLEANUP(spans_deinit) struct spans spans = {0};
	int r = spans_find(v->rec, &spans);

	for (size_t i = 0; r == 0 && i < spans.n; i++)
		if (spans.list[i].world_rank == world_rank)
			r = add_span(v, &spans.list[i]);
	drop_empty_lanes(v);
	return r;
}

/* Ops of one communicator follow each other: one waits until the one before is over. */
static int add_ops(struct view *v)
{
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < v->n_ops; i++) {
		const struct record_op *op = &v->ops[i];
		double end = (double)op->virtual_end_ns, arrive = (double)op->virtual_arrive_ns,
		       injected = end - op_injected_ns(op), start = end - op_takes_ns(op);
		char lane[64], name[128];

		if (end <= v->begin_ns || arrive >= v->begin_ns + v->length_ns)
			continue;
		for (uint64_t k = i; k-- > 0 && i - k < 64;)
			if (v->ops[k].comm == op->comm)
				arrive = fmax(arrive, fmin(end, (double)v->ops[k].virtual_end_ns));
		start = fmax(start, arrive);
		injected = fmax(injected, start);
		snprintf(lane, sizeof(lane), "communicator %u, %u ranks", op->comm,
			 op->of->n_ranks);
		view_op_name(op, name, sizeof(name));
		r = add_bar(v, lane, arrive, start, SVG_OTHERS, "waits for other ranks");
		if (r == 0)
			r = add_bar(v, lane, start, injected, SVG_NETWORK, name);
		if (r == 0)
			r = add_bar(v, lane, injected, end, SVG_INJECTED, "injected");
	}
	return r;
}

/* --- groups ---------------------------------------------------------------------------------- */

static int by_group(const void *pa, const void *pb)
{
	const struct record_op *a = *(const struct record_op *const *)pa,
			       *b = *(const struct record_op *const *)pb;
	double x = (double)(a->virtual_end_ns - a->virtual_arrive_ns),
	       y = (double)(b->virtual_end_ns - b->virtual_arrive_ns);

	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return (x > y) - (x < y);
}

static bool is_alike(const struct record_op *a, const struct record_op *b)
{
	return a->comm == b->comm && a->kind == b->kind && a->bytes == b->bytes;
}

static struct view_group group_of(const struct record_op *const *sorted, uint64_t n)
{
	struct view_group g = {.first = sorted[0], .n = n};

	for (uint64_t i = 0; i < n; i++) {
		double all = (double)(sorted[i]->virtual_end_ns - sorted[i]->virtual_arrive_ns),
		       takes = op_takes_ns(sorted[i]), injected = op_injected_ns(sorted[i]);

		g.others_ns += (all - takes) / (double)n;
		g.network_ns += (takes - injected) / (double)n;
		g.injected_ns += injected / (double)n;
		g.p50_ns = i == n / 2 ? all : g.p50_ns;
		g.p95_ns = i == (uint64_t)(.95 * (double)n) ? all : g.p95_ns;
	}
	return g;
}

static double group_weight(const struct view_group *g)
{
	return (double)g->n * (g->others_ns + g->network_ns + g->injected_ns);
}

static int by_weight(const void *pa, const void *pb)
{
	double a = group_weight(pa), b = group_weight(pb);

	return (a < b) - (a > b);
}

static int find_groups(struct view *v)
{
	CLEANUP(freep) const struct record_op **sorted = calloc(v->n_ops + 1, sizeof(*sorted));
	uint64_t n = 0;

	v->groups = calloc(v->n_ops + 1, sizeof(*v->groups));
	if (!sorted || !v->groups)
		return -ENOMEM;
	for (uint64_t i = 0; v->steps.n == 0 && i < v->n_ops; i++)
		sorted[n++] = &v->ops[i];
	for (uint64_t k = v->steps.n_warm_up; k < v->steps.n; k++)
		for (uint64_t i = v->steps.list[k].first; i < v->steps.list[k].end; i++)
			sorted[n++] = &v->ops[i];
	if (n)
		qsort(sorted, n, sizeof(*sorted), by_group);
	for (uint64_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && is_alike(sorted[i], sorted[end]);)
			end++;
		v->groups[v->n_groups++] = group_of(sorted + i, end - i);
	}
	qsort(v->groups, v->n_groups, sizeof(*v->groups), by_weight);
	return 0;
}

int view_make_steps(const struct record *rec, uint32_t world_rank, struct view *ret)
{
	struct view v = {.rec = rec,
			 .ops = calloc(rec->n_ops + 1, sizeof(*v.ops)),
			 .lanes = calloc(LANES_MAX, sizeof(*v.lanes))};
	int r = v.ops && v.lanes ? 0 : -ENOMEM;

	for (uint64_t i = 0; r == 0 && i < rec->n_ops; i++)
		if (rec->ops[i].world_rank == world_rank)
			v.ops[v.n_ops++] = rec->ops[i];
	if (v.n_ops)
		qsort(v.ops, v.n_ops, sizeof(*v.ops), steps_order);
	if (r == 0)
		r = find_steps(&v);
	if (r < 0)
		view_deinit(&v);
	else
		*ret = v;
	return r;
}

int view_make(const struct record *rec, uint32_t world_rank, struct view *ret)
{
	struct view v = {0};
	int r = view_make_steps(rec, world_rank, &v);

	if (r == 0)
		r = add_computation(&v, world_rank);
	if (r == 0)
		r = add_ops(&v);
	if (r == 0)
		r = find_groups(&v);
	if (r < 0)
		view_deinit(&v);
	else
		*ret = v;
	return r;
}

void view_deinit(struct view *v)
{
	for (size_t i = 0; v->lanes && i < v->n_lanes; i++)
		free(v->lanes[i].bars);
	free(v->lanes);
	free(v->ops);
	free(v->step_number);
	free(v->groups);
	steps_deinit(&v->steps);
}
