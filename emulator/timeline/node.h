/* What the timelines are made of: a rank's nodes, found by their names. The room's own. */
#pragma once

#include <math.h>
#include <uthash.h>

#include "timeline/timeline.h"

/* Times of a node: of its real rank and of those that it is the template of. */
struct times {
	double *each; /* owned; NULL: all have @all */
	double all, plain;
};

struct timeline_node {
	struct timeline *of; /* borrowed */
	uint64_t name;
	double reached;           /* by the wall clock */
	double wall;              /* that too; an op's: its gate opened, or is due */
	double slip;              /* of the computation that led here, >= 0 */
	double window;            /* that the rank has computed since it waited for an op */
	double ready;             /* an op's: what it waited for, but for ops, at the real rank */
	double startable;         /* the same, with ops */
	struct times at;          /* a point's; an op's arrival */
	struct times end;         /* an op's */
	uint64_t host;            /* a name, or 0 */
	uint64_t number, covered; /* of the point; of the host's point that came after it, or 0 */
	bool is_op, is_over;
	bool is_open;                 /* its gate has opened at @wall */
	bool is_used;                 /* an op's end is in the times of others */
	bool is_moved;                /* op.c: while others are */
	bool is_forgotten;            /* not in the table any more */
	uint32_t n_holders;           /* the owner of an op, and the op after it */
	uint32_t queue;               /* its number; 0: none */
	struct timeline_node *before; /* in the queue, held; NULL: none, or of no use any more */
	struct timeline_node *older, *newer;
	UT_hash_handle hh;
	size_t n_deps;
	uint64_t deps[]; /* names */
};

struct queue {
	uint32_t number;
	struct timeline_node *last;
	UT_hash_handle hh;
};

/* Of one real rank. */
struct timeline {
	struct timelines *all;  /* borrowed */
	uint32_t *ranks;        /* owned, sorted: itself and those that it is the template of */
	uint32_t n_ranks, self; /* ranks[self] is itself */
	struct timeline_node *by_name; /* hash, owned */
	struct timeline_node *oldest;  /* list, in the order in which they were asked for last */
	struct timeline_node *latest;  /* that came; NULL: none yet */
	struct queue *queues;          /* hash, owned: those with nodes */
	uint32_t n_nodes, n_each;
	double *spare; /* of a node that was forgotten */
	uint64_t n_segments;
	double exposed_until;
};

struct timelines {
	struct topology topology;
	struct timeline_what_if what_if; /* segment NULL: none */
	uint64_t epoch_ns;               /* 0: no point yet */
	uint32_t n_real;
	uint32_t *real;      /* owned */
	uint32_t *template;  /* owned; by world rank: index into @real */
	uint32_t *index;     /* owned; by world rank: into the ranks of its timeline */
	struct timeline *of; /* owned; as @real */
};

/* --- times ---------------------------------------------------------------------------------- */

static inline double time_of(const struct times *t, uint32_t i)
{
	return t->each ? t->each[i] : t->all;
}

static inline double real_time(const struct timeline_node *n, const struct times *t)
{
	return time_of(t, n->of->self);
}

/* What those that wait for @n wait for. */
static inline const struct times *times_after(const struct timeline_node *n)
{
	return n->is_over ? &n->end : &n->at;
}

static inline double wall_of(const struct timelines *t, uint64_t ns)
{
	return ns >= t->epoch_ns ? (double)(ns - t->epoch_ns) : -(double)(t->epoch_ns - ns);
}

/* Rounded up, but for what sums of doubles are wrong by. A record may hold any times: 292 years are
 * the most. */
static inline uint64_t ns_of(const struct timelines *t, double at)
{
	double up = fmax(-0x1p63, fmin(ceil(at - 1e-3), 0x1p63));

	return up >= 0 ? t->epoch_ns + (uint64_t)up : t->epoch_ns - (uint64_t)-up;
}

/* Room for one time a rank; NULL: no memory. */
double *each_new(struct timeline *t);
void each_free(struct timeline *t, double **each);
/* Ranks that have come together again are one. */
void times_fold(struct timeline *t, struct times *x);

/* --- nodes ---------------------------------------------------------------------------------- */

/* NULL: none, or forgotten. What is still asked for stays: a host may wait seldom. */
struct timeline_node *node_find(struct timeline *t, uint64_t name);
/* The timeline owns it from now on, and forgets others when there are too many. */
void node_add(struct timeline *t, struct timeline_node *n);
/* @n is the last in queue @number from now on. Return: 0; -ENOMEM. */
int node_line_up(struct timeline_node *n, uint32_t number);
void node_forget(struct timeline_node *n);
