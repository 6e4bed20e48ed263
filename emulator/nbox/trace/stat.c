/* See stat.h. */
#include "nbox/trace/stat.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough" /* of uthash's macros */

#include "base/cleanup.h"

struct entry {
	UT_hash_handle hh;
	struct stat_row row;
	char key[]; /* the kind, as a letter, and the name */
};

struct times {
	double start, end, before; /* before: how much all earlier ones cover */
};

struct maker {
	const struct trace *t;
	struct entry *entries;
	struct times *work, *busy; /* owned; of a rank: when it computes or copies; that, or
				      communicates */
	uint32_t n_work, n_busy;
};

void stat_deinit(struct stat *s)
{
	for (uint32_t i = 0; i < s->n_rows; i++)
		free(s->rows[i].name);
	free(s->rows);
	*s = (struct stat){0};
}

double stat_each_ms(const struct stat *s, const struct stat_row *row)
{
	return row->ns / 1e6 / s->n_ranks / s->n_iterations;
}

static void maker_deinit(struct maker *m)
{
	struct entry *e, *next;

	HASH_ITER(hh, m->entries, e, next) {
		HASH_DEL(m->entries, e);
		free(e);
	}
	free(m->work);
	free(m->busy);
}

static bool is_work(const struct trace_op *op)
{
	return op->kind == TRACE_COMPUTE || op->kind == TRACE_COPY;
}

static bool is_message(const struct trace_op *op)
{
	return op->kind == TRACE_COLLECTIVE || op->kind == TRACE_SEND || op->kind == TRACE_RECV;
}

/* Adds [start, end) behind those that begin before it. */
static void cover(struct times *list, uint32_t *n, double start, double end)
{
	struct times *last = *n ? &list[*n - 1] : NULL;

	if (last && start <= last->end)
		last->end = fmax(last->end, end);
	else
		list[(*n)++] = (struct times){start, end,
					      last ? last->before + last->end - last->start : 0};
}

/* How much of the time up to @ns is covered. */
static double covered(const struct times *list, uint32_t n, double ns)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (list[middle].start <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? list[low - 1].before + fmin(ns, list[low - 1].end) - list[low - 1].start : 0;
}

/* Of a name, without a message's numbers. Return: NULL: no memory. */
static struct stat_row *row_of(struct maker *m, uint32_t kind, const char *name)
{
	const char *end = strstr(name, "~>");
	size_t n = (end ? (size_t)(end - name) : strlen(name)) + 1;
	struct entry *e, *known;

	e = calloc(1, sizeof(*e) + n + 1);
	if (!e)
		return NULL;
	e->key[0] = (char)('a' + kind);
	memcpy(e->key + 1, name, n - 1);
	HASH_FIND(hh, m->entries, e->key, n, known);
	if (known) {
		free(e);
		return &known->row;
	}
	e->row.kind = kind;
	HASH_ADD_KEYPTR(hh, m->entries, e->key, n, e);
	if (!e->hh.tbl) {
		free(e);
		return NULL;
	}
	return &e->row;
}

/* Return: 0; -ENOMEM. */
static int add(struct maker *m, uint32_t kind, const char *name, double ns, double exposed_ns)
{
	struct stat_row *row = row_of(m, kind, name);

	if (!row)
		return -ENOMEM;
	row->n++;
	row->ns += ns;
	row->exposed_ns += exposed_ns;
	return 0;
}

/* Return: 0; -ENOMEM. */
static int take_rank(struct maker *m, const struct trace_rank *rank, struct stat *s)
{
	const struct trace_op *ops = &m->t->ops[rank->first];
	double start = rank->n ? ops[0].start_ns : 0, end = start, work_end, hidden;
	uint32_t step = TRACE_NONE, n_steps = 0;
	int r = 0;

	m->n_work = m->n_busy = 0;
	for (uint32_t i = 0; i < rank->n; i++) {
		if (is_work(&ops[i]))
			cover(m->work, &m->n_work, ops[i].start_ns, ops[i].end_ns);
		if (is_work(&ops[i]) || is_message(&ops[i]))
			cover(m->busy, &m->n_busy, ops[i].start_ns, ops[i].end_ns);
		end = fmax(end, ops[i].end_ns);
		if (ops[i].step != TRACE_NONE && (step == TRACE_NONE || ops[i].step > step)) {
			step = ops[i].step;
			n_steps++;
		}
	}
	for (uint32_t i = 0; r == 0 && i < rank->n; i++) {
		work_end = covered(m->work, m->n_work, ops[i].end_ns);
		hidden = is_message(&ops[i])
				 ? work_end - covered(m->work, m->n_work, ops[i].start_ns)
			 : is_work(&ops[i]) ? 0
					    : ops[i].end_ns - ops[i].start_ns;
		r = add(m, ops[i].kind, trace_name(m->t, ops[i].name),
			ops[i].end_ns - ops[i].start_ns, ops[i].end_ns - ops[i].start_ns - hidden);
	}
	if (r == 0 && m->n_busy)
		r = add(m, TRACE_KINDS, "idle", end - start - covered(m->busy, m->n_busy, end),
			end - start - covered(m->busy, m->n_busy, end));
	s->ranks_ns += end - start;
	s->n_iterations = n_steps > s->n_iterations ? n_steps : s->n_iterations;
	s->n_ranks++;
	return r;
}

static int by_time(const void *pa, const void *pb)
{
	const struct stat_row *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : strcmp(a->name, b->name);
}

int stat_make(const struct trace *t, uint32_t rank, struct stat *ret)
{
	CLEANUP(maker_deinit) struct maker m = {.t = t};
	CLEANUP(stat_deinit) struct stat s = {.n_iterations = 1};
	int r = 0;

	m.work = calloc((size_t)t->n_ops + 1, sizeof(*m.work));
	m.busy = calloc((size_t)t->n_ops + 1, sizeof(*m.busy));
	if (!m.work || !m.busy)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < t->n_ranks; i++)
		if ((rank == TRACE_NONE || rank == i) && t->ranks[i].n)
			r = take_rank(&m, &t->ranks[i], &s);
	s.rows = r == 0 ? calloc(HASH_COUNT(m.entries) + 1, sizeof(*s.rows)) : NULL;
	if (!s.rows)
		return -ENOMEM;
	for (const struct entry *e = m.entries; e; e = e->hh.next) {
		s.rows[s.n_rows] = e->row;
		s.rows[s.n_rows].name = strdup(e->key + 1);
		if (!s.rows[s.n_rows++].name)
			return -ENOMEM;
	}
	qsort(s.rows, s.n_rows, sizeof(*s.rows), by_time);
	s.iteration_ns = s.n_ranks ? s.ranks_ns / s.n_ranks / s.n_iterations : 0;
	*ret = s;
	s = (struct stat){0};
	return 0;
}
