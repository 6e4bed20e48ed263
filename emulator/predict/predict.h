/* How long an iteration takes, without running it: each rank's ops, one after the other, on a host
 * that launches kernels and two streams, of computation and of communication. Algorithm 1 of Lin et
 * al., "Towards Universal Performance Modeling for Machine Learning Training on Multi-GPU
 * Platforms", and the same with the order that events have. Times are nanoseconds from the
 * iteration's beginning. Pure. */
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

struct predict_op {
	/* Its kernels; those of a rank stand together, in the order of its ops. Without any @first
	 * is where they would stand. */
	uint32_t first, n;
	/* The collective that it is one rank's part of, below n_joins: its last kernel, and no
	 * other, is a PREDICT_COLLECTIVE. PREDICT_NONE: none. */
	uint32_t join;
	/* An op before it of this rank, a collective, which it waits for: it reads its output.
	 * PREDICT_NONE: none. */
	uint32_t after;
	bool is_sync; /* the host goes on once the computation is over, as after a copy to it */
	const struct predict_host *host;
};

struct predict_rank {
	uint32_t first, n; /* its ops, in their order */
};

/* All borrowed. */
struct predict_task {
	const struct predict_rank *ranks;
	const struct predict_op *ops;
	const struct predict_kernel *kernels;
	uint32_t n_ranks, n_ops, n_kernels, n_joins;
};

enum predict_sync {
	/* A collective begins when all its ranks have come, and keeps nobody waiting but those that
	 * read its output. */
	PREDICT_EVENT,
	/* As printed: it ends when that of the last rank does; and each collective waits for the
	 * one before it on the stream of computation, too. */
	PREDICT_PAPER
};

struct predict_time {
	/* When it could begin for all that its rank knows: a collective's rank has come. */
	double ready;
	double start, end;
	double host; /* when the host launched it */
	/* What it waited for last: a kernel, of this or, where the kernel is a collective's, of
	 * another rank; PREDICT_NONE: the host. */
	uint32_t by;
	uint32_t host_by; /* the kernel that the host waited for before it; PREDICT_NONE: none */
	uint32_t rank, op;
};

struct predict_front {
	double host, compute, comm; /* when each is over */
	double active;              /* the GPU has worked */
	double exposed;             /* communication, waiting in it too, without computation */
	double sum[PREDICT_CLASSES];
	uint32_t host_by, compute_by, comm_by; /* kernels; PREDICT_NONE */
};

struct predict {
	double ns;
	uint32_t last;               /* the rank that ends last */
	double baseline;             /* the longest stream, by the sum of its kernels */
	struct predict_front *ranks; /* owned, as all here */
	struct predict_time *kernels;
};

/* Return: 0; -ELOOP, collectives wait for each other: *ret_op is one that its rank cannot begin;
 * -ENOMEM. */
int predict_play(const struct predict_task *t, enum predict_sync sync, struct predict *ret,
		 uint32_t *ret_op);
void predict_deinit(struct predict *p);
