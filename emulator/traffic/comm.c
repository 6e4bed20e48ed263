/* See comm.h. */
#include "traffic/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/units.h"
#include "wire/wire.h"

int traffic_new(const struct traffic_sink *sink, void *owner, struct traffic_bodies *bodies,
		uint64_t max_bytes, struct traffic **ret)
{
	struct traffic *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->sink = *sink;
	t->owner = owner;
	t->bodies = bodies;
	t->max_bytes = max_bytes;
	*ret = t;
	return 0;
}

struct traffic *traffic_free(struct traffic *t)
{
	if (!t)
		return NULL;
	while (t->comms)
		traffic_comm_end(t->comms);
	pace_deinit(&t->pace);
	free(t);
	return NULL;
}

static void comm_free(struct traffic_comm *c)
{
	nodes_deinit(&c->depends.nodes);
	free(c->depends.exits);
	free(c->member);
	free(c->passed);
	free(c->sums);
	free(c);
}

static int number_members(struct traffic_comm *c, const struct bitmap *real)
{
	const struct nodes *s = &c->depends.nodes;

	c->member = calloc(s->n_ranks, sizeof(*c->member));
	if (!c->member)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_ranks; i++)
		c->member[i] = bitmap_test(real, i) ? c->n_members++ : NODES_NONE;
	c->passed = calloc(c->n_members + 1, sizeof(*c->passed));
	c->sums = calloc(s->n_real + 1, sizeof(*c->sums));
	c->depends.exits =
		calloc((size_t)(s->n_real + 1) * FLOW_CHANNELS_MAX, sizeof(*c->depends.exits));
	return c->passed && c->sums && c->depends.exits ? 0 : -ENOMEM;
}

int traffic_comm_make(struct traffic *t, uint32_t n_ranks, const uint32_t *node,
		      const struct bitmap *real, void *tag, struct traffic_comm **ret,
		      struct err *err)
{
	struct traffic_comm *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_set(err, ENOMEM, "no memory for a communicator's traffic");
	r = nodes_init(&c->depends.nodes, n_ranks, node, real, err);
	if (r == 0)
		r = number_members(c, real);
	if (r < 0) {
		comm_free(c);
		return r == -ENOMEM ? err_set(err, ENOMEM, "no memory for a communicator's traffic")
				    : r;
	}
	c->of = t;
	c->tag = tag;
	c->next = t->comms;
	if (c->next)
		c->next->prev = c;
	t->comms = c;
	*ret = c;
	return 0;
}

void traffic_comm_set_trees(struct traffic_comm *c, uint32_t n_channels)
{
	if (!c->depends.has_tree)
		c->depends.n_trees = n_channels;
}

void traffic_comm_drop_flow(struct traffic_comm *c, struct flow *f)
{
	if (f->hh.tbl)
		HASH_DEL(c->flows, f);
	if (c->last == f)
		c->last = NULL;
	if (!f->key.is_send) {
		pace_remove(&c->of->pace, &f->pace);
		c->of->n_receives--;
	}
	DL_DELETE2(f->op->flows, f, prev_in_op, next_in_op);
	traffic_comm_keep(c, -(int64_t)flow_bytes(f));
	flow_free(f);
}

static void forget_op(struct traffic_comm *c, struct op *op)
{
	while (op->flows)
		traffic_comm_drop_flow(c, op->flows);
	HASH_DEL(c->ops, op);
	traffic_comm_keep(c, -(int64_t)traffic_op_bytes(op));
	traffic_op_free(op);
}

static void count_never(const struct traffic_comm *c, struct op *op)
{
	for (const struct flow *f = op->flows; f && !c->is_dead; f = f->next_in_op)
		if (traffic_comm_member(c, op, f->key.rank)->has_passed)
			c->of->counts.n_never += f->is.n_messages - f->done;
}

void traffic_comm_end(struct traffic_comm *c)
{
	struct op *op, *next;

	if (!c)
		return;
	HASH_ITER(hh, c->ops, op, next) {
		count_never(c, op);
		forget_op(c, op);
	}
	conns_free(&c->conns);
	if (c->prev)
		c->prev->next = c->next;
	else
		c->of->comms = c->next;
	if (c->next)
		c->next->prev = c->prev;
	comm_free(c);
}

bool traffic_comm_is_real(const struct traffic_comm *c, uint32_t rank)
{
	return rank < c->depends.nodes.n_ranks && c->member[rank] != NODES_NONE;
}

static struct op_key op_key(uint32_t rank, uint64_t seq)
{
	return (struct op_key){.seq = seq, .rank = seq & WIRE_SEQ_P2P ? rank : OP_ALL_RANKS};
}

struct op *traffic_comm_find_op(struct traffic_comm *c, uint32_t rank, uint64_t seq)
{
	struct op_key key = op_key(rank, seq);
	struct op *op;

	HASH_FIND(hh, c->ops, &key, sizeof(key), op);
	return op;
}

/* A kernel may be over before the proxy says that it will send: at ranks that have passed the
 * op, it has passed. */
