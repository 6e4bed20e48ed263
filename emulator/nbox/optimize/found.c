/* See found.h. A step goes on when its last all-reduce is over and computation has come to the wait
 * for it: that is the beginning of the next one. */
#include "nbox/optimize/found.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "nbox/report/steps.h"
#include "schedule/coll.h"

#define ROUNDED_NS 10

/* One all-reduce of a step. */
struct place {
	const struct record_op *op;
	uint32_t row;
	double ready;         /* virtual ns */
	double lead;          /* ns from the end of the op before it on its stream, at least */
	uint64_t ready_order; /* of the point that it was ready at */
	uint64_t wait_order;  /* of the first row that waits for it; UINT64_MAX: none does */
	bool has_no_edges;
};

struct finder {
	const struct rows_graph *g;
	const struct found_rows *in;
	const struct record_op **ops; /* owned; of the rank, by virtual arrival */
	uint32_t *rows;               /* owned; by op of the record */
	uint64_t *others;     /* owned; the same: the op at the next real rank, in a circle */
	struct place *places; /* owned; of the step that is looked at */
	uint64_t n_ops;
	struct steps steps;
};

static void finder_deinit(struct finder *f)
{
	free(f->ops);
	free(f->rows);
	free(f->others);
	free(f->places);
	steps_deinit(&f->steps);
}

static int by_arrival(const void *pa, const void *pb)
{
	const struct record_op *const *a = pa, *const *b = pb;

	return steps_order(*a, *b);
}

