/* What NCCL's proxies say that they will send or receive, and which receives they have posted. */
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "nccl-plugin/plugin.h"
#include "traffic/ready.h"
#include "wire/wire.h"

/* Ops that a rank may be ahead of the last one that has passed there; nboxd has no more open. */
#define AHEAD_MAX (UINT64_C(1) << 20)

static bool is_through(const struct flow *f)
{
	return f->done == f->is.n_messages;
}

/* NCCL's proxy begins what it does next on a connection when it is through with what it does. */
static int check_turn(struct traffic_comm *c, const struct flow_key *key, const char *name,
		      struct err *err)
{
	bool is_p2p = key->seq & WIRE_SEQ_P2P;
	uint64_t passed = c->passed[c->member[key->rank]][is_p2p];
	const struct flow *before = traffic_comm_find_last(c, key);
	char other[FLOW_NAME_MAX];

	if (wire_seq_number(key->seq) >= passed + AHEAD_MAX)
		return err_set(err, EPROTO,
			       "%s: only %llu ops have passed at that rank, and %llu are more than "
			       "wait in a stream",
			       name, (unsigned long long)passed,
			       (unsigned long long)(wire_seq_number(key->seq) - passed));
	if (!before || (is_through(before) && (key->is_direct || before->key.seq != key->seq)))
		return 0;
	if (before->key.seq == key->seq)
		return err_set(err, EPROTO, "%s: this has been said before", name);
	return err_set(err, EPROTO,
		       "%s: of %s, on the same connection, %llu of %llu messages are through, and "
		       "NCCL does one after the other; does another plug-in tell its messages?",
		       name, flow_name(&before->key, other), (unsigned long long)before->done,
		       (unsigned long long)before->is.n_messages);
}

static int check(struct traffic_comm *c, const struct flow_key *key, const struct traffic_flow *f,
		 const char *name, struct err *err)
{
	const struct nodes *s = &c->depends.nodes;
	int r;

	if (!traffic_comm_is_real(c, key->rank))
		return err_set(err, EPROTO, "%s: rank %u is not a real one", name, key->rank);
	if (key->peer >= s->n_ranks || key->peer == key->rank)
		return err_set(err, EPROTO, "%s: there is no such peer among %u ranks", name,
			       s->n_ranks);
	if (f->n_messages < 1 || f->n_messages > WIRE_FLOW_MESSAGES_MAX)
		return err_set(err, EPROTO, "%s: %llu messages are too many or none", name,
			       (unsigned long long)f->n_messages);
	if (key->channel >= FLOW_CHANNELS_MAX || f->n_channels > FLOW_CHANNELS_MAX)
		return err_set(err, EPROTO, "%s: that or %u channels are more than NCCL has, %u",
			       name, f->n_channels, FLOW_CHANNELS_MAX);
	r = depends_supports(f, name, err);
	if (r < 0)
		return r;
	if (key->seq & WIRE_SEQ_P2P && !key->is_direct)
		return err_set(err, EPROTO, "%s: the algorithm is a collective's", name);
	if (f->algorithm != WIRE_NCCL_DIRECT && s->of[key->rank] == s->of[key->peer])
		return err_set(err, EPROTO,
			       "%s: NCCL takes the network within node %u; set "
			       "NCCL_NET_DISABLE_INTRA=1, and do not set NCCL_P2P_DISABLE or "
			       "NCCL_SHM_DISABLE",
			       name, s->of[key->rank]);
	return check_turn(c, key, name, err);
}

/* What was last on the connection is through: its place is the new one's. Others still use the
 * messages of collectives, and the receiver those of a send to a real rank. */
static void retire(struct traffic_comm *c, const struct flow_key *key)
{
	struct flow *f = traffic_comm_find_last(c, key);

	if (!f)
		return;
	if (!f->lane && (!f->conn || !key->is_send || f->taken == f->is.n_messages)) {
		traffic_comm_drop_flow(c, f);
		return;
	}
	HASH_DEL(c->flows, f);
	f->hh.tbl = NULL;
	c->last = NULL;
}

/* It is in no list so far. */
static int place(struct traffic_comm *c, struct flow *f)
{
	const struct flow_key *k = &f->key;

	if (f->is.algorithm == WIRE_NCCL_DIRECT) {
		f->loop = f->is.n_messages;
		f->is_bound = true;
		if (!traffic_comm_is_real(c, k->peer))
			return 0;
		f->users = 1;
		f->conn = k->is_send ? conn_get(&c->conns, k->rank, k->peer, k->channel)
				     : conn_get(&c->conns, k->peer, k->rank, k->channel);
		return f->conn ? 0 : -ENOMEM;
	}
	f->lane = traffic_op_lane(f->op, k->channel);
	return f->lane ? 0 : -ENOMEM;
}

