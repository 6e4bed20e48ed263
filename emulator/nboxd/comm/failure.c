/* See failure.h. */
#include "nboxd/comm/failure.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "nboxd/comm/comm.h"
#include "nboxd/loop/loop.h"
#include "schedule/coll.h"

struct failure_state {
	const struct failure *what; /* borrowed */
	uint64_t n_ops;             /* that count */
	bool has_struck;
};

int failures_init(struct failures *f, struct comms *comms, struct loop *loop)
{
	const struct config *c = comms->config;

	f->comms = comms;
	f->loop = loop;
	f->list = calloc(c->n_failures + 1, sizeof(*f->list));
	if (!f->list)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_failures; i++)
		f->list[i].what = &c->failures[i];
	return 0;
}

void failures_deinit(struct failures *f)
{
	free(f->list);
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
static void strike_all(const struct failure *what, struct comms *comms)
{
	for (struct comm *c = comms->by_number, *next; c; c = next) {
		next = c->hh.next;
		if (!c->is_dead && concerns(what, c))
			strike(what, c);
	}
}

bool failures_on_op(struct failures *f, struct comm *c, uint32_t kind)
{
	size_t n = f->comms->config->n_failures;

	if (n && !f->first_op_ns) {
		f->first_op_ns = clock_now_ns();
		f->loop->tick_ns = 0; /* as soon as there is time for it */
	}
	for (size_t i = 0; i < n && !c->is_dead; i++) {
		struct failure_state *state = &f->list[i];
		const struct failure *what = state->what;

		if (!concerns(what, c))
			continue;
		if (state->has_struck) {
			if (what->n_ranks)
				strike(what, c);
			continue;
		}
		if (what->is_timed || (what->kind != COLL_KINDS && what->kind != kind) ||
		    state->n_ops++ < what->after)
			continue;
		state->has_struck = true;
		strike(what, c);
		if (what->n_ranks)
			strike_all(what, f->comms);
	}
	return c->is_dead;
}

uint64_t failures_tick(struct failures *f, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; f->first_op_ns && i < f->comms->config->n_failures; i++) {
		struct failure_state *state = &f->list[i];
		uint64_t due = f->first_op_ns + state->what->time_ns;

		if (!state->what->is_timed || state->has_struck)
			continue;
		if (due > now_ns) {
			next = due < next ? due : next;
			continue;
		}
		state->has_struck = true;
		strike_all(state->what, f->comms);
	}
	return next;
}