static int by_seq(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	return (a->op->seq > b->op->seq) - (a->op->seq < b->op->seq);
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

double found_median(double *list, uint32_t n)
{
	qsort(list, n, sizeof(*list), by_value);
	return n ? list[(n - 1) / 2] : 0;
}

static double end_of(const struct rows_graph *g, uint32_t row)
{
	const struct rows_row *r = &g->rows[row];

	return (double)(r->is_op ? g->rec->ops[r->index].virtual_end_ns
				 : g->rec->points[r->index].virtual_ns);
}

static uint64_t order_of(const struct rows_graph *g, uint32_t row)
{
	const struct rows_row *r = &g->rows[row];

	return r->is_op ? g->rec->ops[r->index].order : g->rec->points[r->index].order;
}

static bool waits_for(const struct rows_graph *g, uint32_t row, uint32_t other)
{
	const struct rows_row *r = &g->rows[row];

	for (uint32_t i = 0; i < r->n_deps; i++)
		if (g->deps[r->first_dep + i].row == other)
			return true;
	return false;
}

/* The first row that waits for the op @row, but for the ops behind it on its stream; ROWS_NONE:
 * none does. */
static uint32_t waiter_of(const struct rows_graph *g, uint32_t row)
{
	const struct rows_row *r = &g->rows[row];
	const struct record_op *op = &g->rec->ops[r->index];
	uint32_t first = ROWS_NONE;

	for (uint32_t i = 0; i < r->n_followers; i++) {
		uint32_t by = g->followers[r->first_follower + i].row;

		if (!waits_for(g, by, row) ||
		    (g->rows[by].is_op && g->rec->ops[g->rows[by].index].stream == op->stream))
			continue;
		if (first == ROWS_NONE || order_of(g, by) < order_of(g, first))
			first = by;
	}
	return first;
}

/* When the last rank that computes as this one has come to @row. */
static double last_at(const struct finder *f, uint32_t row)
{
	return end_of(f->g, row) + (f->g->rows[row].is_op ? 0 : f->in->lags[row]);
}

/* When @op could begin, were there none before it on its stream, as timeline.h has it; -INFINITY:
 * nobody saw what it waited for. */
static double ready_of(const struct finder *f, const struct record_op *op, uint64_t *ret_order,
		       double *ret_lead)
{
	const struct rows_graph *g = f->g;
	uint32_t own = f->rows[op - g->rec->ops];
	const struct rows_row *row = &g->rows[own];
	const struct timeline_terms *t = &f->in->terms[own];
	double host = row->host == ROWS_NONE ? -INFINITY : last_at(f, row->host);
	double ready = -INFINITY, before = -INFINITY, segment = t->segment_ns + t->rest_ns;
	bool follows = false;

	for (uint32_t i = 0; i < row->n_deps; i++) {
		uint32_t dep = g->deps[row->first_dep + i].row;
		const struct record_op *of =
			g->rows[dep].is_op ? &g->rec->ops[g->rows[dep].index] : NULL;

		if (of && of->stream == op->stream && of->comm == op->comm) {
			before = fmax(before, end_of(g, dep));
			follows = follows || of->seq + 1 == op->seq;
		} else if (last_at(f, dep) > ready) {
			ready = last_at(f, dep);
			*ret_order = order_of(g, dep);
		}
	}
	if (isinf(ready))
		return ready;
	if (f->in->lags[own] > 0) /* of the last rank it may be longer */
		segment = fmax(segment, (double)op->virtual_arrive_ns + f->in->lags[own] -
						fmax(ready, before));
	/* one of a group does not wait for the one before it, but queues behind it */
	*ret_lead = follows ? segment : 0;
	return fmax(fmax(ready, host + t->work_ns) + segment, host + t->gap_ns);
}

static struct place place_of(const struct finder *f, const struct record_op *op)
{
	const struct rows_graph *g = f->g;
	uint64_t own = (uint64_t)(op - g->rec->ops), order;
	struct place p = {.op = op, .row = f->rows[own], .wait_order = UINT64_MAX};
	uint32_t waiter = waiter_of(g, p.row);
	double lead;

	p.ready = ready_of(f, op, &p.ready_order, &p.lead);
	p.has_no_edges = isinf(p.ready);
	if (p.has_no_edges) {
		p.ready = (double)op->virtual_arrive_ns;
		p.ready_order = op->order;
	}
	for (uint64_t i = f->others[own]; i != own; i = f->others[i])
		p.ready = fmax(p.ready, ready_of(f, &g->rec->ops[i], &order, &lead));
	if (waiter != ROWS_NONE)
		p.wait_order = order_of(g, waiter);
	return p;
}

/* The all-reduces of @comm in a step. Return: how many. */
static uint32_t places_of(const struct finder *f, const struct step *s, uint32_t comm)
{
	uint32_t n = 0;

	for (uint64_t i = s->first; i < s->end; i++)
		if (f->ops[i]->kind == COLL_ALLREDUCE && f->ops[i]->comm == comm)
			f->places[n++] = place_of(f, f->ops[i]);
	qsort(f->places, n, sizeof(*f->places), by_seq);
	return n;
}

/* Of @n places those, one after the other, that nothing waits for before the last one is ready, and
 * that have most bytes. */
static uint32_t longest(const struct place *p, uint32_t n, uint32_t *ret_first)
{
	uint64_t most = 0;
	uint32_t best = 0;

	for (uint32_t end = n; end > 0; end--) {
		uint64_t bytes = 0;
		uint32_t first = end;

		while (first > 0 &&
		       (first == end || (p[first - 1].wait_order > p[end - 1].ready_order &&
					 p[first - 1].op->seq + 1 == p[first].op->seq)))
			bytes += p[--first].op->bytes;
		if (bytes > most) {
			most = bytes;
			best = end - first;
			*ret_first = first;
		}
	}
	return best;
}

/* The communicator in which most bytes can be divided otherwise; where there is none, that with
 * most bytes. Tensor parallelism may have more, but each of its ops is waited for at once. */
static int find_comm(const struct finder *f, const struct step *s, uint32_t *ret)
{
	const struct record *rec = f->g->rec;
	CLEANUP(freep) bool *met = calloc(rec->n_comms + 1, sizeof(*met));
	uint64_t most = 0;
	uint32_t best = 0;
	bool is_divided = false;

	if (!met)
		return -ENOMEM;

	for (uint64_t i = s->first; i < s->end; i++) {
		uint64_t bytes = 0;
		uint32_t first = 0, n;

		if (f->ops[i]->kind != COLL_ALLREDUCE || met[f->ops[i]->of - rec->comms])
			continue;
		met[f->ops[i]->of - rec->comms] = true;
		n = longest(f->places, places_of(f, s, f->ops[i]->comm), &first);
		for (uint32_t k = 0; k < n; k++)
			bytes += f->places[first + k].op->bytes;
		if ((n > 1) > is_divided || ((n > 1) == is_divided && bytes > most)) {
			most = bytes;
			best = f->ops[i]->comm;
			is_divided = n > 1;
		}
	}
	*ret = best;
	return 0;
}

/* When the step goes on, and, where it is not NULL, when computation was there. */
static double goes_on(const struct finder *f, const struct place *p, uint32_t n, double *ret_end)
{
	const struct rows_graph *g = f->g;
	uint32_t first = ROWS_NONE, last = waiter_of(g, p[n - 1].row);
	double at = (double)p[n - 1].op->virtual_end_ns, end = p[n - 1].ready;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t w = waiter_of(g, p[i].row);

		if (w != ROWS_NONE && (first == ROWS_NONE || order_of(g, w) < order_of(g, first)))
			first = w;
	}
	for (uint32_t i = 0; last != ROWS_NONE && i < g->rows[last].n_deps; i++)
		at = fmax(at, end_of(g, g->deps[g->rows[last].first_dep + i].row));
	for (uint32_t i = 0; first != ROWS_NONE && i < g->rows[first].n_deps; i++) {
		uint32_t dep = g->deps[g->rows[first].first_dep + i].row;
		bool is_own = false;

		for (uint32_t k = 0; k < n; k++)
			is_own = is_own || p[k].row == dep;
		if (!is_own)
			end = fmax(end, end_of(g, dep));
	}
	if (ret_end)
		*ret_end = end;
	return at;
}

