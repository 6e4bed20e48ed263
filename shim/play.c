/* See play.h. */
#include "shim/play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "shim/checkin.h"
#include "shim/env.h"
#include "shim/payload.h"
#include "shim/payload-gpu.h"
#include "shim/progress-internal.h"
#include "shim/session.h"

/* A delivery to a player that may not be made where it was noticed: the player's
 * callbacks may not call back into it. */
struct event {
	struct op *op;
	uint64_t seq;
	uint32_t peer;
	uint16_t lane;
	bool is_sent;
	uint64_t index;
};

/* A message on its way, until play_body_sent(). Empty ones too: the player is told in
 * the order in which it sent. */
struct flight {
	struct event event;
	struct comm *comm; /* reference: keeps @event.op allocated */
	uint64_t next_free;
};

static struct {
	struct event *events; /* ring */
	uint64_t head, tail, capacity; /* capacity is a power of two */
	struct flight *flights;
	uint64_t n_flights, free_flight; /* number + 1; 0: none */
	struct op **due;      /* decided, waiting for their time (device does not) */
	uint32_t n_due, due_capacity;
	uint32_t n_open;
} g;

static int push_event(const struct event *e)
{
	if (g.tail - g.head == g.capacity) {
		uint64_t capacity = g.capacity ? 2 * g.capacity : 64;
		struct event *events = malloc(capacity * sizeof(*events));

		if (!events)
			return -ENOMEM;
		for (uint64_t i = g.head; i != g.tail; i++)
			events[i & (capacity - 1)] = g.events[i & (g.capacity - 1)];
		free(g.events);
		g.events = events;
		g.capacity = capacity;
	}
	g.events[g.tail++ & (g.capacity - 1)] = *e;
	return 0;
}

/* --- incoming connections of an op ------------------------------------------ */

static struct op_conn *find_slot(struct op_conn *conns, uint32_t slots, uint64_t key)
{
	uint32_t i = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (slots - 1);

	while (conns[i].key && conns[i].key != key)
		i = (i + 1) & (slots - 1);
	return &conns[i];
}

static struct op_conn *conn_get(struct op_run *run, uint32_t peer, uint16_t lane)
{
	uint64_t key = ((uint64_t)peer << 16 | lane) + 1;
	struct op_conn *conn;

	if (2 * (run->n_conns + 1) > run->conn_slots) {
		uint32_t slots = run->conn_slots ? 2 * run->conn_slots : 16;
		struct op_conn *conns = calloc(slots, sizeof(*conns));

		if (!conns)
			return NULL;
		for (uint32_t i = 0; i < run->conn_slots; i++)
			if (run->conns[i].key)
				*find_slot(conns, slots, run->conns[i].key) = run->conns[i];
		free(run->conns);
		run->conns = conns;
		run->conn_slots = slots;
	}
	conn = find_slot(run->conns, run->conn_slots, key);
	if (!conn->key) {
		conn->key = key;
		run->n_conns++;
	}
	return conn;
}

static int conn_deliver(struct op *op, struct op_conn *conn, uint32_t peer, uint16_t lane)
{
	while (conn->delivered < conn->arrived && conn->delivered < conn->posted) {
		int rc = push_event(&(struct event){.op = op,
						    .seq = op->run.seq,
						    .peer = peer,
						    .lane = lane,
						    .index = conn->delivered});

		if (rc)
			return rc;
		conn->delivered++;
	}
	return 0;
}

/* --- lent to the player ------------------------------------------------------ */

