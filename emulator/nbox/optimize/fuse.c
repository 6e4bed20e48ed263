/* See fuse.h. */
#include "nbox/optimize/fuse.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* What becomes of a row. */
struct fate {
	uint64_t ns;    /* wall: its time */
	uint32_t first; /* of a fused op: the row of its first one; else ROWS_NONE */
	bool is_gone;
	uint64_t bytes, count; /* so far, of a fused op */
};

struct fuser {
	struct record *rec;
	const struct rows_graph *g;
	const struct found *f;
	const uint32_t *first_of, *last_of; /* all-reduces of each one's bucket */
	struct fate *fates;                 /* owned; by row */
	uint32_t *open;                     /* owned; by world rank: the first row of its bucket */
	uint64_t *bytes, *counts;           /* owned; by world rank: of the bucket so far */
};

static void fuser_deinit(struct fuser *u)
{
	free(u->fates);
	free(u->open);
	free(u->bytes);
	free(u->counts);
}

/* Which all-reduce of its step it is; UINT32_MAX: none of those. */
static uint32_t place_of(const struct found *f, const struct record_op *op)
{
	uint32_t low = 0, high = f->n_steps;

	if (op->comm != f->comm)
		return UINT32_MAX;
	while (low < high) { /* the first step that begins behind it */
		uint32_t at = (low + high) / 2;

		if (f->seqs[at] <= op->seq)
			low = at + 1;
		else
			high = at;
	}
	return low && op->seq - f->seqs[low - 1] < f->n ? (uint32_t)(op->seq - f->seqs[low - 1])
							: UINT32_MAX;
}

static uint64_t own_ns(const struct fuser *u, const struct rows_row *row)
{
	return row->is_op ? u->rec->ops[row->index].arrive_ns : u->rec->points[row->index].time_ns;
}

/* When all that @row of the old record waited for was there, by the old times or the new ones. */
static uint64_t base_ns(const struct fuser *u, const struct rows_row *row, bool is_new)
{
	uint64_t base =
		row->is_op ? u->rec->ops[row->index].work_ns : u->rec->points[row->index].work_ns;

	for (uint32_t i = 0; i < row->n_deps; i++) {
		const struct rows_dep *d = &u->g->deps[row->first_dep + i];
		uint64_t at = u->g->rows[d->row].is_op ? d->open_ns
			      : is_new                 ? u->fates[d->row].ns
						       : own_ns(u, &u->g->rows[d->row]);

		if (!(is_new && u->fates[d->row].is_gone))
			base = at > base ? at : base;
	}
	return base;
}

static bool waits_for_gone(const struct fuser *u, const struct rows_row *row)
{
	for (uint32_t i = 0; i < row->n_deps; i++)
		if (u->fates[u->g->deps[row->first_dep + i].row].is_gone)
			return true;
	return false;
}

/* Decides about @i, after all rows before it. */
static void decide(struct fuser *u, uint32_t i)
{
	const struct rows_row *row = &u->g->rows[i];
	struct fate *fate = &u->fates[i];
	const struct record_op *op = row->is_op ? &u->rec->ops[row->index] : NULL;
	uint32_t k = op ? place_of(u->f, op) : UINT32_MAX;
	uint64_t was = base_ns(u, row, false), is;

	*fate = (struct fate){.ns = own_ns(u, row), .first = ROWS_NONE};
	if (k != UINT32_MAX) {
		if (u->first_of[k] == k) {
			u->open[op->world_rank] = i;
			u->bytes[op->world_rank] = u->counts[op->world_rank] = 0;
		}
		u->bytes[op->world_rank] += op->bytes;
		u->counts[op->world_rank] += op->count;
		fate->is_gone = u->last_of[k] != k;
		fate->bytes = u->bytes[op->world_rank];
		fate->count = u->counts[op->world_rank];
		if (!fate->is_gone && u->first_of[k] != k)
			fate->first = u->open[op->world_rank];
	}
	if (!waits_for_gone(u, row))
		return;
	is = base_ns(u, row, true);
	if (fate->first != ROWS_NONE) { /* what its first one waited for on its stream */
		uint64_t first = base_ns(u, &u->g->rows[fate->first], true);

		is = first > is ? first : is;
	}
	/* those of an op may be known later than its gate opens */
	if (is && is + (fate->ns > was ? fate->ns - was : 0) < fate->ns)
		fate->ns = is + (fate->ns > was ? fate->ns - was : 0);
	if (op && fate->ns < op->call_ns)
		fate->ns = op->call_ns;
}

