/* See rows.h. */
#include "replay/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/cleanup.h"
#include "schedule/coll.h"

/* The last row of a name, at a rank; the last op of a rank in a communicator; the last post of an
 * op. */
struct last {
	struct last_key {
		uint64_t name;
		uint32_t world_rank;
		uint32_t comm; /* or OF_NAME, OF_NUMBER: then @name is an op's number */
	} key;
	uint32_t row;
	UT_hash_handle hh;
};

enum { OF_NAME = UINT32_MAX, OF_NUMBER = UINT32_MAX - 1 };

/* What is known of the rows before. */
struct past {
	struct last *by_key; /* hash, of @pool */
	struct last *pool;   /* owned; three entries a row at most */
	uint32_t n_pool;
	struct {
		uint64_t n;
		uint32_t last;
	} * ranks; /* owned; by world rank */
};

static void past_deinit(struct past *p)
{
	HASH_CLEAR(hh, p->by_key);
	free(p->pool);
	free(p->ranks);
}

static uint64_t order_of(const struct record *rec, const struct rows_row *row)
{
	return row->is_op ? rec->ops[row->index].order : rec->points[row->index].order;
}

static int by_order(const void *pa, const void *pb, void *rec)
{
	uint64_t a = order_of(rec, pa), b = order_of(rec, pb);

	return (a > b) - (a < b);
}

static uint32_t find(const struct past *p, struct last_key key)
{
	struct last *last;

	HASH_FIND(hh, p->by_key, &key, sizeof(key), last);
	return last ? last->row : ROWS_NONE;
}

static void set(struct past *p, struct last_key key, uint32_t row)
{
	struct last *last;

	HASH_FIND(hh, p->by_key, &key, sizeof(key), last);
	if (!last) {
		last = &p->pool[p->n_pool++];
		last->key = key;
		HASH_ADD(hh, p->by_key, key, sizeof(last->key), last);
	}
	last->row = row;
}

static uint32_t list_rows(const struct record *rec, struct rows_row *rows)
{
	uint32_t n = 0;

	for (uint64_t i = 0; i < rec->n_points; i++)
		rows[n++] = (struct rows_row){.index = i, .host = ROWS_NONE};
	for (uint64_t i = 0; i < rec->n_ops; i++)
		rows[n++] = (struct rows_row){.is_op = true, .index = i, .host = ROWS_NONE};
	qsort_r(rows, n, sizeof(*rows), by_order, (void *)(uintptr_t)rec);
	return n;
}

/* What a row of the record says, whatever it is. */
struct fields {
	uint64_t name, host;
	uint32_t world_rank, n_deps;
	const struct record_dep *deps;
};

static struct fields fields_of(const struct record *rec, const struct rows_row *row)
{
	const struct record_op *op;
	const struct record_point *p;

	if (row->is_op) {
		op = &rec->ops[row->index];
		return (struct fields){op->name, op->host, op->world_rank, op->n_deps, op->deps};
	}
	p = &rec->points[row->index];
	return (struct fields){p->name, p->host, p->world_rank, p->n_deps, p->deps};
}

/* Whom @i waits for. */
struct edge {
	uint32_t from, to;
	bool is_early;
};

struct edges {
	struct edge *list; /* owned */
	uint64_t n;
};

static void edges_deinit(struct edges *e)
{
	free(e->list);
}

static void wait_for(struct rows_graph *g, struct edges *e, uint32_t row, uint32_t other,
		     bool is_early)
{
	if (other == ROWS_NONE)
		return;
	e->list[e->n++] = (struct edge){other, row, is_early};
	g->rows[row].n_waits++;
	g->rows[other].n_followers++;
}

/* @other as what @row waits for. */
static struct rows_dep dep_of(const struct rows_graph *g, const struct rows_row *row,
			      uint32_t other, bool is_same_stream)
{
	struct rows_dep dep = {.row = other, .is_same_stream = is_same_stream};
	const struct record_op *op;

	if (other == ROWS_NONE || !g->rows[other].is_op)
		return dep;
	op = &g->rec->ops[g->rows[other].index];
	dep.open_ns = order_of(g->rec, row) < op->done_order ? op->due_ns : op->release_ns;
	return dep;
}

static void take_deps(struct rows_graph *g, const struct past *p, const struct fields *f,
		      uint32_t i, uint64_t *n_deps)
{
	struct rows_row *row = &g->rows[i];

	row->first_dep = *n_deps;
	for (uint32_t k = 0; k < f->n_deps; k++) {
		uint32_t other =
			find(p, (struct last_key){f->deps[k].name, f->world_rank, OF_NAME});

		if (other != ROWS_NONE)
			g->deps[(*n_deps)++] = dep_of(g, row, other, f->deps[k].is_same_stream);
	}
	row->n_deps = (uint32_t)(*n_deps - row->first_dep);
}

