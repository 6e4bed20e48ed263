/* See send.h. The connection is closed behind the message: since 2.26 NCCL waits for that. */
#include "bootstrap/send.h"

int send_head(struct bootstrap_conn *c, uint32_t from, int32_t tag)
{
	int32_t head[2] = {(int32_t)from, tag};
	int r;

	if (!c->comm->records->has_two_heads)
		return conn_put_frame(c, head, sizeof(head));
	r = conn_put_frame(c, &head[0], sizeof(head[0]));
	return r < 0 ? r : conn_put_frame(c, &head[1], sizeof(head[1]));
}

static void send_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n)
{
	(void)bytes;
	comm_fail(c->comm, "rank %u sends %zu bytes back in a message of rank %u (tag %#x)",
		  c->comm->members[c->member].rank, n, c->sender, (unsigned)c->tag);
}

static void send_ended(struct bootstrap_conn *c, int error)
{
	char text[128];

	comm_fail(c->comm, "a message of rank %u (tag %#x) did not reach rank %u%s", c->sender,
		  (unsigned)c->tag, c->comm->members[c->member].rank,
		  conn_error_text(error, text, sizeof(text)));
}

static const struct conn_kind send_kind = {.name = "our message",
					   .in = send_in,
					   .ended = send_ended};

void send_message(struct bootstrap_comm *comm, const struct member *to, uint32_t from, int32_t tag,
		  const void *bytes, uint32_t n)
{
	struct bootstrap_conn *c = comm_dial_begin(comm, &send_kind, to, comm_magic(comm));

	if (!c)
		return;
	c->sender = from;
	c->tag = tag;
	c->ends_when_sent = true;
	if (send_head(c, from, tag) < 0 || conn_put_frame(c, bytes, (int32_t)n) < 0)
		comm_no_memory(comm);
	comm_dial(comm, c, to->peer_address);
}
