/* Whose computation a predicted iteration waits for. */
#pragma once

#include "predict/predict.h"

/* What one rank did between a collective and the exchange before it; of messages, in all of the
 * iteration. */
struct blame_stretch {
	double sum[PREDICT_CLASSES]; /* of its kernels */
	double host;                 /* what its host did meanwhile */
};

/* One collective, or all messages of which one rank comes later than the other end. */
struct blame {
	uint32_t join; /* PREDICT_NONE: messages */
	uint32_t n_ranks;
	uint32_t op;     /* the culprit's: it came last; of messages, that kept longest waiting */
	uint32_t rank;   /* the culprit */
	double wait_sum; /* of all ranks, for it: more than could be won */
	double wait_max;
	struct blame_stretch stretch; /* the culprit's */
	/* Of all ranks' kernels in their stretches, the lower one of the middle two. */
	double median;
	/* How much sooner the iteration would be over if the culprit's kernels took @median
	 * together; of messages, and those of ranks that are nearer to it than to the median, such
	 * as the others of a stage. NAN: not asked. */
	double won;
};

/* Of each collective that more than one rank has, and of each rank that others wait for in
 * messages; the most worth first. Plays @t again for the @n_asked with the longest waits. *ret: the
 * caller's, by free(). Return: 0; -ENOMEM. */
int blame_find(const struct predict_task *t, enum predict_sync sync, const struct predict *p,
	       uint32_t n_asked, struct blame **ret, uint32_t *ret_n);

/* The share of the iteration in which communication is not hidden, of the rank that has least of
 * it: the one that waits for nobody. */
double blame_comm(const struct predict_task *t, const struct predict *p);
/* How much longer than the mean the slowest rank's kernels of @class take together, as a share of
 * the iteration. */
double blame_imbalance(const struct predict_task *t, const struct predict *p,
		       enum predict_class class);
