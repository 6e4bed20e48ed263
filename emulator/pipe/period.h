/* What a further micro-batch adds to a long iteration. */
#pragma once

#include "pipe/job.h"

/* The schedule's own cycle: the largest ratio of time to micro-batches over all circles of ops that
 * wait for each other in the middle of a long iteration. Return: 0; -ENOMEM. */
int pipe_period(const struct pipe_job *job, double *ret_ns);
