/* See op.h. Arrivals, the start and the end; messages are in op-message.c, what it waits for in
 * op-wait.c. */
#include "nboxd/op/op.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/late.h"
#include "nboxd/op/op-find.h"
#include "nboxd/op/p2p.h"

#define OPS_MAX (1 << 20)     /* open at a time: called by a member, not done by all */
#define AHEAD_MAX_NS NS_PER_S /* clocks of two hosts may differ by that */

static void op_free(struct op *op)
{
	struct comm *c = op->comm;

	if (op->engine_op)
		engine_cancel(c->comms->ops->engine, op->engine_op);
	c->comms->ops->n_open_ops--;
	HASH_DELETE(hh, c->ops, op);
	timing_deinit(&op->timing);
	free(op->members);
	free(op->n_out);
	if (op->call)
		call_put(c, op->call);
	free(op);
}

void op_free_all(struct comm *c)
{
	struct op *op, *next;

	HASH_ITER(hh, c->ops, op, next)
		op_free(op);
}

/* --- the end --------------------------------------------------------------------- */

static void op_maybe_free(struct op *op)
{
	if (op->has_ended && op->n_done == op->comm->n_real)
		op_free(op);
}

static void op_end(struct engine_user *user)
{
	struct op *op = container_of(user, struct op, user);

	op->engine_op = NULL;
	op->is_live = false;
	op->has_ended = true;
	op_maybe_free(op);
}

static void sink_send(void *owner, struct engine_op *engine_op, uint32_t in, uint64_t index,
		      uint64_t due_ns)
{
	struct engine_user *user = engine_op_tag(engine_op);

	(void)owner;
	(void)due_ns;
	user->send(user, in, index);
}

static void sink_end(void *owner, struct engine_op *engine_op, uint64_t end_ns)
{
	struct engine_user *user = engine_op_tag(engine_op);

	(void)owner;
	(void)end_ns;
	user->end(user);
}

const struct engine_sink op_sink = {.send = sink_send, .end = sink_end};

static void record_done(struct op *op, size_t i, const struct wire_done *done)
{
	const struct comm *c = op->comm;
	struct ops *ops = c->comms->ops;
	const struct op_member *m = &op->members[i];
	const struct call *call = op->call;
	struct record_row row = {
		.number = op->number,
		.seq = op->seq,
		.comm = c->number,
		.rank = c->real[i].rank,
		.world_rank = c->real[i].world_rank,
		.kind = call->key.kind,
		.dtype = call->key.dtype,
		.algo = call->sched.algo,
		.n_ranks = c->n_ranks,
		.n_real_ranks = c->n_real,
		.how = op->timing.how,
		.bytes = call->sched.bytes,
		.arrive_ns = m->arrive.arrive_ns,
		.start_ns = op->start_ns,
		.due_ns = op->end_ns,
		.release_ns = done->release_ns,
		.local_done_ns = done->local_done_ns,
		.model_ns = op->timing.model_ns,
		.injected_ns = op->timing.end_ns - op->timing.model_ns + op->late_ns,
		.n_messages = m->n_messages,
	};

	row.flags = comm_record_flags(c) | (m->arrive.flags & 1 ? RECORD_REPLAYED : 0) |
		    (op->timing.end_ns < op->timing.bound_ns ? RECORD_BELOW_BOUND : 0) |
		    (op->timing.is_of_model ? RECORD_OF_MODEL : 0);
	record_write(ops->record, &row);
}

int op_on_done(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct op *op = NULL;
	struct wire_done done;
	size_t i;

	if (h->seq & WIRE_SEQ_P2P)
		return p2p_on_done(ops, w, h, body);
	if (!op_find(ops, w, h, &op, &i))
		return 0;
	memcpy(&done, body, sizeof(done));
	if (!op->members[i].has_arrived || op->members[i].is_done ||
	    !(op->is_live || op->has_ended))
		return worker_refuse(w, EPROTO,
				     "DONE for op %llu of communicator %u, which rank %u %s",
				     (unsigned long long)h->seq, h->comm, h->rank,
				     op->members[i].is_done ? "finished before" : "has not begun");
	op->members[i].is_done = true;
	op->n_done++;
	op->moved_ns = clock_now_ns();
	record_done(op, i, &done);
	op_maybe_free(op);
	return 0;
}

