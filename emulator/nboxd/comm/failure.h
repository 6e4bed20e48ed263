/* Carries the what-ifs `fail` and `desync` out (config/failure.h): aborts communicators, or holds
 * ops, at a time, a step or an op. A rank that is gone stays so: communicators that come later fail
 * at their first op. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/failing.h"

struct comm;
struct comms;
struct op;
struct post;
struct loop;

struct failures {
	struct comms *comms; /* borrowed */
	struct loop *loop;   /* borrowed */
	struct failing failing;
	uint64_t first_op_ns; /* by the wall clock; 0: none yet */
	uint64_t slip_ns;     /* virtual time is behind it by so much */
};

/* Return: 0 or -ENOMEM. */
int failures_init(struct failures *f, struct comms *comms, struct loop *loop);
void failures_deinit(struct failures *f);
/* An op of @kind begins: its first member has arrived. Return: whether the communicator
 * is dead now. */
bool failures_on_op(struct failures *f, struct comm *c, uint32_t kind);
/* @post has arrived on its timeline: time goes on. Return: whether its communicator is dead now. */
bool failures_on_arrival(struct failures *f, const struct post *post);
/* All real members of @op have arrived. Return: whether it never completes; then op->held says why.
 */
bool failures_hold(struct failures *f, struct op *op);
/* Those that never took effect are noted. */
void failures_note_unmet(const struct failures *f);
/* Return: when to call again; UINT64_MAX: no need. */
uint64_t failures_tick(struct failures *f, uint64_t now_ns);
