/* An op of a communicator in a graph: its hops, a parameter server's, or as one. Sends and receives
 * are add-messages.h's. */
#pragma once

#include "nbox/replay/maker.h"

/* @op: of the job, number @m->op. Return: 0; negative errno, -ENOMEM perhaps without the sentence.
 */
int add_op(struct maker *m, const struct job_op *op);
