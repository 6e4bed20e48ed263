/* What the ranks of one job did, and when: operators of the host and its calls of CUDA, kernels,
 * copies, collectives, messages. Readers of several forms fill it (trace/read.h,
 * nbox/trace/load.h); clocks are aligned in it (trace/clocks.h); replays and predictions stand on
 * it.
 *
 * Times are nanoseconds since the trace's origin, by the clock of the rank's host: those of two
 * hosts compare only once they are aligned. An op's number is its place in ops: those of a rank
 * follow each other by start, and of two that start together the longer one comes first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define TRACE_NONE UINT32_MAX
#define TRACE_OPS_MAX (1 << 24)    /* of all ranks: 1.6 GB of memory */
#define TRACE_RANKS_MAX (1 << 20)  /* of a world */
#define TRACE_TRACED_MAX (1 << 14) /* of them, those that have a trace */

enum trace_kind {
	TRACE_HOST,       /* an operator of the framework, or a range that the user named */
	TRACE_CALL,       /* a call of CUDA's runtime or driver, such as a launch */
	TRACE_SYNC,       /* a call or an operator that waits: for its waits */
	TRACE_COMPUTE,    /* a kernel, or computation of which no more is known */
	TRACE_COPY,       /* a copy, or a fill */
	TRACE_COLLECTIVE, /* one member's part of it; also a group of sends and receives */
	TRACE_SEND,       /* of one message; of a hop of a collective, where the trace has these */
	TRACE_RECV,       /* from when it was posted on, perhaps long before the message came */
	TRACE_KINDS
};

struct trace_op {
	double start_ns, end_ns; /* end_ns >= start_ns */
	uint64_t bytes;  /* COLLECTIVE: count times type, as NCCL's call takes it; others: that
			    it moves; 0: not known */
	uint64_t seq;    /* of the op in its communicator; UINT64_MAX: not known */
	uint32_t kind;   /* enum trace_kind */
	uint32_t rank;   /* number in ranks */
	uint32_t stream; /* of the GPU; of HOST, CALL and a SYNC of the host: the thread */
	uint32_t name;   /* trace_name() */
	uint32_t step;   /* number of the iteration; TRACE_NONE: in none */
	uint32_t coll;   /* COLLECTIVE, and a SEND or RECV of its hop: enum coll_kind; else
			    TRACE_NONE */
	uint32_t comm;   /* number in comms; TRACE_NONE */
	uint32_t peer;   /* SEND, RECV: rank of the world; COLLECTIVE: the root, so; TRACE_NONE */
	uint32_t join;   /* ops of the same number are one collective, or the ends of one
			    message; TRACE_NONE: it is alone */
	uint32_t launched_by; /* of the GPU: the CALL, else the HOST op, that started it;
				 TRACE_NONE */
	uint32_t parent;     /* HOST, CALL, SYNC: the op of the host that contains it; TRACE_NONE */
	uint32_t first_wait; /* what it waited for, besides the op before it on its stream and its
				launch: in waits */
	uint32_t n_waits;
	uint32_t first_call; /* of a group, its sends and receives: in calls */
	uint32_t n_calls;    /* 0: not known */
};

struct trace_rank {
	uint32_t rank;     /* of the world */
	uint32_t host;     /* whose clock it has: number in hosts */
	uint32_t first, n; /* its ops */
};

struct trace_comm {
	uint32_t name;
	uint32_t n;        /* members */
	uint32_t *members; /* owned; ranks of the world; NULL: not known */
};

struct trace_wait {
	uint32_t op, on;
};

struct trace_call {
	uint32_t peer; /* rank of the world */
	bool is_send;
	uint64_t bytes;
};

struct trace {
	uint64_t origin_ns; /* since 1970, by the hosts' clocks; 0: not known */
	uint32_t world;     /* ranks of the job, also those without a trace */
	uint32_t n_warm_up; /* iterations, from the first, that its writer leaves out of means */
	struct trace_op *ops;
	struct trace_rank *ranks; /* by rank of the world */
	uint32_t *hosts;          /* names */
	struct trace_comm *comms;
	struct trace_wait *waits; /* by op */
	bool has_guessed_waits;   /* they are those of trace_guess_waits() */
	struct trace_call *calls; /* in the order in which they came */
	uint32_t *joined;         /* ops, by join */
	uint32_t *first_joined;   /* in joined, for each join and behind the last one */
	uint32_t n_ops, n_ranks, n_hosts, n_comms, n_waits, n_calls, n_joins;
	struct trace_build *build; /* what is needed while it is made */
};

const char *trace_name(const struct trace *t, uint32_t name);
/* Number of a rank of the world; TRACE_NONE: it has no trace. */
uint32_t trace_rank(const struct trace *t, uint32_t rank);
const char *trace_kind_name(uint32_t kind); /* "compute" */
void trace_deinit(struct trace *t);

/* --- to make one, from zeros -------------------------------------------------------------------
 */

/* Number of a name; of a host, by its name; made safe to print (base/plain.h). Return: 0; -ENOMEM.
 */
int trace_add_name(struct trace *t, const char *name, uint32_t *ret);
int trace_add_host(struct trace *t, const char *name, uint32_t *ret);
/* Return: 0; -EEXIST: it is there (*ret is it); -ENOMEM. */
int trace_add_rank(struct trace *t, uint32_t rank, uint32_t host, uint32_t *ret);
/* The communicator of that name and these members, at first or again. @members: copied; NULL: not
 * known. Return: 0; -ENOMEM. */
int trace_add_comm(struct trace *t, const char *name, uint32_t n, const uint32_t *members,
		   uint32_t *ret);
/* As they come: launched_by and waits are numbers in this order; parent, join and the op's waits
 * are found by trace_finish(). Return: 0; -EINVAL: the times are none, -EFBIG: too many, both with
 * the sentence; -ENOMEM. */
int trace_add_op(struct trace *t, const struct trace_op *op, uint32_t *ret, struct err *err);
int trace_add_wait(struct trace *t, uint32_t op, uint32_t on);
/* A call of the group that is added next. Return: 0; -ENOMEM. */
int trace_add_call(struct trace *t, const struct trace_call *call);
