/* Messages from real ranks. */
#include <errno.h>

#include "traffic/ready.h"

static int check(struct traffic_comm *c, const struct traffic_at *at, uint64_t index,
		 uint64_t bytes, struct flow **ret, struct err *err)
{
	struct flow *f = traffic_comm_find_flow(c, at, true);
	struct flow_key key = flow_key(at, true, false);
	char name[FLOW_NAME_MAX];

	if (!f)
		return err_set(err, EPROTO,
			       "%s: message %llu has come, but nobody has said that there are any",
			       flow_name(&key, name), (unsigned long long)index);
	if (index != f->done || index >= f->is.n_messages)
		return err_set(err, EPROTO, "%s: message %llu of %llu has come, after %llu others",
			       flow_name(&key, name), (unsigned long long)index,
			       (unsigned long long)f->is.n_messages, (unsigned long long)f->done);
	if (bytes > f->is.message_bytes)
		return err_set(err, EPROTO,
			       "%s: message %llu has %llu bytes, and none more than %llu",
			       flow_name(&key, name), (unsigned long long)index,
			       (unsigned long long)bytes, (unsigned long long)f->is.message_bytes);
	if (bytes && !c->of->bodies)
		return err_set(err, EPROTO,
			       "%s: message %llu has %llu bytes, but none are exchanged",
			       flow_name(&key, name), (unsigned long long)index,
			       (unsigned long long)bytes);
	*ret = f;
	return 0;
}

int traffic_expect(struct traffic_comm *c, const struct traffic_at *at, uint64_t index,
		   uint64_t bytes, struct traffic_body **ret_body, struct err *err)
{
	struct traffic_body *body = NULL;
	struct flow *f;
	int r;

	*ret_body = NULL;
	if (c->is_dead)
		return 0;
	r = check(c, at, index, bytes, &f, err);
	if (r < 0)
		return traffic_comm_die(c, r);
	r = traffic_comm_make_room(c, bytes, err);
	if (r < 0 || !bytes)
		return r;
	body = traffic_body_new(c->of->bodies, bytes);
	if (!body)
		return traffic_comm_die(c, err_set(err, ENOMEM,
						   "no memory for a message of %llu bytes",
						   (unsigned long long)bytes));
	c->coming_bytes += traffic_body_room(body);
	*ret_body = body;
	return 0;
}

static int keep(struct flow *f, uint64_t index, struct traffic_body *body)
{
	uint64_t bytes = body ? body->bytes : 0, before = flow_bytes(f);
	int r;

	if (!f->comm->of->bodies)
		return 0;
	if (f->lane && f->is_bound)
		flow_see_size(f, index, bytes, &f->lane->sizes);
	r = slots_push(&f->slots, body, f->is_bound ? flow_users(f, index) : SLOT_USERS_UNKNOWN);
	traffic_comm_keep(f->comm, (int64_t)(flow_bytes(f) - before));
	return r;
}

int traffic_arrived(struct traffic_comm *c, const struct traffic_at *at, uint64_t index,
		    struct traffic_body *body, struct err *err)
{
	uint64_t bytes = body ? body->bytes : 0;
	struct flow *f;
	int r;

	if (c->is_dead) {
		traffic_body_unref(body);
		return 0;
	}
	r = check(c, at, index, bytes, &f, err);
	if (r < 0) {
		traffic_body_unref(body);
		return traffic_comm_die(c, r);
	}
	c->coming_bytes -= body ? traffic_body_room(body) : 0;
	c->of->counts.n_arrived++;
	c->of->counts.arrived_bytes += bytes;
	f->done++;
	if (keep(f, index, body) < 0)
		return traffic_comm_die(c, err_set(err, ENOMEM, "no memory for NCCL's messages"));
	ready_wake(f);
	if (f->done == f->is.n_messages && !f->conn) {
		f->op->n_open--;
		traffic_comm_release_op(c, f->op);
	}
	return 0;
}
