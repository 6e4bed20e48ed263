/* See message.h. Whom a message is for, the port says: another real rank, to which it is passed on,
 * or a virtual one, whose part we play. Only a split's address is ours in any case: it is told to
 * the rank before, and that one's next is we. */
#include "bootstrap/message.h"

#include <errno.h>
#include <string.h>

#include "bootstrap/barrier.h"
#include "bootstrap/join.h"
#include "bootstrap/relay.h"
#include "bootstrap/setup.h"

static bool is_join(const struct bootstrap_conn *c)
{
	return c->tag == c->comm->records->split.tag;
}

/* The largest data that a message with the tag of @c has. */
static size_t data_max(const struct bootstrap_conn *c)
{
	if (is_join(c))
		return c->comm->records->next_bytes;
	if (barrier_number(c->comm, c->tag) >= 0)
		return BARRIER_BYTES;
	return setup_bytes_max(c->comm);
}

static void message_done(struct bootstrap_conn *c)
{
	struct bootstrap_comm *comm = c->comm;
	struct member *m = &comm->members[c->member];

	if (is_join(c))
		join_message(comm, m, c->frame.bytes, (uint32_t)c->frame.size);
	else if (barrier_number(comm, c->tag) >= 0)
		barrier_message(comm, m, c->tag);
	else
		setup_message(comm, m, c->port == PORT_NEAR, c->tag, c->frame.bytes,
			      (uint32_t)c->frame.size);
	conn_hang_up(c, false);
}

static void data_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n)
{
	int r = frame_take(&c->frame, data_max(c), &bytes, &n);

	if (r == -ENOMEM)
		comm_no_memory(c->comm);
	else if (r < 0)
		comm_fail(c->comm,
			  "rank %u sends a message of %d bytes (tag %#x), at most %zu are known",
			  c->sender, c->frame.size, (unsigned)c->tag, data_max(c));
	else if (r)
		message_done(c);
}

static void message_ended(struct bootstrap_conn *c, int error)
{
	char text[128];

	comm_fail(c->comm, "a rank has closed a message before its end%s",
		  conn_error_text(error, text, sizeof(text)));
}

static const struct conn_kind data_kind = {.name = "message",
					   .in = data_in,
					   .ended = message_ended};

/* --- the head ---------------------------------------------------------------------- */

/* The head is whole: whose message is it, and for whom? */
static void head_done(struct bootstrap_conn *c)
{
	struct bootstrap_comm *comm = c->comm;
	struct member *m = comm_real_member(comm, (int32_t)c->sender), *to;

	if (!m) {
		comm_fail(
			comm,
			"a message (tag %#x) says it is from rank %d, which is no real rank of the communicator",
			(unsigned)c->tag, (int32_t)c->sender);
		return;
	}
	if (!m->has_contact) {
		comm_fail(comm,
			  "rank %u sends a message (tag %#x) before ranks have told their contacts",
			  m->rank, (unsigned)c->tag);
		return;
	}
	c->member = comm_member_number(comm, m);
	c->kind = &data_kind;
	if (c->port < PORT_REAL || is_join(c))
		return;
	to = &comm->members[c->port - PORT_REAL];
	if (barrier_number(comm, c->tag) >= 0)
		barrier_message(comm, m, c->tag);
	if (!comm->is_over)
		relay_begin(c, to);
}

static void head_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n)
{
	struct bootstrap_comm *comm = c->comm;
	bool is_two = comm->records->has_two_heads;
	size_t want = is_two ? sizeof(int32_t) : 2 * sizeof(int32_t);

	for (uint32_t heads = is_two ? 2 : 1; c->heads_got < heads; c->heads_got++) {
		int r = frame_take(&c->frame, want, &bytes, &n);

		if (r == 0)
			return;
		if (r == -ENOMEM) {
			comm_no_memory(comm);
			return;
		}
		if (r < 0 || (size_t)c->frame.size != want) {
			comm_fail(
				comm,
				"a message begins with a frame of %d bytes, NCCL %s's do with %zu",
				c->frame.size, comm->records->name, want);
			return;
		}
		if (c->heads_got == 0)
			memcpy(&c->sender, c->frame.bytes, sizeof(c->sender));
		if (c->heads_got == heads - 1)
			memcpy(&c->tag, c->frame.bytes + want - sizeof(c->tag), sizeof(c->tag));
		frame_deinit(&c->frame);
	}
	head_done(c);
	if (!c->is_hung_up && n)
		c->kind->in(c, bytes, n);
}

static const struct conn_kind head_kind = {.name = "message",
					   .in = head_in,
					   .ended = message_ended};

void message_begin(struct bootstrap_conn *c)
{
	c->kind = &head_kind;
}