static int add(struct traffic_comm *c, const struct flow_key *key, const struct traffic_flow *is,
	       struct flow **ret)
{
	struct flow *f = calloc(1, sizeof(*f)), **list;

	if (!f)
		return -ENOMEM;
	f->key = *key;
	f->is = *is;
	f->comm = c;
	f->slices = 1;
	f->pace.number = c->of->n_flows++;
	f->op = traffic_comm_get_op(c, key->rank, key->seq);
	if (!f->op || place(c, f) < 0 ||
	    (!key->is_send && pace_reserve(&c->of->pace, c->of->n_receives + 1) < 0)) {
		flow_free(f);
		return -ENOMEM;
	}
	HASH_ADD(hh, c->flows, key, FLOW_CONNECTION_BYTES, f);
	if (!f->hh.tbl) {
		flow_free(f);
		return -ENOMEM;
	}
	c->of->n_receives += !key->is_send;
	DL_PREPEND2(f->op->flows, f, prev_in_op, next_in_op);
	traffic_comm_keep(c, (int64_t)flow_bytes(f));
	f->op->n_open++;
	if (f->lane) {
		list = key->is_send ? &f->lane->sends : &f->lane->receives;
		f->next_in_lane = *list;
		*list = f;
	}
	if (f->conn)
		conn_add(f->conn, f);
	*ret = f;
	return 0;
}

int traffic_flow(struct traffic_comm *c, const struct traffic_at *at, const struct traffic_flow *is,
		 struct err *err)
{
	struct flow_key key = flow_key(at, is->is_send, is->algorithm == WIRE_NCCL_DIRECT);
	char name[FLOW_NAME_MAX];
	struct flow *f;
	int r;

	if (c->is_dead)
		return 0;
	r = check(c, &key, is, flow_name(&key, name), err);
	r = r ? r : traffic_comm_make_room(c, 0, err);
	if (r < 0)
		return traffic_comm_die(c, r);
	retire(c, &key);
	c->depends.has_tree |= is->algorithm == PLUGIN_TREE;
	r = add(c, &key, is, &f);
	if (r == 0 && f->lane)
		r = depends_check(&c->depends, f, name, err);
	if (r == 0 && !f->is_bound && f->op->has_call)
		r = depends_bind(&c->depends, f, err);
	if (r == 0 && !f->is_bound && f->op->n_passed == f->op->n_members)
		depends_bind_late(f);
	if (r == -ENOMEM)
		err_set(err, ENOMEM, "%s: no memory for NCCL's messages", name);
	if (r < 0)
		return traffic_comm_die(c, r);
	c->last = NULL;
	if (f->key.is_send)
		ready_wake(f);
	return 0;
}

/* NULL: it may be */
static const char *why_not_wanted(const struct flow *f, uint64_t index)
{
	if (index >= f->is.n_messages)
		return "";
	if (index < f->done ||
	    (index - f->done < FLOW_WANTS_MAX && f->wanted >> (index - f->done) & 1))
		return " again";
	return index - f->done < FLOW_WANTS_MAX ? NULL : ", more ahead than NCCL does";
}

int traffic_want(struct traffic_comm *c, const struct traffic_at *at, uint64_t index,
		 struct err *err)
{
	struct flow_key key = flow_key(at, false, false);
	char name[FLOW_NAME_MAX];
	const char *wrong;
	struct flow *f;

	if (c->is_dead)
		return 0;
	f = traffic_comm_find_flow(c, at, false);
	if (!f)
		return traffic_comm_die(
			c, err_set(err, EPROTO,
				   "%s: a receive of message %llu is posted, but nobody has "
				   "said that there are any",
				   flow_name(&key, name), (unsigned long long)index));
	wrong = why_not_wanted(f, index);
	if (wrong)
		return traffic_comm_die(
			c, err_set(err, EPROTO,
				   "%s: a receive of message %llu of %llu is posted%s, after %llu",
				   flow_name(&key, name), (unsigned long long)index,
				   (unsigned long long)f->is.n_messages, wrong,
				   (unsigned long long)f->done));
	f->wanted |= UINT64_C(1) << (index - f->done);
	if (index == f->done)
		ready_look(f);
	return 0;
}
