/* What a rank's ops wait for, besides their own stream's order. */
#pragma once

#include "predict/predict.h"
#include "trace/trace.h"

/* The ops of one rank, and the trace that they are of. */
struct depends_of {
	const struct trace *t;
	const uint32_t *op_of;      /* by the trace's ops, an exchange's number in @ops */
	const uint32_t *kernel_ops; /* by kernel: the op of the trace */
	struct predict_op *ops;
	uint32_t first, end; /* in @ops */
};

/* Sets the ops' after, by the trace's waits. */
void depends_find(const struct depends_of *of);
/* Sets the exchanges' queues: those of one communicator come one after the other, as NCCL does
 * them, and those of one stream. Return: 0; -ENOMEM. */
int depends_find_queues(const struct depends_of *of);
