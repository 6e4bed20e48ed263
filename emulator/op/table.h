/* The open ops of a communicator: what the files of this room work on.
 *
 *   - A post is one real member's arrival at an op, with a start and an end of its own.
 *   - An op has the posts that carry one number: those of all real members (a collective), or one
 *     (a group of point-to-point calls, which each member counts for itself: WIRE_SEQ_P2P).
 *   - A run is what the engine plays: the posts that are played together. A collective has one run.
 *     Point-to-point calls are played when both their ends are there, so an op of those may be
 *     played by several runs; it is over with the one that ends last. Their messages are on their
 *     way before (messages.h).
 *   - A flow is the messages of one connection from a real rank, counted as they come.
 *
 *   post: arrived → released (all its calls are in runs, or it waits for nobody) → done
 *   op:   freed when all its posts are done, its calls have their pairs and its runs have ended
 *   run:  stays behind its end as long as an op of it: the ends may move */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "engine/border.h"
#include "engine/sim-ranks.h"
#include "engine/timing.h"
#include "op/call.h"
#include "op/comm.h"
#include "op/ops.h"
#include "op/pairing.h"
#include "timeline/timeline.h"
#include "wire/wire.h"

/* A root is ahead of the last member by so many ops at most, as by the steps of NCCL's buffers. */
#define ROOTED_AHEAD_MAX SIM_BUFFER_STEPS

struct post {
	struct op *op;              /* borrowed */
	struct comm_member *member; /* borrowed */
	struct wire_arrive arrive;
	struct record_dep *deps; /* owned; arrive.n_deps, for the record; NULL: none is kept */
	bool has_arrived, is_released, is_done;
	struct post *prev, *next;   /* of those that wait for NCCL, in member_ops */
	uint64_t order;             /* of its arrival, in the record */
	int64_t step;               /* moment.h; 0: before the first */
	uint64_t n_messages;        /* that crossed the link */
	struct timeline_node *node; /* held; NULL: not arrived */
	struct timeline_times arrival, end;
	/* by the run that ends last; start and end by the wall clock */
	uint64_t number, start_ns, end_ns;
	uint64_t told_ns, earliest_ns; /* ends that the worker was told: the last, the earliest */
	double model_ns, injected_ns;
	double shared_ns, queued_ns, waited_ns; /* struct record_op has them */
	uint32_t waited_for;
	uint32_t how, flags; /* flags: of the record */
};

struct awaited;
struct claim;

struct flow {
	uint64_t n_arrived;
	uint64_t turn;   /* of the run that plays it; 0: not yet */
	struct run *run; /* borrowed; there until all its messages are */
	uint32_t out;    /* out-connection of the run's border */
};

/* What a send call's message does: from its sender's arrival on, whether its receiver is there or
 * not (messages.h). [1]: without what-ifs. */
struct message {
	struct claim *claim[2]; /* borrowed; NULL: over, or it uses no links */
	uint32_t entry[2];      /* of the claim */
	uint64_t number[2];     /* of the claim; 0: none */
	double at[2];           /* when it is there, or what the buffers take of it */
	double alone[2];        /* ... if it shared its links with nobody */
	double ns[2];           /* what that takes by itself */
	bool is_part[2];        /* the rest waits for the receiver */
};

/* Whether --alltoall says what its other ranks send: as in the file, or transposed. */
enum matrix_way { MATRIX_NONE, MATRIX_FORTH, MATRIX_BACK };

/* What only an op of point-to-point calls has. */
struct p2p {
	struct op *op;                 /* borrowed */
	struct awaited *awaited;       /* a reference; NULL: it has not arrived */
	struct message *sent;          /* owned, by call; NULL: its messages are not on their way */
	struct timing timing;          /* of these by themselves */
	bool is_below_bound;           /* they are, with others */
	const struct resharding *plan; /* borrowed; it is a part of it; NULL: plain calls */
	uint64_t step;                 /* ... of this one, if that is declared */
	uint32_t flags;                /* RECORD_*, of that */
	double *assumed_ns; /* owned, by call: how long each takes by it; NULL: it says that itself
			     */
	enum matrix_way matrix;  /* alltoall.h */
	struct pair_post pair;   /* its calls are owned */
	struct sched sched;      /* of its calls: the lanes that its worker knows */
	struct sched_p2p *calls; /* owned; the schedule's */
};

struct op {
	struct op_key {
		uint64_t seq;    /* as in frames */
		uint64_t member; /* index into comm->real; 0 for a collective */
	} key;
	struct comm *comm; /* borrowed */
	uint64_t number;   /* in the run of nboxd; point-to-point: its runs have numbers */
	struct call *call; /* of a collective, counted by n_users; else NULL */
	struct p2p *p2p;   /* owned; NULL: it is a collective */
	const struct sched *sched;
	struct flow *flows; /* owned; by out-connection of the call's border; by p2p->calls */
	uint32_t n_flows;
	uint64_t rooted; /* its number among its communicator's ops with a root; 0: it has none */
	uint64_t turn;   /* of the last run with a post of it */
	uint32_t n_posts, n_arrived, n_done;
	uint32_t n_runs;   /* live ones, once for each post */
	uint64_t moved_ns; /* wall clock when it last got on */
	uint64_t warn_ns;  /* next warning */
	const char *held;  /* borrowed; the what-if by which it never completes; NULL: none */
	UT_hash_handle hh; /* comm_ops->ops */
	struct post posts[];
};

