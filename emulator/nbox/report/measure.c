/* See measure.h. All times are taken from one rank, the lowest with a process, except lateness,
 * which counts every gate of every rank. */
#include "nbox/report/measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "nbox/report/comms.h"
#include "nbox/report/steps.h"
#include "nbox/report/trust.h"

static int by_time(const void *pa, const void *pb)
{
	const struct record_point *a = *(const struct record_point *const *)pa,
				  *b = *(const struct record_point *const *)pb;

	return (a->virtual_ns > b->virtual_ns) - (a->virtual_ns < b->virtual_ns);
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

static double quantile(const double *sorted, uint64_t n, double q)
{
	uint64_t i = (uint64_t)ceil(q * (double)n);

	return sorted[i == 0 ? 0 : i - 1];
}

/* Sorts @values. */
static void stat_of(double *values, uint64_t n, struct report_stat *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (n == 0)
		return;
	qsort(values, n, sizeof(*values), by_value);
	for (uint64_t i = 0; i < n; i++)
		ret->mean += values[i] / (double)n;
	ret->n = n;
	ret->min = values[0];
	ret->p25 = quantile(values, n, 0.25);
	ret->p50 = quantile(values, n, 0.50);
	ret->p75 = quantile(values, n, 0.75);
	ret->p95 = quantile(values, n, 0.95);
	ret->p99 = quantile(values, n, 0.99);
	ret->max = values[n - 1];
}

double report_exposed(const struct record_op *rows, uint64_t n)
{
	uint64_t last_end = 0;
	double exposed = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t arrive = rows[i].virtual_arrive_ns;

		if (rows[i].virtual_end_ns > last_end)
			last_end = rows[i].virtual_end_ns;
		if (last_end <= arrive)
			continue;
		if (i + 1 == n || rows[i + 1].virtual_arrive_ns >= last_end)
			exposed += (double)(last_end - arrive);
	}
	return exposed;
}

/* The ops, and the points, of the rank that is looked at, by virtual time. */
struct rank {
	struct record_op *ops;              /* owned */
	const struct record_point **points; /* owned list */
	uint64_t n_ops, n_points;
	uint64_t next_point; /* of which exposed time was not taken */
};

static void rank_deinit(struct rank *k)
{
	free(k->ops);
	free(k->points);
}

/* From the arrival of one op to that of another, or to the end of all. */
struct span {
	uint64_t wall, virtual, plain; /* at the beginning, then at the end */
};

static struct span at_arrival(const struct record_op *op)
{
	return (struct span){op->arrive_ns, op->virtual_arrive_ns, op->plain_arrive_ns};
}

static struct span at_end(const struct rank *k)
{
	struct span s = at_arrival(&k->ops[k->n_ops - 1]);

	for (uint64_t i = 0; i < k->n_ops; i++) {
		const struct record_op *op = &k->ops[i];

		s.wall = op->release_ns > s.wall ? op->release_ns : s.wall;
		s.virtual = op->virtual_end_ns > s.virtual ? op->virtual_end_ns : s.virtual;
		s.plain = op->plain_end_ns > s.plain ? op->plain_end_ns : s.plain;
	}
	return s;
}

static double span_ns(uint64_t from, uint64_t to)
{
	return (double)(int64_t)(to - from);
}

static double injected_ns(const struct span *from, const struct span *to)
{
	return span_ns(from->virtual, to->virtual) - span_ns(from->plain, to->plain);
}

/* What the ops [first, end) have in all, which last from @from to @to. */
static void add_rows(struct rank *k, uint64_t first, uint64_t end, struct span from, struct span to,
		     struct report *rep)
{
	for (uint64_t i = first; i < end; i++) {
		rep->modelled_ns += k->ops[i].model_ns;
		rep->shared_ns += k->ops[i].shared_ns;
		rep->queued_ns += k->ops[i].queued_ns;
		rep->exposed_ns += k->n_points ? (double)k->ops[i].exposed_ns : 0;
	}
	rep->wall_ns += span_ns(from.wall, to.wall);
	rep->virtual_ns += span_ns(from.virtual, to.virtual);
	rep->injected_ns += injected_ns(&from, &to);
	if (k->n_points == 0)
		rep->exposed_ns += report_exposed(k->ops + first, end - first);
	for (; k->next_point < k->n_points; k->next_point++) {
		const struct record_point *p = k->points[k->next_point];

		if (p->virtual_ns > to.virtual)
			break;
		if (p->virtual_ns > from.virtual)
			rep->exposed_ns += (double)p->exposed_ns;
	}
}

