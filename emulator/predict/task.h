/* What predict.h plays, made of one iteration of a trace: the ops of each rank's host, their
 * kernels as long as they were, collectives as long as the shortest of their members' parts, which
 * waited for nobody, or as somebody says. */
#pragma once

#include "predict/calls.h"
#include "predict/exchanges.h"
#include "predict/overheads.h"
#include "predict/predict.h"
#include "trace/trace.h"

/* How long a collective takes that @n_ranks have; @op: a part of it. @n_copies: of the trace's
 * ranks. *ret_ns stays where it is not known. Return: 0; negative errno with the sentence. */
typedef int task_collective_ns(void *ctx, const struct trace *t, const struct trace_op *op,
			       uint32_t n_ranks, uint32_t n_copies, double *ret_ns,
			       struct err *err);
/* The same of a message. */
typedef int task_message_ns(void *ctx, const struct exchange_message *m, double *ret_ns,
			    struct err *err);

struct task_settings {
	const struct overheads *overheads; /* NULL: hosts take no time */
	uint32_t n_ranks;                  /* those of the trace, again and again; 0: once */
	const double *scales; /* by rank: its computation takes so many times as long; NULL */
	task_collective_ns *collective_ns; /* NULL: as in the trace */
	task_message_ns *message_ns;       /* NULL: the same */
	void *ctx;
};

struct task {
	struct predict_task t; /* its arrays are the task's own */
	uint32_t *kernel_ops;  /* by kernel: the op of the trace; owned, as those below */
	struct predict_rank *ranks;
	struct predict_op *ops;
	struct predict_kernel *kernels;
	struct predict_end *ends;
	struct predict_message *messages;
	struct predict_host *hosts;
	double traced_ns; /* the iteration in the trace: of the rank that took longest */
	bool has_host;    /* the trace knows what hosts did */
};

/* @x, @calls (by rank, by iteration): of @t. @step: TRACE_NONE: all of the trace. Return: 0;
 * -EINVAL with the sentence: an all-to-all that is none; -ENOMEM; what the functions of @s
 * returned. */
int task_make(const struct trace *t, const struct exchanges *x, const struct calls *calls,
	      uint32_t step, const struct task_settings *s, struct task *ret, struct err *err);
void task_deinit(struct task *task);
