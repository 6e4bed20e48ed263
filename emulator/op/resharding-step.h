/* What the steps of a resharding (resharding.h) put on links: a declared one's plan says what goes
 * from host to host. A step is one op of the network (contention.h), over the plan's whole time:
 * evenly on all NICs of a node and the links between them, by one connection at each NIC. It begins
 * with the first rank that does, or behind the step before, which has its hosts until then; what
 * ends in it ends where the plan has it, and later where others use its links. A message between
 * two ranks is of step k where it is their k-th. */
#pragma once

#include "op/table.h"

/* Makes ops->steps_of. Return: 0; -ENOMEM. */
int resharding_steps_open(struct ops *ops);
void resharding_steps_close(struct ops *ops); /* behind the overlaps */
/* The step that @x's sender and receiver are in, numbers of each, by the next message between them
 * that the one who says so calls: it is counted. */
uint64_t resharding_step_next(const struct ops *ops, const struct resharding *x, uint32_t sender,
			      uint32_t receiver, bool is_send);
/* Call @call of @a, which knows when it is over by itself, so long after @begin, is of step @number
 * of @post's plan: it is over when that is. Return: 0; negative errno with the sentence. */
int resharding_step_add(struct post *post, uint64_t number, double begin, struct awaited *a,
			uint32_t call, struct err *err);
/* When that happens which by itself happens at @at in step @number of @x; NAN: nothing is known of
 * it, or no more. */
double resharding_step_at(const struct ops *ops, const struct resharding *x, uint64_t number,
			  double at);
