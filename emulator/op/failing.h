/* Which failures (config/failure.h) have struck, and which ops never complete for them. What
 * follows from it the owner carries out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct comm;
struct config;
struct failure;
struct op;

struct failing_state {
	const struct failure *what; /* borrowed */
	uint64_t n_ops;             /* that count */
	bool has_struck;
	bool has_held; /* an op */
};

struct failing {
	struct failing_state *list; /* owned */
	size_t n;
};

/* Return: 0 or -ENOMEM. */
int failing_init(struct failing *f, const struct config *config);
void failing_deinit(struct failing *f); /* a zeroed one is allowed */
/* The first of @what's ranks that is in @c; NULL: none. */
const uint32_t *failing_rank(const struct failure *what, const struct comm *c);
/* Does @what concern the ops of @c? */
bool failing_concerns(const struct failure *what, const struct comm *c);
/* An op of @kind begins in @c, which counts. Return: @s strikes with it. */
bool failing_on_op(struct failing_state *s, const struct comm *c, uint32_t kind);
/* A post has arrived on its timeline, in virtual time @at_ns and step @step. Return: @s strikes
 * with it. */
bool failing_on_arrival(struct failing_state *s, double at_ns, int64_t step);
/* All real members of @op have arrived. Where it never completes, op->held says by what from then
 * on. Return: that failure, if @op is the first that it holds, with its rank in *ret_rank; NULL. */
const struct failure *failing_hold(struct failing *f, struct op *op, uint32_t *ret_rank);
/* What a silent failure, or a desync, does to an op: "world rank 3 is gone, and nobody says so". */
char *failing_why(const struct failure *what, uint32_t rank, char *buf, size_t size);
/* Why it had no effect; NULL: it had. */
const char *failing_unmet(const struct failing_state *s);