/* From the wait for an all-reduce to the wait for the next one. */
static double after(const struct finder *f, const struct place *p)
{
	const struct rows_graph *g = f->g;
	uint32_t own = waiter_of(g, p[0].row), next = waiter_of(g, p[1].row);
	double from = -INFINITY, to = -INFINITY;

	if (own == ROWS_NONE || next == ROWS_NONE || own == next)
		return 0;
	for (uint32_t i = 0; i < g->rows[own].n_deps; i++)
		from = fmax(from, end_of(g, g->deps[g->rows[own].first_dep + i].row));
	for (uint32_t i = 0; i < g->rows[next].n_deps; i++) {
		uint32_t dep = g->deps[g->rows[next].first_dep + i].row;

		if (dep != p[1].row)
			to = fmax(to, end_of(g, dep));
	}
	return to > from ? to - from : 0;
}

static int by_number(const void *pa, const void *pb)
{
	const struct record_op *const *a = pa, *const *b = pb;

	return ((*a)->number > (*b)->number) - ((*a)->number < (*b)->number);
}

/* Which ops are one at several ranks. Return: 0; -ENOMEM. */
static int find_same(struct finder *f)
{
	const struct record *rec = f->g->rec;
	CLEANUP(freep) const struct record_op **ops = calloc(rec->n_ops + 1, sizeof(*ops));

	if (!ops)
		return -ENOMEM;
	for (uint64_t i = 0; i < rec->n_ops; i++)
		ops[i] = &rec->ops[i];
	qsort(ops, rec->n_ops, sizeof(*ops), by_number);
	for (uint64_t i = 0, first = 0; i < rec->n_ops; i++) {
		bool is_last = i + 1 == rec->n_ops || ops[i + 1]->number != ops[i]->number;

		f->others[ops[i] - rec->ops] = (uint64_t)(ops[is_last ? first : i + 1] - rec->ops);
		first = is_last ? i + 1 : first;
	}
	return 0;
}

static int open_finder(const struct found_rows *in, struct finder *f, struct err *err)
{
	const struct rows_graph *g = in->graph;
	const struct record *rec = g->rec;
	CLEANUP(freep) struct record_op *rows = calloc(rec->n_ops + 1, sizeof(*rows));
	uint32_t rank = UINT32_MAX;

	*f = (struct finder){.g = g,
			     .in = in,
			     .ops = calloc(rec->n_ops + 1, sizeof(*f->ops)),
			     .rows = calloc(rec->n_ops + 1, sizeof(*f->rows)),
			     .others = calloc(rec->n_ops + 1, sizeof(*f->others)),
			     .places = calloc(rec->n_ops + 1, sizeof(*f->places))};
	if (!rows || !f->ops || !f->rows || !f->others || !f->places || find_same(f) < 0)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < g->n; i++)
		if (g->rows[i].is_op)
			f->rows[g->rows[i].index] = i;
	for (uint64_t i = 0; i < rec->n_ops; i++)
		rank = rec->ops[i].world_rank < rank ? rec->ops[i].world_rank : rank;
	for (uint64_t i = 0; i < rec->n_ops; i++)
		if (rec->ops[i].world_rank == rank)
			f->ops[f->n_ops++] = &rec->ops[i];
	qsort(f->ops, f->n_ops, sizeof(*f->ops), by_arrival);
	for (uint64_t i = 0; i < f->n_ops; i++)
		rows[i] = *f->ops[i];
	if (steps_find(rec, rows, f->n_ops, &f->steps) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return f->steps.n > 1 ? 0
			      : err_set(err, ENODATA, "there are no two steps in the record: %s",
					f->steps.how);
}

/* Is the step as the pattern of @f? Fills places. */
static bool is_alike(const struct finder *f, const struct step *s, const struct found *ret,
		     uint32_t first)
{
	uint32_t n = places_of(f, s, ret->comms->comm);

	for (uint32_t i = 0; i < ret->n; i++)
		if (first + i >= n || f->places[first + i].op->bytes != ret->bytes[i])
			return false;
	return true;
}