/* --- the start ------------------------------------------------------------------- */

static bool copies(const void *ctx, size_t i, uint32_t world_rank)
{
	const struct comm *c = ctx;
	int64_t rank = membership_rank(&c->members.map, world_rank);

	return rank >= 0 && template_of(&c->templates, (uint32_t)rank) == i;
}

static int find_start(struct op *op, struct err *err)
{
	struct comm *c = op->comm;
	struct ops *ops = c->comms->ops;
	const struct late_op late = {.sched = &op->call->sched,
				     .topology = ops->cluster->topology,
				     .members = &c->members.map,
				     .delay = ops->delay,
				     .number = op->number,
				     .copies = copies,
				     .ctx = c};
	CLEANUP(freep) struct late_member *m = calloc(c->n_real, sizeof(*m));

	if (!m)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < c->n_real; i++)
		m[i] = (struct late_member){&op->members[i].arrive, c->n_ranks};
	return late_start(ops->config->n_what_ifs && c->n_real < c->n_ranks ? &late : NULL, m,
			  c->n_real, &op->start_ns, &op->late_ns, err);
}

static int solve_op(struct op *op, struct err *err)
{
	struct ops *ops = op->comm->comms->ops;

	return solver_solve(ops->solver, op->comm->number, &op->call->sched, &op->comm->members.map,
			    op->call->has_border ? &op->call->border : NULL, op->number,
			    &op->timing, err);
}

static void warn_below_bound(struct op *op)
{
	char end[32], bound[32];

	if (op->timing.end_ns >= op->timing.bound_ns || op->comm->comms->ops->is_below_bound_told ||
	    strcmp(op->comm->comms->config->model, "none") == 0)
		return;
	op->comm->comms->ops->is_below_bound_told = true;
	warn_run(
		"op %llu of communicator %u (%s): the model says %s, but the network alone needs %s",
		(unsigned long long)op->seq, op->comm->number, coll_kind_name(op->call->key.kind),
		units_print_time(op->timing.end_ns, end, sizeof(end)),
		units_print_time(op->timing.bound_ns, bound, sizeof(bound)));
}

/* Deciding took so long that the op was over before: nothing was decided, nor moved, for
 * anybody meanwhile. */
static void warn_slow(struct op *op, uint64_t since_ns)
{
	uint64_t now = clock_now_ns();
	char took[32], late[32];

	if (op->comm->comms->ops->is_slow_told || now <= op->end_ns + NS_PER_MS ||
	    now - since_ns < NS_PER_MS)
		return;
	op->comm->comms->ops->is_slow_told = true;
	warn_run(
		"op %llu of communicator %u (%s of %u ranks): finding its end took nboxd %s, and the "
		"op was over %s before: gates open late; %s",
		(unsigned long long)op->seq, op->comm->number, coll_kind_name(op->call->key.kind),
		op->comm->n_ranks, units_print_time((double)(now - since_ns), took, sizeof(took)),
		units_print_time((double)(now - op->end_ns), late, sizeof(late)),
		op->timing.how == SOLVE_SIM
			? "each of its messages is simulated, as what-ifs on messages or on one rank's link "
			  "ask for: choose fewer ranks, larger chunks or a what-if on whole ops"
			: "nothing was simulated: this machine was busy, or the model's code is slow");
}