static int send_message(struct op *op, const struct wire_hdr *h, const void *src,
			const struct event *e)
{
	uint64_t n = g.free_flight;
	bool is_gpu = h->body_bytes && payload_gpu_is_used();
	const void *body = h->body_bytes && !is_gpu ? payload_source(src, h->body_bytes) : NULL;
	int rc;

	if (h->body_bytes && !is_gpu && !body)
		return -ENOMEM;
	if (!n) {
		struct flight *flights =
			realloc(g.flights, (g.n_flights + 1) * sizeof(*g.flights));

		if (!flights)
			return -ENOMEM;
		g.flights = flights;
		g.flights[g.n_flights].next_free = 0;
		n = ++g.n_flights;
	}
	g.free_flight = g.flights[n - 1].next_free;
	g.flights[n - 1].event = *e;
	g.flights[n - 1].comm = comm_ref(op->comm);
	rc = is_gpu ? link_send_gpu(session_link(), h, n) : link_send(session_link(), h, body, n);
	if (rc)
		play_body_sent(n);
	return rc;
}

static int io_send(void *owner, uint32_t peer, uint16_t lane, uint64_t index, const void *src,
		   uint64_t bytes)
{
	struct op *op = owner;
	struct comm *c = op->comm;
	struct event e = {.op = op,
			  .seq = op->run.seq,
			  .peer = peer,
			  .lane = lane,
			  .index = index,
			  .is_sent = true};
	bool has_body = session_welcome()->exchange == EXCHANGE_PAYLOAD;
	struct wire_hdr h;

	if (!session_link())
		return -EPIPE;
	wire_hdr_init(&h, WIRE_MESSAGE, has_body ? bytes : 0);
	h.comm = c->number;
	h.rank = c->rank;
	h.peer = peer;
	h.lane = lane;
	h.index = index;
	h.seq = op->run.seq;
	op->run.n_sent++;
	return send_message(op, &h, src, &e);
}

static int io_post(void *owner, uint32_t peer, uint16_t lane, uint64_t index, void *dst,
		   uint64_t bytes)
{
	struct op *op = owner;
	struct op_conn *conn = conn_get(&op->run, peer, lane);

	(void)dst;
	(void)bytes;
	if (!conn)
		return -ENOMEM;
	if (conn->posted != index)
		return -EPROTO;
	conn->posted++;
	return conn_deliver(op, conn, peer, lane);
}

static const struct player_io io = {.send = io_send, .post = io_post};

void play_body_sent(uint64_t cookie)
{
	struct flight *f = &g.flights[cookie - 1];
	struct comm *c = f->comm;
	int rc = 0;

	if (f->event.op->run.is_live && f->event.op->run.seq == f->event.seq)
		rc = push_event(&f->event);
	if (rc)
		checkin_fail_comm(c, ncclSystemError, "no memory in the progress thread");
	f->comm = NULL;
	f->next_free = g.free_flight;
	g.free_flight = cookie;
	comm_unref(c);
}

/* --- the life of an op --------------------------------------------------------- */

static void open_gate(struct op *op, uint64_t due_ns)
{
	struct op_run *run = &op->run;

	run->is_open = true;
	run->is_live = false;
	g.n_open++;
	op->comm->dev->release(&op->gate, due_ns);
	run->player = player_free(run->player);
}

