/* The buckets of a data-parallel job, found in its record: all-reduces that the backward pass
 * starts one after the other, and that nothing waits for before the last one is ready, as with
 * PyTorch's DistributedDataParallel. What one of them holds a record does not say: the finest plan
 * is made of whole ones. */
#pragma once

#include "replay/replay.h"

/* The same all-reduces in one communicator: of the rank whose times these are, or of others that
 * have the like in theirs, such as the ranks of a tensor-parallel group. */
struct found_comm {
	uint32_t comm;  /* a number */
	uint64_t *seqs; /* owned; the first all-reduce of each step, by its number there */
	uint32_t n_steps;
};

/* Of a step; virtual ns. */
struct found_times {
	double *ready; /* when each all-reduce was at all ranks, after the step's beginning; never
			  falling */
	double *lead;  /* at least so long after the one before it is over it begins */
	double *after; /* what computation did behind the wait for each, before the next one */
	double end;    /* when computation waited for them */
	double step_ns;
	uint32_t number; /* among all steps of the communicator */
};

struct found {
	uint32_t rank;            /* the lowest real one: whose times these are */
	struct found_comm *comms; /* owned; @rank's first */
	uint32_t n_comms;
	uint32_t elem_bytes;
	uint32_t n;                /* all-reduces of a step */
	uint64_t *bytes;           /* owned; of each */
	struct found_times *times; /* owned; of n_timed steps that follow others; behind them their
				      medians */
	double *room;              /* owned; where their lists lie */
	uint32_t n_timed;
	bool has_no_edges; /* nobody saw when they were ready: when they began stands for it */
};

/* Of a re-timed run; all borrowed. */
struct found_rows {
	const struct rows_graph *graph;     /* whose ops have virtual times */
	const struct timeline_terms *terms; /* by row */
	const double *lags; /* by row; how much later the last rank that copies it comes there */
};

/* Return: 0; -ENODATA with the sentence: there are no such buckets; -ENOMEM. */
int found_make(const struct found_rows *in, struct found *ret, struct err *err);
/* What a step takes by another record of the same steps, in which the last all-reduce of each has
 * kept its number. 0: not known. */
double found_step_ns(const struct found *f, const struct rows_graph *g);
/* Of @n values, which are sorted; 0 of none. */
double found_median(double *list, uint32_t n);
void found_deinit(struct found *f);
