/* See model.h. */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64's finalizer over the three numbers */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint64_t model_random(uint64_t seed, uint64_t stream, uint64_t index)
{
	return mix(mix(mix(seed) ^ stream) ^ index);
}

static float *floats(size_t n)
{
	return calloc(n ? n : 1, sizeof(float));
}

int model_init(struct model *model, const struct model_shape *shape)
{
	size_t batch = (size_t)shape->batch, at = 0;
	struct model_layer *layer;
	int failed;

	*model = (struct model){.shape = *shape, .n_layers = shape->n_hidden + 1};
	for (int l = model->n_layers - 1; l >= 0; l--) {
		layer = &model->layers[l];
		layer->n_in = l ? shape->hidden : MODEL_CONTEXT * MODEL_EMBED;
		layer->n_out = l == model->n_layers - 1 ? shape->n_chars : shape->hidden;
		layer->bias = at;
		at += (size_t)layer->n_out;
		layer->weight = at;
		at += (size_t)layer->n_in * (size_t)layer->n_out;
		layer->input = floats(batch * (size_t)layer->n_in);
		layer->d_input = floats(batch * (size_t)layer->n_in);
	}
	model->embed = at;
	model->n_params = at + (size_t)shape->n_chars * MODEL_EMBED;
	model->logits = floats(batch * (size_t)shape->n_chars);
	model->d_logits = floats(batch * (size_t)shape->n_chars);
	model->chars = calloc(batch, MODEL_CONTEXT + 1);
	failed = !model->logits || !model->d_logits || !model->chars;
	for (int l = 0; l < model->n_layers; l++)
		failed |= !model->layers[l].input || !model->layers[l].d_input;
	if (failed)
		model_deinit(model);
	return failed ? -1 : 0;
}

void model_deinit(struct model *model)
{
	for (int l = 0; l < model->n_layers; l++) {
		free(model->layers[l].input);
		free(model->layers[l].d_input);
	}
	free(model->logits);
	free(model->d_logits);
	free(model->chars);
	*model = (struct model){0};
}

void model_randomize(struct model *model, uint64_t seed)
{
	const struct model_layer *layer;
	float scale;
	size_t n;

	memset(model->params, 0, model->n_params * sizeof(float));
	for (int l = 0; l < model->n_layers; l++) {
		layer = &model->layers[l];
		n = (size_t)layer->n_in * (size_t)layer->n_out;
		scale = sqrtf(6.0f / (float)layer->n_in);
		if (l == model->n_layers - 1)
			scale *= 0.1f;
		for (size_t i = 0; i < n; i++)
			model->params[layer->weight + i] =
				scale * (float)(model_random(seed, (uint64_t)l, i) >> 40) *
					0x1p-23f -
				scale;
	}
	for (size_t i = model->embed; i < model->n_params; i++)
		model->params[i] = (float)(model_random(seed, 99, i) >> 40) * 0x1p-23f - 1.0f;
}

/* out[b][o] = bias[o] + sum over i of in[b][i] * weight[i][o]. A row of the weights is used for the
 * whole batch while it is near. */
static void linear(const struct model *model, const struct model_layer *layer, float *restrict out)
{
	const float *restrict weight = model->params + layer->weight;
	const float *restrict in = layer->input;
	size_t n_in = (size_t)layer->n_in, n_out = (size_t)layer->n_out;
	size_t batch = (size_t)model->shape.batch;

	for (size_t b = 0; b < batch; b++)
		memcpy(out + b * n_out, model->params + layer->bias, n_out * sizeof(float));
	for (size_t i = 0; i < n_in; i++) {
		for (size_t b = 0; b < batch; b++) {
			float x = in[b * n_in + i];

			for (size_t o = 0; o < n_out; o++)
				out[b * n_out + o] += x * weight[i * n_out + o];
		}
	}
}