static void tell_release(struct op *op)
{
	struct wire_release m = {op->start_ns, op->end_ns, op->number};
	struct comm *c = op->comm;
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_RELEASE, sizeof(m));
	h.comm = c->number;
	h.seq = op->seq;
	for (uint32_t i = 0; i < c->n_real; i++) {
		h.rank = c->real[i].rank;
		if (c->real[i].worker)
			worker_send(c->real[i].worker, &h, &m);
	}
}

static int start_engine(struct op *op, struct err *err)
{
	struct ops *ops = op->comm->comms->ops;
	bool has_border = ops->config->exchange != EXCHANGE_NONE;
	int r;

	op->end_ns = op->start_ns + (uint64_t)ceil(op->timing.end_ns);
	r = engine_start(ops->engine, has_border ? &op->call->border : NULL, &op->timing,
			 op->start_ns, op->end_ns, &op->user, &op->engine_op);
	if (r < 0)
		return err_set(err, -r, "the engine cannot start the op: %s", strerror(-r));
	op->is_live = true;
	return has_border ? op_replay_early(op, err) : 0;
}

static void op_start(struct op *op)
{
	struct comm *c = op->comm;
	struct err err = {""};
	uint64_t since_ns = clock_now_ns();

	if (find_start(op, &err) < 0 || solve_op(op, &err) < 0 || start_engine(op, &err) < 0) {
		comm_abort(c, NULL, EINVAL, "op %llu (%s): %s", (unsigned long long)op->seq,
			   coll_kind_name(op->call->key.kind), err.text);
		return;
	}
	warn_below_bound(op);
	warn_slow(op, since_ns);
	op->moved_ns = op->end_ns;
	op->warn_ns = op->end_ns + WARN_NS;
	tell_release(op);
}

/* --- arrivals ---------------------------------------------------------------------- */

static struct op *op_new(struct comm *c, uint64_t seq)
{
	struct op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->members = calloc(c->n_real, sizeof(*op->members));
	if (!op->members) {
		free(op);
		return NULL;
	}
	op->user = (struct engine_user){op_send_message, op_end};
	op->comm = c;
	op->seq = seq;
	op->number = c->comms->ops->n_ops++;
	op->first_ns = op->moved_ns = clock_now_ns();
	op->warn_ns = op->first_ns + WARN_NS;
	HASH_ADD(hh, c->ops, seq, sizeof(op->seq), op);
	c->comms->ops->n_open_ops++;
	return op;
}

static bool is_same_call(const struct wire_arrive *a, const struct wire_arrive *b)
{
	return a->kind == b->kind && a->count == b->count && a->dtype == b->dtype &&
	       a->root == b->root;
}

/* The first arrival says what the op is. */
static int op_define(struct op *op, const struct wire_arrive *a, struct err *err)
{
	struct comm *c = op->comm;
	int r = call_get(c, a, &op->call, err);

	if (r < 0 || !op->call->has_border)
		return r;
	op->n_out = calloc((size_t)op->call->border.n_out + 1, sizeof(*op->n_out));
	return op->n_out ? 0 : err_set(err, ENOMEM, "out of memory");
}

static void mismatch(struct op *op, size_t i, const struct wire_arrive *a)
{
	const struct op_member *other = op_first_arrived(op);
	char one[160], two[160];

	comm_abort(op->comm, NULL, EINVAL, "op %llu: rank %u calls %s, rank %u calls %s",
		   (unsigned long long)op->seq, op->comm->real[other - op->members].rank,
		   op_call_text(&other->arrive, one, sizeof(one)), op->comm->real[i].rank,
		   op_call_text(a, two, sizeof(two)));
}

int op_check_arrive(struct worker *w, const struct comm *c, const struct wire_hdr *h,
		    struct wire_arrive *a)
{
	uint64_t now = clock_now_ns();

