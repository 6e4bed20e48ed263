#include "predict/iterations.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"

static bool is_exchange(const struct trace_op *op)
{
	return op->kind == TRACE_COLLECTIVE || op->kind == TRACE_SEND || op->kind == TRACE_RECV;
}

/* A collective's iteration is that at its first rank. */
static uint32_t step_of(const struct trace *t, const struct trace_op *op)
{
	return op->join == TRACE_NONE ? op->step
				      : t->ops[t->joined[t->first_joined[op->join]]].step;
}

/* What starts first; of what starts together the collective. */
static int by_start(const void *a, const void *b, void *trace)
{
	const struct trace *t = trace;
	const uint32_t *x = a, *y = b;
	const struct trace_op *p = &t->ops[*x], *q = &t->ops[*y];

	if (p->start_ns != q->start_ns)
		return p->start_ns < q->start_ns ? -1 : 1;
	if (is_exchange(p) != is_exchange(q))
		return is_exchange(p) ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

int iterations_settle(struct trace *t)
{
	CLEANUP(freep) uint32_t *order = malloc((t->n_ops + (size_t)1) * sizeof(*order));
	CLEANUP(freep) uint32_t *steps = malloc((t->n_ops + (size_t)1) * sizeof(*steps));

	if (!order || !steps)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_ops; i++) {
		order[i] = i;
		steps[i] = t->ops[i].step;
	}
	for (uint32_t r = 0; r < t->n_ranks; r++) {
		uint32_t first = t->ranks[r].first, n = t->ranks[r].n, next = TRACE_NONE;
		bool has_host = false;

		for (uint32_t i = first; i < first + n; i++)
			has_host |= t->ops[i].kind == TRACE_HOST || t->ops[i].kind == TRACE_CALL;
		if (has_host)
			continue;
		qsort_r(&order[first], n, sizeof(*order), by_start, t);
		for (uint32_t i = first + n; i-- > first;) {
			const struct trace_op *op = &t->ops[order[i]];

			next = is_exchange(op) ? step_of(t, op) : next;
			steps[order[i]] = next;
		}
	}
	for (uint32_t i = 0; i < t->n_ops; i++)
		t->ops[i].step = steps[i];
	return 0;
}
