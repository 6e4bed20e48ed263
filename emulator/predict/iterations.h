/* Iterations of a trace that does not know its hosts. */
#pragma once

#include "predict/exchanges.h"

/* Those of the lowest rank that knows them, at all ranks at about the same time: no collective and
 * no message is in two. What a rank computes is in the iteration of the exchange that it does next.
 * Where hosts are known, their ranges say it, and nothing changes. Return: 0; -ENOMEM. */
int iterations_settle(struct trace *t, const struct exchanges *x);