static int take_steps(struct rank *k, const struct steps *s, struct report *rep)
{
	CLEANUP(freep) double *times = calloc(s->n_timed + 1, sizeof(*times));
	uint64_t n = 0, first = 0;

	if (!times)
		return -ENOMEM;
	for (uint64_t i = s->n_warm_up; i < s->n; i++) {
		const struct step *step = &s->list[i];
		bool is_first = i == s->n_warm_up || !step[-1].is_timed;

		if (!step->is_timed)
			continue;
		first = is_first ? step->first : first;
		times[n++] = span_ns(k->ops[step->first].virtual_arrive_ns,
				     k->ops[step->end].virtual_arrive_ns);
		if (i + 1 == s->n || !step[1].is_timed)
			add_rows(k, first, step->end, at_arrival(&k->ops[first]),
				 at_arrival(&k->ops[step->end]), rep);
	}
	stat_of(times, n, &rep->step_ns);
	rep->virtual_ns /= (double)n;
	rep->wall_ns /= (double)n;
	rep->modelled_ns /= (double)n;
	rep->shared_ns /= (double)n;
	rep->queued_ns /= (double)n;
	rep->injected_ns /= (double)n;
	rep->exposed_ns /= (double)n;
	return 0;
}

static int find_steps(const struct record *rec, struct rank *k, struct report *rep)
{
	CLEANUP(steps_deinit) struct steps s = {0};
	int r = steps_find(rec, k->ops, k->n_ops, &s);

	if (r < 0)
		return r;
	rep->n_steps = s.n;
	rep->n_warm_up = s.n_warm_up;
	rep->ops_per_step = s.n_ops;
	snprintf(rep->steps_how, sizeof(rep->steps_how), "%s", s.how);
	snprintf(rep->steps_rule, sizeof(rep->steps_rule), "%s", s.rule);
	if (k->n_ops) {
		struct span from = at_arrival(&k->ops[0]), to = at_end(k);

		rep->total_injected_ns = injected_ns(&from, &to);
		if (s.n == 0)
			add_rows(k, 0, k->n_ops, from, to, rep);
	}
	return s.n ? take_steps(k, &s, rep) : 0;
}

/* Return: 0; -ENOMEM. */
static int find_rank(const struct record *rec, uint32_t world_rank, struct rank *ret)
{
	struct rank k = {.ops = calloc(rec->n_ops + 1, sizeof(*k.ops)),
			 .points = calloc(rec->n_points + 1, sizeof(*k.points))};

	if (!k.ops || !k.points) {
		rank_deinit(&k);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < rec->n_ops; i++)
		if (rec->ops[i].world_rank == world_rank)
			k.ops[k.n_ops++] = rec->ops[i];
	for (uint64_t i = 0; i < rec->n_points; i++)
		if (rec->points[i].world_rank == world_rank)
			k.points[k.n_points++] = &rec->points[i];
	qsort(k.ops, k.n_ops, sizeof(*k.ops), steps_order);
	qsort(k.points, k.n_points, sizeof(*k.points), by_time);
	*ret = k;
	return 0;
}

static void count_op(const struct record_op *op, struct report *rep)
{
	struct report_kind *kind = &rep->kinds[op->kind];

	kind->n_ops++;
	kind->bytes += op->bytes;
	kind->model_ns += op->model_ns;
	kind->injected_ns += op->injected_ns;
}

int report_make(const struct record *rec, struct report *ret)
{
	CLEANUP(freep) double *late = calloc(rec->n_ops + 1, sizeof(*late));
	CLEANUP(rank_deinit) struct rank k = {0};
	uint32_t recorded = UINT32_MAX;
	uint64_t n_late = 0;
	int r;

	if (!late)
		return -ENOMEM;
	memset(ret, 0, sizeof(*ret));
	ret->header = rec->header;
	ret->end = rec->end;
	plain_text(ret->header.model);
	plain_text(ret->header.layout);
	plain_text(ret->header.data_for);
	plain_text(ret->header.retimed_of);
	ret->rank = UINT32_MAX;
	for (uint64_t i = 0; i < rec->n_ops; i++) {
		const struct record_op *op = &rec->ops[i];

		ret->n_planned += (op->flags & RECORD_PLANNED) != 0;
		ret->n_assumed += (op->flags & RECORD_PLAN_ASSUMED) != 0;
		ret->n_left_alone += (op->flags & RECORD_LEFT_ALONE) != 0;
		ret->n_by_matrix += (op->flags & RECORD_BY_MATRIX) != 0;
		ret->n_not_by_matrix += (op->flags & RECORD_NOT_BY_MATRIX) != 0;
		if (op->flags & RECORD_NO_PROCESS) {
			recorded = op->world_rank < recorded ? op->world_rank : recorded;
			continue;
		}
		ret->rank = op->world_rank < ret->rank ? op->world_rank : ret->rank;
		late[n_late] = span_ns(op->due_ns, op->release_ns);
		ret->n_early += late[n_late++] < 0;
	}
	if (n_late == 0)
		ret->rank = recorded;
	if ((r = find_rank(rec, ret->rank, &k)) < 0)
		return r;
	for (uint64_t i = 0; i < k.n_ops; i++)
		count_op(&k.ops[i], ret);
	ret->n_ops = k.n_ops;
	ret->is_exposed_bound = k.n_points == 0;
	stat_of(late, n_late, &ret->lateness_ns);
	if ((r = find_steps(rec, &k, ret)) < 0 || (r = report_comms(rec, ret)) < 0)
		return r;
	report_trust(rec, k.ops, k.n_ops, ret);
	return 0;
}