/* Whether nboxd knew when @row, an op, ends, as the row @by came: all its posts had come. */
static bool is_over_by(const struct rows_graph *g, const struct past *p, uint32_t row, uint32_t by)
{
	const struct rows_row *of = &g->rows[row];

	return row == ROWS_NONE || !of->is_op ||
	       find(p, (struct last_key){g->rec->ops[of->index].number, 0, OF_NUMBER}) < by;
}

static void connect(struct rows_graph *g, struct past *p, struct edges *e, uint32_t i,
		    uint64_t *n_deps)
{
	struct rows_row *row = &g->rows[i];
	const struct fields f = fields_of(g->rec, row);
	struct last_key own = {f.name, f.world_rank, OF_NAME};
	uint32_t before = p->ranks[f.world_rank].n ? p->ranks[f.world_rank].last : ROWS_NONE;
	bool is_over;

	is_over = is_over_by(g, p, before, i);
	row->latest = dep_of(g, row, before, false);
	row->latest.open_ns = is_over ? row->latest.open_ns : 0;
	row->number = ++p->ranks[f.world_rank].n;
	p->ranks[f.world_rank].last = i;
	if (f.host)
		row->host = find(p, (struct last_key){f.host, f.world_rank, OF_NAME});
	take_deps(g, p, &f, i, n_deps);
	for (uint32_t k = 0; k < row->n_deps; k++)
		wait_for(g, e, i, g->deps[row->first_dep + k].row, false);
	wait_for(g, e, i, row->host, false);
	if (row->n_deps == 0) /* the timeline takes what came last */
		wait_for(g, e, i, before, !is_over);
	if (row->is_op) {
		const struct record_op *op = &g->rec->ops[row->index];
		struct last_key queue = {op->kind == COLL_SENDRECV, f.world_rank, op->comm};

		wait_for(g, e, i, find(p, queue), true);
		set(p, queue, i);
	}
	if (f.name)
		set(p, own, i);
}

static void share_out(struct rows_graph *g, const struct edges *e)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		g->rows[i].first_follower = n;
		n += g->rows[i].n_followers;
		g->rows[i].n_followers = 0;
	}
	for (uint64_t i = 0; i < e->n; i++) {
		struct rows_row *from = &g->rows[e->list[i].from];

		g->followers[from->first_follower + from->n_followers++] =
			(struct rows_follower){e->list[i].to, e->list[i].is_early};
	}
}

int rows_graph_make(const struct record *rec, struct rows_graph *ret, struct err *err)
{
	CLEANUP(rows_graph_deinit) struct rows_graph g = {.rec = rec};
	CLEANUP(edges_deinit) struct edges e = {0};
	CLEANUP(past_deinit) struct past p = {0};
	uint64_t n_deps = 0, n = rec->n_ops + rec->n_points;

	if (n > ROWS_NONE / 4)
		return err_set(err, E2BIG, "the record has %llu rows: too many to look at",
			       (unsigned long long)n);
	for (uint64_t i = 0; i < rec->n_ops; i++)
		n_deps += rec->ops[i].n_deps;
	for (uint64_t i = 0; i < rec->n_points; i++)
		n_deps += rec->points[i].n_deps;
	g.rows = calloc(n + 1, sizeof(*g.rows));
	g.deps = calloc(n_deps + 1, sizeof(*g.deps));
	g.followers = calloc(n_deps + 3 * n + 1, sizeof(*g.followers));
	e.list = calloc(n_deps + 3 * n + 1, sizeof(*e.list));
	p.pool = calloc(3 * n + 1, sizeof(*p.pool));
	p.ranks = calloc((size_t)rec->header.world_size + 1, sizeof(*p.ranks));
	if (!g.rows || !g.deps || !g.followers || !e.list || !p.pool || !p.ranks)
		return err_set(err, ENOMEM, "no memory for the %llu rows of the record",
			       (unsigned long long)n);
	g.n = list_rows(rec, g.rows);
	for (uint32_t i = 0; i < g.n; i++)
		if (g.rows[i].is_op)
			set(&p, (struct last_key){rec->ops[g.rows[i].index].number, 0, OF_NUMBER},
			    i);
	n_deps = 0;
	for (uint32_t i = 0; i < g.n; i++)
		connect(&g, &p, &e, i, &n_deps);
	share_out(&g, &e);
	*ret = g;
	g = (struct rows_graph){0};
	return 0;
}

void rows_graph_deinit(struct rows_graph *g)
{
	free(g->rows);
	free(g->deps);
	free(g->followers);
}
