/* See chain.h. */
#include "nbox/why/chain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/number-table.h"
#include "schedule/coll.h"

/* Of a re-timed run, which lacks rows that were lost: the next one of the same order. */
struct reader {
	const struct record *was, *now;
	uint64_t *of_op, *of_point; /* owned; by row of @was: row of @now + 1; 0: it was lost */
};

static void reader_deinit(struct reader *r)
{
	free(r->of_op);
	free(r->of_point);
}

static int reader_init(struct reader *r)
{
	uint64_t k = 0;

	r->of_op = calloc(r->was->n_ops + 1, sizeof(*r->of_op));
	r->of_point = calloc(r->was->n_points + 1, sizeof(*r->of_point));
	if (!r->of_op || !r->of_point)
		return -ENOMEM;
	for (uint64_t i = 0; i < r->was->n_ops && k < r->now->n_ops; i++)
		if (r->was->ops[i].order == r->now->ops[k].order)
			r->of_op[i] = ++k;
	k = 0;
	for (uint64_t i = 0; i < r->was->n_points && k < r->now->n_points; i++)
		if (r->was->points[i].order == r->now->points[k].order)
			r->of_point[i] = ++k;
	return 0;
}

static bool take_row(const struct reader *r, const struct rows_row *row, uint32_t rank,
		     struct chain_row *ret)
{
	uint64_t k = row->is_op ? r->of_op[row->index] : r->of_point[row->index];
	const struct record_op *op = row->is_op && k ? &r->now->ops[k - 1] : NULL;
	const struct record_point *point = !row->is_op && k ? &r->now->points[k - 1] : NULL;

	if (!k || (op ? op->world_rank : point->world_rank) != rank)
		return false;
	*ret = (struct chain_row){.row = row, .op = op, .point = point, .before = CHAIN_NONE};
	return true;
}

static double since(uint64_t ns, uint64_t epoch)
{
	return (double)(int64_t)(ns - epoch);
}

static void set_times(struct chain_row *row, uint64_t epoch)
{
	const struct record_op *op = row->op;

	if (!op) {
		row->at = row->start = row->end = since(row->point->virtual_ns, epoch);
		return;
	}
	row->at = since(op->virtual_arrive_ns, epoch);
	row->end = fmax(row->at, since(op->virtual_end_ns, epoch));
	row->start = fmin(row->at + op->queued_ns, row->end);
}

/* The op before each in its communicator. Return: 0; -ENOMEM. */
static int line_up(struct chain *c)
{
	struct number_table last = {0};
	int r = 0;

	for (uint32_t i = 0; i < c->n && r == 0; i++) {
		uint32_t *place =
			c->rows[i].op ? number_table_at(&last, c->rows[i].op->comm + UINT64_C(1))
				      : NULL;

		if (place) {
			c->rows[i].before = *place ? *place - 1 : CHAIN_NONE;
			*place = i + 1;
		} else if (c->rows[i].op) {
			r = -ENOMEM;
		}
	}
	number_table_deinit(&last);
	return r;
}

static uint32_t place_of(const struct chain *c, uint32_t row)
{
	return row == ROWS_NONE ? CHAIN_NONE : c->place[row];
}

/* What comes later of @at, of row @by, and @t, of row @p. */
static void later(double *at, uint32_t *by, double t, uint32_t p)
{
	if (t > *at) {
		*at = t;
		*by = p;
	}
}

bool chain_is_over(const struct chain *c, uint32_t i, uint32_t by)
{
	const struct rows_row *row = c->rows[i].row;

	return !c->rows[by].op || !c->rows[i].terms.is_after_latest || row->latest.open_ns;
}