static int take_pattern(const struct finder *f, struct found *ret, uint32_t *first, struct err *err)
{
	/* the last one may be cut off */
	const struct step *s = &f->steps.list[f->steps.n - 2];
	uint32_t n;

	ret->rank = f->ops[0]->world_rank;
	ret->comms = calloc(f->g->rec->n_comms + 1, sizeof(*ret->comms));
	if (!ret->comms)
		return err_set(err, ENOMEM, "out of memory");
	ret->n_comms = 1;
	ret->comms->seqs = calloc(f->steps.n, sizeof(*ret->comms->seqs));
	if (!ret->comms->seqs || find_comm(f, s, &ret->comms->comm) < 0)
		return err_set(err, ENOMEM, "out of memory");
	n = places_of(f, s, ret->comms->comm);
	*first = 0;
	ret->n = longest(f->places, n, first);
	if (ret->n == 0)
		return err_set(err, ENODATA,
			       "no all-reduce is in the run's steps: there are no buckets to plan");
	ret->elem_bytes = (uint32_t)coll_dtype_bytes(f->places[*first].op->dtype);
	ret->bytes = calloc(ret->n, sizeof(*ret->bytes));
	if (!ret->bytes)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < ret->n; i++) {
		ret->bytes[i] = f->places[*first + i].op->bytes;
		ret->has_no_edges = ret->has_no_edges || f->places[*first + i].has_no_edges;
	}
	return 0;
}

/* Is it a step's all-reduces, @p the first of them? */
static bool is_step(const struct found *b, const struct place *p)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (p[i].op->bytes != b->bytes[i] || p[i].op->seq != p->op->seq + i ||
		    (i + 1 < b->n && p[i].wait_order <= p[b->n - 1].ready_order))
			return false;
	return true;
}

/* The like of @b in the other communicators. Return: 0; -ENOMEM. */
static int find_others(const struct finder *f, struct found *b)
{
	const struct record *rec = f->g->rec;

	for (uint64_t i = 0; i < rec->n_comms; i++) {
		struct found_comm *c = &b->comms[b->n_comms];
		uint32_t n = 0, rank = UINT32_MAX;

		if (rec->comms[i].number == b->comms->comm)
			continue;
		for (uint64_t k = 0; k < rec->n_ops; k++)
			if (rec->ops[k].comm == rec->comms[i].number &&
			    rec->ops[k].world_rank < rank)
				rank = rec->ops[k].world_rank;
		for (uint64_t k = 0; k < rec->n_ops; k++)
			if (rec->ops[k].comm == rec->comms[i].number &&
			    rec->ops[k].world_rank == rank && rec->ops[k].kind == COLL_ALLREDUCE)
				f->places[n++] = place_of(f, &rec->ops[k]);
		qsort(f->places, n, sizeof(*f->places), by_seq);
		*c = (struct found_comm){.comm = rec->comms[i].number,
					 .seqs = calloc((size_t)n + 1, sizeof(*c->seqs))};
		if (!c->seqs)
			return -ENOMEM;
		b->n_comms++;
		for (uint32_t k = 0; k + b->n <= n; k++)
			if (is_step(b, &f->places[k])) {
				c->seqs[c->n_steps++] = f->places[k].op->seq;
				k += b->n - 1;
			}
	}
	return 0;
}

/* Room for @n steps and the medians. Return: 0; -ENOMEM. */
static int make_times(struct found *b, uint32_t n)
{
	double *at;

	b->times = calloc((size_t)n + 1, sizeof(*b->times));
	b->room = at = calloc(3 * (size_t)b->n * (n + 1), sizeof(*b->room));
	if (!b->times || !b->room)
		return -ENOMEM;
	for (uint32_t i = 0; i <= n; i++, at += 3 * b->n)
		b->times[i] = (struct found_times){.ready = at,
						   .lead = at + b->n,
						   .after = at + 2 * b->n};
	return 0;
}

/* The step whose all-reduces are @p, and which @began. */
static void take_times(const struct finder *f, const struct place *p, uint32_t n, double began,
		       struct found_times *to)
{
	to->step_ns = goes_on(f, p, n, &to->end) - began;
	to->end -= began;
	for (uint32_t k = 0; k < n; k++) {
		to->ready[k] = fmax(p[k].ready - began, k ? to->ready[k - 1] : -INFINITY);
		to->lead[k] = p[k].lead;
		to->after[k] = k + 1 < n ? after(f, &p[k]) : 0;
	}
	to->end = fmax(to->end, to->ready[n - 1]);
}

