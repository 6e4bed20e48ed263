/* What a stage keeps in memory: weights with their optimiser's state, and an activation for each
 * micro-batch under way (AlpaComm, table 1). */
#pragma once

#include <stdint.h>

/* Layers of a GPT as one rank of a stage has them: 12 hidden^2 parameters a layer, divided among
 * tensor-parallel ranks; an activation of batch x sequence x hidden elements on each. */
struct pipe_gpt {
	uint64_t hidden, tensor, tokens /* of a micro-batch: batch x sequence */, layers;
};

/* fp16 weights, fp32 master weights and Adam's two moments; fp16 activations. */
#define PIPE_STATE_BYTES 14
#define PIPE_ACTIVATION_BYTES 2

static inline double pipe_gpt_parameters(const struct pipe_gpt *g)
{
	return 12.0 * (double)g->hidden * (double)g->hidden * (double)g->layers / (double)g->tensor;
}

/* Elements of what one stage hands to the next. */
static inline double pipe_gpt_activation(const struct pipe_gpt *g)
{
	return (double)g->tokens * (double)g->hidden;
}
