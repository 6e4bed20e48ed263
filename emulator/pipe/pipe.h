/* The pipeline of a training job, as ops on devices (dfg/): stages compute, and send each other
 * messages. Any unit of time; names say ns. */
#pragma once

#include <stddef.h>

#include "pipe/job.h"

struct pipe_times {
	struct pipe_op *ops; /* owned; those of a stage in its order, one stage after the other */
	size_t n_ops;
	double end_ns;
	double period_ns; /* what each further micro-batch adds, in a long iteration */
	double bubble; /* share of the stages' time in which they do not compute; blocked is idle */
};

/* @job has gone through pipe_check(). Return: 0; -ENOMEM. */
int pipe_play(const struct pipe_job *job, struct pipe_times *ret);
void pipe_times_deinit(struct pipe_times *t);
/* The same with messages that take no time: the paper's upper bound, "Signal". Return: as above. */
int pipe_signal(const struct pipe_job *job, double *ret_ns);
/* The largest factor of all messages' times, 0 to @most, with which the end comes no later than
 * pipe_signal() / @share. Return: 0; -ENOMEM. */
int pipe_slowest_messages(const struct pipe_job *job, double share, double most, double *ret);
