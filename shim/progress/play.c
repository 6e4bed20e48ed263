/* The life of an op on the progress thread: see play.h. */
#include "shim/progress/play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "shim/job/env.h"
#include "shim/progress/message.h"
#include "shim/progress/payload.h"
#include "shim/progress/points.h"
#include "shim/progress/real-call.h"
#include "shim/progress/session.h"
#include "shim/progress/traffic.h"
#include "shim/progress/waiters.h"

static struct {
	struct op **due; /* wait for their time: see play_open_due() */
	uint32_t n_due, due_capacity;
	uint32_t n_open;
} g;

void play_fail(struct comm *c, int r, const char *text)
{
	if (!comm_error(c)) {
		log_error("communicator %u, rank %u of %u: %s", c->number, c->rank, c->n_ranks,
			  text);
		session_send_abort(c->number, c->rank, 0, EPROTO, text);
	}
	comm_fail(c, r, "%s", text);
	play_open_gates(c);
}

static void open_gate(struct op *op, uint64_t due_ns)
{
	struct op_run *run = &op->run;

	run->is_open = true;
	run->is_live = false;
	g.n_open++;
	op->comm->dev->release(&op->gate, due_ns);
	run->player = player_free(run->player);
}

/* Opens the gate once all messages are in and the end is known, or lists it until its time. */
static void check_complete(struct op *op)
{
	struct op_run *run = &op->run;

	if (!run->is_live || !run->has_end || run->n_received < run->n_awaited ||
	    (run->player && !player_done(run->player)))
		return;
	if (op->comm->dev->waits_for_due) {
		open_gate(op, run->due_ns);
		return;
	}
	if (run->is_due)
		return;
	if (g.n_due == g.due_capacity) {
		uint32_t capacity = g.due_capacity ? 2 * g.due_capacity : 16;
		struct op **due = realloc(g.due, capacity * sizeof(struct op *));

		if (!due) {
			play_fail(op->comm, -ENOMEM, "no memory in the progress thread");
			return;
		}
		g.due = due;
		g.due_capacity = capacity;
	}
	g.due[g.n_due++] = op;
	run->is_due = true;
}

uint64_t play_open_due(uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < g.n_due;) {
		struct op *op = g.due[i];

		if (op->run.is_live && op->run.due_ns > now_ns) {
			next = op->run.due_ns < next ? op->run.due_ns : next;
			i++;
			continue;
		}
		g.due[i] = g.due[--g.n_due];
		if (op->run.is_live)
			open_gate(op, op->run.due_ns);
	}
	return next;
}

uint32_t play_n_open(void)
{
	return g.n_open;
}

static struct op **live_slot(struct comm *c, uint64_t seq)
{
	return &c->live[seq % COMM_LIVE_SLOTS];
}

static struct op *find(struct comm *c, uint64_t seq)
{
	for (struct op *op = *live_slot(c, seq); op; op = op->next)
		if (op->run.is_live && op->run.seq == seq)
			return op;
	return NULL;
}

static const struct gate_times *times_of(const struct op *op)
{
	return &op->gate.times[op->run.passes & 1];
}

static int send_arrive(struct op *op)
{
	struct comm *c = op->comm;
	size_t p2p_bytes = op->call.n_p2p * sizeof(struct wire_p2p);
	size_t deps_bytes = op->call.n_deps * sizeof(struct wire_dep);
	size_t bytes = sizeof(op->call) + p2p_bytes + deps_bytes;
	CLEANUP(freep) char *body = malloc(bytes);
	struct wire_arrive call = op->call;
	uint64_t own_ns = op->run.start_ns;

	if (!body)
		return -ENOMEM;
	if (op->is_persistent)
		op->replays++;
	points_before(op->deps, op->call.n_deps, own_ns, op->replays);
	points_log(coll_kind_name(call.kind), call.name, call.stream, op->deps, call.n_deps);
	call.arrive_ns = session_to_daemon(own_ns);
	call.call_ns = call.call_ns ? session_to_daemon(call.call_ns) : 0;
	call.work_ns = call.work_ns ? session_to_daemon(call.work_ns) : 0;
	memcpy(body, &call, sizeof(call));
	for (uint32_t i = 0; i < op->call.n_p2p; i++) {
		struct wire_p2p p = {.peer = op->p2p[i].peer,
				     .is_send = op->p2p[i].is_send,
				     .bytes = op->p2p[i].bytes};

		memcpy(body + sizeof(call) + i * sizeof(p), &p, sizeof(p));
	}
	if (deps_bytes)
		memcpy(body + sizeof(call) + p2p_bytes, op->deps, deps_bytes);
	return session_send(WIRE_ARRIVE, c->number, c->rank, op->run.seq, body, bytes);
}

