/* The steps of a training job, found in the ops of one rank: what repeats and holds a backward
 * pass.
 *
 * A backward pass shows in what reduces gradients (all-reduce, reduce-scatter, reduce); in a job
 * that reduces next to nothing beside what it sends, such as a pipeline without data parallelism,
 * in what is sent and received. A communicator is looked at alone: its ops come in the same order
 * in each step, while those of several communicators may overtake each other. The one that carries
 * most comes first; where another one's steps are half as many, or fewer, the first has parts of
 * them, such as the passes of tensor parallelism. What repeats there is taken for a step when it
 * holds nearly all of the reductions and comes evenly in time, and when its computation waited for
 * the step before. What happens between steps, such as an evaluation or a value that is logged
 * every ten steps, does not disturb.
 *
 * Steps that cannot be told from parts of steps are not told at all: then there are none, and a
 * reason. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/record-read.h"

struct step {
	uint64_t first, end; /* rows [first, end), of all communicators */
	bool is_timed;       /* the next step follows at once, so rows[end] begins it */
};

struct steps {
	struct step *list;  /* owned; in order */
	uint64_t n;         /* 0: none were found */
	uint64_t n_warm_up; /* of them, the first ones: longer or shorter than the others */
	uint64_t n_timed;   /* of the others */
	uint64_t n_ops;     /* of a timed step, the median */
	char how[256];      /* what was taken for a step; why there are none */
	char rule[96];      /* for --steps of another run; "": it takes more than a rule */
};

/* For qsort() of struct record_op: by rank, then by virtual arrival. */
int steps_order(const void *a, const void *b);
/* @rows: of one rank of @rec, in that order. @rec NULL: nothing is known of what computation waited
 * for. Takes O(n log n). Return: 0; -ENOMEM. */
int steps_find(const struct record *rec, const struct record_op *rows, uint64_t n,
	       struct steps *ret);
void steps_deinit(struct steps *s);
