/* Iterations of a trace that does not know its hosts. */
#pragma once

#include "trace/trace.h"

/* Gives what a rank computes the iteration of the collective that it does next, so that iterations
 * end with the same collective at all ranks. Where hosts are known, their ranges say it, and
 * nothing changes. Return: 0; -ENOMEM. */
int iterations_settle(struct trace *t);