static uint64_t name_of(const struct record *rec, const struct rows_row *row)
{
	return row->is_op ? rec->ops[row->index].name : rec->points[row->index].name;
}

/* Adds those deps of @row that stay. Return: how many there are then. */
static uint32_t add_deps(const struct fuser *u, const struct rows_row *row, bool only_same_stream,
			 struct record_dep *ret, uint32_t n)
{
	for (uint32_t i = 0; i < row->n_deps; i++) {
		const struct rows_dep *d = &u->g->deps[row->first_dep + i];

		if (!u->fates[d->row].is_gone && (d->is_same_stream || !only_same_stream))
			ret[n++] = (struct record_dep){.name = name_of(u->rec, &u->g->rows[d->row]),
						       .is_same_stream = d->is_same_stream};
	}
	return n;
}

static int write_row(struct fuser *u, uint32_t i)
{
	const struct rows_row *row = &u->g->rows[i];
	const struct fate *fate = &u->fates[i];
	uint32_t n = row->n_deps, n_first;
	struct record_dep *deps;

	if (row->is_op && fate->first != ROWS_NONE) {
		u->rec->ops[row->index].bytes = fate->bytes;
		u->rec->ops[row->index].count = fate->count;
	}
	if (!waits_for_gone(u, row))
		return 0;
	n_first = fate->first == ROWS_NONE ? 0 : u->g->rows[fate->first].n_deps;
	deps = record_keep(u->rec, (n + n_first + 1) * sizeof(*deps));
	if (!deps)
		return -ENOMEM;
	n = add_deps(u, row, false, deps, 0);
	if (fate->first != ROWS_NONE)
		n = add_deps(u, &u->g->rows[fate->first], true, deps, n);
	if (row->is_op) {
		u->rec->ops[row->index].arrive_ns = fate->ns;
		u->rec->ops[row->index].deps = deps;
		u->rec->ops[row->index].n_deps = n;
	} else {
		u->rec->points[row->index].time_ns = fate->ns;
		u->rec->points[row->index].deps = deps;
		u->rec->points[row->index].n_deps = n;
	}
	return 0;
}

int fuse_record(struct record *rec, const struct rows_graph *g, const struct found *f,
		const struct buckets_plan *p)
{
	CLEANUP(freep) uint32_t *first_of = calloc((size_t)f->n + 1, sizeof(*first_of));
	CLEANUP(freep) uint32_t *last_of = calloc((size_t)f->n + 1, sizeof(*last_of));
	CLEANUP(fuser_deinit)
	struct fuser u = {.rec = rec,
			  .g = g,
			  .f = f,
			  .first_of = first_of,
			  .last_of = last_of,
			  .fates = calloc((size_t)g->n + 1, sizeof(*u.fates)),
			  .open = calloc((size_t)rec->header.world_size + 1, sizeof(*u.open)),
			  .bytes = calloc((size_t)rec->header.world_size + 1, sizeof(*u.bytes)),
			  .counts = calloc((size_t)rec->header.world_size + 1, sizeof(*u.counts))};
	uint64_t n_ops = 0;
	int r = 0;

	if (!first_of || !last_of || !u.fates || !u.open || !u.bytes || !u.counts)
		return -ENOMEM;
	for (uint32_t k = 0; k < p->n; k++)
		for (uint32_t i = p->list[k].first; i < p->list[k].end; i++) {
			first_of[i] = p->list[k].first;
			last_of[i] = p->list[k].end - 1;
		}
	for (uint32_t i = 0; i < g->n; i++)
		decide(&u, i);
	for (uint32_t i = 0; i < g->n && r == 0; i++)
		r = write_row(&u, i);
	for (uint32_t i = 0; i < g->n; i++) /* no op has number UINT64_MAX */
		if (u.fates[i].is_gone)
			rec->ops[g->rows[i].index].number = UINT64_MAX;
	for (uint64_t i = 0; i < rec->n_ops; i++)
		if (rec->ops[i].number != UINT64_MAX)
			rec->ops[n_ops++] = rec->ops[i];
	rec->n_ops = n_ops;
	return r;
}
