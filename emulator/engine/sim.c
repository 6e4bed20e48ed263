/* See sim.h. Ring, tree and chain, whose messages wait for other messages, are simulated here;
 * direct algorithms, whose messages share ports but wait for nobody, in sim-ports.c.
 *
 * Each connection is a port of its own. A message starts when the receives of its step and of the
 * steps before are there, and when the connection's last message has left. It occupies the
 * connection, and arrives a latency later, never before the message ahead of it. The costs say how
 * connections share a rank's port (nbox_message.flows).
 *
 * The state is one struct for each connection and one for each (rank, thread). When a step of a
 * thread is over, the schedule is asked for the next. The heap holds the first message in flight of
 * each connection; those behind it wait in a list whose nodes are used again. So memory follows the
 * messages in flight, never the bytes. Each connection has its own port and one receiver, so
 * arrival times depend on the messages and costs only, not on the order in which equal times are
 * served. */
#include "engine/sim.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/sim-net.h"
#include "engine/sim-op.h"
#include "engine/sim-ports.h"

#define NONE UINT32_MAX

void sim_deinit(struct sim *sim)
{
	free(sim->conns);
	free(sim->conn_start);
	free(sim->threads);
	free(sim->thread_start);
	free(sim->reducer_free);
	free(sim->flights);
}

static int push(struct sim *sim, double ns, uint32_t conn)
{
	return sim_heap_put(sim->heap, ns, (uint64_t)sim->number << 32 | conn);
}

static int flight_new(struct sim *sim, uint32_t *ret)
{
	struct sim_flight *grown;
	uint32_t capacity;

	if (sim->free_flight != NONE) {
		*ret = sim->free_flight;
		sim->free_flight = sim->flights[*ret].next;
		return 0;
	}
	if (sim->n_flights == sim->capacity_flights) {
		capacity = sim->capacity_flights ? 2 * sim->capacity_flights : 1024;
		grown = capacity < NONE / 2 ? realloc(sim->flights, capacity * sizeof(*grown))
					    : NULL;
		if (!grown)
			return -ENOMEM;
		sim->flights = grown;
		sim->capacity_flights = capacity;
	}
	*ret = sim->n_flights++;
	return 0;
}

static uint32_t find_conn(const struct sim *sim, uint32_t src, uint32_t dst, uint16_t lane)
{
	uint32_t c;

	for (c = sim->conn_start[src]; c < sim->conn_start[src + 1]; c++)
		if (sim->conns[c].dst == dst && sim->conns[c].lane == lane)
			return c;
	return NONE;
}

static bool is_conn(const struct sim *sim, uint32_t c, uint32_t src, uint32_t dst, uint16_t lane)
{
	return c != NONE && sim->conns[c].src == src && sim->conns[c].dst == dst &&
	       sim->conns[c].lane == lane;
}

/* Asks the schedule for the thread's current step. The peers are mostly those of
 * the step before. Return: 0; -EDEADLK when a connection does not exist. */
static int load_step(struct sim *sim, struct sim_thread *t)
{
	uint32_t number = (uint32_t)(t - sim->threads), j;
	struct sched_step st;

	sched_step(sim->s, t->rank, number - sim->thread_start[t->rank], t->step, &st);
	t->recv_index = st.recv_index;
	t->send_index = st.send_index;
	t->bytes = st.bytes;
	t->n_recv = st.n_recv;
	t->n_send = st.n_send;
	t->is_reduced = st.flags & STEP_REDUCE;
	for (j = 0; j < st.n_recv; j++) {
		if (!is_conn(sim, t->recv[j], st.recv[j], t->rank, st.recv_lane))
			t->recv[j] = find_conn(sim, st.recv[j], t->rank, st.recv_lane);
		if (t->recv[j] == NONE)
			return -EDEADLK;
	}
	for (j = 0; j < st.n_send; j++) {
		if (!is_conn(sim, t->send[j], t->rank, st.send[j], st.send_lane))
			t->send[j] = find_conn(sim, t->rank, st.send[j], st.send_lane);
		if (t->send[j] == NONE)
			return -EDEADLK;
	}
	return 0;
}

/* A sender is done with a connection when its last message is ready and those before it leave it
 * room in the buffers. */
static void hand_over(const struct sim *sim, struct sim_conn *c, double ready_ns)
{
	uint64_t buffered = sim->ranks ? sim->ranks->buffered : 0;

	c->n_sent++;
	if (c->n_sent + buffered == c->n_messages)
		c->handed_ns = c->free_ns;
	if (c->n_sent == c->n_messages && c->handed_ns < ready_ns)
		c->handed_ns = ready_ns;
}

