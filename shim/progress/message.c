/* See message.h. */
#include "shim/progress/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/progress/comm.h"
#include "shim/progress/payload-gpu.h"
#include "shim/progress/payload.h"
#include "shim/progress/session.h"

/* A delivery to a player. */
struct event {
	struct op *op;
	uint64_t seq;
	uint32_t peer;
	uint16_t lane;
	bool is_sent;
	uint64_t index;
};

/* A message on its way, until message_sent(). Also an empty one: the player hears of its messages
 * in the order in which it sent them. */
struct flight {
	struct event event;
	struct comm *comm; /* reference: keeps @event.op allocated */
	uint64_t next_free;
};

static struct {
	struct event *events;          /* ring */
	uint64_t head, tail, capacity; /* capacity is a power of two */
	struct flight *flights;
	uint64_t n_flights, free_flight; /* number + 1; 0: none */
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
		int r = push_event(&(struct event){.op = op,
						   .seq = op->run.seq,
						   .peer = peer,
						   .lane = lane,
						   .index = conn->delivered});

		if (r)
			return r;
		conn->delivered++;
	}
	return 0;
}

/* --- lent to the player ------------------------------------------------------ */

static void flight_free(uint64_t n)
{
	struct flight *f = &g.flights[n - 1];

	f->comm = comm_unref(f->comm);
	f->next_free = g.free_flight;
	g.free_flight = n;
}

static int send_message(struct op *op, const struct wire_hdr *h, const void *src,
			const struct event *e)
{
	uint64_t n = g.free_flight;
	bool is_gpu = h->body_bytes && payload_gpu_is_used();
	const void *body = h->body_bytes && !is_gpu ? payload_source(src, h->body_bytes) : NULL;
	int r;

	if (h->body_bytes && !is_gpu && !body)
		return -ENOMEM;
	if (!n) {
		struct flight *flights = realloc(g.flights, (g.n_flights + 1) * sizeof(*g.flights));

		if (!flights)
			return -ENOMEM;
		g.flights = flights;
		g.flights[g.n_flights].next_free = 0;
		n = ++g.n_flights;
	}
	g.free_flight = g.flights[n - 1].next_free;
	g.flights[n - 1].event = *e;
	g.flights[n - 1].comm = comm_ref(op->comm);
	r = is_gpu ? link_send_gpu(session_link(), h, n) : link_send(session_link(), h, body, n);
	if (r)
		flight_free(n);
	return r;
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

const struct player_io message_io = {.send = io_send, .post = io_post};

void message_sent(uint64_t cookie, const struct message_events *ev)
{
	const struct event *e = &g.flights[cookie - 1].event;

	if (e->op->run.is_live && e->op->run.seq == e->seq && push_event(e))
		ev->failed(e->op, -ENOMEM, "no memory in the progress thread");
	flight_free(cookie);
}

/* --- received, and delivered ---------------------------------------------------- */

int message_received(struct op *op, const struct wire_hdr *h, struct err *err)
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

static void deliver(const struct event *e, const struct message_events *ev)
{
	struct op *op = e->op;
	struct op_run *run = &op->run;
	struct err err = {""};
	int r;

	/* The op may have been killed, and its record even be in use again. */
	if (!run->is_live || run->seq != e->seq || !run->player)
		return;
	if (e->is_sent)
		r = player_sent(run->player, e->peer, e->lane, e->index, &err);
	else
		r = player_received(run->player, e->peer, e->lane, e->index, &err);
	if (!r) {
		ev->delivered(op);
		return;
	}
	if (!err.text[0])
		err_set(&err, r < 0 ? -r : EPROTO, "op %llu (%s): %s", wire_seq_number(run->seq),
			coll_kind_name(op->call.kind), strerror(r < 0 ? -r : EPROTO));
	ev->failed(op, r < 0 ? -EIO : -EBADMSG, err.text);
}

bool message_step(const struct message_events *ev)
{
	bool any = g.head != g.tail;

	while (g.head != g.tail) {
		struct event e = g.events[g.head++ & (g.capacity - 1)];

		deliver(&e, ev);
	}
	return any;
}

void message_forget(const struct op *op)
{
	for (uint64_t i = g.head; i != g.tail; i++)
		if (g.events[i & (g.capacity - 1)].op == op)
			g.events[i & (g.capacity - 1)].seq = UINT64_MAX;
}

void *message_body(const struct op *op, const struct wire_hdr *h)
{
	return payload_sink(h->index, h->body_bytes, op ? op->run.sched.bytes : 0);
}
