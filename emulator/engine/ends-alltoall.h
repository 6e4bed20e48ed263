/* Ends of an AllToAll of so many messages that they are not simulated; see ends-alltoall.c. */
#pragma once

#include "base/err.h"
#include "schedule/schedule.h"

/* @whole_ns: the op's time when all arrive together. Arrays as ends_solve(), @ret_busy too. Return:
 * 0; -ENOMEM. */
int ends_alltoall(const struct sched *s, double whole_ns, const double *arrive, const double *busy,
		  double *ret_end, double *ret_busy, struct err *err);