/* All there? Then the gate, or the list of those that wait for their time. */
static void check_complete(struct op *op)
{
	struct op_run *run = &op->run;

	if (!run->is_live || !run->has_end || (run->player && !player_done(run->player)))
		return;
	if (op->comm->dev->waits_for_due) {
		open_gate(op, run->due_ns);
		return;
	}
	for (uint32_t i = 0; i < g.n_due; i++)
		if (g.due[i] == op)
			return;
	if (g.n_due == g.due_capacity) {
		uint32_t capacity = g.due_capacity ? 2 * g.due_capacity : 16;
		struct op **due = realloc(g.due, capacity * sizeof(struct op *));

		if (!due) {
			checkin_fail_comm(op->comm, ncclSystemError,
					   "no memory in the progress thread");
			return;
		}
		g.due = due;
		g.due_capacity = capacity;
	}
	g.due[g.n_due++] = op;
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

struct op *play_find(struct comm *c, uint64_t seq)
{
	for (struct op *op = c->live; op; op = op->next)
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
	size_t bytes = sizeof(op->call) + op->call.n_p2p * sizeof(struct wire_p2p);
	CLEANUP(freep) char *big = NULL;
	struct wire_arrive call = op->call;
	struct wire_hdr h;
	uint64_t own_ns = op->run.start_ns;

	call.arrive_ns = session_to_daemon(own_ns);
	call.compute_ns =
		c->last_open_ns && own_ns > c->last_open_ns ? own_ns - c->last_open_ns : 0;
	wire_hdr_init(&h, WIRE_ARRIVE, bytes);
	h.comm = c->number;
	h.rank = c->rank;
	h.seq = op->run.seq;
	if (!op->call.n_p2p)
		return link_send_copy(session_link(), &h, &call);
	big = malloc(bytes);
	if (!big)
		return -ENOMEM;
	memcpy(big, &call, sizeof(call));
	for (uint32_t i = 0; i < op->call.n_p2p; i++) {
		struct wire_p2p p = {.peer = op->p2p[i].peer,
				     .is_send = op->p2p[i].is_send,
				     .bytes = op->p2p[i].bytes};

		memcpy(big + sizeof(call) + i * sizeof(p), &p, sizeof(p));
	}
	return link_send_copy(session_link(), &h, big);
}

static int start_player(struct op *op)
{
	struct op_run *run = &op->run;
	const struct wire_welcome *w = session_welcome();
	const struct player_data *data = NULL;
	int rc;

	if (w->exchange == EXCHANGE_NONE)
		return 0;
	if (w->exchange == EXCHANGE_PAYLOAD && env_get()->payload_work) {
		rc = payload_data(&run->sched, op->comm->rank, op->call.dtype, &run->data);
		if (rc)
			return rc;
		data = &run->data;
	}
	return player_start(&run->player, &run->sched, op->comm->rank, data, &io, op);
}

void play_arrived(struct note *n)
{
	struct op *op = container_of(n, struct op, arrived);
	struct op_run *run = &op->run;
	struct comm *c = op->comm;
	int rc;

	run->seq = op->call.kind == COLL_SENDRECV ? WIRE_SEQ_P2P | c->p2p_seq++ : c->seq++;
	run->start_ns = times_of(op)->arrive_ns;
	run->is_live = true;
	run->has_end = run->is_open = false;
	run->n_sent = run->n_received = 0;
	run->n_conns = 0;
	if (run->conns)
		memset(run->conns, 0, run->conn_slots * sizeof(*run->conns));
	op->next = c->live;
	c->live = op;
	/* dead without an error: a graph that is replayed after its communicator was destroyed */
	if (atomic_load_explicit(&c->async, memory_order_acquire) != ncclSuccess ||
	    atomic_load_explicit(&c->state, memory_order_acquire) == COMM_DEAD || !session_link()) {
		open_gate(op, 0);
		return;
	}
	rc = send_arrive(op);
	if (!rc)
		rc = start_player(op);
	if (rc) {
		struct err err;

		err_set(&err, -rc, "op %llu (%s): %s", wire_seq_number(run->seq),
			coll_kind_name(op->call.kind), strerror(-rc));
		checkin_fail_comm(c, ncclSystemError, err.text);
	}
}

int play_release(struct op *op, const struct wire_release *r, struct err *err)
{
	struct op_run *run = &op->run;

	if (run->has_end)
		return err_set(err, EPROTO, "a second RELEASE for op %llu",
			       wire_seq_number(run->seq));
	run->has_end = true;
	run->due_ns = session_from_daemon(r->end_ns);
	check_complete(op);
	return 0;
}

int play_message(struct op *op, const struct wire_hdr *h, struct err *err)
{
	struct op_run *run = &op->run;
	struct op_conn *conn = conn_get(run, h->peer, h->lane);

	if (!conn)
		return err_set(err, ENOMEM, "no memory in the progress thread");
	if (!run->player || conn->arrived != h->index)
		return err_set(err, EPROTO,
			       "op %llu (%s): message %llu from rank %u, lane %u: expected %s%llu",
			       wire_seq_number(run->seq), coll_kind_name(op->call.kind),
			       (unsigned long long)h->index, h->peer, h->lane,
			       run->player ? "" : "none; number ",
			       (unsigned long long)conn->arrived);
	conn->arrived++;
	run->n_received++;
	return conn_deliver(op, conn, h->peer, h->lane);
}

static void deliver(const struct event *e)
{
	struct op *op = e->op;
	struct op_run *run = &op->run;
	struct err err = {""};
	int rc;

	/* The op may have been killed, and its record even be in use again. */
	if (!run->is_live || run->seq != e->seq || !run->player)
		return;
	if (e->is_sent)
		rc = player_sent(run->player, e->peer, e->lane, e->index, &err);
	else
		rc = player_received(run->player, e->peer, e->lane, e->index, &err);
	if (rc) {
		if (!err.text[0])
			err_set(&err, rc < 0 ? -rc : EPROTO, "op %llu (%s): %s",
				wire_seq_number(run->seq), coll_kind_name(op->call.kind),
				strerror(rc < 0 ? -rc : EPROTO));
		checkin_fail_comm(op->comm, rc < 0 ? ncclSystemError : ncclInternalError,
				   err.text);
		return;
	}
	check_complete(op);
}

bool play_step(void)
{
	bool any = g.head != g.tail;

	while (g.head != g.tail) {
		struct event e = g.events[g.head++ & (g.capacity - 1)];

		deliver(&e);
	}
	return any;
}

static void send_done(const struct op *op)
{
	const struct gate_times *times = times_of(op);
	const struct comm *c = op->comm;
	struct wire_done done = {
		.arrive_ns = session_to_daemon(op->run.start_ns),
		.local_done_ns = session_to_daemon(times->local_done_ns),
		.release_ns = session_to_daemon(times->opened_ns),
		.due_ns = session_to_daemon(op->run.due_ns),
		.n_sent = op->run.n_sent,
		.n_received = op->run.n_received,
	};
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_DONE, sizeof(done));
	h.comm = c->number;
	h.rank = c->rank;
	h.seq = op->run.seq;
	link_send_copy(session_link(), &h, &done);
}

