/* How long an all-to-all that a scheduler plans takes. */
#pragma once

#include "engine/solve-plan.h"

/* All ranks begin together: by the busiest port. Return: 0; the cost function's error. */
int planned_alltoall(const struct planned *pl, struct price *p, double *ret_ns);
/* The same by simulation of each message. Return: also -ENOMEM. */
int planned_alltoall_sim(const struct planned *pl, struct price *p, double *ret_ns,
			 struct err *err);
