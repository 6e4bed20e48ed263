/* See finish.h. */
#include "trace/finish.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough" /* of uthash's macros */

#include "base/cleanup.h"
#include "trace/join.h"

static int by_rank(const void *pa, const void *pb)
{
	const struct trace_rank *a = pa, *b = pb;

	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int by_start(const void *pa, const void *pb, void *ctx)
{
	const uint32_t *na = pa, *nb = pb;
	const struct trace_op *ops = ctx, *a = &ops[*na], *b = &ops[*nb];

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return *na < *nb ? -1 : *na > *nb;
}

static int by_op(const void *pa, const void *pb)
{
	const struct trace_wait *a = pa, *b = pb;

	if (a->op != b->op)
		return a->op < b->op ? -1 : 1;
	return a->on < b->on ? -1 : a->on > b->on;
}

/* Return: 0; -ENOMEM. */
static int sort_ranks(struct trace *t)
{
	CLEANUP(freep) uint32_t *place = calloc(t->n_ranks + 1, sizeof(*place));

	if (!place)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_ranks; i++)
		t->ranks[i].first = i;
	if (t->n_ranks)
		qsort(t->ranks, t->n_ranks, sizeof(*t->ranks), by_rank);
	for (uint32_t i = 0; i < t->n_ranks; i++) {
		place[t->ranks[i].first] = i;
		t->ranks[i].first = t->ranks[i].n = 0;
	}
	for (uint32_t i = 0; i < t->n_ops; i++)
		t->ops[i].rank = place[t->ops[i].rank];
	return 0;
}

/* Where they are: around each circle of places. @order: which one comes to a place. */
static void put_in_order(struct trace_op *ops, uint32_t *order, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct trace_op first = ops[i];
		uint32_t at = i;

		while (order[at] != i) {
			uint32_t from = order[at];

			ops[at] = ops[from];
			order[at] = at;
			at = from;
		}
		ops[at] = first;
		order[at] = at;
	}
}

/* Return: 0; -ENOMEM. */
static int sort_ops(struct trace *t)
{
	CLEANUP(freep) uint32_t *order = calloc(t->n_ops + 1, sizeof(*order));
	CLEANUP(freep) uint32_t *place = calloc(t->n_ops + 1, sizeof(*place));
	struct trace_op *ops = t->ops;

	if (!order || !place)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_ops; i++)
		order[i] = i;
	if (t->n_ops)
		qsort_r(order, t->n_ops, sizeof(*order), by_start, ops);
	for (uint32_t i = 0; i < t->n_ops; i++)
		place[order[i]] = i;
	put_in_order(ops, order, t->n_ops);
	for (uint32_t i = 0; i < t->n_ops; i++) {
		struct trace_rank *rank = &t->ranks[ops[i].rank];

		if (ops[i].launched_by != TRACE_NONE)
			ops[i].launched_by = place[ops[i].launched_by];
		rank->first = rank->n++ ? rank->first : i;
	}
	for (uint32_t i = 0; i < t->n_waits; i++)
		t->waits[i] = (struct trace_wait){place[t->waits[i].op], place[t->waits[i].on]};
	for (uint32_t i = 0; i < t->n_ops; i++)
		t->ops[i].n_waits = 0;
	if (t->n_waits)
		qsort(t->waits, t->n_waits, sizeof(*t->waits), by_op);
	for (uint32_t i = t->n_waits; i-- > 0;) {
		t->ops[t->waits[i].op].first_wait = i;
		t->ops[t->waits[i].op].n_waits++;
	}
	return 0;
}

/* The innermost op of a thread of the host that may contain others. */
struct thread {
	UT_hash_handle hh;
	uint64_t key; /* rank, thread */
	uint32_t top;
};

static bool is_of_host(const struct trace_op *op)
{
	return op->kind == TRACE_HOST || op->kind == TRACE_CALL ||
	       (op->kind == TRACE_SYNC && op->launched_by == TRACE_NONE);
}

/* Return: 0; -ENOMEM. */
static int find_parents(struct trace *t)
{
	struct thread *threads = NULL, *th, *next;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < t->n_ops; i++) {
		struct trace_op *op = &t->ops[i];
		uint64_t key = (uint64_t)op->rank << 32 | op->stream;

		if (!is_of_host(op))
			continue;
		HASH_FIND(hh, threads, &key, sizeof(key), th);
		if (!th) {
			th = calloc(1, sizeof(*th));
			if (!th) {
				r = -ENOMEM;
				break;
			}
			*th = (struct thread){.key = key, .top = TRACE_NONE};
			HASH_ADD(hh, threads, key, sizeof(key), th);
			if (!th->hh.tbl) {
				free(th);
				r = -ENOMEM;
				break;
			}
		}
		while (th->top != TRACE_NONE && t->ops[th->top].end_ns <= op->start_ns)
			th->top = t->ops[th->top].parent;
		op->parent = th->top;
		th->top = i;
	}
	HASH_ITER(hh, threads, th, next) {
		HASH_DEL(threads, th);
		free(th);
	}
	return r;
}

int trace_finish(struct trace *t)
{
	int r = sort_ranks(t);

	if (r == 0)
		r = sort_ops(t);
	if (r == 0)
		r = trace_join(t);
	return r < 0 ? r : find_parents(t);
}