/* When the computation before row @i can begin. */
static double free_at(const struct chain *c, uint32_t i, const struct chain_times *times,
		      uint32_t *ret_by)
{
	const double *at = times->at, *end = times->end;
	const struct rows_row *row = c->rows[i].row;
	const struct timeline_terms *t = &c->rows[i].terms;
	uint32_t host = place_of(c, row->host), latest = place_of(c, row->latest.row), p;
	double free = -INFINITY;

	*ret_by = CHAIN_NONE;
	for (uint32_t k = 0; k < row->n_deps; k++) {
		p = place_of(c, c->graph->deps[row->first_dep + k].row);
		if (p != CHAIN_NONE && !(c->rows[p].op && times->without_ops))
			later(&free, ret_by, end[p], p);
	}
	if (t->is_after_latest && latest != CHAIN_NONE)
		later(&free, ret_by, chain_is_over(c, i, latest) ? end[latest] : at[latest],
		      latest);
	if (host == CHAIN_NONE)
		return free;
	if (t->is_after_host)
		later(&free, ret_by, at[host], host);
	later(&free, ret_by, at[host] + t->work_ns, host);
	return free;
}

double chain_reached(const struct chain *c, uint32_t i, const struct chain_times *times,
		     uint32_t *ret_by)
{
	const struct timeline_terms *t = &c->rows[i].terms;
	uint32_t host = place_of(c, c->rows[i].row->host);
	double reached = free_at(c, i, times, ret_by) + t->segment_ns + t->rest_ns;

	if (host != CHAIN_NONE)
		later(&reached, ret_by, times->at[host] + t->gap_ns, host);
	return reached;
}

/* Of a virtual rank: number @index of those that copy its template. */
static void shift(struct chain *c, const struct lags *lags, uint32_t index)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct chain_row *row = &c->rows[i];
		uint32_t k = (uint32_t)(row->row - c->graph->rows);

		row->at += lags_at(lags, k, index);
		row->start = row->end = row->at;
		if (!row->op)
			continue;
		row->end = fmax(row->at, since(row->op->virtual_end_ns, c->epoch) +
						 lags_end(lags, k, index));
		if (row->before != CHAIN_NONE)
			row->start = fmax(row->at, fmin(row->end, c->rows[row->before].end));
	}
}

/* What what-ifs make of a virtual rank's computation before row @i, where that shows. */
static void find_slowed(struct chain *c, uint32_t i, const struct chain_times *t)
{
	struct chain_row *row = &c->rows[i];
	uint32_t host = place_of(c, row->row->host), by;
	double segment = row->terms.segment_ns - row->terms.slowed_ns, slowed;

	row->terms.segment_ns = segment;
	row->terms.slowed_ns = 0;
	if (!(segment > 0) ||
	    (host != CHAIN_NONE && row->at <= t->at[host] + row->terms.gap_ns + CHAIN_ROUNDED_NS))
		return;
	slowed = row->at - (free_at(c, i, t, &by) + segment + row->terms.rest_ns);
	if (!isfinite(slowed) || fabs(slowed) <= CHAIN_ROUNDED_NS)
		return;
	row->terms.segment_ns += slowed;
	row->terms.slowed_ns = slowed;
}

/* Return: 0; -ENOMEM. */
static int find_offs(struct chain *c, bool is_virtual)
{
	CLEANUP(chain_times_deinit) struct chain_times times = {0};
	int r = chain_times_make(c, &times);
	uint32_t by;

	for (uint32_t i = 0; i < c->n && r == 0; i++) {
		double reached;

		if (is_virtual)
			find_slowed(c, i, &times);
		reached = chain_reached(c, i, &times, &by);

		c->rows[i].off = isfinite(reached) ? c->rows[i].at - reached : 0;
	}
	return r;
}

static uint64_t first_virtual_ns(const struct record *rec)
{
	uint64_t ns = UINT64_MAX;

	for (uint64_t i = 0; i < rec->n_ops; i++)
		ns = rec->ops[i].virtual_arrive_ns < ns ? rec->ops[i].virtual_arrive_ns : ns;
	for (uint64_t i = 0; i < rec->n_points; i++)
		ns = rec->points[i].virtual_ns < ns ? rec->points[i].virtual_ns : ns;
	return ns;
}

