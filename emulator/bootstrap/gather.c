/* See gather.h. A rank is at most one all-gather ahead of another; its bytes to prev may be read
 * later than those to next. */
#include "bootstrap/gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "bootstrap/record.h"
#include "bootstrap/split.h"

#define GATHERS_MAX 64 /* under way at once: bytes to prev are that far behind those to next */

static uint32_t steps(const struct bootstrap_comm *comm)
{
	uint32_t n = comm_ranks(comm);

	return comm->records->is_both_ways ? n / 2 : n - 1;
}

/* Frames of one all-gather from next or to prev, which each step of both forms has, or the other
 * way round, which the last step of an even number of ranks has not. */
static uint32_t n_frames(const struct bootstrap_comm *comm, bool is_next, bool is_in)
{
	if (is_next == is_in)
		return steps(comm);
	return comm->records->is_both_ways ? steps(comm) - (comm_ranks(comm) % 2 == 0) : 0;
}

static struct gather *gather_find(const struct bootstrap_comm *comm, uint32_t number)
{
	struct gather *g;

	DL_FOREACH(comm->gathers, g) {
		if (g->number == number)
			return g;
	}
	return NULL;
}

char *gather_name(const struct bootstrap_comm *comm, const struct gather *g, char *buf, size_t size)
{
	if (g->kind == GATHER_CONTACT && comm->records->n_contacts > 1)
		snprintf(buf, size, "all-gather %u (contact %u)", g->number, g->contact);
	else
		snprintf(buf, size, "all-gather %u (%s)", g->number, record_name(g->kind));
	return buf;
}

static void gather_drop(struct bootstrap_comm *comm, struct gather *g)
{
	DL_DELETE(comm->gathers, g);
	free(g->records);
	free(g->color);
	free(g->key);
	free(g);
}

/* A frame of @g is through: the cursor goes on to the next, of the next all-gather after the last.
 */
static void cursor_step(struct bootstrap_comm *comm, struct gather *g, struct cursor *at,
			uint32_t n)
{
	at->at = 0;
	if (++at->step < n)
		return;
	at->step = 0;
	at->gather++;
	if (--g->n_streams_left == 0)
		gather_drop(comm, g);
}

/* --- the begin --------------------------------------------------------------------- */

static struct gather *gather_new(struct bootstrap_comm *comm, uint32_t bytes)
{
	struct gather *g = calloc(1, sizeof(*g)), *other;
	uint32_t n = 0;

	if (!g)
		return NULL;
	g->records = malloc((size_t)comm->n_real * bytes);
	if (!g->records) {
		free(g);
		return NULL;
	}
	for (int way = 0; way < 4; way++)
		g->n_streams_left += n_frames(comm, way & 1, way & 2) ? comm->n_real : 0;
	g->number = comm->n_gathers;
	g->bytes = bytes;
	DL_COUNT(comm->gathers, other, n);
	if (n >= GATHERS_MAX) {
		free(g->records);
		free(g);
		return NULL;
	}
	return g;
}

/* The first rank begins a new all-gather. NULL: the communicator has failed. */
static struct gather *gather_begin(struct bootstrap_comm *comm, const struct member *m,
				   int32_t bytes)
{
	struct gather kind = {0}, *g;
	char text[ERR_TEXT_MAX];

	for (uint32_t k = 0; k < comm->n_real; k++) {
		if (!comm->members[k].has_left)
			continue;
		if (&comm->members[k] == m)
			comm_fail(
				comm,
				"rank %u has left while all-gather %u was under way: see what it says itself",
				m->rank, comm->n_gathers);
		comm_fail(comm,
			  "rank %u begins all-gather %u, but rank %u has left the communicator",
			  m->rank, comm->n_gathers, comm->members[k].rank);
		return NULL;
	}
	if (record_kind(comm, bytes, &kind, text, sizeof(text)) < 0) {
		comm_fail(comm, "rank %u begins all-gather %u of %d bytes a rank: %s", m->rank,
			  comm->n_gathers, bytes, text);
		return NULL;
	}
	g = gather_new(comm, (uint32_t)bytes);
	if (!g) {
		comm_no_memory(comm);
		return NULL;
	}
	g->kind = kind.kind;
	g->contact = kind.contact;
	comm->n_gathers++;
	DL_APPEND(comm->gathers, g);
	return g;
}

/* Member @m begins its next all-gather with a size. Return: 0; -1: the communicator has failed. */
static int member_begin(struct bootstrap_comm *comm, struct member *m, int32_t bytes)
{
	struct gather *g = gather_find(comm, m->n_begun);
	char name[64];

	if (m->n_begun == comm->n_gathers)
		g = gather_begin(comm, m, bytes);
	else if ((uint32_t)bytes != g->bytes)
		comm_fail(
			comm,
			"rank %u gives %d bytes in %s, another rank %u: all ranks must have the same version of NCCL and call "
			"alike",
			m->rank, bytes, gather_name(comm, g, name, sizeof(name)), g->bytes);
	if (comm->is_over || !g)
		return -1;
	m->n_begun++;
	if (m->next)
		conn_wake(m->next);
	if (m->prev)
		conn_wake(m->prev);
	return 0;
}

/* --- what comes -------------------------------------------------------------------- */

static void gather_ready(struct bootstrap_comm *comm, struct gather *g)
{
	if (g->kind == GATHER_CONTACT)
		record_contacts(comm, g);
	else if (g->kind == GATHER_SPLIT)
		split_votes(comm, g);
	if (comm->is_over)
		return;
	g->is_ready = true;
	for (uint32_t k = 0; k < comm->n_real; k++) {
		if (comm->members[k].next)
			conn_wake(comm->members[k].next);
		if (comm->members[k].prev)
			conn_wake(comm->members[k].prev);
	}
}

