/* See failure.h. */
#include "nboxd/comm/failure.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "nboxd/comm/comm.h"
#include "nboxd/job/notes.h"
#include "nboxd/loop/loop.h"
#include "op/arrive.h"
#include "schedule/coll.h"

struct failure_state {
	const struct failure *what; /* borrowed */
	uint64_t n_ops;             /* that count */
	bool has_struck;
	bool has_held; /* an op, which was told */
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
			if (what->n_ranks && what->how == FAILURE_ERROR)
				strike(what, c);
			continue;
		}
		if (what->at.is_given || (what->kind != COLL_KINDS && what->kind != kind) ||
		    state->n_ops++ < what->after)
			continue;
		state->has_struck = true;
		if (what->how != FAILURE_ERROR)
			continue;
		strike(what, c);
		if (what->n_ranks)
			strike_all(what, f->comms);
	}
	return c->is_dead;
}

bool failures_on_arrival(struct failures *f, const struct post *post)
{
	struct comm *c = post->op->comm;
	size_t n = f->comms->config->n_failures;
	uint64_t wall_ns = post->arrive.arrive_ns, virtual_ns = post->arrival.time_ns;
	double at_ns = n ? timeline_arrival(post->node, post->member->world_rank) : 0;
	int64_t step = post->step;

	f->slip_ns = wall_ns > virtual_ns ? wall_ns - virtual_ns : 0;
	for (size_t i = 0; i < n; i++) {
		struct failure_state *state = &f->list[i];
		const struct failure *what = state->what;

		if (!what->at.is_given || state->has_struck ||
		    (what->at.is_steps ? (double)step : at_ns) < what->at.x)
			continue;
		state->has_struck = true;
		if (what->how == FAILURE_ERROR)
			strike_all(what, f->comms);
	}
	return n && c->is_dead;
}

/* Of @what's ranks the first that takes part in @op; NULL: none does. */
static const uint32_t *first_of_op(const struct failure *what, const struct op *op)
{
	const struct membership *m = &op->comm->members.map;

	for (size_t i = 0; i < what->n_ranks; i++) {
		int64_t rank = membership_rank(m, what->ranks[i]);

		if (rank < 0)
			continue;
		if (!op->p2p || op->p2p->pair.rank == rank)
			return &what->ranks[i];
		for (uint32_t k = 0; k < op->p2p->pair.n_calls; k++)
			if (op->p2p->calls[k].peer == rank)
				return &what->ranks[i];
	}
	return NULL;
}

static void hold(struct failures *f, struct failure_state *state, struct op *op, uint32_t rank)
{
	char name[OP_NAME_MAX];

	op->held = state->what->text;
	if (state->has_held)
		return;
	state->has_held = true;
	notes_say(f->comms->notes, "nboxd", "what-if %s: %s never completes: world rank %u %s",
		  state->what->text,
		  op_name(op->key.seq, op_first_arrived(op)->member->rank, op->comm->number, name,
			  sizeof(name)),
		  rank,
		  state->what->how == FAILURE_SILENT ? "is gone, and nobody says so"
						     : "calls another op there");
}

bool failures_hold(struct failures *f, struct op *op)
{
	const struct wire_arrive *a = &op_first_arrived(op)->arrive;
	struct comm_ops *open = op->comm->open;
	bool is_alike = op->p2p || !open->has_before || op_is_same_call(a, &open->before);

	for (size_t i = 0; i < f->comms->config->n_failures && !op->held; i++) {
		struct failure_state *state = &f->list[i];
		const struct failure *what = state->what;
		const uint32_t *rank;

		if (!state->has_struck || what->how == FAILURE_ERROR ||
		    (what->how == FAILURE_DESYNC && is_alike))
			continue;
		rank = first_of_op(what, op);
		if (rank)
			hold(f, state, op, *rank);
	}
	if (!op->p2p && f->comms->config->n_failures) {
		open->before = *a;
		open->has_before = true;
	}
	return op->held;
}

void failures_note_unmet(const struct failures *f)
{
	for (size_t i = 0; f->first_op_ns && i < f->comms->config->n_failures; i++) {
		const struct failure_state *state = &f->list[i];
		bool is_seen =
			state->has_struck && (state->what->how == FAILURE_ERROR || state->has_held);

		if (!is_seen)
			notes_say(f->comms->notes, "nboxd", "what-if %s: %s", state->what->text,
				  state->has_struck ? "no op was held up by it"
						    : "the run was over before");
	}
}

uint64_t failures_tick(struct failures *f, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; f->first_op_ns && i < f->comms->config->n_failures; i++) {
		struct failure_state *state = &f->list[i];
		uint64_t due = f->first_op_ns + f->slip_ns + (uint64_t)state->what->at.x;

		if (!state->what->at.is_given || state->what->at.is_steps || state->has_struck)
			continue;
		if (due > now_ns) {
			next = due < next ? due : next;
			continue;
		}
		state->has_struck = true;
		if (state->what->how == FAILURE_ERROR)
			strike_all(state->what, f->comms);
	}
	return next;
}
