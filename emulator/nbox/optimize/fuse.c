/* See fuse.h. A dep of the graph says when, by the wall clock, what it names was there. It keeps
 * that where it names another row now: so the computation behind it stays what it was. */
#include "nbox/optimize/fuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "schedule/coll.h"

struct fuser {
	struct record *rec;
	const struct rows_graph *g; /* the old one */
	uint32_t *into;             /* owned; by old row: the one that stands for it */
	uint32_t *before;           /* owned; by old row: what its bucket's first one follows */
	uint32_t *rows;             /* owned; by old row: the new one */
	struct rows_graph made;     /* owned */
	uint64_t n_deps, n_followers;
};

static void fuser_deinit(struct fuser *u)
{
	free(u->into);
	free(u->before);
	free(u->rows);
	rows_graph_deinit(&u->made);
}

/* Which all-reduce of its step it is; UINT32_MAX: none of those. */
static uint32_t place_of(const struct found *f, const struct record_op *op)
{
	const struct found_comm *c = f->comms;
	uint32_t low = 0, high;

	while (c < f->comms + f->n_comms && c->comm != op->comm)
		c++;
	if (c == f->comms + f->n_comms || op->kind != COLL_ALLREDUCE)
		return UINT32_MAX;
	high = c->n_steps;
	while (low < high) { /* the first step that begins behind it */
		uint32_t at = (low + high) / 2;

		if (c->seqs[at] <= op->seq)
			low = at + 1;
		else
			high = at;
	}
	return low && op->seq - c->seqs[low - 1] < f->n ? (uint32_t)(op->seq - c->seqs[low - 1])
							: UINT32_MAX;
}

/* What @row follows on its stream, else elsewhere; ROWS_NONE: nothing. */
static uint32_t row_before(const struct rows_graph *g, uint32_t row)
{
	const struct rows_row *r = &g->rows[row];

	for (uint32_t i = 0; i < r->n_deps; i++) {
		const struct rows_dep *d = &g->deps[r->first_dep + i];

		if (d->is_same_stream)
			return d->row;
	}
	return r->n_deps ? g->deps[r->first_dep].row : ROWS_NONE;
}

/* Fills into and before, and the bytes of the ops that stay. Return: 0; -ENOMEM. */
static int join_rows(struct fuser *u, const struct found *f, const struct buckets_plan *p)
{
	const struct rows_graph *g = u->g;
	CLEANUP(freep) uint32_t *bucket = calloc((size_t)f->n + 1, sizeof(*bucket));
	CLEANUP(freep)
	uint32_t *open = calloc((size_t)u->rec->header.world_size * f->n + 1, sizeof(*open));

	if (!bucket || !open)
		return -ENOMEM;
	for (uint32_t k = 0; k < p->n; k++)
		for (uint32_t i = p->list[k].first; i < p->list[k].end; i++)
			bucket[i] = k;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct bucket *b;
		struct record_op *op;
		uint32_t k, *own;

		u->into[i] = i;
		u->before[i] = ROWS_NONE;
		if (!g->rows[i].is_op)
			continue;
		op = &u->rec->ops[g->rows[i].index];
		k = place_of(f, op);
		if (k == UINT32_MAX)
			continue;
		b = &p->list[bucket[k]];
		own = open + (size_t)op->world_rank * f->n;
		own[k] = i;
		if (k + 1 != b->end)
			continue;
		u->before[i] = row_before(g, own[b->first]);
		for (uint32_t m = b->first; m < k; m++) {
			const struct record_op *of = &u->rec->ops[g->rows[own[m]].index];

			u->into[own[m]] = i;
			op->bytes += of->bytes;
			op->count += of->count;
		}
	}
	return 0;
}

/* Takes the rows that stay, and the ops of the record. Return: 0; -ENOMEM. */
static int take_rows(struct fuser *u)
{
	struct record *rec = u->rec;
	CLEANUP(freep) uint64_t *index = calloc(rec->n_ops + 1, sizeof(*index));
	uint64_t n_ops = 0;

	if (!index)
		return -ENOMEM;

	for (uint32_t i = 0; i < u->g->n; i++)
		if (u->into[i] == i) {
			u->made.rows[u->made.n] = u->g->rows[i];
			u->rows[i] = u->made.n++;
		} else {
			rec->ops[u->g->rows[i].index].of = NULL;
		}
	for (uint64_t i = 0; i < rec->n_ops; i++) {
		index[i] = n_ops;
		if (rec->ops[i].of)
			rec->ops[n_ops++] = rec->ops[i];
	}
	for (uint32_t i = 0; i < u->made.n; i++)
		if (u->made.rows[i].is_op)
			u->made.rows[i].index = index[u->made.rows[i].index];
	rec->n_ops = n_ops;
	return 0;
}

static void add_dep(struct fuser *u, struct rows_row *to, uint32_t old_row,
		    const struct rows_dep *d)
{
	struct rows_dep dep = *d;

	dep.row = u->rows[u->into[old_row]];
	if (&u->made.rows[dep.row] == to)
		return;
	u->made.deps[u->n_deps++] = dep;
	to->n_deps++;
}

