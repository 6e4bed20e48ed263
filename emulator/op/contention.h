/* Ops that are alive at the same time share the network: the ends that an op has by itself become
 * those that it has beside others, whose ends move with it. */
#pragma once

#include "contention/overlap.h"
#include "op/table.h"

/* Makes ops->overlap. Return: 0; -ENOMEM. */
int contention_open(struct ops *ops);
void contention_close(struct ops *ops); /* before the timelines go */

/**
 * contention_add - @run goes on from @start, when the last of its ranks has come and is over with
 * the ops before it in its queue, and takes @solo_ns by itself
 * @ret: how it does beside others, until the next call
 *
 * Ends of others that move do so in the timelines, also those of runs that are over; moved() of
 * runs that are not is called. Return: 0; negative errno with the sentence.
 */
int contention_add(struct run *run, bool is_plain, double start, double solo_ns,
		   const struct warp **ret, struct err *err);
/* A claim with room for @n ends. NULL: no memory. */
struct claim *claim_new(bool is_plain, uint32_t n);
struct claim *claim_free(struct claim *c); /* that no overlap has; NULL; takes NULL */
/* One more. Return: 0; -ENOMEM. */
int claim_add(struct claim *c, const struct claimed *end);
struct contention {
	uint64_t number;         /* of the claim */
	const struct warp *warp; /* as above */
	double later_ns; /* what links do to it by itself, of what its solo time does not know */
	bool is_below_bound; /* with others */
};
/* The same of @c: messages that @post sends or receives. @op is filled but for its tag; @c is the
 * overlap's from then on. */
int contention_claim(const struct post *post, struct claim *c, struct overlap_op *op,
		     struct contention *ret, struct err *err);
/* When that happens beside others which @start and the time after it say of the op by itself, at a
 * rank of an image too: it is as much later as at the members. */
double contention_at(const struct warp *w, double start, double at);
