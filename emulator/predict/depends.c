/* See depends.h. */
#include "predict/depends.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "predict/exchanges.h"

/* A kernel that was launched before a collective was over, and started soon after that, on a stream
 * that was idle, waited for it. */
#define SOON_NS 50e3

/* What kernel @k of the trace waited for: the latest exchange, ours; PREDICT_NONE: none. */
static uint32_t awaited(const struct depends_of *of, uint32_t k)
{
	const struct trace_op *op = &of->t->ops[k];
	uint32_t after = PREDICT_NONE;
	double end = -INFINITY;

	for (uint32_t w = op->first_wait; w < op->first_wait + op->n_waits; w++) {
		uint32_t on = of->t->waits[w].on;

		if (of->op_of[on] == PREDICT_NONE || of->t->ops[on].end_ns <= end)
			continue;
		after = of->op_of[on];
		end = of->t->ops[on].end_ns;
	}
	return after;
}

/* The same where the trace has no waits, by when things happened. */
static uint32_t inferred(const struct depends_of *of, uint32_t k, uint32_t before, uint32_t comm)
{
	const struct trace_op *op = &of->t->ops[k], *c;

	if (comm == TRACE_NONE || op->launched_by == TRACE_NONE)
		return PREDICT_NONE;
	c = &of->t->ops[comm];
	return of->t->ops[op->launched_by].end_ns < c->end_ns && op->start_ns >= c->end_ns &&
			       op->start_ns < c->end_ns + SOON_NS &&
			       (before == TRACE_NONE || of->t->ops[before].end_ns <= c->end_ns)
		       ? of->op_of[comm]
		       : PREDICT_NONE;
}

void depends_find(const struct depends_of *of)
{
	uint32_t before = TRACE_NONE, comm = TRACE_NONE;

	for (uint32_t i = of->first; i < of->end; i++) {
		struct predict_op *op = &of->ops[i];

		for (uint32_t k = op->first; k < op->first + op->n; k++) {
			uint32_t kernel = of->kernel_ops[k], after;
			bool is_exchange = exchange_is_one(&of->t->ops[kernel]);

			/* An exchange waits for those of other streams where the trace says so; by
			 * when things happened it cannot be told. */
			if (is_exchange && (op->n > 1 || !of->t->n_waits)) {
				comm = kernel;
				continue;
			}
			after = of->t->n_waits ? awaited(of, kernel)
					      : inferred(of, kernel, before, comm);
			if (is_exchange)
				comm = kernel;
			else
				before = kernel;
			if (after != PREDICT_NONE && after < i &&
			    (op->after == PREDICT_NONE || after > op->after))
				op->after = after;
		}
	}
}

/* A stream on which ops of a communicator are. */
struct lane {
	uint32_t comm, stream, queue;
};

/* Exchange @own's lane, the last of @list; queues that turn out to be one are. Return: its queue.
 */
static uint32_t take_lane(const struct depends_of *of, const struct trace_op *own, struct lane *list,
			  uint32_t *n)
{
	uint32_t queue = *n;
	bool is_known = false;

	for (uint32_t i = 0; i < *n; i++) {
		uint32_t other = list[i].queue;

		if (list[i].comm != own->comm && list[i].stream != own->stream)
			continue;
		is_known |= list[i].comm == own->comm && list[i].stream == own->stream;
		for (uint32_t k = 0; k < *n && queue < *n; k++)
			list[k].queue = list[k].queue == other ? queue : list[k].queue;
		for (uint32_t k = of->first; k < of->end && queue < *n; k++)
			if (of->ops[k].queue == other)
				of->ops[k].queue = queue;
		queue = queue < *n ? queue : other;
	}
	if (!is_known)
		list[(*n)++] = (struct lane){own->comm, own->stream, queue};
	return queue;
}

int depends_find_queues(const struct depends_of *of)
{
	CLEANUP(freep) struct lane *list = malloc((of->end - of->first + (size_t)1) * sizeof(*list));
	uint32_t n = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = of->first; i < of->end && of->t->n_waits; i++) {
		struct predict_op *op = &of->ops[i];

		if (predict_is_exchange(op))
			op->queue = take_lane(of,
					      &of->t->ops[of->kernel_ops[predict_kernel_of(op)]],
					      list, &n);
	}
	return 0;
}
