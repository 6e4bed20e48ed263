/* See ready.h. */
#include "traffic/ready.h"

/* So long after it is due a message waits for a flow that perhaps is none. Only the first Reduce
 * with its root on a real node of several ranks does, once a channel. */
#define PATIENCE_NS UINT64_C(1000000000)

/* The calls of a group have one end, which is not known before each has its other side. Between two
 * real ranks a message does not wait for that: the other side of another call may wait for it. */
static bool goes_by_sender(const struct flow *f, const struct op_member *m)
{
	return f->conn && !m->has_call && !m->has_passed;
}

uint64_t ready_due(const struct flow *f)
{
	const struct op_member *m = traffic_comm_member(f->comm, f->op, f->key.rank);
	const struct flow *send = f->conn ? f->conn->sends : NULL;
	uint64_t due_ns;

	if (send && goes_by_sender(f, m))
		return span_due(&traffic_comm_member(send->comm, send->op, send->key.rank)->span,
				send->taken, send->is.n_messages);
	due_ns = span_due(&m->span, f->done, f->is.n_messages);
	if (depends_is_unsure(f) && f->done == 0 && due_ns < UINT64_MAX - PATIENCE_NS)
		due_ns += PATIENCE_NS;
	return due_ns;
}

bool ready_is(struct flow *f)
{
	const struct op_member *m = traffic_comm_member(f->comm, f->op, f->key.rank);
	struct depends_need need;

	f->waits_for = NULL;
	if (f->comm->is_dead || !f->is_bound || f->done == f->is.n_messages ||
	    !(m->has_call || m->has_passed || f->conn) || !(f->wanted & 1))
		return false;
	if (depends_met(f, &need))
		return true;
	f->waits_for = need.flow;
	return false;
}

void ready_look(struct flow *f)
{
	struct traffic *t = f->comm->of;

	if (f->pace.place || !ready_is(f))
		return;
	f->ready_at = t->n_advances;
	pace_put(&t->pace, &f->pace, ready_due(f));
}

void ready_wake(struct flow *f)
{
	if (f->conn && f->conn->receives)
		ready_look(f->conn->receives);
	for (struct flow *o = f->lane ? f->lane->receives : NULL; o; o = o->next_in_lane)
		if (o->waits_for == f || !o->waits_for) {
			if (o->source && o->source->may_lack)
				pace_remove(&o->comm->of->pace, &o->pace);
			ready_look(o);
		}
}