/* ARRIVE has it, or follows it. */
static void run_decided(struct note *n)
{
	struct op *op = container_of(n, struct op, decided);
	struct comm *c = op->comm;
	int r;

	if (!(op->call.flags & WIRE_ARRIVE_UNDECIDED))
		return;
	op->call.flags &= ~(uint32_t)WIRE_ARRIVE_UNDECIDED;
	op->call.took = op->took;
	if (!op->run.is_live || comm_error(c))
		return;
	r = session_send(WIRE_TOOK, c->number, c->rank, op->run.seq, &op->took, sizeof(op->took));
	if (r)
		play_fail(c, r, strerror(-r));
}

void play_decided(struct op *op, const struct wire_took *took)
{
	static const struct wire_took none;

	if (atomic_exchange(&op->is_decided, true))
		return;
	op->took = took ? *took : none;
	note_post(&op->decided, NOTE_WAKE);
}

static int start_player(struct op *op)
{
	struct op_run *run = &op->run;
	const struct wire_welcome *w = session_welcome();
	const struct player_data *data = NULL;
	int r;

	if (w->exchange == EXCHANGE_NONE || traffic_is_full())
		return 0;
	if (w->exchange == EXCHANGE_PAYLOAD && env_get()->payload_work) {
		r = payload_data(&run->sched, op->comm->rank, op->call.dtype, &run->data);
		if (r)
			return r;
		data = &run->data;
	}
	return player_start(&run->player, &run->sched, op->comm->rank, data, &message_io, op);
}

/* NCCL's messages have the number of the call. */
static void fail_numbers(struct op *op)
{
	struct err err;

	err_set(&err, EPROTO,
		"op %llu (%s) arrived as number %llu: threads of the job call one communicator at "
		"the same time",
		wire_seq_number(op->called_seq), coll_kind_name(op->call.kind),
		wire_seq_number(op->run.seq));
	play_fail(op->comm, -EPROTO, err.text);
}

static void run_arrived(struct note *n)
{
	struct op *op = container_of(n, struct op, arrived);
	struct op_run *run = &op->run;
	struct comm *c = op->comm;
	struct op **slot;
	int r;

	run->seq = op->call.kind == COLL_SENDRECV ? WIRE_SEQ_P2P | c->p2p_seq++ : c->seq++;
	run->start_ns = times_of(op)->arrive_ns;
	run->is_live = true;
	run->has_end = run->is_open = run->is_due = false;
	run->n_sent = run->n_received = run->n_awaited = 0;
	run->n_conns = 0;
	if (run->conns)
		memset(run->conns, 0, run->conn_slots * sizeof(*run->conns));
	slot = live_slot(c, run->seq);
	op->next = *slot;
	*slot = op;
	/* without an error, a dead one is a graph's that is replayed after its communicator was
	 * destroyed */
	if (comm_error(c) || atomic_load_explicit(&c->state, memory_order_acquire) == COMM_DEAD ||
	    !session_link()) {
		open_gate(op, 0);
		return;
	}
	if (c->is_full && run->seq != op->called_seq) {
		fail_numbers(op);
		return;
	}
	r = send_arrive(op);
	if (!r)
		r = start_player(op);
	if (r) {
		struct err err;

		err_set(&err, -r, "op %llu (%s): %s", wire_seq_number(run->seq),
			coll_kind_name(op->call.kind), strerror(-r));
		play_fail(c, -EIO, err.text);
	}
}

static int release(struct op *op, const struct wire_release *frame, struct err *err)
{
	struct op_run *run = &op->run;

	if (run->has_end)
		return err_set(err, EPROTO, "a second RELEASE for op %llu",
			       wire_seq_number(run->seq));
	run->has_end = true;
	run->n_awaited = frame->n_messages;
	run->due_ns = session_from_daemon(frame->end_ns);
	run->ahead_ns = frame->end_ns - run->due_ns;
	run->clock_error_ns = session_clock_error_ns(run->due_ns);
	check_complete(op);
	return 0;
}

/* Frames cross: the op may be over, and forgotten. */
static void postpone(struct comm *c, uint64_t seq, const struct wire_move *frame)
{
	struct op *op = *live_slot(c, seq);

	while (op && op->run.seq != seq)
		op = op->next;
	if (!op || !op->run.has_end)
		return;
	op->run.due_ns = session_from_daemon(frame->end_ns);
	if (op->run.is_open && op->comm->dev->postpone)
		op->comm->dev->postpone(&op->gate, op->run.due_ns);
}

void play_frame(struct comm *c, const struct wire_hdr *h, const void *body)
{
	struct op *op = find(c, h->seq);
	struct err err;
	int r = 0;

	if (comm_error(c))
		return; /* dead, and nboxd did not know it yet */
	if (h->type == WIRE_MOVE)
		postpone(c, h->seq, body);
	else if (!op)
		r = err_set(&err, EPROTO, "%s for op %llu, which is not under way",
			    wire_type_name(h->type), wire_seq_number(h->seq));
	else if (h->type == WIRE_RELEASE)
		r = release(op, body, &err);
	else
		r = message_received(op, h, &err);
	if (r)
		play_fail(c, -EBADMSG, err.text);
	else if (op && h->type == WIRE_MESSAGE)
		check_complete(op);
}

