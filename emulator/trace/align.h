/* The clocks of a trace's hosts (trace/clocks.h), and its times by one clock. */
#pragma once

#include "trace/clocks.h"
#include "trace/trace.h"

/* From all messages and collectives of which both ends are there. Families are the receives of one
 * name, rank and peer, or of one kind and size in a communicator. Return: 0; -EINVAL with the
 * sentence: clocks contradict each other, it names the ops; -E2BIG with the sentence; -ENOMEM. */
int align_find(const struct trace *t, bool has_drift, struct clocks *ret, struct err *err);
/* By the clock of host 0. A RECV begins when its message was sent, if that was later. Behind it the
 * ops are in order again. Return: 0; -ENOMEM. */
int align_apply(struct trace *t, const struct clocks *c);
/* Messages of which the SEND begins after the RECV's end. */
uint64_t align_reversed(const struct trace *t);
