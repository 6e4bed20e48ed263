/* What a pipeline is: its stages, and in which order each does its passes. Schedules are those of
 * GPipe, of 1F1B (PipeDream-flush, Megatron) and of AlpaComm's eager 1F1B (Zhuang et al., "On
 * Optimizing the Communication of Model Parallelism", section 4), which has more micro-batches
 * under way, so that a message has the time of a forward and a backward pass. */
#pragma once

#include <stdint.h>

#include "base/err.h"

enum pipe_schedule { PIPE_GPIPE, PIPE_1F1B, PIPE_EAGER, PIPE_SCHEDULES };

/* Whom a message keeps from computing while it is under way. */
enum pipe_overlap { PIPE_NOBODY, PIPE_SENDER, PIPE_BOTH, PIPE_OVERLAPS };

#define PIPE_MAX_NS 1e16 /* of a pass or a message: 115 days */
#define PIPE_MAX_STAGES 1024
#define PIPE_MAX_PASSES (1 << 18) /* stages x micro-batches */

struct pipe_stage {
	double forward_ns, backward_ns; /* of a micro-batch */
	double weights_ns; /* of backward_ns: gradients of weights, for which nobody waits */
	double to_next_ns, to_previous_ns; /* its messages, where it has such a neighbour */
};

struct pipe_job {
	const struct pipe_stage *stages; /* borrowed */
	uint32_t n_stages, n_micro;
	enum pipe_schedule schedule;
	enum pipe_overlap overlap;
	/* Backward-weight delaying: weights_ns is in so many equal pieces; the fewest that last as
	 * long as the message to the previous stage are computed behind it. 0: none ever is. */
	uint32_t pieces;
};

enum pipe_kind {
	PIPE_FORWARD,
	PIPE_BACKWARD,
	PIPE_WEIGHTS,
	PIPE_TO_NEXT,
	PIPE_TO_PREVIOUS,
	PIPE_KINDS
};

struct pipe_op {
	enum pipe_kind kind;
	uint32_t stage, micro; /* of a message: the stage that sends it */
	double start, end;
};

struct pipe_pass {
	enum pipe_kind kind; /* forward or backward */
	uint32_t micro;
};

/* Can it be? Times are 0 to PIPE_MAX_NS. A blocked eager schedule cannot: stages would wait for
 * each other. Return: 0; -EINVAL with the sentence. */
int pipe_check(const struct pipe_job *job, struct err *err);
/* Forward passes of @stage before its first backward pass: as many micro-batches as it has to keep
 * the activations of at most. */
uint32_t pipe_peak(const struct pipe_job *job, uint32_t stage);
/* Of weights_ns, what @stage computes behind its message. */
double pipe_delayed(const struct pipe_job *job, uint32_t stage);
/* The @i-th of the 2 n_micro passes of a stage that keeps @peak: forward up to that, then backward
 * and forward in turn, then what is left. */
struct pipe_pass pipe_pass_at(const struct pipe_job *job, uint32_t peak, uint32_t i);
