/* Plays the rows of a record on ops: a replay's own, or those of a live run, where other ranks have
 * processes. A row is taken when all rows that it follows are over. Two kinds of events wait for
 * their time: the arrival of a post, which is told to its op, and the end of a post, which lets the
 * rows that follow go on. An end that moves waits on. No clock: the owner says how far virtual time
 * has come. */
#pragma once

#include "engine/sim-heap.h"
#include "op/ops.h"
#include "replay/rows.h"

struct comm;

/* What an owner wants to know; NULL: nothing. */
struct player_sink {
	/* @op, of @kind, was made for a row. Return: whether it is still there. */
	bool (*opened)(void *ctx, struct op *op, uint32_t kind);
	/* A row of an op is taken; a point, or an op, is over, and its row filled. */
	void (*taken)(void *ctx, uint32_t row);
	void (*over)(void *ctx, uint32_t row);
	/* An op of @c cannot be played. Return: 0: @c is of no use any more; else @r. */
	int (*failed)(void *ctx, struct comm *c, int r, const struct err *err);
};

struct player {
	/* the owner's, borrowed: */
	const struct rows_graph *graph;
	struct ops *ops;
	struct record *out;           /* a part's: the rows of @graph in the new world; their wall
				       * times are on the clock of ops */
	const struct bitmap *ranks;   /* whose rows are played, by world rank; NULL: all */
	struct timeline_terms *terms; /* by row, filled; NULL: not wanted */
	const struct player_sink *sink;
	void *ctx;
	/* the player's: */
	struct comm **comms; /* owned list, borrowed; as in the record; NULL: not there */
	uint32_t *n_waits;   /* owned; by row */
	struct post **posts; /* owned list, borrowed; by row; NULL: a point, not there, or over */
	bool *is_over;       /* owned; by row */
	uint32_t *waiting;   /* owned; rows whose communicator is not there yet */
	uint32_t n_waiting;
	/* owned; rows that are not over, by world rank; ops among them, by the record's
	 * communicator */
	uint32_t *n_left, *n_left_in;
	struct sim_heap events;
	double now; /* virtual, since the epoch of the timelines */
	int error;  /* of player_released() */
};

/* The owner's fields are set. Return: 0; -ENOMEM with the sentence. */
int player_open(struct player *p, struct err *err);
void player_close(struct player *p);
/* Rows that follow nothing happen at @at. Return: 0; -ENOMEM with the sentence. */
int player_start(struct player *p, double at, struct err *err);
/* Communicator number @i of the record is @c. Return: as above. */
int player_meet(struct player *p, uint64_t i, struct comm *c, struct err *err);
/* The ops of @c are gone, and it is of no use any more. */
void player_part(struct player *p, const struct comm *c);
/* Plays what happens up to @until. Return: 0; negative errno with the sentence. */
int player_advance(struct player *p, double until, struct err *err);
/* When something happens next; INFINITY: it waits for others, or all is over. */
double player_next(const struct player *p);
/* The end of a post of its own is known: sink->released() of ops. */
void player_released(struct player *p, struct post *post);
