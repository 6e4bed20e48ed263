#include "predict/calls.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "predict/exchanges.h"

struct launched {
	uint32_t owner, by, op;
};

static bool is_on_host(const struct trace_op *op)
{
	return op->kind == TRACE_HOST || op->kind == TRACE_CALL || op->kind == TRACE_SYNC;
}

/* "aten::mm" is one; "ProfilerStep#3" and "DistributedDataParallel.forward" are ranges. */
static bool is_operator(const struct trace *t, const struct trace_op *op)
{
	return strstr(trace_name(t, op->name), "::") != NULL;
}

/* The op that @op is a part of; itself; TRACE_NONE: it is a range. @owners: of those before it. */
static uint32_t owner_of(const struct trace *t, const struct trace_rank *r, const uint32_t *owners,
			 uint32_t op)
{
	const struct trace_op *o = &t->ops[op];
	uint32_t over = is_on_host(o) ? o->parent : o->launched_by;
	uint32_t owner = over == TRACE_NONE ? TRACE_NONE : owners[over - r->first];

	if (owner != TRACE_NONE)
		return owner;
	return o->kind == TRACE_HOST && !is_operator(t, o) ? TRACE_NONE : op;
}

static int by_launch(const void *a, const void *b)
{
	const struct launched *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->by != y->by)
		return x->by < y->by ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

void host_calls_deinit(struct calls *c)
{
	free(c->list);
	free(c->kernels);
	free(c->ends);
}

static void fill(const struct trace *t, const struct trace_rank *r, const uint32_t *owners,
		 const struct launched *launched, uint32_t n_launched, struct calls *c)
{
	uint32_t at = 0;

	for (uint32_t i = r->first; i < r->first + r->n; i++) {
		const struct trace_op *op = &t->ops[i];
		uint32_t owner = owners[i - r->first];

		if (owner != TRACE_NONE && owner != i && op->kind == TRACE_SYNC && c->n &&
		    c->list[c->n - 1].op == owner)
			c->list[c->n - 1].is_sync = true;
		if (owner != i)
			continue;
		while (at < n_launched && launched[at].owner < i)
			at++;
		c->list[c->n] = (struct call){.op = i,
					      .first = c->n_kernels,
					      .is_of_host = is_on_host(op),
					      .is_sync = op->kind == TRACE_SYNC};
		for (; at < n_launched && launched[at].owner == i; at++)
			c->kernels[c->n_kernels++] = launched[at].op;
		c->list[c->n].n = c->n_kernels - c->list[c->n].first;
		c->n++;
	}
}

int host_calls_find(const struct trace *t, uint32_t rank, struct calls *ret)
{
	const struct trace_rank *r = &t->ranks[rank];
	CLEANUP(freep) uint32_t *owners = malloc((r->n + 1) * sizeof(*owners));
	CLEANUP(freep) struct launched *launched = malloc((r->n + 1) * sizeof(*launched));
	struct calls c = {.list = malloc((r->n + 1) * sizeof(*c.list)),
			  .kernels = malloc((r->n + 1) * sizeof(*c.kernels))};
	uint32_t n = 0;

	if (!owners || !launched || !c.list || !c.kernels) {
		host_calls_deinit(&c);
		return -ENOMEM;
	}
	for (uint32_t i = r->first; i < r->first + r->n; i++) {
		const struct trace_op *op = &t->ops[i];
		uint32_t by = op->launched_by;

		/* Where clocks disagree a kernel may stand before its launch. */
		if (!is_on_host(op) && by != TRACE_NONE && by > i)
			owners[i - r->first] = TRACE_NONE;
		else
			owners[i - r->first] = owner_of(t, r, owners, i);
	}
	for (uint32_t i = r->first; i < r->first + r->n; i++) {
		const struct trace_op *op = &t->ops[i];

		if (is_on_host(op))
			continue;
		if (owners[i - r->first] == TRACE_NONE)
			owners[i - r->first] = owner_of(t, r, owners, i);
		launched[n++] =
			(struct launched){owners[i - r->first],
					  op->launched_by == TRACE_NONE ? i : op->launched_by, i};
	}
	qsort(launched, n, sizeof(*launched), by_launch);
	fill(t, r, owners, launched, n, &c);
	*ret = c;
	return 0;
}

static int by_step(const void *a, const void *b, void *trace)
{
	const struct trace *t = trace;
	const struct call *x = a, *y = b;
	uint32_t p = t->ops[x->op].step, q = t->ops[y->op].step;

	if (p != q)
		return p < q ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

static int by_iteration(const void *a, const void *b)
{
	const struct calls_end *x = a, *y = b;

	return (x->step > y->step) - (x->step < y->step);
}

/* Return: 0; -ENOMEM. */
static int find_ends(const struct trace *t, const struct trace_rank *r, struct calls *c)
{
	struct calls_end *ends = malloc(((size_t)r->n + 1) * sizeof(*ends));
	uint32_t n = 0, at = 0;

	if (!ends)
		return -ENOMEM;
	for (uint32_t i = r->first; i < r->first + r->n; i++) {
		const struct trace_op *op = &t->ops[i];
		bool is_exchange = exchange_is_one(op);

		if (is_exchange || op->kind >= TRACE_COMPUTE)
			ends[n++] = (struct calls_end){op->step, op->end_ns,
						       is_exchange ? op->end_ns : -INFINITY};
	}
	qsort(ends, n, sizeof(*ends), by_iteration);
	for (uint32_t i = 0; i < n; i++) {
		if (i && ends[i].step == ends[at - 1].step) {
			struct calls_end *to = &ends[at - 1];

			to->all = fmax(to->all, ends[i].all);
			to->exchanges = fmax(to->exchanges, ends[i].exchanges);
		} else {
			ends[at++] = ends[i];
		}
	}
	c->ends = ends;
	c->n_ends = at;
	return 0;
}

struct calls_end host_calls_end(const struct calls *c, uint32_t step)
{
	const struct calls_end of = {.step = step, .all = -INFINITY, .exchanges = -INFINITY};
	const struct calls_end *found = bsearch(&of, c->ends, c->n_ends, sizeof(of), by_iteration);

	return found ? *found : of;
}

struct calls *host_calls_by_step(const struct trace *t)
{
	struct calls *list = calloc((size_t)t->n_ranks + 1, sizeof(*list));

	for (uint32_t r = 0; list && r < t->n_ranks; r++) {
		if (host_calls_find(t, r, &list[r]) < 0 ||
		    find_ends(t, &t->ranks[r], &list[r]) < 0) {
			host_calls_free(list, r + 1);
			return NULL;
		}
		qsort_r(list[r].list, list[r].n, sizeof(*list[r].list), by_step,
			(void *)(uintptr_t)t);
	}
	return list;
}

/* How many are of iterations before @step. */
static uint32_t before(const struct trace *t, const struct calls *c, uint32_t step)
{
	uint32_t low = 0, high = c->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (t->ops[c->list[middle].op].step < step)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct calls host_calls_of_step(const struct trace *t, const struct calls *c, uint32_t step)
{
	uint32_t first = step == TRACE_NONE ? 0 : before(t, c, step);
	uint32_t end = step == TRACE_NONE ? c->n : before(t, c, step + 1);

	return (struct calls){.list = c->list + first,
			      .kernels = c->kernels,
			      .n = end - first,
			      .n_kernels = c->n_kernels};
}

void host_calls_free(struct calls *list, uint32_t n_ranks)
{
	for (uint32_t r = 0; list && r < n_ranks; r++)
		host_calls_deinit(&list[r]);
	free(list);
}
