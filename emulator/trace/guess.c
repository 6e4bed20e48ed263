/* See guess.h. */
#include "trace/guess.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Of its ops the one that is over last, and the one before that. */
struct stream {
	uint32_t number, last, before;
};

static struct stream *stream_of(struct stream *list, uint32_t *n, uint32_t number)
{
	for (uint32_t i = 0; i < *n; i++)
		if (list[i].number == number)
			return &list[i];
	list[*n] = (struct stream){number, TRACE_NONE, TRACE_NONE};
	return &list[(*n)++];
}

/* Its last op that was over by then; TRACE_NONE. */
static uint32_t over_by(const struct trace *t, const struct stream *s, double ns)
{
	if (s->last == TRACE_NONE || t->ops[s->last].end_ns <= ns)
		return s->last;
	return s->before != TRACE_NONE && t->ops[s->before].end_ns <= ns ? s->before : TRACE_NONE;
}

static bool is_later(const struct trace *t, uint32_t op, uint32_t than)
{
	return op != TRACE_NONE && (than == TRACE_NONE || t->ops[op].end_ns > t->ops[than].end_ns);
}

/* @own: one of @list. */
static int add_waits(struct trace *t, uint32_t op, const struct stream *list, uint32_t n,
		     const struct stream *own, bool is_first)
{
	bool is_exchange = t->ops[op].kind >= TRACE_COLLECTIVE;
	uint32_t last = TRACE_NONE;
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		uint32_t on =
			&list[i] == own ? TRACE_NONE : over_by(t, &list[i], t->ops[op].start_ns);

		if (is_first && on != TRACE_NONE)
			r = trace_add_wait(t, op, on);
		last = is_later(t, on, last) ? on : last;
	}
	return is_first || !is_later(t, last, is_exchange ? TRACE_NONE : own->last)
		       ? r
		       : trace_add_wait(t, op, last);
}

static int guess_rank(struct trace *t, const struct trace_rank *rank)
{
	CLEANUP(freep) struct stream *list = calloc((size_t)rank->n + 1, sizeof(*list));
	uint32_t n = 0, step = TRACE_NONE;
	int r = list ? 0 : -ENOMEM;

	for (uint32_t i = rank->first; i < rank->first + rank->n && r == 0; i++) {
		struct trace_op *op = &t->ops[i];
		struct stream *own;
		bool is_first =
			op->kind < TRACE_COLLECTIVE && op->step != TRACE_NONE && op->step != step;

		if (op->kind < TRACE_COMPUTE)
			continue;
		own = stream_of(list, &n, op->stream);
		op->first_wait = t->n_waits;
		r = add_waits(t, i, list, n, own, is_first);
		op->n_waits = t->n_waits - op->first_wait;
		step = is_first ? op->step : step;
		if (is_later(t, own->last, i)) {
			own->before = i;
			continue;
		}
		own->before = own->last;
		own->last = i;
	}
	return r;
}

int trace_guess_waits(struct trace *t)
{
	int r = 0;

	if (t->n_waits)
		return 0;
	t->has_guessed_waits = true;
	for (uint32_t i = 0; i < t->n_ranks && r == 0; i++)
		r = guess_rank(t, &t->ranks[i]);
	return r;
}
