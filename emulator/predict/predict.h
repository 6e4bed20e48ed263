/* How long an iteration takes, without running it: each rank's ops, one after the other, on a host
 * that launches kernels, a stream of computation and one of communication, in the order of events
 * several. Algorithm 1 of Lin et al., "Towards Universal Performance Modeling for Machine Learning
 * Training on Multi-GPU Platforms", and the same with the order that events have. Times are
 * nanoseconds. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define PREDICT_NONE UINT32_MAX

enum predict_class {
	PREDICT_LOOKUP, /* of embeddings */
	PREDICT_COMPUTE,
	PREDICT_COPY,
	PREDICT_COLLECTIVE,
	PREDICT_CLASSES
};
extern const char *const predict_class_names[PREDICT_CLASSES];

struct predict_kernel {
	double ns;     /* >= 0 */
	uint32_t name; /* the caller's */
	enum predict_class class;
	bool is_with_next; /* the host launches it and the next one of its op at once, as in a
			      graph */
};

/* What the host does around kernels, the paper's T1 to T5; kernels follow each other on a stream
 * after @gap. */
struct predict_host {
	double before; /* T1: between two ops */
	double first;  /* T2: until an op's first launch */
	double last;   /* T3: after its last launch */
	double launch; /* T4: the call; the kernel may start in its middle */
	double next;   /* T5: between two launches; of an op without kernels all that it does */
	double gap;
};
#define PREDICT_GAP_NS 1000 /* the paper's */

/* From one rank to another. */
struct predict_message {
	double ns;    /* from when its sender has come until it is there */
	double taken; /* the share of it that goes before its receiver has come: 1: the sender is
			 over at once */
};

struct predict_end {
	uint32_t message;
	bool is_send;
};

/* An op is an exchange where it is a part of a collective, or has ends of messages: then its last
 * kernel, and no other, is a PREDICT_COLLECTIVE. */
struct predict_op {
	/* Its kernels; those of a rank stand together, in the order of its ops. Without any @first
	 * is where they would stand. */
	uint32_t first, n;
	/* The collective that it is one rank's part of, below n_joins; PREDICT_NONE: none. */
	uint32_t join;
	/* The messages that it sends and receives at once. It is over with the last of them, and
	 * takes no less than its last kernel, for what no other rank of the task has an end of. */
	uint32_t first_end, n_ends;
	/* An exchange before it of this rank, which it waits for: it reads its output. Of an op
	 * that is nothing but an exchange no computation waits with it. PREDICT_NONE: none. */
	uint32_t after;
	/* Of an exchange: those of a rank that have one queue, from 0, come one after the other. */
	uint32_t queue;
	bool is_sync; /* the host goes on once the computation is over, as after a copy to it */
	const struct predict_host *host;
};

struct predict_rank {
	uint32_t first, n; /* its ops, in their order */
	/* Of them, those of the iteration before, which leads in: this one begins at the rank when
	 * they are over, as a stage of a pipeline is behind the one before it. */
	uint32_t n_lead;
	double begin; /* when it begins with them */
};

/* All borrowed. */
struct predict_task {
	const struct predict_rank *ranks;
	const struct predict_op *ops;
	const struct predict_kernel *kernels;
	const struct predict_end *ends; /* each message has two, at two ranks */
	const struct predict_message *messages;
	uint32_t n_ranks, n_ops, n_kernels, n_joins, n_ends, n_messages;
};

enum predict_sync {
	/* A collective begins when all its ranks have come, and keeps nobody waiting but those that
	 * read its output. */
	PREDICT_EVENT,
	/* As printed: it ends when that of the last rank does; and each collective waits for the
	 * one before it, of any communicator, on the stream of computation, too. The paper has no
	 * messages; they are exchanges like collectives. */
	PREDICT_PAPER
};

struct predict_time {
	/* When it could begin for all that its rank knows: an exchange's rank has come. */
	double ready;
	double start, end;
	double host;      /* when the host launched it */
	uint32_t by;      /* the kernel that @ready waited for last; PREDICT_NONE: the host */
	uint32_t peer;    /* of an exchange: another rank's part, from whose @ready on it took until
			     @end; PREDICT_NONE: from its own */
	uint32_t host_by; /* the kernel that the host waited for before it; PREDICT_NONE: none */
	uint32_t rank, op;
};

struct predict_front {
	double begin;               /* of the iteration at this rank */
	double host, compute, comm; /* when each is over, from then on */
	double active;              /* the GPU has worked */
	double exposed;             /* communication, waiting in it too, without computation */
	double sum[PREDICT_CLASSES];
	uint32_t host_by, compute_by, comm_by; /* kernels; PREDICT_NONE */
};

struct predict {
	double ns;                   /* from its own begin on, of the rank that takes longest */
	uint32_t last;               /* that rank */
	double baseline;             /* the longest stream, by the sum of its kernels */
	struct predict_front *ranks; /* owned, as all here */
	struct predict_time *kernels;
};

/* Return: 0; -ELOOP, exchanges wait for each other: *ret_op is one that is never over; -ENOMEM. */
int predict_play(const struct predict_task *t, enum predict_sync sync, struct predict *ret,
		 uint32_t *ret_op);
void predict_deinit(struct predict *p);

static inline bool predict_is_exchange(const struct predict_op *op)
{
	return op->join != PREDICT_NONE || op->n_ends;
}

/* The kernel of an exchange. */
static inline uint32_t predict_kernel_of(const struct predict_op *op)
{
	return op->first + op->n - 1;
}