/* A message of connection @number that began to leave at @sent_ns arrives at @at_ns, or with the
 * one ahead of it. */
static int put_in_flight(struct sim *sim, uint32_t number, double sent_ns, double at_ns)
{
	struct sim_conn *c = &sim->conns[number];
	uint32_t f;
	int r = flight_new(sim, &f);

	if (r)
		return r;
	if (at_ns < c->last_ns)
		at_ns = c->last_ns;
	c->last_ns = at_ns;
	sim->flights[f] = (struct sim_flight){at_ns, sent_ns, NONE};
	if (c->head != NONE) {
		sim->flights[c->tail].next = f;
		c->tail = f;
		return 0;
	}
	c->head = c->tail = f;
	return push(sim, at_ns, number);
}

static int send_message(struct sim *sim, const struct sim_thread *t, uint32_t number)
{
	struct sim_conn *c = &sim->conns[number];
	struct nbox_delay d;
	double sent;
	int r;

	r = sim->cost->message(sim->cost->ctx, c->src, c->dst, c->lane, t->send_index, t->bytes,
			       &d);
	if (r)
		return r;
	if (c->is_shared)
		return sim_net_send(sim->net, sim->first_flow + number, t->ready_ns,
				    (double)t->bytes * sim->wire_factor, &d);
	sent = t->ready_ns > c->free_ns ? t->ready_ns : c->free_ns;
	c->free_ns = sent + d.occupancy_ns;
	hand_over(sim, c, t->ready_ns);
	return put_in_flight(sim, number, sent, c->free_ns + d.latency_ns);
}

/* The thread goes on when the rank has reduced what the step received. */
static void reduce(struct sim *sim, struct sim_thread *t)
{
	double *free_ns = &sim->reducer_free[t->rank];

	if (t->ready_ns < *free_ns)
		t->ready_ns = *free_ns;
	t->ready_ns += t->n_recv * (double)t->bytes * sim->cost->reduce_ns_per_byte;
	*free_ns = t->ready_ns;
	if (t->ready_ns > sim->end_ns)
		sim->end_ns = t->ready_ns;
}

/* Executes steps as long as their receives are there. @now_ns: the time of the last arrival. */
static int run_thread(struct sim *sim, struct sim_thread *t, double now_ns)
{
	uint32_t j;
	int r;

	while (t->step < t->n_steps && !isinf(t->ready_ns)) {
		for (j = 0; j < t->n_recv; j++)
			if (sim->conns[t->recv[j]].n_arrived <= t->recv_index)
				return 0;
		if (t->n_recv && t->ready_ns < now_ns)
			t->ready_ns = now_ns;
		if (t->is_reduced && sim->cost->reduce_ns_per_byte > 0)
			reduce(sim, t);
		for (j = 0; j < t->n_send; j++) {
			r = send_message(sim, t, t->send[j]);
			if (r)
				return r;
		}
		/* A source could send all its messages at once. To save memory it sends the next
		 * ones when a connection has none; they could not arrive before that. */
		t->is_paused = t->is_source && t->n_send;
		if (++t->step < t->n_steps) {
			r = load_step(sim, t);
			if (r)
				return r;
		}
		if (t->is_paused)
			return 0;
	}
	return 0;
}

/* The source of connection @c, if it is one that waits for that. */
static int resume(struct sim *sim, const struct sim_conn *c, double now_ns)
{
	struct sim_thread *t = &sim->threads[c->from_thread];

	if (!t->is_paused)
		return 0;
	t->is_paused = false;
	return run_thread(sim, t, now_ns);
}

int sim_left(struct sim *sim, uint32_t number, double sent_ns, double latency_ns, double now_ns,
	     bool is_idle)
{
	int r = put_in_flight(sim, number, sent_ns, now_ns + latency_ns);

	return r || !is_idle ? r : resume(sim, &sim->conns[number], now_ns);
}