	if (a->kind != COLL_SENDRECV && a->root >= c->n_ranks)
		return worker_refuse(w, EPROTO, "ARRIVE with root %u of %u ranks", a->root,
				     c->n_ranks),
		       -1;
	if (a->arrive_ns > now + AHEAD_MAX_NS)
		return worker_refuse(w, EPROTO,
				     "op %llu of communicator %u arrives %.1f s in the "
				     "future: the clocks do not agree",
				     wire_seq_number(h->seq), h->comm,
				     (double)(a->arrive_ns - now) / 1e9),
		       -1;
	/* An error of the clocks' offset; later than now or before HELLO cannot be. */
	if (a->arrive_ns > now)
		a->arrive_ns = now;
	if (a->arrive_ns < w->hello_ns)
		a->arrive_ns = w->hello_ns;
	if (a->compute_ns > a->arrive_ns) /* nobody has computed for longer than the clock runs */
		a->compute_ns = a->arrive_ns;
	return 0;
}

bool op_is_full(struct comm *c)
{
	if (c->comms->ops->n_open_ops < OPS_MAX)
		return false;
	comm_abort(c, NULL, ENOBUFS,
		   "more than %d ops are in the job's streams at a time, more than nboxd keeps: "
		   "end groups sooner",
		   OPS_MAX);
	return true;
}

void op_leave_out_setup(struct comm_member *m, struct wire_arrive *a)
{
	if (!(m->kinds & 1u << a->kind))
		a->compute_ns = 0;
	m->kinds |= 1u << a->kind;
}

struct op *op_by_seq(const struct comm *c, uint64_t seq)
{
	struct op *op;

	HASH_FIND(hh, c->ops, &seq, sizeof(seq), op);
	return op;
}

/* A member that has freed the communicator will not arrive; nobody may wait for it. */
static bool is_left_alone(struct comm *c, uint64_t seq)
{
	for (uint32_t i = 0; i < c->n_real; i++) {
		if (!c->real[i].is_freed || c->real[i].next_seq > seq)
			continue;
		comm_abort(
			c, NULL, ECANCELED,
			"op %llu cannot start: rank %u (world rank %u) has freed the communicator",
			(unsigned long long)seq, c->real[i].rank, c->real[i].world_rank);
		return true;
	}
	return false;
}

int op_on_arrive(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct comm_member *member;
	struct comm *c = NULL;
	struct wire_arrive a;
	struct err err = {""};
	struct op *op;
	size_t i;
	int r = 0;

	if (h->seq & WIRE_SEQ_P2P)
		return p2p_on_arrive(ops, w, h, body);
	member = op_find_member(ops, w, h, &c);
	if (!member)
		return 0;
	memcpy(&a, body, sizeof(a));
	if (op_check_arrive(w, c, h, &a) < 0)
		return 0;
	if (h->seq != member->next_seq)
		return worker_refuse(
			w, EPROTO, "rank %u of communicator %u arrives at op %llu instead of %llu",
			h->rank, h->comm, (unsigned long long)h->seq,
			(unsigned long long)member->next_seq);
	if (is_left_alone(c, h->seq))
		return 0;
	i = (size_t)(member - c->real);
	op = op_by_seq(c, h->seq);
	if (!op && (op_is_full(c) || failures_on_op(ops->failures, c, a.kind)))
		return 0;
	if (!op) {
		op = op_new(c, h->seq);
		r = op ? op_define(op, &a, &err) : err_set(&err, ENOMEM, "out of memory");
	} else if (!is_same_call(&op_first_arrived(op)->arrive, &a)) {
		mismatch(op, i, &a);
		return 0;
	}
	if (r < 0) {
		comm_abort(c, NULL, -r, "op %llu (%s) of rank %u: %s", (unsigned long long)h->seq,
			   coll_kind_name(a.kind), h->rank, err.text);
		return 0;
	}
	op_leave_out_setup(member, &a);
	op->members[i].arrive = a;
	op->members[i].has_arrived = true;
	member->next_seq++;
	if (++op->n_arrived == c->n_real)
		op_start(op);
	return 0;
}
