/* Ends of an AllToAll of so many messages that they are not simulated; see ends-alltoall.c. */
#pragma once

#include "base/err.h"
#include "engine/sim-ranks.h"
#include "schedule/schedule.h"

/* @whole_ns: the op's time when all arrive together. @ranks: all its arrays are there. Return: 0;
 * -ENOMEM. */
int ends_alltoall(const struct sched *s, double whole_ns, const struct sim_ranks *ranks,
		  struct err *err);