int sim_arrive(struct sim *sim, uint32_t number)
{
	struct sim_conn *c = &sim->conns[number];
	uint32_t f = c->head;
	double at = sim->flights[f].at_ns;
	int r;

	if (sim->watch)
		sim->watch->arrived(sim->watch->ctx, c->src, c->dst, c->lane, c->n_arrived,
				    sim->flights[f].sent_ns, at);
	c->head = sim->flights[f].next;
	sim->flights[f].next = sim->free_flight;
	sim->free_flight = f;
	c->n_arrived++;
	sim->n_messages++;
	if (at > sim->end_ns)
		sim->end_ns = at;

	sim_heap_open(sim->heap);
	if (c->head != NONE) {
		r = push(sim, sim->flights[c->head].at_ns, number);
		if (r)
			return r;
	}
	r = run_thread(sim, &sim->threads[c->to_thread], at);
	if (!r && c->head == NONE && !c->is_shared)
		r = resume(sim, c, at);
	if (!r)
		sim_heap_close(sim->heap);
	return r;
}

static int add_conns(struct sim *sim, uint32_t rank, uint32_t *capacity, struct err *err)
{
	CLEANUP(freep) struct sched_conn *of_rank = NULL;
	uint32_t n_in, n_out, n = sim->conn_start[rank], i;
	struct sim_conn *grown;
	int r = sched_conns(sim->s, rank, &of_rank, &n_in, &n_out);

	if (r)
		return err_set(err, -r, "no memory for the connections of rank %u", rank);
	if (n + n_out > *capacity) {
		*capacity = 2 * *capacity + n_out;
		grown = realloc(sim->conns, *capacity * sizeof(*grown));
		if (!grown)
			return err_set(err, ENOMEM, "no memory for %u connections", *capacity);
		sim->conns = grown;
	}
	for (i = 0; i < n_out; i++) {
		const struct sched_conn *from = &of_rank[n_in + i];

		sim->conns[n + i] = (struct sim_conn){
			.src = from->src,
			.dst = from->dst,
			.lane = from->lane,
			.head = NONE,
			.tail = NONE,
			.to_thread = NONE,
			.from_thread = NONE,
			.n_messages = from->n_messages,
			.free_ns = sim_port_of(sim->ranks, rank),
		};
	}
	sim->conn_start[rank + 1] = n + n_out;
	return 0;
}

static int make_threads(struct sim *sim, struct err *err)
{
	uint32_t n = sim->s->n_ranks, r, i;

	for (r = 0; r < n; r++)
		sim->thread_start[r + 1] = sim->thread_start[r] + sched_n_threads(sim->s, r);
	sim->threads = calloc((size_t)sim->thread_start[n] + 1, sizeof(*sim->threads));
	if (!sim->threads)
		return err_set(err, ENOMEM, "no memory for %u threads", sim->thread_start[n]);
	for (r = 0; r < n; r++) {
		for (i = sim->thread_start[r]; i < sim->thread_start[r + 1]; i++) {
			struct sim_thread *t = &sim->threads[i];

			t->rank = r;
			t->n_steps = sched_n_steps(sim->s, r, i - sim->thread_start[r]);
			t->ready_ns = sim_start_of(sim->ranks, r);
			t->is_source = true;
			memset(t->recv, 0xff, sizeof(t->recv));
			memset(t->send, 0xff, sizeof(t->send));
			if (t->ready_ns > sim->end_ns)
				sim->end_ns = t->ready_ns;
		}
	}
	return 0;
}

/* Tells each connection its two threads. */
static int link_conns(struct sim *sim, struct err *err)
{
	uint32_t c, to, from;

	for (c = 0; c < sim->conn_start[sim->s->n_ranks]; c++) {
		struct sim_conn *k = &sim->conns[c];

		to = sched_recv_thread(sim->s, k->src, k->dst, k->lane);
		from = sched_send_thread(sim->s, k->src, k->dst, k->lane);
		if (to == UINT32_MAX || from == UINT32_MAX)
			return err_set(err, EDEADLK,
				       "the schedule is broken: nobody serves the connection from "
				       "rank %u to rank %u, lane %u",
				       k->src, k->dst, k->lane);
		k->to_thread = sim->thread_start[k->dst] + to;
		k->from_thread = sim->thread_start[k->src] + from;
		sim->threads[k->to_thread].is_source = false;
	}
	return 0;
}

