/* What the job called: when it begins, ends and has passed at a real rank. */
#include <errno.h>

#include "schedule/coll.h"
#include "traffic/ready.h"
#include "wire/wire.h"

static int check(const struct traffic_comm *c, uint32_t rank, uint64_t seq,
		 const struct traffic_call *call, struct err *err)
{
	if (!traffic_comm_is_real(c, rank))
		return err_set(err, EPROTO, "op %llu: rank %u is not a real one",
			       wire_seq_number(seq), rank);
	if (call->kind >= COLL_KINDS || call->dtype >= COLL_DTYPES || call->redop >= COLL_REDOPS ||
	    (coll_has_root(call->kind) && call->root >= c->depends.nodes.n_ranks))
		return err_set(err, EPROTO,
			       "op %llu at rank %u: kind %u, data type %u, reduction %u or root %u "
			       "is none that there is",
			       wire_seq_number(seq), rank, call->kind, call->dtype, call->redop,
			       call->root);
	return 0;
}

/* The op's kind is known now: so is what its flows depend on. */
static int bind(struct traffic_comm *c, struct op *op, struct err *err)
{
	for (struct flow *f = op->flows; f; f = f->next_in_op) {
		int r = f->is_bound ? 0 : depends_bind(&c->depends, f, err);

		if (r < 0)
			return r;
	}
	return 0;
}

int traffic_call(struct traffic_comm *c, uint32_t rank, uint64_t seq,
		 const struct traffic_call *call, struct err *err)
{
	struct op_member *m;
	struct op *op;
	int r;

	if (c->is_dead)
		return 0;
	r = check(c, rank, seq, call, err);
	if (r < 0)
		return traffic_comm_die(c, r);
	op = traffic_comm_get_op(c, rank, seq);
	if (!op)
		return traffic_comm_die(c, err_set(err, ENOMEM, "no memory for NCCL's messages"));
	m = traffic_comm_member(c, op, rank);
	if (m->has_call)
		return traffic_comm_die(c, err_set(err, EPROTO, "op %llu at rank %u: called before",
						   wire_seq_number(seq), rank));
	m->has_call = true;
	op->n_passed -= m->has_passed;
	m->has_passed = false;
	span_init(&m->span, call->start_ns, call->end_ns);
	if (!op->has_call) {
		op->has_call = true;
		op->call = *call;
		r = bind(c, op, err);
		if (r == -ENOMEM)
			err_set(err, ENOMEM, "no memory for NCCL's messages");
		if (r < 0)
			return traffic_comm_die(c, r);
	}
	for (struct flow *f = op->flows; f; f = f->next_in_op) {
		if (f->pace.place) /* it went by its sender's op so far */
			pace_put(&c->of->pace, &f->pace, ready_due(f));
		else if (!f->key.is_send)
			ready_look(f);
	}
	return 0;
}

void traffic_move(struct traffic_comm *c, uint32_t rank, uint64_t seq, uint64_t now_ns,
		  uint64_t end_ns)
{
	struct op *op = traffic_comm_is_real(c, rank) ? traffic_comm_find_op(c, rank, seq) : NULL;

	if (!op || !traffic_comm_member(c, op, rank)->has_call)
		return;
	span_move(&traffic_comm_member(c, op, rank)->span, now_ns, end_ns);
	for (struct flow *f = op->flows; f; f = f->next_in_op)
		if (f->key.rank == rank && f->pace.place)
			pace_put(&c->of->pace, &f->pace, ready_due(f));
}

void traffic_passed(struct traffic_comm *c, uint32_t rank, uint64_t seq)
{
	uint64_t *passed, number = wire_seq_number(seq);
	struct op_member *m;
	struct op *op;

	if (c->is_dead || !traffic_comm_is_real(c, rank))
		return;
	passed = &c->passed[c->member[rank]][(seq & WIRE_SEQ_P2P) != 0];
	*passed = number + 1 > *passed ? number + 1 : *passed;
	c->of->counts.n_ops++;
	op = traffic_comm_find_op(c, rank, seq);
	if (!op)
		return;
	m = traffic_comm_member(c, op, rank);
	op->n_passed += !m->has_passed;
	m->has_passed = true;
	for (struct flow *f = op->flows; f; f = f->next_in_op)
		if (f->key.rank == rank && !f->key.is_send)
			ready_look(f);
	traffic_comm_release_op(c, op);
}
