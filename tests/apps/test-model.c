/* The trainer's gradients against finite differences of its loss. */
#include <stdint.h>
#include <stdlib.h>

#include "cmocka-all.h"
#include <math.h>

#include "model.h"

static void gradients_match_differences(void **state)
{
	const struct model_shape shape = {.n_chars = 7, .hidden = 10, .n_hidden = 2, .batch = 5};
	const float h = 4e-4f; /* the smaller, the fewer kinks */
	struct model model;
	double worst = 0, norm = 0;

	(void)state;
	assert_int_equal(model_init(&model, &shape), 0);
	model.params = calloc(model.n_params, sizeof(float));
	model.grads = calloc(model.n_params, sizeof(float));
	model_randomize(&model, 3);
	for (int i = 0; i < 5 * (MODEL_CONTEXT + 1); i++)
		model.chars[i] = (unsigned char)(model_random(5, 0, (uint64_t)i) % 7);
	model_forward(&model);
	for (int l = model.n_layers - 1; l >= 0; l--)
		model_backward(&model, l);
	model_backward_embedding(&model);
	assert_int_equal(model_done(&model, model.n_layers - 1), 7 + 7 * 10);
	assert_int_equal(model_done(&model, 0), model.embed);
	assert_int_equal(model_done(&model, -1), model.n_params);
	for (size_t i = 0; i < model.n_params; i++) {
		float was = model.params[i], up, down;

		model.params[i] = was + h;
		model_forward(&model);
		up = model.loss;
		model.params[i] = was - h;
		model_forward(&model);
		down = model.loss;
		model.params[i] = was;
		/* Squares: a few differences step over a kink of relu. */
		worst += pow((up - down) / (2 * h) - model.grads[i], 2);
		norm += pow(model.grads[i], 2);
	}
	assert_true(norm > 0.01);
	assert_true(worst < 0.001 * norm);
	free(model.params);
	free(model.grads);
	model_deinit(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_match_differences)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