static void relu(float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

/* Softmax and its loss; leaves the gradient with respect to the logits. */
static void softmax(struct model *model)
{
	size_t n = (size_t)model->shape.n_chars, batch = (size_t)model->shape.batch;
	double loss = 0;

	for (size_t b = 0; b < batch; b++) {
		const float *x = model->logits + b * n;
		float *d = model->d_logits + b * n, top = x[0], sum = 0;
		unsigned target = model->chars[b * (MODEL_CONTEXT + 1) + MODEL_CONTEXT];

		for (size_t i = 1; i < n; i++)
			top = x[i] > top ? x[i] : top;
		for (size_t i = 0; i < n; i++)
			sum += d[i] = expf(x[i] - top);
		loss += (double)(logf(sum) - (x[target] - top));
		for (size_t i = 0; i < n; i++)
			d[i] /= sum * (float)batch;
		d[target] -= 1.0f / (float)batch;
	}
	model->loss = (float)(loss / (double)batch);
}

void model_forward(struct model *model)
{
	size_t batch = (size_t)model->shape.batch;
	struct model_layer *layer = &model->layers[0];

	for (size_t b = 0; b < batch; b++)
		for (size_t k = 0; k < MODEL_CONTEXT; k++)
			memcpy(layer->input + (b * MODEL_CONTEXT + k) * MODEL_EMBED,
			       model->params + model->embed +
				       model->chars[b * (MODEL_CONTEXT + 1) + k] * MODEL_EMBED,
			       MODEL_EMBED * sizeof(float));
	for (int l = 0; l < model->n_layers - 1; l++) {
		layer = &model->layers[l];
		linear(model, layer, model->layers[l + 1].input);
		relu(model->layers[l + 1].input, batch * (size_t)layer->n_out);
	}
	linear(model, &model->layers[model->n_layers - 1], model->logits);
	softmax(model);
}

/* Eight partial sums: the compiler may not reorder one sum, but it may compute eight at a time. */
static float dot(const float *restrict a, const float *restrict b, size_t n)
{
	float sums[8] = {0}, rest = 0;
	size_t i = 0;

	for (; i + 8 <= n; i += 8)
		for (size_t k = 0; k < 8; k++)
			sums[k] += a[i + k] * b[i + k];
	for (; i < n; i++)
		rest += a[i] * b[i];
	return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
	       ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest;
}

void model_backward(struct model *model, int l)
{
	struct model_layer *layer = &model->layers[l];
	size_t n_in = (size_t)layer->n_in, n_out = (size_t)layer->n_out;
	size_t batch = (size_t)model->shape.batch;
	const float *restrict d_out =
		l == model->n_layers - 1 ? model->d_logits : model->layers[l + 1].d_input;
	const float *restrict weight = model->params + layer->weight;
	float *restrict d_weight = model->grads + layer->weight;
	float *restrict d_bias = model->grads + layer->bias;

	memset(d_bias, 0, n_out * sizeof(float));
	for (size_t b = 0; b < batch; b++)
		for (size_t o = 0; o < n_out; o++)
			d_bias[o] += d_out[b * n_out + o];
	for (size_t i = 0; i < n_in; i++) {
		memset(d_weight + i * n_out, 0, n_out * sizeof(float));
		for (size_t b = 0; b < batch; b++) {
			float x = layer->input[b * n_in + i];

			for (size_t o = 0; o < n_out; o++)
				d_weight[i * n_out + o] += x * d_out[b * n_out + o];
			/* relu's derivative; the embedding's output has none */
			layer->d_input[b * n_in + i] =
				l == 0 || x > 0.0f
					? dot(weight + i * n_out, d_out + b * n_out, n_out)
					: 0.0f;
		}
	}
}

void model_backward_embedding(struct model *model)
{
	const float *d = model->layers[0].d_input;
	float *grads = model->grads + model->embed;

	memset(grads, 0, (size_t)model->shape.n_chars * MODEL_EMBED * sizeof(float));
	for (size_t b = 0; b < (size_t)model->shape.batch; b++) {
		for (size_t k = 0; k < MODEL_CONTEXT; k++, d += MODEL_EMBED) {
			float *to = grads + model->chars[b * (MODEL_CONTEXT + 1) + k] * MODEL_EMBED;

			for (size_t e = 0; e < MODEL_EMBED; e++)
				to[e] += d[e];
		}
	}
}

size_t model_done(const struct model *model, int layer)
{
	return layer > 0    ? model->layers[layer - 1].bias
	       : layer == 0 ? model->embed
			    : model->n_params;
}

void model_update(struct model *model, float rate)
{
	for (size_t i = 0; i < model->n_params; i++)
		model->params[i] -= rate * model->grads[i];
}
