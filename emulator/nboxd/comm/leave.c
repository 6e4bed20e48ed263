/* See leave.h. */
#include "nboxd/comm/leave.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "nboxd/comm/gather-missing.h"
#include "nboxd/comm/gather.h"
#include "nboxd/comm/meet.h"
#include "nboxd/loop/worker.h"

#define OWES_MAX 256 /* words for what a member owes */

static void member_leave(struct comm_member *m)
{
	if (m->worker)
		m->worker->n_members--;
	m->worker = NULL;
	m->is_freed = true;
}

bool leave_is_left(const struct comm *c)
{
	bool has_process = false;

	for (uint32_t i = 0; i < c->n_real; i++) {
		if (!c->real[i].is_freed && !c->real[i].is_recorded)
			return false;
		has_process |= !c->real[i].is_recorded;
	}
	return has_process;
}

void leave_if_over(struct comm *c)
{
	if (!leave_is_left(c) || c->comms->sink->is_played(c))
		return;
	log_debug("communicator %u: freed", c->number);
	comm_free(c);
}

/* What @m still owes: that it meets the others, the op it has not arrived at although others have,
 * or has not finished. Return: whether there is any; it is then named in @buf. */
static bool member_owes(const struct comm *c, const struct comm_member *m, char *buf, size_t size)
{
	if (!meet_is_owed(c, m))
		return c->comms->sink->is_owed(c, (size_t)(m - c->real), buf, size);
	snprintf(buf, size, "the making of its real communicator");
	return true;
}

void leave_worker(struct comms *comms, struct worker *w, const char *why)
{
	char name[WORKER_NAME_MAX], what[OWES_MAX];
	struct comm *c, *next;

	if (w->n_members == 0)
		return;
	worker_name(w, name, sizeof(name));
	HASH_ITER(hh, comms->by_number, c, next) {
		uint32_t rank = 0, world = 0;
		bool is_member = false, owes = false;

		for (uint32_t i = 0; i < c->n_real; i++) {
			if (c->real[i].worker != w)
				continue;
			if (!is_member) {
				rank = c->real[i].rank;
				world = c->real[i].world_rank;
			}
			is_member = true;
			owes = owes || member_owes(c, &c->real[i], what, sizeof(what));
			member_leave(&c->real[i]);
		}
		if (!is_member)
			continue;
		/* a member that leaves in good order harms nobody unless others wait for it */
		if (!leave_is_left(c) && (why || owes))
			comm_abort(c, NULL, ECONNRESET, "rank %u (world rank %u), %s, %s%s", rank,
				   world, name, why ? "vanished: " : "left in the middle of an op",
				   why ? why : "");
		meet_member_left(c); /* after the cause: the members that wait for the id report the
					last error that they know */
		leave_if_over(c);
	}
}

int leave_on_free(struct gathers *gs, struct worker *w, const struct wire_hdr *h)
{
	struct comm *c = NULL;
	struct comm_member *m = comm_frame_member(gs->comms, w, h, &c);
	char name[WORKER_NAME_MAX], what[OWES_MAX];

	if (!m)
		return 0;
	if (!c->is_dead && member_owes(c, m, what, sizeof(what)))
		comm_abort(c, NULL, ECANCELED,
			   "rank %u, %s, freed the communicator before %s was over", m->rank,
			   worker_name(w, name, sizeof(name)), what);
	member_leave(m);
	meet_member_left(c);
	gathers_member_left(gs, c, m->rank);
	leave_if_over(c);
	return 0;
}

int leave_on_abort(struct gathers *gs, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct comm *c = NULL;
	struct comm_member *m;
	struct wire_text text;
	char name[WORKER_NAME_MAX];

	memcpy(&text, body, sizeof(text));
	if (h->comm == WIRE_NO_COMM) {
		gathers_on_abort(gs, w, (uint32_t)h->seq, text.text);
		return 0;
	}
	m = comm_frame_member(gs->comms, w, h, &c);
	if (!m)
		return 0;
	comm_abort(c, meet_waits(c, m) ? NULL : m, text.code > 0 ? text.code : ECANCELED,
		   "rank %u, %s: %.300s", m->rank, worker_name(w, name, sizeof(name)), text.text);
	return 0;
}
