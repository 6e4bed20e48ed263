/* See depends.h. */
#include "predict/depends.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "predict/exchanges.h"

/* By when things happened: a kernel that was launched before an exchange was over, and started soon
 * after that, waited for it. */
#define SOON_NS 50e3

static bool is_likely(const struct depends_of *of, const struct trace_op *op,
		      const struct trace_op *on)
{
	return op->start_ns < on->end_ns + SOON_NS &&
	       (op->launched_by == TRACE_NONE || of->t->ops[op->launched_by].end_ns < on->end_ns);
}

/* What kernel @k of the trace waited for: the latest exchange, ours; PREDICT_NONE: none. */
static uint32_t awaited(const struct depends_of *of, uint32_t k)
{
	const struct trace_op *op = &of->t->ops[k];
	uint32_t after = PREDICT_NONE;
	double end = -INFINITY;

	for (uint32_t w = op->first_wait; w < op->first_wait + op->n_waits; w++) {
		const struct trace_op *on = &of->t->ops[of->t->waits[w].on];

		if (of->op_of[of->t->waits[w].on] == PREDICT_NONE || on->end_ns <= end ||
		    (of->t->has_guessed_waits && !is_likely(of, op, on)))
			continue;
		after = of->op_of[of->t->waits[w].on];
		end = on->end_ns;
	}
	return after;
}

void depends_find(const struct depends_of *of)
{
	for (uint32_t i = of->first; i < of->end; i++) {
		struct predict_op *op = &of->ops[i];

		for (uint32_t k = op->first; k < op->first + op->n; k++) {
			uint32_t kernel = of->kernel_ops[k], after;

			/* An op waits whole: its computation would wait with its exchange. */
			if (exchange_is_one(&of->t->ops[kernel]) && op->n > 1)
				continue;
			after = awaited(of, kernel);
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
static uint32_t take_lane(const struct depends_of *of, const struct trace_op *own,
			  struct lane *list, uint32_t *n)
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
	CLEANUP(freep)
	struct lane *list = malloc((of->end - of->first + (size_t)1) * sizeof(*list));
	uint32_t n = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = of->first; i < of->end; i++) {
		struct predict_op *op = &of->ops[i];

		if (predict_is_exchange(op))
			op->queue =
				take_lane(of, &of->t->ops[of->kernel_ops[predict_kernel_of(op)]],
					  list, &n);
	}
	return 0;
}
