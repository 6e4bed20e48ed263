/* Which ops of several ranks are one collective, or the ends of one message. */
#pragma once

#include "trace/trace.h"

/* Sets the ops' join, and the trace's lists of them. Ops of a collective are those of one
 * communicator with one number there; where a trace has no numbers (PyTorch before 2.7), those that
 * are the k-th in the same step. The ends of a message are the k-th ones between two ranks in a
 * communicator, or in dPRO's names those of one tensor, step, loop, channel, chunk and slice: a
 * SEND of which no more is known goes to the next rank of those that have traces, a ring's.
 * @t: its ops are in order. Return: 0; -ENOMEM. */
int trace_join(struct trace *t);
