/* See failure.h. */
#include "nboxd/comm/failure.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "nboxd/comm/comm.h"
#include "schedule/coll.h"

struct failure_state {
	const struct failure *what; /* borrowed */
	uint64_t n_ops;             /* that count */
	bool has_struck;
};

int failures_init(struct server *s)
{
	const struct config *c = s->config;

	s->failures.list = calloc(c->n_failures + 1, sizeof(*s->failures.list));
	if (!s->failures.list)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_failures; i++)
		s->failures.list[i].what = &c->failures[i];
	return 0;
}

void failures_deinit(struct server *s)
{
	free(s->failures.list);
}

/* The first of its ranks that is in @c; NULL: none. */
static const uint32_t *first_in(const struct failure *f, const struct comm *c)
{
	for (size_t i = 0; i < f->n_ranks; i++)
		if (membership_rank(&c->members.map, f->ranks[i]) >= 0)
			return &f->ranks[i];
	return NULL;
}

static bool concerns(const struct failure *f, const struct comm *c)
{
	return f->n_ranks == 0 || first_in(f, c);
}

/* One that concerns @c. */
static void strike(const struct failure *f, struct comm *c)
{
	if (f->n_ranks == 0)
		comm_abort(c, NULL, ECONNRESET, "what-if %s: the op failed", f->text);
	else
		comm_abort(c, NULL, ECONNRESET, "what-if %s: world rank %u is gone", f->text,
			   *first_in(f, c));
}

/* All communicators that one of the ranks is in. */
static void strike_all(const struct failure *f, struct server *s)
{
	for (struct comm *c = s->comms, *next; c; c = next) {
		next = c->hh.next;
		if (!c->is_dead && concerns(f, c))
			strike(f, c);
	}
}

bool failures_on_op(struct comm *c, uint32_t kind)
{
	struct server *s = c->server;
	size_t n = s->config->n_failures;

	if (n && !s->failures.first_op_ns) {
		s->failures.first_op_ns = clock_now_ns();
		s->tick_ns = 0; /* as soon as there is time for it */
	}
	for (size_t i = 0; i < n && !c->is_dead; i++) {
		struct failure_state *state = &s->failures.list[i];
		const struct failure *f = state->what;

		if (!concerns(f, c))
			continue;
		if (state->has_struck) {
			if (f->n_ranks)
				strike(f, c);
			continue;
		}
		if (f->is_timed || (f->kind != COLL_KINDS && f->kind != kind) ||
		    state->n_ops++ < f->after)
			continue;
		state->has_struck = true;
		strike(f, c);
		if (f->n_ranks)
			strike_all(f, s);
	}
	return c->is_dead;
}

uint64_t failures_tick(struct server *s, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; s->failures.first_op_ns && i < s->config->n_failures; i++) {
		struct failure_state *state = &s->failures.list[i];
		uint64_t due = s->failures.first_op_ns + state->what->time_ns;

		if (!state->what->is_timed || state->has_struck)
			continue;
		if (due > now_ns) {
			next = due < next ? due : next;
			continue;
		}
		state->has_struck = true;
		strike_all(state->what, s);
	}
	return next;
}