/* The median of what the steps have at @what, from the first one's on. */
static double median_of(const struct found *b, const double *what, double *list)
{
	for (uint32_t i = 0; i < b->n_timed; i++)
		list[i] = what[(size_t)i * 3 * b->n];
	return found_median(list, b->n_timed);
}

/* Behind the steps'. Return: 0; -ENOMEM. */
static int take_medians(struct found *b)
{
	CLEANUP(freep) double *list = calloc((size_t)b->n_timed + 1, sizeof(*list));
	const struct found_times *first = b->times;
	struct found_times *to = &b->times[b->n_timed];

	if (!list)
		return -ENOMEM;
	for (uint32_t k = 0; k < b->n; k++) {
		to->ready[k] = fmax(median_of(b, first->ready + k, list),
				    k ? to->ready[k - 1] : -INFINITY);
		to->lead[k] = median_of(b, first->lead + k, list);
		to->after[k] = median_of(b, first->after + k, list);
	}
	for (uint32_t i = 0; i < b->n_timed; i++)
		list[i] = b->times[i].end;
	to->end = fmax(found_median(list, b->n_timed), to->ready[b->n - 1]);
	for (uint32_t i = 0; i < b->n_timed; i++)
		list[i] = b->times[i].step_ns;
	to->step_ns = found_median(list, b->n_timed);
	return 0;
}

int found_make(const struct found_rows *in, struct found *ret, struct err *err)
{
	CLEANUP(finder_deinit) struct finder f = {.n_ops = 0};
	CLEANUP(found_deinit) struct found b = {.n = 0};
	uint32_t first = 0;
	double began = NAN;
	int r = open_finder(in, &f, err);

	r = r == 0 ? take_pattern(&f, &b, &first, err) : r;
	if (r < 0)
		return r;
	if (make_times(&b, (uint32_t)f.steps.n) < 0)
		return err_set(err, ENOMEM, "out of memory");
	for (uint64_t i = 0; i < f.steps.n; i++) {
		const struct place *p = &f.places[first];

		if (!is_alike(&f, &f.steps.list[i], &b, first)) {
			began = NAN;
			continue;
		}
		if (i > f.steps.n_warm_up && !isnan(began) &&
		    f.steps.list[i].first == f.steps.list[i - 1].end) {
			b.times[b.n_timed].number = b.comms->n_steps;
			take_times(&f, p, b.n, began, &b.times[b.n_timed++]);
		}
		began = goes_on(&f, p, b.n, NULL);
		b.comms->seqs[b.comms->n_steps++] = p->op->seq;
	}
	if (!b.n_timed)
		return err_set(err, ENODATA,
			       "no two of the %llu steps that follow each other have the same "
			       "all-reduces",
			       (unsigned long long)f.steps.n);
	if (take_medians(&b) < 0 || find_others(&f, &b) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (b.times[b.n_timed].ready[0] < -ROUNDED_NS)
		return err_set(err, ENODATA,
			       "the first all-reduce of a step is ready before the step before is "
			       "over: there are no steps to plan for; record more iterations");
	*ret = b;
	b = (struct found){.n = 0};
	return 0;
}

double found_step_ns(const struct found *f, const struct rows_graph *g)
{
	const struct found_comm *c = f->comms;
	CLEANUP(freep) double *at = calloc((size_t)c->n_steps + 1, sizeof(*at));
	CLEANUP(freep) double *times = calloc((size_t)f->n_timed + 1, sizeof(*times));
	struct finder of = {.g = g};
	uint32_t step = 0;

	if (!at || !times)
		return 0;
	for (uint32_t i = 0; i < g->n && step < c->n_steps; i++) {
		const struct record_op *op = &g->rec->ops[g->rows[i].index];
		struct place p = {.op = op, .row = i};

		if (g->rows[i].is_op && op->world_rank == f->rank && op->comm == c->comm &&
		    op->seq == c->seqs[step] + f->n - 1)
			at[step++] = goes_on(&of, &p, 1, NULL);
	}
	for (uint32_t i = 0; i < f->n_timed; i++)
		times[i] = at[f->times[i].number] - at[f->times[i].number - 1];
	return found_median(times, f->n_timed);
}

void found_deinit(struct found *f)
{
	free(f->bytes);
	free(f->times);
	free(f->room);
	for (uint32_t i = 0; i < f->n_comms; i++)
		free(f->comms[i].seqs);
	free(f->comms);
	*f = (struct found){.n = 0};
}
