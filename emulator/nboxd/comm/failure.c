/* See failure.h. */
#include "nboxd/comm/failure.h"

#include <errno.h>

#include "base/clock.h"
#include "nboxd/comm/comm.h"
#include "nboxd/job/notes.h"
#include "nboxd/loop/loop.h"
#include "op/table.h"

int failures_init(struct failures *f, struct comms *comms, struct loop *loop)
{
	f->comms = comms;
	f->loop = loop;
	return failing_init(&f->failing, comms->config);
}

void failures_deinit(struct failures *f)
{
	failing_deinit(&f->failing);
}

/* One that concerns @c. */
static void strike(const struct failure *f, struct comm *c)
{
	if (f->n_ranks == 0)
		comm_abort(c, NULL, ECONNRESET, "what-if %s: the op failed", f->text);
	else
		comm_abort(c, NULL, ECONNRESET, "what-if %s: world rank %u is gone", f->text,
			   *failing_rank(f, c));
}

/* All communicators that one of the ranks is in. */
static void strike_all(const struct failure *what, struct comms *comms)
{
	for (struct comm *c = comms->by_number, *next; c; c = next) {
		next = c->hh.next;
		if (!c->is_dead && failing_concerns(what, c))
			strike(what, c);
	}
}

bool failures_on_op(struct failures *f, struct comm *c, uint32_t kind)
{
	if (f->failing.n && !f->first_op_ns) {
		f->first_op_ns = clock_now_ns();
		f->loop->tick_ns = 0; /* as soon as there is time for it */
	}
	for (size_t i = 0; i < f->failing.n && !c->is_dead; i++) {
		struct failing_state *state = &f->failing.list[i];
		const struct failure *what = state->what;
		bool strikes = failing_on_op(state, c, kind);

		/* a communicator that came after its rank was gone */
		bool is_late =
			!strikes && state->has_struck && what->n_ranks && failing_concerns(what, c);

		if (what->how != FAILURE_ERROR || (!strikes && !is_late))
			continue;
		strike(what, c);
		if (strikes && what->n_ranks)
			strike_all(what, f->comms);
	}
	return c->is_dead;
}

bool failures_on_arrival(struct failures *f, const struct post *post)
{
	const struct comm *c = post->op->comm;
	uint64_t wall_ns = post->arrive.arrive_ns, virtual_ns = post->arrival.time_ns;
	double at_ns = f->failing.n ? timeline_arrival(post->node, post->member->world_rank) : 0;
	int64_t step = post->step; /* the post may go with its communicator */

	if (!post->member->is_recorded)
		f->slip_ns = wall_ns > virtual_ns ? wall_ns - virtual_ns : 0;
	for (size_t i = 0; i < f->failing.n; i++) {
		struct failing_state *state = &f->failing.list[i];

		if (failing_on_arrival(state, at_ns, step) && state->what->how == FAILURE_ERROR)
			strike_all(state->what, f->comms);
	}
	return f->failing.n && c->is_dead;
}

bool failures_hold(struct failures *f, struct op *op)
{
	uint32_t rank;
	const struct failure *what = failing_hold(&f->failing, op, &rank);
	char name[OP_NAME_MAX], why[80];

	if (what)
		notes_say(f->comms->notes, "nboxd", "what-if %s: %s never completes: %s",
			  what->text,
			  op_name(op->key.seq, op_first_arrived(op)->member->rank, op->comm->number,
				  name, sizeof(name)),
			  failing_why(what, rank, why, sizeof(why)));
	return op->held;
}

void failures_note_unmet(const struct failures *f)
{
	for (size_t i = 0; f->first_op_ns && i < f->failing.n; i++) {
		const char *why = failing_unmet(&f->failing.list[i]);

		if (why)
			notes_say(f->comms->notes, "nboxd", "what-if %s: %s",
				  f->failing.list[i].what->text, why);
	}
}

uint64_t failures_tick(struct failures *f, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; f->first_op_ns && i < f->failing.n; i++) {
		struct failing_state *state = &f->failing.list[i];
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