/* Events of the op may still be queued (a killed one): they must not find a record
 * that was given away. */
static void forget_events(const struct op *op)
{
	for (uint64_t i = g.head; i != g.tail; i++)
		if (g.events[i & (g.capacity - 1)].op == op)
			g.events[i & (g.capacity - 1)].seq = UINT64_MAX;
}

void play_passed(struct note *n)
{
	struct op *op = container_of(n, struct op, passed);
	struct comm *c = op->comm;

	for (struct op **p = &c->live; *p; p = &(*p)->next) {
		if (*p == op) {
			*p = op->next;
			break;
		}
	}
	g.n_open--;
	c->last_open_ns = times_of(op)->opened_ns;
	if (op->run.has_end && session_link() &&
	    atomic_load_explicit(&c->async, memory_order_relaxed) == ncclSuccess)
		send_done(op);
	forget_events(op);
	op->run.passes++;
	op->next = NULL;
	if (!op->is_persistent)
		op_put(op);
	/* release: who sees 0 may free what the op used */
	if (atomic_fetch_sub_explicit(&c->n_pending, 1, memory_order_release) == 1)
		progress_signal_idle();
	comm_unref(c);
}

void play_kill(struct comm *c)
{
	for (struct op *op = c->live; op; op = op->next) {
		if (op->run.is_live)
			open_gate(op, 0);
		else
			c->dev->hurry(&op->gate);
	}
	for (uint32_t i = 0; i < g.n_due;) {
		if (g.due[i]->comm == c)
			g.due[i] = g.due[--g.n_due];
		else
			i++;
	}
}

void *play_body(struct comm *c, const struct wire_hdr *h)
{
	struct op *op = c ? play_find(c, h->seq) : NULL;

	return payload_sink(h->index, h->body_bytes, op ? op->run.sched.bytes : 0);
}

void play_deinit(void)
{
	free(g.events);
	free(g.flights);
	free(g.due);
	memset(&g, 0, sizeof(g));
	payload_deinit();
}
