/* See measure.h. All times are taken from one rank, the lowest real one,
 * except lateness, which counts every gate of every rank. */
#include "nbox/report/measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "engine/timing.h"
#include "nbox/report/comms.h"
#include "nbox/report/steps.h"
#include "nbox/report/trust.h"

static int by_arrival(const void *pa, const void *pb)
{
	const struct record_row *a = pa, *b = pb;

	if (a->arrive_ns != b->arrive_ns)
		return a->arrive_ns < b->arrive_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
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

double report_exposed(const struct record_row *rows, uint64_t n)
{
	uint64_t last_release = 0;
	double exposed = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t arrive = rows[i].arrive_ns;

		if (rows[i].release_ns > last_release)
			last_release = rows[i].release_ns;
		if (last_release <= arrive)
			continue;
		if (i + 1 == n || rows[i + 1].arrive_ns >= last_release)
			exposed += (double)(last_release - arrive);
	}
	return exposed;
}

/* Adds the late part of exposed time: within the stretches that report_exposed() counts, the time
 * after the op that ended the stretch was due. */
static void add_late(const struct record_row *rows, uint64_t n, struct report *rep)
{
	const struct record_row *last = rows;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t arrive = rows[i].arrive_ns, from;

		if (rows[i].release_ns > last->release_ns)
			last = &rows[i];
		from = last->due_ns > arrive ? last->due_ns : arrive;
		if (last->release_ns <= from ||
		    (i + 1 < n && rows[i + 1].arrive_ns < last->release_ns))
			continue;
		rep->late_ns += (double)(last->release_ns - from);
		if (last->n_real_ranks > 1 && last->local_done_ns > from)
			rep->late_work_ns += (double)((last->local_done_ns < last->release_ns
							       ? last->local_done_ns
							       : last->release_ns) -
						      from);
		else if (last->how == SOLVE_SIM)
			rep->late_sim_ns += (double)(last->release_ns - from);
	}
}

/* What the rows [first, end) have in all, where they are steps that follow each other at once. */
static void add_rows(const struct record_row *rows, uint64_t first, uint64_t end,
		     struct report *rep)
{
	for (uint64_t i = first; i < end; i++) {
		rep->modelled_ns += rows[i].model_ns;
		rep->injected_ns += rows[i].injected_ns;
	}
	rep->exposed_ns += report_exposed(rows + first, end - first);
	add_late(rows + first, end - first, rep);
}

static int take_steps(const struct record_row *rows, const struct steps *s, struct report *rep)
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
		times[n++] = (double)(rows[step->end].arrive_ns - rows[step->first].arrive_ns);
		if (i + 1 == s->n || !step[1].is_timed)
			add_rows(rows, first, step->end, rep);
	}
	stat_of(times, n, &rep->step_ns);
	rep->modelled_ns /= (double)n;
	rep->injected_ns /= (double)n;
	rep->exposed_ns /= (double)n;
	rep->late_ns /= (double)n;
	rep->late_work_ns /= (double)n;
	rep->late_sim_ns /= (double)n;
	return 0;
}

static int find_steps(const struct record_row *rows, uint64_t n, struct report *rep)
{
	CLEANUP(steps_deinit) struct steps s = {0};
	int r = steps_find(rows, n, &s);

	if (r < 0)
		return r;
	rep->n_steps = s.n;
	rep->n_warm_up = s.n_warm_up;
	rep->ops_per_step = s.n_ops;
	snprintf(rep->steps_how, sizeof(rep->steps_how), "%s", s.how);
	if (s.n)
		return take_steps(rows, &s, rep);
	add_rows(rows, 0, n, rep);
	return 0;
}

int report_make(const struct record *rec, struct report *ret)
{
	CLEANUP(freep) struct record_row *rows = calloc(rec->n_rows + 1, sizeof(*rows));
	CLEANUP(freep) double *late = calloc(rec->n_rows + 1, sizeof(*late));
	uint64_t n = 0;
	int r;

	if (!rows || !late)
		return -ENOMEM;
	memset(ret, 0, sizeof(*ret));
	ret->header = rec->header;
	plain_text(ret->header.model);
	plain_text(ret->header.layout);
	plain_text(ret->header.data_for);
	ret->rank = UINT32_MAX;
	for (uint64_t i = 0; i < rec->n_rows; i++)
		if (rec->rows[i].world_rank < ret->rank)
			ret->rank = rec->rows[i].world_rank;
	for (uint64_t i = 0; i < rec->n_rows; i++) {
		const struct record_row *row = &rec->rows[i];

		late[i] = (double)(int64_t)(row->release_ns - row->due_ns);
		ret->n_early += late[i] < 0;
		if (row->world_rank != ret->rank)
			continue;
		rows[n++] = *row;
		if (row->kind < COLL_KINDS) {
			struct report_kind *k = &ret->kinds[row->kind];

			k->n_ops++;
			k->bytes += row->bytes;
			k->model_ns += row->model_ns;
			k->injected_ns += row->injected_ns;
		}
		ret->total_injected_ns += row->injected_ns;
	}
	ret->n_ops = n;
	stat_of(late, rec->n_rows, &ret->lateness_ns);
	qsort(rows, n, sizeof(*rows), by_arrival);
	r = find_steps(rows, n, ret);
	if (r < 0)
		return r;
	r = report_comms(rec, ret);
	if (r < 0)
		return r;
	report_trust(rec, rows, n, ret);
	return 0;
}
