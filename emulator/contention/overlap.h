/* Ops that are alive at the same time, in virtual time. Each goes on as fast as the set of those
 * that are alive with it lets it (rates.h), from one start or end of an op to the next. Ops are
 * told in any order; one that begins before others that were told already moves these from there
 * on. */
#pragma once

#include <stdbool.h>

#include "contention/rates.h"
#include "contention/warp.h"

struct overlap;

/* The overlap's owner. moved(): the op goes on as @to says, no more as @from; both are the
 * overlap's, and leave out what is as it was. forgotten(): nothing is said of it any more. Neither
 * may call the overlap. */
struct overlap_sink {
	void (*moved)(void *ctx, void *tag, const struct warp *from, const struct warp *to);
	void (*forgotten)(void *ctx, void *tag);
	void *ctx;
};

int overlap_new(const struct overlap_sink *sink, struct overlap **ret);
/* Forgets all. */
struct overlap *overlap_free(struct overlap *o);
/* Of the links of @usage, from @from until before @until: a RATE_LOAD or a RATE_LOSS, told before
 * any op. A reference is taken. Return: 0; -ENOMEM. A loss of all of a link holds for a finite
 * time. */
int overlap_condition(struct overlap *o, struct usage *usage, enum rate_kind kind, double from,
		      double until);
/* The @i-th condition holds again @every ns after it began, as long, for ever; told before any op.
 */
void overlap_repeat(struct overlap *o, uint32_t i, double every);
/* The @i-th condition holds from @from until @until and not otherwise, from @since on, before which
 * nothing changes: ops that go on then move. Return: 0; -ENOMEM, and all are forgotten. */
int overlap_change(struct overlap *o, uint32_t i, double since, double from, double until);
/* Whether an op used a link of the @i-th condition while it held. */
bool overlap_is_met(const struct overlap *o, uint32_t i);

struct overlap_op {
	struct usage *usage; /* borrowed; NULL: it uses no links */
	double solo_ns;      /* what it takes by itself, > 0 */
	double start;        /* it does not begin before; <= begin */
	double begin;        /* when it begins, as far as is known; behind @after ... */
	uint64_t after; /* ... it begins when that is as far as it is then; a number, 0: none */
	void *tag;      /* the sink's */
};

/**
 * overlap_add - one more op
 * @ret_number: for @after of others
 * @ret: how it goes on, until the next call
 *
 * Of ops that are over by @op->start @OVERLAP_KEPT are remembered: one that begins earlier, and is
 * told later, does not share with others. Return: 0; -ENOMEM, and all are forgotten. O(1) where
 * nobody is alive then.
 */
int overlap_add(struct overlap *o, const struct overlap_op *op, uint64_t *ret_number,
		const struct warp **ret);
/* How op @number goes on, until the next call; NULL: it is forgotten. */
const struct warp *overlap_warp(struct overlap *o, uint64_t number);
/* When op @number is over, as far as is known; -INFINITY: it is forgotten. */
double overlap_end(struct overlap *o, uint64_t number);
/* Of the sets that the last op that was added is in, the fullest link. */
struct rate_peak overlap_peak(const struct overlap *o);
/* How much later an op is over by what overlap_condition() told, and by links that it uses more
 * than its time knows of, where it shares with no other. Return: 0; -ENOMEM. */
int overlap_alone(struct overlap *o, struct usage *usage, double start, double solo_ns,
		  double *ret_later_ns);

#define OVERLAP_KEPT 64