/* What the old row @i waited for, as the new graph has it. */
static void take_deps(struct fuser *u, uint32_t i)
{
	const struct rows_row *old = &u->g->rows[i];
	struct rows_row *row = &u->made.rows[u->rows[i]];

	row->first_dep = u->n_deps;
	row->n_deps = 0;
	for (uint32_t k = 0; k < old->n_deps; k++) {
		const struct rows_dep *d = &u->g->deps[old->first_dep + k];

		if (u->into[d->row] != i)
			add_dep(u, row, d->row, d);
		else if (u->before[i] != ROWS_NONE) /* the one before it in its bucket */
			add_dep(u, row, u->before[i], d);
	}
	if (row->host != ROWS_NONE)
		row->host = u->rows[row->host];
	while (row->latest.row != ROWS_NONE && u->into[row->latest.row] != row->latest.row)
		row->latest.row = u->g->rows[row->latest.row].latest.row;
	if (row->latest.row != ROWS_NONE)
		row->latest.row = u->rows[row->latest.row];
	row->n_waits = 0;
	row->n_followers = 0;
}

struct edge {
	uint32_t from, to;
	bool is_early;
};

/* Who follows whom. @edges: room for all. */
static void find_edges(struct fuser *u, uint32_t *last, struct edge *edges, uint64_t *n)
{
	struct rows_graph *g = &u->made;

	for (uint32_t i = 0; i < g->n; i++) {
		const struct rows_row *row = &g->rows[i];

		for (uint32_t k = 0; k < row->n_deps; k++)
			edges[(*n)++] = (struct edge){g->deps[row->first_dep + k].row, i, false};
		if (row->host != ROWS_NONE)
			edges[(*n)++] = (struct edge){row->host, i, false};
		if (row->n_deps == 0 && row->latest.row != ROWS_NONE)
			edges[(*n)++] = (struct edge){row->latest.row, i,
						      g->rows[row->latest.row].is_op &&
							      !row->latest.open_ns};
		if (row->is_op && last[i] != ROWS_NONE)
			edges[(*n)++] = (struct edge){last[i], i, true};
	}
	for (uint64_t k = 0; k < *n; k++) {
		g->rows[edges[k].from].n_followers++;
		g->rows[edges[k].to].n_waits++;
	}
}

/* Fills the op before each op in its communicator, at its rank. Return: 0; -ENOMEM. */
static int find_queues(const struct fuser *u, uint32_t *last)
{
	const struct rows_graph *g = &u->made;
	const struct record *rec = u->rec;
	size_t n = (size_t)rec->n_comms * 2 * rec->header.world_size;
	CLEANUP(freep) uint32_t *queues = malloc((n + 1) * sizeof(*queues));

	if (!queues)
		return -ENOMEM;
	memset(queues, 0xff, (n + 1) * sizeof(*queues));
	for (uint32_t i = 0; i < g->n; i++) {
		const struct record_op *op = &rec->ops[g->rows[i].index];
		size_t at;

		if (!g->rows[i].is_op)
			continue;
		at = ((size_t)(op->of - rec->comms) * 2 + (op->kind == COLL_SENDRECV)) *
			     rec->header.world_size +
		     op->world_rank;
		last[i] = queues[at];
		queues[at] = i;
	}
	return 0;
}

static void share_out(struct rows_graph *g, const struct edge *edges, uint64_t n_edges)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		g->rows[i].first_follower = n;
		n += g->rows[i].n_followers;
		g->rows[i].n_followers = 0;
	}
	for (uint64_t k = 0; k < n_edges; k++) {
		struct rows_row *from = &g->rows[edges[k].from];

		g->followers[from->first_follower + from->n_followers++] =
			(struct rows_follower){edges[k].to, edges[k].is_early};
	}
}

int fuse_buckets(struct record *rec, struct rows_graph *g, const struct found *f,
		 const struct buckets_plan *p)
{
	uint64_t n_deps = 0, n_edges = 0;
	CLEANUP(fuser_deinit) struct fuser u = {.rec = rec, .g = g};
	CLEANUP(freep) uint32_t *last = calloc((size_t)g->n + 1, sizeof(*last));
	CLEANUP(freep) struct edge *edges = NULL;
	int r;

	for (uint32_t i = 0; i < g->n; i++)
		n_deps += g->rows[i].n_deps;
	edges = calloc(n_deps + 3 * (uint64_t)g->n + 1, sizeof(*edges));
	u.into = calloc((size_t)g->n + 1, sizeof(*u.into));
	u.before = calloc((size_t)g->n + 1, sizeof(*u.before));
	u.rows = calloc((size_t)g->n + 1, sizeof(*u.rows));
	u.made = (struct rows_graph){.rec = rec,
				     .rows = calloc((size_t)g->n + 1, sizeof(*u.made.rows)),
				     .deps = calloc(n_deps + 1, sizeof(*u.made.deps)),
				     .followers = calloc(n_deps + 3 * (uint64_t)g->n + 1,
							 sizeof(*u.made.followers))};
	if (!last || !edges || !u.into || !u.before || !u.rows || !u.made.rows || !u.made.deps ||
	    !u.made.followers)
		return -ENOMEM;
	r = join_rows(&u, f, p);
	r = r < 0 ? r : take_rows(&u);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < g->n; i++)
		if (u.into[i] == i)
			take_deps(&u, i);
	r = find_queues(&u, last);
	if (r < 0)
		return r;
	find_edges(&u, last, edges, &n_edges);
	share_out(&u.made, edges, n_edges);
	rows_graph_deinit(g);
	*g = u.made;
	u.made = (struct rows_graph){.n = 0};
	return 0;
}