static void note_passed(const struct traffic_comm *c, struct op *op)
{
	bool is_p2p = op->key.rank != OP_ALL_RANKS;
	uint32_t first = is_p2p ? c->member[op->key.rank] : 0;

	for (uint32_t i = 0; i < op->n_members; i++) {
		op->members[i].has_passed =
			c->passed[first + i][is_p2p] > wire_seq_number(op->key.seq);
		op->n_passed += op->members[i].has_passed;
	}
}

struct op *traffic_comm_get_op(struct traffic_comm *c, uint32_t rank, uint64_t seq)
{
	struct op *op = traffic_comm_find_op(c, rank, seq);
	struct op_key key = op_key(rank, seq);

	if (op)
		return op;
	op = traffic_op_new(&key, seq & WIRE_SEQ_P2P ? 1 : c->n_members);
	if (!op)
		return NULL;
	HASH_ADD(hh, c->ops, key, sizeof(key), op);
	if (!op->hh.tbl) {
		traffic_op_free(op);
		return NULL;
	}
	traffic_comm_keep(c, (int64_t)traffic_op_bytes(op));
	note_passed(c, op);
	return op;
}

struct op_member *traffic_comm_member(const struct traffic_comm *c, struct op *op, uint32_t rank)
{
	return &op->members[op->key.rank == OP_ALL_RANKS ? c->member[rank] : 0];
}

struct flow *traffic_comm_find_last(struct traffic_comm *c, const struct flow_key *key)
{
	if (!c->last || memcmp(&c->last->key, key, FLOW_CONNECTION_BYTES) != 0)
		HASH_FIND(hh, c->flows, key, FLOW_CONNECTION_BYTES, c->last);
	return c->last;
}

/* Collectives may be made of sends and receives (AlltoAll); others are not the other way round. */
struct flow *traffic_comm_find_flow(struct traffic_comm *c, const struct traffic_at *at,
				    bool is_send)
{
	struct flow_key key = flow_key(at, is_send, at->seq & WIRE_SEQ_P2P);
	struct flow *f = traffic_comm_find_last(c, &key);

	if ((!f || f->key.seq != at->seq) && !key.is_direct) {
		key.is_direct = true;
		f = traffic_comm_find_last(c, &key);
	}
	return f && f->key.seq == at->seq ? f : NULL;
}

void traffic_comm_release_op(struct traffic_comm *c, struct op *op)
{
	if (op->n_passed == op->n_members && op->n_open == 0)
		forget_op(c, op);
}

void traffic_comm_keep(struct traffic_comm *c, int64_t n_bytes)
{
	c->kept_bytes += (uint64_t)n_bytes;
	c->of->kept_bytes += (uint64_t)n_bytes;
}

static uint64_t all_bytes(const struct traffic_comm *c)
{
	uint64_t bytes = c->kept_bytes + c->coming_bytes;

	for (const struct op *op = c->ops; op; op = op->hh.next)
		for (const struct flow *f = op->flows; f; f = f->next_in_op)
			bytes += slots_bytes(&f->slots) +
				 (f->source ? slots_bytes(&f->source->sums) : 0);
	return bytes;
}

int traffic_comm_make_room(struct traffic_comm *c, uint64_t bytes, struct err *err)
{
	struct traffic *t = c->of;
	uint64_t lent = t->bodies ? traffic_bodies_lent(t->bodies) : 0, own, most = 0;
	struct traffic_comm *worst = c;
	char all_text[32], most_text[32];

	bytes += t->kept_bytes + lent;
	if (bytes <= t->max_bytes)
		return 0;
	for (struct traffic_comm *o = t->comms; o; o = o->next) {
		own = all_bytes(o);
		if (own > most) {
			most = own;
			worst = o;
		}
	}
	err_set(err, ENOBUFS,
		"nboxd keeps %s of NCCL's messages that nobody has taken, more than it may, and "
		"most of it, %s, for this communicator: let its ranks call their collectives, "
		"sends and receives closer together, or take --exchange messages",
		units_print_bytes(bytes, all_text, sizeof(all_text)),
		units_print_bytes(most, most_text, sizeof(most_text)));
	if (worst == c)
		return traffic_comm_die(c, -ENOBUFS);
	if (!worst->is_dead) {
		traffic_comm_die(worst, -ENOBUFS);
		t->sink.failed(t->owner, worst->tag, err->text);
	}
	return 0;
}

int traffic_comm_die(struct traffic_comm *c, int r)
{
	struct flow *f, *next;

	c->is_dead = true;
	HASH_ITER(hh, c->flows, f, next)
		pace_remove(&c->of->pace, &f->pace);
	return r;
}

void traffic_count(const struct traffic *t, struct traffic_counts *ret)
{
	*ret = t->counts;
	for (const struct traffic_comm *c = t->comms; c; c = c->next) {
		for (const struct flow *f = c->is_dead ? NULL : c->flows; f; f = f->hh.next) {
			ret->n_flows += f->done < f->is.n_messages;
			if (!f->key.is_send)
				ret->n_waiting += (uint64_t)__builtin_popcountll(f->wanted);
		}
	}
}
