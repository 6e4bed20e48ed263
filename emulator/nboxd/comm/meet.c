/* See meet.h. */
#include "nboxd/comm/meet.h"

#include <errno.h>

#include "nboxd/loop/worker.h"

static bool is_agreed(const struct comm *c)
{
	return c->n_promised == bitmap_count(&c->has_process);
}

bool meet_waits(const struct comm *c, const struct comm_member *m)
{
	return m->has_promised && !is_agreed(c);
}

bool meet_is_owed(const struct comm *c, const struct comm_member *m)
{
	return c->n_promised && !m->has_promised;
}

/* The member that makes the real communicator's id: the first with a process. */
static const struct comm_member *maker(const struct comm *c)
{
	uint32_t i = 0;

	while (c->real[i].is_recorded)
		i++;
	return &c->real[i];
}

/* To all real members but @except (NULL: none). */
static void tell(struct comm *c, enum wire_type type, const struct comm_member *except,
		 const void *body, size_t bytes)
{
	struct wire_hdr h;

	wire_hdr_init(&h, type, bytes);
	h.comm = c->number;
	for (uint32_t i = 0; i < c->n_real; i++) {
		h.rank = c->real[i].rank;
		if (c->real[i].worker && &c->real[i] != except)
			worker_send(c->real[i].worker, &h, body);
	}
}

static void refuse(struct worker *w, const struct wire_hdr *promise)
{
	struct wire_text text = {.code = ECANCELED, .text = "the communicator was aborted before"};
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_ABORT, sizeof(text));
	h.comm = promise->comm;
	h.rank = promise->rank;
	worker_send(w, &h, &text);
}

/* In full mode members hear of the id at once. Where there can be none, they must not go into the
 * real init to wait for it. */
static void agree(struct comm *c)
{
	bool is_ours = c->comms->make_id && c->n_ranks > 1;
	uint8_t id[WIRE_ID_BYTES] = {0};
	struct err err = {""};
	int r = is_ours ? c->comms->make_id(c->comms->full, c, id, &err) : 0;

	if (r < 0) {
		comm_abort(c, NULL, -r, "%s", err.text);
		return;
	}
	c->is_id_due = !is_ours;
	tell(c, WIRE_MEET, NULL, NULL, 0);
	if (is_ours)
		tell(c, WIRE_LOCAL_ID, NULL, id, sizeof(id));
}

int meet_on_promise(struct comms *comms, struct worker *w, const struct wire_hdr *h)
{
	struct comm *c = NULL;
	struct comm_member *m = comm_frame_member(comms, w, h, &c);

	if (!m)
		return 0;
	if (c->is_dead) { /* the member may have aborted it: comm_abort() does not send it an ABORT
			     back */
		refuse(w, h);
		return 0;
	}
	if (m->has_promised)
		return worker_refuse(
			w, EPROTO, "MEET for rank %u of communicator %u, which has sent it already",
			m->rank, c->number);
	m->has_promised = true;
	c->n_promised++;
	for (uint32_t i = 0; i < c->n_real; i++) {
		if (c->real[i].is_freed && !c->real[i].has_promised) {
			comm_abort(c, NULL, ECANCELED,
				   "rank %u left before the real communicator was made",
				   c->real[i].rank);
			return 0;
		}
	}
	if (is_agreed(c))
		agree(c);
	return 0;
}

static void pass_id(struct comm *c, const uint8_t id[WIRE_ID_BYTES])
{
	c->is_id_due = false;
	tell(c, WIRE_LOCAL_ID, maker(c), id, WIRE_ID_BYTES);
}

int meet_on_id(struct comms *comms, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct comm *c = NULL;
	struct comm_member *m = comm_frame_member(comms, w, h, &c);

	if (!m)
		return 0;
	if (!c->is_id_due || m != maker(c))
		return worker_refuse(
			w, EPROTO,
			"LOCAL_ID for rank %u of communicator %u, which nobody waits for", m->rank,
			c->number);
	pass_id(c, body);
	return 0;
}

void meet_member_left(struct comm *c)
{
	static const uint8_t none[WIRE_ID_BYTES];

	if (c->is_id_due && maker(c)->is_freed)
		pass_id(c, none);
}
