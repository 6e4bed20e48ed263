/* A job as ranks recorded it: what each computed on which stream, which ops of which communicators
 * it called, and what waited for what. A record (of-record.h) or traces (of-trace.h) become one;
 * play.h makes the global data-flow graph of it. Times are nanoseconds since the first row. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "schedule/sched.h"
#include "topology/membership.h"
#include "topology/topology.h"

#define JOB_NONE UINT32_MAX

/* A stretch of computation, then what it led to: an op, or nothing more. */
struct job_row {
	uint32_t rank;   /* index of the job's */
	uint32_t stream; /* index: that it computes on, one stretch at a time; JOB_NONE: on none */
	uint32_t name;   /* index; JOB_NONE: none */
	uint32_t op;     /* index; JOB_NONE: none */
	double ns;       /* of computation */
	double plain_ns; /* the same without what-ifs */
	double at, end;  /* as recorded: computed; the op is over */
};

/* The first row of a job: rows that wait for nobody come behind it when they came. */
extern const struct job_row job_begin;

enum job_edge_flags {
	JOB_OF_ARRIVAL = 1, /* from when the row before had computed, not from its op's end */
	JOB_SKIPS_WORK = 2  /* the row after may have computed already */
};

struct job_edge {
	uint32_t before, after; /* rows */
	uint32_t flags;
	double lag_ns;
};

/* One op of a communicator; of sends and receives, one rank's group of calls. */
struct job_op {
	uint32_t comm, kind, root, algo, elem_bytes;
	struct sched_took took;
	uint64_t bytes;    /* as struct sched has them */
	double ns;         /* it took when all had come; < 0: not known */
	double extra_ns;   /* what what-ifs add to it as a whole; may be negative */
	uint64_t number;   /* in the run, for what is drawn */
	uint32_t first, n; /* of members: the rows that are in it */
	uint32_t first_call, n_calls;
};

struct job_call {
	uint32_t peer; /* world rank */
	bool is_send;
	uint64_t bytes;
};

struct job_comm {
	struct membership members; /* its table is owned, or NULL */
	uint32_t *copies;          /* owned; by rank: the index of the job's rank that it does as */
	uint32_t ranks_per_node;
	uint32_t of;   /* the record's that it is the like of, for ranks that are told apart */
	bool is_alone; /* of one rank's ops: with whom it has them is not known */
};

/* From when one row of the first rank was reached until another was. */
struct job_step {
	uint32_t from, to;
};

struct job_stream {
	uint32_t rank; /* index */
	uint32_t number;
};

/* All lists owned. */
struct job {
	struct topology topology;
	uint32_t world;
	/* World ranks: those that were recorded, sorted, then others that do not do as these do,
	 * sorted, too. */
	uint32_t *ranks, n_ranks, n_recorded;
	uint32_t *n_alike; /* by rank: how many ranks of the world it stands for; NULL: one each */
	struct job_row *rows;
	struct job_edge *edges;
	struct job_op *ops;
	uint32_t *members;
	struct job_call *calls;
	struct job_comm *comms;
	struct job_stream *streams;
	struct job_step *steps; /* timed iterations; none: from begin to end */
	char **names;
	uint32_t n_rows, n_edges, n_ops, n_calls, n_comms, n_streams, n_steps, n_names;
	char steps_how[256];
};

void job_deinit(struct job *j);
/* Add to a list. Return: 0; -ENOMEM. */
int job_add_row(struct job *j, const struct job_row *row);
int job_add_edge(struct job *j, uint32_t before, uint32_t after, uint32_t flags, double lag_ns);
int job_add_call(struct job *j, const struct job_call *call);
int job_add_op(struct job *j, const struct job_op *op);
int job_add_step(struct job *j, uint32_t from, uint32_t to);
/* Says which rows are in each op, once all are there. Return: as above. */
int job_find_members(struct job *j);
/* The stream of that rank (an index); it is made where it is new. Return: JOB_NONE: no memory. */
uint32_t job_stream(struct job *j, uint32_t rank, uint32_t number);
/* Whether it sends to another stage, or receives from one, and not to all ranks at once. */
bool job_op_is_of_stage(const struct job *j, const struct job_op *op);
/* A copy of @name. Return: its index; JOB_NONE: no memory. */
uint32_t job_name(struct job *j, const char *name);
/* The index of @world_rank; JOB_NONE: another stands for it. */
uint32_t job_rank(const struct job *j, uint32_t world_rank);
