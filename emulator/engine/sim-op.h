/* One op in an event simulation: of that op alone (sim.c), or of several that share links
 * (sim-set.c). */
#pragma once

#include <stdbool.h>

#include "engine/sim-cost.h"
#include "engine/sim-heap.h"
#include "engine/sim-ranks.h"
#include "schedule/schedule.h"

struct sim_net;

struct sim_conn {
	double free_ns;   /* when the port is free again */
	double last_ns;   /* arrival of the last message put in flight */
	double handed_ns; /* when the rest of its messages fits the buffers */
	uint64_t n_arrived, n_sent, n_messages;
	uint32_t head, tail; /* in flight */
	uint32_t to_thread, from_thread;
	uint32_t src, dst;
	uint16_t lane;
	bool is_shared; /* the network says when its messages have left */
};

struct sim_thread {
	double ready_ns;
	uint64_t step, n_steps;
	uint64_t recv_index, send_index, bytes;
	uint32_t recv[SCHED_FAN], send[SCHED_FAN]; /* connections of the step */
	uint32_t n_recv, n_send;
	uint32_t rank;
	bool is_source;  /* receives nothing, ever */
	bool is_paused;  /* a source: until a connection of its has nothing to send */
	bool is_reduced; /* what the step receives */
};

struct sim_flight {
	double at_ns, sent_ns;
	uint32_t next;
};

struct sim {
	const struct sched *s;
	const struct sim_cost *cost;
	const struct sim_ranks *ranks; /* or NULL */
	const struct sim_watch *watch; /* or NULL */
	struct sim_heap *heap;         /* of all ops that are simulated together */
	uint32_t number;               /* of this one among them */
	struct sim_net *net;           /* that they share; NULL: this one is alone */
	uint32_t first_flow;           /* of its connections there */
	double wire_factor;            /* bytes there for each of a message */
	/* the simulation's own */
	struct sim_conn *conns;     /* owned, by source */
	uint32_t *conn_start;       /* owned, n_ranks + 1 */
	struct sim_thread *threads; /* owned, by rank */
	uint32_t *thread_start;     /* owned, n_ranks + 1 */
	double *reducer_free;       /* owned, by rank */
	struct sim_flight *flights; /* owned */
	uint32_t n_flights, capacity_flights, free_flight;
	double end_ns;
	uint64_t n_messages;
};

/* @sim: its public part is filled in. Return: 0; as sim_run(). sim_deinit() in any case. */
int sim_init(struct sim *sim, struct err *err);
void sim_deinit(struct sim *sim);
/* Ranks begin, each as much later as @start_ns says. Return: 0; -ENOMEM, -EDEADLK without a
 * sentence, as below; a cost's own error. */
int sim_start(struct sim *sim, double start_ns);
/* The event at the heap's top: the first message in flight of connection @number arrives. */
int sim_arrive(struct sim *sim, uint32_t number);
/* Of a shared connection: a message whose transmission began at @sent_ns has left at @now_ns;
 * @is_idle: none waits there. */
int sim_left(struct sim *sim, uint32_t number, double sent_ns, double latency_ns, double now_ns,
	     bool is_idle);
/* The sentence for what failed, or for what remains when no event is left. */
int sim_end(const struct sim *sim, int r, struct err *err);