/* The size of a frame is whole. Return: its all-gather; NULL: the communicator has failed. */
static struct gather *in_size(struct bootstrap_conn *c)
{
	struct bootstrap_comm *comm = c->comm;
	struct member *m = &comm->members[c->member];
	struct gather *g;
	char name[64];

	if (c->is_next && c->in.step == 0 && c->in.gather == m->n_begun &&
	    member_begin(comm, m, c->in.size) < 0)
		return NULL;
	g = c->in.gather < m->n_begun && n_frames(comm, c->is_next, true)
		    ? gather_find(comm, c->in.gather)
		    : NULL;
	if (!g) {
		comm_fail(
			comm,
			"rank %u sends to its prev in the ring before it has begun an all-gather: NCCL %s does not",
			m->rank, comm->records->name);
		return NULL;
	}
	if ((uint32_t)c->in.size != g->bytes) {
		comm_fail(comm, "rank %u passes on %d bytes in %s, not %u", m->rank, c->in.size,
			  gather_name(comm, g, name, sizeof(name)), g->bytes);
		return NULL;
	}
	return g;
}

/* A rank's own record is whole. */
static void in_record(struct bootstrap_comm *comm, struct member *m, struct gather *g)
{
	uint32_t k = comm_member_number(comm, m);

	if (comm->all->sink->record)
		comm->all->sink->record(comm->all->ctx, comm, record_name(g->kind), m->rank,
					g->records + (size_t)k * g->bytes, g->bytes);
	if (++g->n_given == comm->n_real)
		gather_ready(comm, g);
}

void gather_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n)
{
	struct bootstrap_comm *comm = c->comm;
	struct member *m = &comm->members[c->member];
	struct cursor *in = &c->in;
	struct gather *g;
	uint32_t part;

	while (n && !c->is_hung_up) {
		if (in->at < FRAME_HEAD_BYTES) {
			part = FRAME_HEAD_BYTES - in->at < n ? FRAME_HEAD_BYTES - in->at
							     : (uint32_t)n;
			memcpy((uint8_t *)&in->size + in->at, bytes, part);
			if (in->at + part == FRAME_HEAD_BYTES && !in_size(c))
				return;
		} else {
			g = gather_find(comm, in->gather);
			part = FRAME_HEAD_BYTES + g->bytes - in->at;
			part = part < n ? part : (uint32_t)n;
			if (c->is_next && in->step == 0)
				memcpy(g->records + (size_t)c->member * g->bytes + in->at -
					       FRAME_HEAD_BYTES,
				       bytes, part);
		}
		in->at += part;
		bytes += part;
		n -= part;
		g = gather_find(comm, in->gather);
		if (in->at < FRAME_HEAD_BYTES || in->at < FRAME_HEAD_BYTES + g->bytes)
			continue;
		if (c->is_next && in->step == 0)
			in_record(comm, m, g);
		cursor_step(comm, g, in, n_frames(comm, c->is_next, true));
	}
}

/* --- what goes --------------------------------------------------------------------- */

/* Of the next frame first the size and then, when it is known, the record. */
void gather_more(struct bootstrap_conn *c)
{
	struct bootstrap_comm *comm = c->comm;
	struct member *m = &comm->members[c->member];
	uint32_t n = comm_ranks(comm), frames = n_frames(comm, c->is_next, false), slice;
	struct gather *g =
		frames && c->give.gather < m->n_begun ? gather_find(comm, c->give.gather) : NULL;
	uint8_t *to;

	if (!g || (c->give.at && !g->is_ready))
		return;
	if (c->give.at == 0) {
		if (conn_put(c, &g->bytes, FRAME_HEAD_BYTES) < 0)
			comm_no_memory(comm);
		c->give.at = FRAME_HEAD_BYTES;
		return;
	}
	slice = c->is_next ? (m->rank + c->give.step + 1) % n
			   : (m->rank + n - c->give.step - 1) % n;
	to = conn_put_room(c, g->bytes);
	if (!to)
		comm_no_memory(comm);
	else if (record_make(comm, g, m, slice, to) == 0)
		cursor_step(comm, g, &c->give, frames);
}

/* --- the end ----------------------------------------------------------------------- */

int gather_leave(struct bootstrap_conn *c, int error)
{
	struct bootstrap_comm *comm = c->comm;
	struct member *m = &comm->members[c->member];
	bool gets = n_frames(comm, c->is_next, false), gives = n_frames(comm, c->is_next, true);
	uint32_t number = m->n_begun;
	struct gather *g;
	char text[128], name[64];

	if (!comm_is_made(comm)) {
		comm_fail(
			comm,
			"rank %u has left%s before the communicator was made: see what it says itself",
			m->rank, conn_error_text(error, text, sizeof(text)));
		return -1;
	}
	if (m->child) {
		comm_fail(
			comm,
			"rank %u has left%s between its vote in a split and its begin there: see what it says itself",
			m->rank, conn_error_text(error, text, sizeof(text)));
		return -1;
	}
	if (gives && (c->in.at || c->in.step || c->in.gather < m->n_begun))
		number = c->in.gather;
	else if (gets && (c->give.at || c->give.step || c->give.gather < m->n_begun))
		number = c->give.gather;
	else if (m->n_begun < comm->n_gathers)
		number = m->n_begun;
	else if (!c->in.at)
		return 0;
	g = gather_find(comm, number);
	comm_fail(comm, "rank %u has left%s while %s was under way: see what it says itself",
		  m->rank, conn_error_text(error, text, sizeof(text)),
		  g ? gather_name(comm, g, name, sizeof(name)) : "an all-gather");
	return -1;
}