static void on_failed(struct op *op, int r, const char *why)
{
	play_fail(op->comm, r, why);
}

static const struct message_events message_events = {
	.delivered = check_complete,
	.failed = on_failed,
};

bool play_step(void)
{
	return message_step(&message_events);
}

void *play_body(struct comm *c, const struct wire_hdr *h)
{
	return message_body(c ? find(c, h->seq) : NULL, h);
}

void play_body_sent(uint64_t cookie)
{
	message_sent(cookie, &message_events);
}

/* nboxd's clock is taken to be as far ahead as it was thought to be when the end became known, so
 * that lateness is what our own clock says. */
static void send_done(const struct op *op)
{
	const struct gate_times *times = times_of(op);
	const struct comm *c = op->comm;
	struct wire_done done = {
		.clock_error_ns = op->run.clock_error_ns,
		.local_done_ns = times->local_done_ns + op->run.ahead_ns,
		.release_ns = times->opened_ns + op->run.ahead_ns,
		.due_ns = op->run.due_ns + op->run.ahead_ns,
		.n_sent = op->run.n_sent,
		.n_received = op->run.n_received,
	};

	session_send(WIRE_DONE, c->number, c->rank, op->run.seq, &done, sizeof(done));
}

static void run_passed(struct note *n)
{
	struct op *op = container_of(n, struct op, passed);
	struct comm *c = op->comm;

	for (struct op **p = live_slot(c, op->run.seq); *p; p = &(*p)->next) {
		if (*p == op) {
			*p = op->next;
			break;
		}
	}
	g.n_open--;
	if (op->run.has_end && !comm_error(c))
		send_done(op);
	message_forget(op);
	if (traffic_get_events())
		traffic_get_events()->passed(c, op->run.seq);
	op->run.passes++;
	op->next = NULL;
	if (!op->is_persistent)
		comm_put_op(op);
	/* release: a thread that sees 0 may free what the op used */
	if (atomic_fetch_sub_explicit(&c->n_pending, 1, memory_order_release) == 1)
		waiters_signal();
	comm_unref(c);
}

static void on_arrive(struct gate *gate)
{
	struct op *op = container_of(gate, struct op, gate);

	if (op->is_persistent) { /* else counted when it was enqueued */
		atomic_fetch_add_explicit(&op->comm->n_pending, 1, memory_order_relaxed);
		comm_ref(op->comm);
	}
	note_post(&op->arrived, NOTE_WAKE);
}

static void on_passed(struct gate *gate)
{
	note_post(&container_of(gate, struct op, gate)->passed, NOTE_LAZY);
}

void play_prepare(struct op *op, bool is_captured)
{
	op->gate.on_arrive = on_arrive;
	op->gate.on_passed = on_passed;
	op->arrived.run = run_arrived;
	op->passed.run = run_passed;
	op->decided.run = run_decided;
	atomic_store_explicit(&op->is_decided, false, memory_order_relaxed);
	op->is_persistent = op->gate.is_captured = is_captured;
	op->replays = 0;
}

int play_enqueue_arrive(struct op *op, device_stream s, struct gate *before, struct err *err)
{
	struct comm *c = op->comm;
	int r;

	comm_ref(c); /* of a captured op: for good */
	if (op->is_persistent) {
		c->has_graphs = true;
		op_keep(op);
	} else {
		atomic_fetch_add_explicit(&c->n_pending, 1, memory_order_relaxed);
	}
	op->gate.before = before;
	r = DEVICE(c, arrive, (s, &op->gate));
	if (r && !op->is_persistent) {
		atomic_fetch_sub_explicit(&c->n_pending, 1, memory_order_relaxed);
		comm_unref(c);
	}
	return r;
}

void play_open_gates(struct comm *c)
{
	for (uint32_t i = 0; i < COMM_LIVE_SLOTS; i++) {
		for (struct op *op = c->live[i]; op; op = op->next) {
			if (op->run.is_live)
				open_gate(op, 0);
			else
				c->dev->hurry(&op->gate);
		}
	}
	for (uint32_t i = 0; i < g.n_due;) {
		if (g.due[i]->comm == c)
			g.due[i] = g.due[--g.n_due];
		else
			i++;
	}
	if (traffic_get_events())
		traffic_get_events()->failed(c);
	real_call_failed(c);
	waiters_signal();
}

static void run_kill(struct note *n)
{
	struct comm *c = container_of(n, struct comm, kill_note);

	play_open_gates(c);
	comm_unref(c);
}

void play_kill(struct comm *c)
{
	if (atomic_exchange(&c->kill_posted, true))
		return;
	c->kill_note.run = run_kill;
	comm_ref(c);
	note_post(&c->kill_note, NOTE_WAKE);
	waiters_signal(); /* those that wait for a check-in */
}
