/* An op record: what the job's call said, its gate, and the progress thread's side of it. The
 * calling thread makes it. Once its arrive is in the stream it belongs to the device, and then to
 * the progress thread, until that puts it back into its communicator's pool. A record that was
 * captured into a graph is persistent: each replay arms it again, and it lives as long as the
 * process. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "player/player.h"
#include "schedule/schedule.h"
#include "shim/gate/device.h"
#include "shim/progress/note.h"
#include "wire/wire.h"

struct comm;

/* An incoming connection of a running op. The three numbers count messages; one that has arrived
 * and is posted is delivered to the player. */
struct op_conn {
	uint64_t key; /* peer << 16 | lane, + 1; 0: free slot */
	uint64_t arrived, posted, delivered;
};

struct op_run {
	uint64_t seq;
	uint32_t passes;   /* so far: which of the gate's times are this run's */
	uint64_t start_ns; /* arrival, own clock */
	/* Valid when has_end: */
	uint64_t due_ns;         /* own clock */
	uint64_t ahead_ns;       /* nboxd's clock less ours then, as a difference of both */
	uint64_t clock_error_ns; /* how wrong that is at most */
	bool is_live, has_end, is_open;
	bool is_due; /* waits for due_ns in a list of play.c */
	struct sched sched;
	struct player_data data;
	struct player *player; /* NULL in exchange none */
	struct op_conn *conns; /* open addressing; kept for the next run */
	uint32_t n_conns, conn_slots;
	uint64_t n_sent, n_received;
	uint64_t n_awaited; /* that no player waits for: of puts and signals. Valid when has_end */
};

struct op {
	struct gate gate;
	const struct device *dev;
	struct comm *comm;     /* holds a reference from arrive to passed */
	struct op *next;       /* in the pool, or in a list of the communicator's live ops */
	struct op *group_next; /* the calling thread's list, of its group */
	struct op *kept_next;  /* see op_keep() */
	bool is_persistent;
	uint64_t called_seq;     /* its number when it was called, as in frames */
	uint32_t replays;        /* of a captured op: so far, with this one; 0: not captured */
	struct wire_arrive call; /* arrive_ns is filled at each arrival */
	struct sched_p2p *p2p;   /* owned */
	uint32_t p2p_capacity;
	struct wire_dep *deps; /* owned; what it waits for: call.n_deps */
	uint32_t deps_capacity;
	struct note arrived, passed;
	/* Full mode: whether NCCL told what it took, or tells nothing: play_decided() */
	_Atomic bool is_decided;
	struct wire_took took; /* written before @decided is posted */
	struct note decided;
	struct op_run run; /* the progress thread's alone */
};

/* Records of a communicator that are not in use. */
struct op_pool {
	pthread_mutex_t lock;
	struct op *first;
	const struct device *dev;
};

void op_pool_init(struct op_pool *p, const struct device *dev);
void op_pool_deinit(struct op_pool *p);
/* Frees what is in it. */
void op_pool_empty(struct op_pool *p);
/* From the pool, or new. Return: NULL when there is no memory. */
struct op *op_get(struct op_pool *p);
void op_put(struct op_pool *p, struct op *op);
/* A captured op belongs to graphs that may be replayed as long as the process lives:
 * it and its communicator are kept for good, on a list. */
void op_keep(struct op *op);
struct op *op_free(struct op *op); /* returns NULL */
/* What it waits for (copied). Return: 0 or -ENOMEM. */
int op_set_deps(struct op *op, const struct wire_dep *deps, uint32_t n);
/* Adds a point-to-point call. Return: 0 or -ENOMEM. */
int op_add_p2p(struct op *op, uint32_t peer, bool is_send, uint64_t bytes);
