/* What a communicator's messages wait for, in a sentence. */
#include <stdio.h>

#include "traffic/ready.h"
#include "wire/wire.h"

/* The oldest flow that is not through; of one op, receives come first. */
static const struct flow *oldest(const struct traffic_comm *c)
{
	const struct flow *best = NULL;

	for (const struct flow *f = c->flows; f; f = f->hh.next) {
		bool is_older;

		if (f->done == f->is.n_messages)
			continue;
		is_older = !best || f->op->key.seq < best->op->key.seq ||
			   (f->op == best->op && !f->key.is_send && best->key.is_send);
		best = is_older ? f : best;
	}
	return best;
}

static void say_need(const struct traffic_comm *c, const struct flow *f, char *buf, size_t size)
{
	struct depends_need need;

	const struct op_member *m = traffic_comm_member(c, f->op, f->key.rank);

	if (!f->is_bound || !(m->has_call || m->has_passed || f->conn))
		snprintf(buf, size, "the op's end");
	else if (!(f->wanted & 1))
		snprintf(buf, size, "its receive, which NCCL has not posted");
	else if (depends_met(f, &need))
		snprintf(buf, size, "its time");
	else if (f->conn)
		snprintf(buf, size, "what rank %u sends", f->key.peer);
	else if (need.flow)
		snprintf(buf, size, "message %llu from rank %u", (unsigned long long)need.index,
			 need.flow->key.rank);
	else
		snprintf(buf, size,
			 "message %llu of a rank of node %u, which has not said that it sends any",
			 (unsigned long long)need.index, need.node);
}

char *traffic_waits(const struct traffic_comm *c, char *buf, size_t size)
{
	const struct flow *f = c->is_dead ? NULL : oldest(c);
	char what[128] = "";

	if (size)
		buf[0] = '\0';
	if (!f)
		return buf;
	if (!f->key.is_send)
		say_need(c, f, what, sizeof(what));
	snprintf(buf, size, "%s %llu, channel %u: message %llu of %llu %s rank %u %s%s",
		 f->key.seq & WIRE_SEQ_P2P ? "sends and receives" : "op",
		 wire_seq_number(f->key.seq), f->key.channel, (unsigned long long)f->done,
		 (unsigned long long)f->is.n_messages, f->key.is_send ? "from" : "to", f->key.rank,
		 f->key.is_send ? "has not come" : "waits for ", what);
	return buf;
}
