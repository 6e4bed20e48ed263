/* A small character-level language model: an embedding of the last MODEL_CONTEXT characters, hidden
 * layers with relu, softmax over the characters of the text.
 *
 * All parameters lie in one array and all gradients in another of the same layout, tensor by tensor
 * in the order in which the backward pass finishes them: output layer first, embedding last. A run
 * of tensors is then one piece of memory, which is what an all-reduce of a bucket wants. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MODEL_CONTEXT 16
#define MODEL_EMBED 24
#define MODEL_MAX_LAYERS 16 /* linear layers, the output layer among them */

struct model_shape {
	int n_chars, hidden, n_hidden, batch;
};

struct model_layer {
	int n_in, n_out;
	size_t weight, bias; /* where in params and grads */
	float *input;        /* [batch][n_in]; [0] is what the embedding made */
	float *d_input;      /* gradients with respect to it */
};

struct model {
	struct model_shape shape;
	int n_layers;
	size_t n_params, embed;
	struct model_layer layers[MODEL_MAX_LAYERS];
	float *params, *grads;    /* not owned: n_params each */
	float *logits, *d_logits; /* [batch][n_chars] */
	unsigned char *chars;     /* [batch][MODEL_CONTEXT + 1]: the last is the one to predict */
	float loss;               /* of the last forward pass: mean over the batch, in nats */
};

/* Return: 0, or -1 without memory. Fills everything but params and grads. */
int model_init(struct model *model, const struct model_shape *shape);
void model_deinit(struct model *model);

/* Initial parameters; equal seeds make equal models. */
void model_randomize(struct model *model, uint64_t seed);

/* From chars to logits and loss. */
void model_forward(struct model *model);
/* Gradients of linear layer @layer, from those of its output; layers in descending order. After it
 * grads[0 .. model_done(layer)) are final. */
void model_backward(struct model *model, int layer);
void model_backward_embedding(struct model *model);
size_t model_done(const struct model *model, int layer);

void model_update(struct model *model, float rate);

/* Random numbers that depend on (seed, stream, index) only. */
uint64_t model_random(uint64_t seed, uint64_t stream, uint64_t index);
