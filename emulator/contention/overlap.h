/* Ops that are alive at the same time, in virtual time. Each goes on as fast as the set of those
 * that are alive with it lets it (rates.h), from one start or end of an op to the next. Ops are
 * told in any order; one that begins before others that were told already moves these from there
 * on. */
#pragma once

#include "contention/rates.h"
#include "contention/warp.h"

struct overlap;
int overlap_new(struct overlap **ret);
struct overlap *overlap_free(struct overlap *o);

/* moved(): an op that was told before goes as @to says, no more as @from. Both are the overlap's.
 */
struct overlap_sink {
	void (*moved)(void *ctx, void *tag, const struct warp *from, const struct warp *to);
	void *ctx;
};

/**
 * overlap_add - an op of @solo_ns from @start on
 * @usage: NULL: it uses no links; a reference is taken
 * @tag: the sink is told it; not NULL
 * @ret: how it goes on, until the next call
 *
 * Of ops that are over @OVERLAP_KEPT are remembered: those that begin later do not share with
 * others. Return: 0; -ENOMEM. O(1) where nobody is alive then.
 */
int overlap_add(struct overlap *o, struct usage *usage, double start, double solo_ns, void *tag,
		const struct overlap_sink *sink, const struct warp **ret);
/* Nobody is told of @tag any more. */
void overlap_forget(struct overlap *o, const void *tag);

#define OVERLAP_KEPT 64
