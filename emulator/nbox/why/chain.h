/* One rank of a re-timed run, real or virtual, as a chain of what waits for what: the terms of
 * timeline/timeline.h, with virtual times in nanoseconds since the run's first row. What an op
 * takes beyond its start stays as it is; then the times follow from each other. */
#pragma once

#include "engine/record-rows.h"
#include "nbox/why/lags.h"
#include "replay/replay.h"

#define CHAIN_NONE UINT32_MAX
#define CHAIN_ROUNDED_NS 2 /* rows have whole nanoseconds, and what they wait for has not */

struct chain_row {
	const struct rows_row *row;
	struct timeline_terms terms;
	const struct record_op *op;       /* of the re-timed run; NULL: a point. A virtual rank's
					     rows are its template's */
	const struct record_point *point; /* NULL: an op */
	uint32_t before;       /* an op's: the op before it in its communicator, or CHAIN_NONE */
	double at, start, end; /* a point's are one */
	double off;            /* of at: what the terms do not say; ops that moved each other */
};

struct chain {
	const struct rows_graph *graph; /* borrowed */
	struct chain_row *rows;         /* owned; in the order of the graph */
	uint32_t n;
	uint32_t *place; /* owned; by row of the graph: in @rows, or CHAIN_NONE */
	uint64_t epoch;
};

/* Borrowed, and needed as long as chains that are made of it. */
struct chain_source {
	const struct rows_graph *graph;
	const struct record *rec;           /* replay_play()'s, of @graph */
	const struct timeline_terms *terms; /* of the same replay */
	const struct lags *lags; /* of the same run; NULL: of real ranks only there are chains */
};

/* The chain of @rank, which computes as @template, itself if it is real. A virtual rank's has the
 * rows that its lags are known at, in virtual times of its own. Return: 0; -ENOMEM. */
int chain_make(const struct chain_source *from, uint32_t rank, uint32_t template,
	       struct chain *ret);
void chain_deinit(struct chain *c);
/* When others are reached and over; arrays by row. */
struct chain_times {
	double *at, *end;
	bool without_ops; /* nothing waits for ops */
};

/* When row @i is reached, but for its off; -INFINITY: it waits for nothing. @ret_by: the row that
 * it waited for last, or CHAIN_NONE. */
double chain_reached(const struct chain *c, uint32_t i, const struct chain_times *t,
		     uint32_t *ret_by);
/* Where row @i, a collective, waited for a rank: that is as late as it is behind this rank's
 * computation, which goes on meanwhile. That is reached at *ret_at, after row *ret_by. Return:
 * false: it waited for nobody, or for calls of a peer. */
bool chain_computed(const struct chain *c, uint32_t i, const struct chain_times *t, double *ret_at,
		    uint32_t *ret_by);
/* Whether row @by, which @i waits for, was over by then: else it waits for its start. */
bool chain_is_over(const struct chain *c, uint32_t i, uint32_t by);
/* Fills @t where the ops that @is_late says take @ns more. @was: chain_times_make()'s. */
void chain_delayed(const struct chain *c, const struct chain_times *was,
		   bool (*is_late)(const void *ctx, const struct record_op *), const void *ctx,
		   double ns, struct chain_times *t);
/* Room for the times of @c, as the run has them. Return: 0; -ENOMEM. */
int chain_times_make(const struct chain *c, struct chain_times *ret);
void chain_times_deinit(struct chain_times *t);
