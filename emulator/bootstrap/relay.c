/* See relay.h. Most messages go one way; an all-gather among the ranks of a node uses both. The
 * queue of an end holds what came at the other, and no more than CONN_ROOM_BYTES: then the other
 * has no room. NCCL closes both directions of a connection at once, so an end's close is passed on
 * as one. */
#include "bootstrap/relay.h"

#include "bootstrap/send.h"

static void relay_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n)
{
	if (!c->pair)
		return;
	if (conn_put(c->pair, bytes, n) < 0)
		comm_no_memory(c->comm);
	else
		conn_wake(c->pair);
}

static size_t relay_room(const struct bootstrap_conn *c)
{
	size_t queued = c->pair ? conn_queued(c->pair) : 0;

	return queued < CONN_ROOM_BYTES ? CONN_ROOM_BYTES - queued : 0;
}

static void relay_sent(struct bootstrap_conn *c)
{
	if (c->pair)
		conn_wake(c->pair);
}

/* An error of a connection that was open is as a close: if the rank has died, its ring says so. */
static void relay_ended(struct bootstrap_conn *c, int error)
{
	struct bootstrap_conn *pair = c->pair;
	char text[128];

	if (!c->was_open) {
		comm_fail(c->comm, "a message of rank %u (tag %#x) did not reach rank %u%s",
			  c->sender, (unsigned)c->tag, c->comm->members[c->member].rank,
			  conn_error_text(error, text, sizeof(text)));
		return;
	}
	conn_hang_up(c, true);
	if (!pair)
		return;
	c->pair = pair->pair = NULL;
	conn_end_when_sent(pair);
	conn_wake(pair);
}

static const struct conn_kind relay_kind = {.name = "message passed on",
					    .in = relay_in,
					    .ended = relay_ended,
					    .sent = relay_sent,
					    .room = relay_room};

void relay_begin(struct bootstrap_conn *c, const struct member *to)
{
	struct bootstrap_comm *comm = c->comm;
	struct bootstrap_conn *pair = comm_dial_begin(comm, &relay_kind, to, comm_magic(comm));

	if (!pair)
		return;
	pair->sender = c->sender;
	pair->tag = c->tag;
	if (send_head(pair, c->sender, c->tag) < 0)
		comm_no_memory(comm);
	if (comm_dial(comm, pair, to->peer_address) < 0)
		return;
	c->kind = &relay_kind;
	c->pair = pair;
	pair->pair = c;
}