/* A point-to-point call, by its number in its op. */
struct run_end {
	struct post *post;
	uint32_t call;
};

/* What an op of the network's holds on to as long as its ends may move (contention.h): a run's
 * ends, or those of messages. */
struct claim {
	struct ops *ops;     /* borrowed */
	struct run *run;     /* borrowed; NULL: it is over */
	struct p2p *p2p;     /* borrowed; of messages: their sender's; NULL: it is over */
	struct claim **held; /* borrowed; cleared when it is forgotten; NULL: by nobody */
	bool is_plain;
	uint32_t n, room;
	struct claimed {
		struct timeline_node *node; /* held, of a run's post; NULL: of a message */
		struct awaited *post;       /* a reference; a message's: whose call it ends */
		uint32_t call;              /* of that one */
		uint32_t sent;              /* UINT32_MAX, or the message of @p2p */
		double end;                 /* of this run at the real rank; NAN: as the node's */
	} * of;                             /* owned */
};

struct engine_op;

struct run {
	struct comm *comm;   /* borrowed */
	struct post **posts; /* owned list, borrowed posts; by member, then seq; NULL: gone */
	uint32_t n_posts;
	struct call *call;           /* borrowed; NULL: point-to-point */
	const struct border *border; /* the call's, or @p2p_border; NULL: exchange none */
	struct border p2p_border;    /* owned */
	struct run_end *to;          /* owned; point-to-point: by in-connection */
	double *ends;         /* owned; all to all: by post, in virtual time; then the plain ones */
	struct timing timing; /* owned */
	bool has_messages;    /* point-to-point, not all to all: they have claims */
	struct usage *usage;  /* a reference; of all to all; NULL: it uses no links */
	double waits_ns;      /* for links that other ops use, or that what-ifs change */
	double later_ns[2];   /* of these, what links do to the op by itself; [1]: without
			       * what-ifs */
	bool is_below_bound;  /* with others */
	bool is_by_matrix;    /* --alltoall says what all ranks send */
	struct claim *claim[2];      /* borrowed; with what-ifs, without; NULL: none */
	struct engine_op *engine_op; /* NULL: the engine has ended it */
	uint64_t number, turn;       /* turn: number + 1 */
	uint64_t start_ns, end_ns;   /* the earliest start, the latest end of its posts */
	struct run *prev, *next;
};

/* A communicator's. */
struct comm_ops {
	struct op *ops;     /* hash, and list in the order of arrival; owned */
	struct run *runs;   /* list, owned */
	struct calls calls; /* of collectives */
	struct pairing pairing;
	/* of ops with a root: n_rooted have been called, n_started are played; when the members of
	 * the last ones have come, by number, with what-ifs and without */
	uint64_t n_rooted, n_started;
	struct wire_arrive before; /* failing.c: of its last collective */
	bool has_before;
	double came[ROOTED_AHEAD_MAX], plain_came[ROOTED_AHEAD_MAX];
	/* rule.c: whether some rank copies a real rank that is no member */
	bool lacks_template, is_looked_at;
	/* owned, by rank: until when its connections send, with what-ifs, then without; NULL: they
	 * are free */
	double *busy;
	struct member_ops {
		uint64_t next[2]; /* number of its next collective, of its next point-to-point op */
		/* as they arrived; the first one is undecided, unless there were too many (op.c) */
		struct post *waiting;
		uint32_t n_waiting;
		bool is_any_order;
		uint64_t claimed[2]; /* contention.c: number of its last op, with what-ifs, without
				      */
	} members[];                 /* as comm->real */
};

static inline bool seq_is_p2p(uint64_t seq)
{
	return seq & WIRE_SEQ_P2P;
}

/* Finds or makes. NULL: no memory. */
struct comm_ops *comm_ops_get(struct comm *c);
/* All ops end, without a word to their members; calls and numbers are forgotten. */
void comm_ops_free(struct comm *c);

struct op *op_find(const struct comm *c, uint64_t seq, size_t member); /* NULL: there is none */
/* Without what it calls. NULL: no memory. */
struct op *op_new(struct comm *c, uint64_t seq, size_t member);
/* Frees an op that is over. */
void op_maybe_free(struct op *op);
struct run *run_free(struct run *run); /* NULL allowed; returns NULL */
/* The engine has ended it. */
void run_end(struct run *run);

/* @member's post of @op. */
struct post *op_post(struct op *op, const struct comm_member *member);
/* The post whose timeline has @world_rank, which is @rank here. Where its template is not in this
 * communicator another stands in: timeline_arrival() knows how late its ranks come. */
const struct post *op_post_with(const struct op *op, uint32_t rank, uint32_t world_rank);
/* Of the posts that are on their timelines, the first; of none, the first of all. */
const struct post *op_first_arrived(const struct op *op);

/* "op 12 (AllReduce)", "point-to-point op 12". Return: @buf. */
char *op_title(uint64_t seq, uint32_t kind, char *buf, size_t size);
/* "op 12 of communicator 3", "point-to-point op 12 of rank 1, communicator 3". Return: @buf. */
char *op_name(uint64_t seq, uint32_t rank, uint32_t comm, char *buf, size_t size);
#define OP_NAME_MAX 128
