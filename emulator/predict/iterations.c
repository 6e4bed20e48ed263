#include "predict/iterations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NEVER                                                                               \
	UINT32_MAX /* later than every iteration; iterations count from 1, 0 is before them \
		    */

struct settler {
	struct trace *t;
	const struct exchanges *x;
	uint32_t *order;     /* owned, as those below: ops, by rank and then by start */
	uint32_t *least;     /* by op: the iteration by which it has to be over */
	uint32_t *steps;     /* by op: its iteration */
	uint32_t *beside[2]; /* by op: the exchange before it at its rank, and behind it; TRACE_NONE
			      */
	uint32_t *partner;   /* by op: another one of its collective, in a circle */
	uint32_t *stack, n_stack;
	double *begins; /* owned: by iteration, when it begins at the rank that says so; in order */
	uint32_t *numbers; /* owned: what it is called; TRACE_NONE: what is between two, or behind
			      the last one */
	uint32_t n_steps;
};

/* What starts first; of what starts together the exchange. */
static int by_start(const void *a, const void *b, void *trace)
{
	const struct trace *t = trace;
	const uint32_t *x = a, *y = b;
	const struct trace_op *p = &t->ops[*x], *q = &t->ops[*y];

	if (p->start_ns != q->start_ns)
		return p->start_ns < q->start_ns ? -1 : 1;
	if (exchange_is_one(p) != exchange_is_one(q))
		return exchange_is_one(p) ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

static void put(struct settler *s, uint32_t *of, uint32_t op, uint32_t step)
{
	if (op == TRACE_NONE || of[op] != NEVER)
		return;
	of[op] = step;
	s->stack[s->n_stack++] = op;
}

/* Gives @op its iteration in @of, and all that has none there: what has to be over before it (@way
 * 0), or cannot begin before it (1). */
static void spread(struct settler *s, uint32_t *of, uint32_t op, uint32_t step, int way)
{
	const struct exchanges *x = s->x;

	put(s, of, op, step);
	while (s->n_stack) {
		op = s->stack[--s->n_stack];
		put(s, of, s->beside[way][op], step);
		put(s, of, s->partner[op], step);
		for (uint32_t i = x->first_end[op]; i < x->first_end[op + 1]; i++) {
			const struct exchange_message *m = &x->messages[x->ends[i].message];

			put(s, of, x->ends[i].is_send ? m->receive : m->send, step);
		}
	}
}

static int find_partners(struct settler *s)
{
	CLEANUP(freep) uint32_t *last = malloc((s->x->n_joins + (size_t)1) * sizeof(*last));

	if (!last)
		return -ENOMEM;
	memset(last, 0xff, s->x->n_joins * sizeof(*last));
	for (uint32_t i = 0; i < s->t->n_ops; i++) {
		uint32_t join = s->x->joins[i];

		s->partner[i] = TRACE_NONE;
		if (join == TRACE_NONE)
			continue;
		s->partner[i] = last[join] == TRACE_NONE ? i : s->partner[last[join]];
		if (last[join] != TRACE_NONE)
			s->partner[last[join]] = i;
		last[join] = i;
	}
	return 0;
}

static void order_rank(struct settler *s, const struct trace_rank *r)
{
	uint32_t before = TRACE_NONE;

	for (uint32_t i = r->first; i < r->first + r->n; i++)
		s->order[i] = i;
	qsort_r(&s->order[r->first], r->n, sizeof(*s->order), by_start, s->t);
	for (uint32_t i = r->first; i < r->first + r->n; i++) {
		uint32_t op = s->order[i];

		s->beside[0][op] = s->beside[1][op] = TRACE_NONE;
		if (!exchange_is_one(&s->t->ops[op]))
			continue;
		s->beside[0][op] = before;
		if (before != TRACE_NONE)
			s->beside[1][before] = op;
		before = op;
	}
}

/* When each iteration begins, at the lowest rank that knows. Return: that one; TRACE_NONE: none. */
static uint32_t find_begins(struct settler *s)
{
	const struct trace *t = s->t;

	for (uint32_t n = 0; n < t->n_ranks; n++) {
		const struct trace_rank *rank = &t->ranks[n];
		uint32_t step = TRACE_NONE, number = 0;

		for (uint32_t i = rank->first; i < rank->first + rank->n; i++) {
			const struct trace_op *op = &t->ops[s->order[i]];
			bool is_between = op->step == TRACE_NONE;

			if (!exchange_is_one(op) ||
			    (is_between ? !s->n_steps || s->numbers[s->n_steps - 1] == TRACE_NONE
					: number && op->step <= step))
				continue;
			step = is_between ? step : op->step;
			s->numbers[s->n_steps] = is_between ? TRACE_NONE : ++number;
			s->begins[s->n_steps++] = op->start_ns;
		}
		if (s->n_steps)
			return n;
	}
	return TRACE_NONE;
}

/* Iterations that have begun at @ns. */
static uint32_t begun(const struct settler *s, double ns)
{
	uint32_t low = 0, high = s->n_steps;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (s->begins[middle] <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A rank may be so much behind that of find_begins() and be in the same iteration. */
static double slack(const struct settler *s)
{
	return s->n_steps > 1 ? (s->begins[s->n_steps - 1] - s->begins[0]) / (s->n_steps - 1) / 4
			      : 0;
}

/* What has to be over before an iteration's last exchange at @rank is in no later one, and what
 * cannot begin before its first one in no earlier one. Of the rest the time says it. */
static int settle_exchanges(struct settler *s, const struct trace_rank *rank)
{
	const struct trace *t = s->t;
	CLEANUP(freep) uint32_t *first = calloc(s->n_steps + (size_t)2, sizeof(*first));
	CLEANUP(freep) uint32_t *by_step = malloc((t->n_ops + (size_t)1) * sizeof(*by_step));
	uint32_t at = 0, own = (uint32_t)(rank - t->ranks);
	double slack_ns = slack(s);

	if (!first || !by_step)
		return -ENOMEM;
	for (uint32_t i = rank->first; i < rank->first + rank->n; i++) {
		uint32_t op = s->order[i];

		if (exchange_is_one(&t->ops[op]))
			spread(s, s->least, op, begun(s, t->ops[op].start_ns), 0);
	}
	for (uint32_t i = 0; i < t->n_ops; i++) {
		uint32_t step =
			begun(s, t->ops[i].start_ns - (t->ops[i].rank == own ? 0 : slack_ns));

		s->least[i] = step < s->least[i] ? step : s->least[i];
		first[s->least[i]]++;
	}
	for (uint32_t step = 0; step <= s->n_steps; step++) {
		at += first[step];
		first[step] = at; /* where it ends */
	}
	for (uint32_t i = 0; i < t->n_ops; i++)
		by_step[--first[s->least[i]]] = i;
	for (uint32_t i = t->n_ops; i-- > 0;)
		if (exchange_is_one(&t->ops[by_step[i]]))
			spread(s, s->steps, by_step[i], s->least[by_step[i]], 1);
	return 0;
}

/* Computation goes with the first exchange that does not begin before most of it is over. */
static void settle_rank(struct settler *s, const struct trace_rank *rank)
{
	struct trace_op *ops = s->t->ops;
	uint32_t next = TRACE_NONE;

	for (uint32_t i = rank->first; i < rank->first + rank->n; i++)
		if (exchange_is_one(&ops[i]))
			ops[i].step = s->steps[i] && s->steps[i] != NEVER
					      ? s->numbers[s->steps[i] - 1]
					      : TRACE_NONE;
	for (uint32_t i = rank->first + rank->n; i-- > rank->first;) {
		struct trace_op *op = &ops[s->order[i]];
		uint32_t at = next;

		if (exchange_is_one(op)) {
			next = s->order[i];
			continue;
		}
		while (at != TRACE_NONE && ops[at].start_ns < (op->start_ns + op->end_ns) / 2)
			at = s->beside[1][at];
		op->step = at == TRACE_NONE ? TRACE_NONE : ops[at].step;
	}
}

static int settle(struct settler *s)
{
	struct trace *t = s->t;
	int r = find_partners(s);
	uint32_t told;

	if (r < 0)
		return r;
	for (uint32_t n = 0; n < t->n_ranks; n++)
		order_rank(s, &t->ranks[n]);
	told = find_begins(s);
	r = told == TRACE_NONE ? 0 : settle_exchanges(s, &t->ranks[told]);
	for (uint32_t n = 0; n < t->n_ranks && r == 0; n++)
		settle_rank(s, &t->ranks[n]);
	return r;
}

int iterations_settle(struct trace *t, const struct exchanges *x)
{
	size_t n = t->n_ops + (size_t)1;
	CLEANUP(freep) uint32_t *order = malloc(n * sizeof(*order));
	CLEANUP(freep) uint32_t *least = malloc(n * sizeof(*least));
	CLEANUP(freep) uint32_t *steps = malloc(n * sizeof(*steps));
	CLEANUP(freep) uint32_t *before = malloc(n * sizeof(*before));
	CLEANUP(freep) uint32_t *behind = malloc(n * sizeof(*behind));
	CLEANUP(freep) uint32_t *partner = malloc(n * sizeof(*partner));
	CLEANUP(freep) uint32_t *stack = malloc(n * sizeof(*stack));
	CLEANUP(freep) double *begins = malloc(n * sizeof(*begins));
	CLEANUP(freep) uint32_t *numbers = malloc(n * sizeof(*numbers));
	struct settler s = {.t = t,
			    .x = x,
			    .order = order,
			    .least = least,
			    .steps = steps,
			    .beside = {before, behind},
			    .partner = partner,
			    .stack = stack,
			    .begins = begins,
			    .numbers = numbers};

	for (uint32_t i = 0; i < t->n_ops; i++)
		if (t->ops[i].kind == TRACE_HOST || t->ops[i].kind == TRACE_CALL)
			return 0;
	if (!order || !least || !steps || !before || !behind || !partner || !stack || !begins ||
	    !numbers)
		return -ENOMEM;
	memset(least, 0xff, n * sizeof(*least));
	memset(steps, 0xff, n * sizeof(*steps));
	return settle(&s);
}