int chain_make(const struct chain_source *from, uint32_t rank, uint32_t template, struct chain *ret)
{
	const struct rows_graph *graph = from->graph;
	CLEANUP(chain_deinit)
	struct chain c = {.graph = graph, .epoch = first_virtual_ns(from->rec)};
	CLEANUP(reader_deinit) struct reader reader = {.was = graph->rec, .now = from->rec};
	bool is_virtual = rank != template;
	uint32_t index;
	int r = reader_init(&reader);

	c.rows = calloc((size_t)graph->n + 1, sizeof(*c.rows));
	c.place = malloc(((size_t)graph->n + 1) * sizeof(*c.place));
	if (r < 0 || !c.rows || !c.place)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->n; i++) {
		bool is_own = take_row(&reader, &graph->rows[i], template, &c.rows[c.n]) &&
			      (!is_virtual || from->lags->is_wanted[i]);

		c.place[i] = is_own ? c.n : CHAIN_NONE;
		if (!is_own)
			continue;
		c.rows[c.n].terms = from->terms[i];
		set_times(&c.rows[c.n++], c.epoch);
	}
	r = line_up(&c);
	if (r == 0 && is_virtual && lags_find(from->lags, rank, &index))
		shift(&c, from->lags, index);
	if (r == 0)
		r = find_offs(&c, is_virtual);
	if (r < 0)
		return r;
	*ret = c;
	c = (struct chain){0};
	return 0;
}

void chain_deinit(struct chain *c)
{
	free(c->rows);
	free(c->place);
}

bool chain_computed(const struct chain *c, uint32_t i, const struct chain_times *t, double *ret_at,
		    uint32_t *ret_by)
{
	const struct record_op *op = c->rows[i].op;
	const struct chain_times own = {t->at, t->end, .without_ops = true};

	if (!(op->waited_ns > 0) || op->kind == COLL_SENDRECV)
		return false;
	*ret_at = chain_reached(c, i, &own, ret_by) + c->rows[i].off;
	return *ret_by != CHAIN_NONE;
}

/* When the last rank of row @i comes, by @t, where that is another one: it stays as far behind. */
static double last_of(const struct chain *c, uint32_t i, const struct chain_times *t,
		      const struct chain_times *was)
{
	const struct chain_row *row = &c->rows[i];
	double computed, computed_then;
	uint32_t by;

	if (!chain_computed(c, i, was, &computed, &by))
		return -INFINITY;
	chain_computed(c, i, t, &computed_then, &by);
	return computed_then + fmin(row->start + row->op->waited_ns, row->end) - computed;
}

/* When row @i, an op that is reached, is over by @t. */
static double over_at(const struct chain *c, uint32_t i, const struct chain_times *t,
		      const struct chain_times *was)
{
	const struct chain_row *row = &c->rows[i];
	double start = t->at[i], then = row->at, last = last_of(c, i, t, was);

	if (row->before != CHAIN_NONE) {
		start = fmax(start, t->end[row->before]);
		then = fmax(then, was->end[row->before]);
	}
	if (isinf(last))
		return start + row->end - then;
	return fmax(start, last) + row->end - fmin(row->start + row->op->waited_ns, row->end);
}

void chain_delayed(const struct chain *c, const struct chain_times *was,
		   bool (*is_late)(const void *ctx, const struct record_op *), const void *ctx,
		   double ns, struct chain_times *t)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct chain_row *row = &c->rows[i];
		uint32_t by;
		double reached = chain_reached(c, i, t, &by);

		t->at[i] = isfinite(reached) ? reached + row->off : row->at;
		t->end[i] = t->at[i];
		if (row->op)
			t->end[i] = over_at(c, i, t, was) + (is_late(ctx, row->op) ? ns : 0);
	}
}

int chain_times_make(const struct chain *c, struct chain_times *ret)
{
	ret->at = malloc(((size_t)c->n + 1) * sizeof(*ret->at));
	ret->end = malloc(((size_t)c->n + 1) * sizeof(*ret->end));
	if (!ret->at || !ret->end)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		ret->at[i] = c->rows[i].at;
		ret->end[i] = c->rows[i].end;
	}
	return 0;
}

void chain_times_deinit(struct chain_times *t)
{
	free(t->at);
	free(t->end);
}
