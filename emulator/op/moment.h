/* Where ranks are, for what-ifs that do not always hold: virtual time, and the step that a real
 * rank has counted (scenario/step-count.h). */
#pragma once

#include "op/table.h"

/* What the delay models are asked from now on is of @world_rank, which is real, and of those whose
 * template it is. */
void moment_of_rank(struct ops *ops, uint32_t world_rank);
/* ... is of @op, whose posts have arrived. */
void moment_of_op(const struct op *op);
/* The same of @run's extras: the delay models are told how long its ranks have computed. */
void moment_of_run(const struct run *run);
/* @post has arrived: counts steps. Return: 0; -ENOMEM with the sentence. */
int moment_arrived(struct post *post, struct err *err);