int sim_init(struct sim *sim, struct err *err)
{
	uint32_t n = sim->s->n_ranks, rank, capacity = 0;
	int r;

	sim->free_flight = NONE;
	sim->conn_start = calloc((size_t)n + 1, sizeof(*sim->conn_start));
	sim->thread_start = calloc((size_t)n + 1, sizeof(*sim->thread_start));
	sim->reducer_free = calloc((size_t)n + 1, sizeof(*sim->reducer_free));
	if (!sim->conn_start || !sim->thread_start || !sim->reducer_free)
		return err_set(err, ENOMEM, "no memory for %u ranks", n);
	for (rank = 0; rank < n; rank++) {
		r = add_conns(sim, rank, &capacity, err);
		if (r)
			return r;
	}
	r = make_threads(sim, err);
	if (!r)
		r = link_conns(sim, err);
	return r;
}

static int check_all_done(const struct sim *sim, struct err *err)
{
	uint32_t i, n = sim->thread_start[sim->s->n_ranks];

	if (isinf(sim->end_ns))
		return 0; /* somebody never comes */
	for (i = 0; i < n; i++) {
		const struct sim_thread *t = &sim->threads[i];
		uint32_t j = 0;

		while (j + 1 < t->n_recv && sim->conns[t->recv[j]].n_arrived > t->recv_index)
			j++; /* that one is there */
		if (t->step < t->n_steps)
			return err_set(
				err, EDEADLK,
				"the schedule cannot be played: rank %u, thread %u waits "
				"in step %llu of %llu for message %llu from rank %u for ever",
				t->rank, i - sim->thread_start[t->rank],
				(unsigned long long)t->step, (unsigned long long)t->n_steps,
				(unsigned long long)t->recv_index,
				t->n_recv ? sim->conns[t->recv[j]].src : t->rank);
	}
	return 0;
}

int sim_start(struct sim *sim, double start_ns)
{
	uint32_t i, n = sim->thread_start[sim->s->n_ranks];
	int r = 0;

	sim->end_ns += start_ns;
	for (i = 0; i < n && !r; i++) {
		struct sim_thread *t = &sim->threads[i];

		t->ready_ns += start_ns;
		if (t->n_steps)
			r = load_step(sim, t);
		if (!r)
			r = run_thread(sim, t, 0);
	}
	return r;
}

int sim_end(const struct sim *sim, int r, struct err *err)
{
	if (r == -ENOMEM)
		return err_set(err, ENOMEM, "no memory for the messages in flight");
	if (r == -EDEADLK)
		return err_set(err, EDEADLK,
			       "the schedule is broken: a step uses a connection "
			       "that its rank does not have");
	return r ? r : check_all_done(sim, err);
}

static int run_events(struct sim *sim, struct err *err)
{
	int r = sim_start(sim, 0);

	while (sim->heap->n && !r)
		r = sim_arrive(sim, (uint32_t)sim->heap->items[0].tie);
	return sim_end(sim, r, err);
}

/* What the caller wants to know of each rank. */
static void tell_ranks(const struct sim *sim)
{
	uint32_t r, i;

	for (r = 0; r < sim->s->n_ranks; r++) {
		double end = 0, port = 0;

		for (i = sim->thread_start[r]; i < sim->thread_start[r + 1]; i++)
			end = fmax(end, sim->threads[i].step < sim->threads[i].n_steps
						? INFINITY
						: sim->threads[i].ready_ns);
		for (i = sim->conn_start[r]; i < sim->conn_start[r + 1]; i++) {
			bool is_done = sim->conns[i].n_sent == sim->conns[i].n_messages;

			end = fmax(end, is_done ? sim->conns[i].handed_ns : INFINITY);
			port = fmax(port, is_done ? sim->conns[i].free_ns : INFINITY);
		}
		if (sim->ranks->end_ns)
			sim->ranks->end_ns[r] = end;
		if (sim->ranks->free_ns)
			sim->ranks->free_ns[r] = port;
	}
}

int sim_run(const struct sched *s, const struct sim_cost *cost, const struct sim_ranks *ranks,
	    const struct sim_watch *watch, struct sim_result *ret, struct err *err)
{
	struct sim_heap heap = {0};
	struct sim sim = {.s = s, .cost = cost, .ranks = ranks, .watch = watch, .heap = &heap};
	int r;

	if (s->algo == SCHED_DIRECT)
		return sim_ports_sched(s, s->n_ranks, cost, ranks, watch, ret, err);
	r = sim_init(&sim, err);
	if (!r)
		r = run_events(&sim, err);
	if (!r && ranks)
		tell_ranks(&sim);
	if (!r)
		*ret = (struct sim_result){.end_ns = sim.end_ns, .n_messages = sim.n_messages};
	sim_deinit(&sim);
	sim_heap_deinit(&heap);
	return r;
}
