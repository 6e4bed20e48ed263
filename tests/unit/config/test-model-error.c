/* How far models may be off: which error a configuration gets, and for which sizes. */
#include <string.h>

#include "cmocka-all.h"
#include "config/model-error.h"

/* Of a cluster file's text. */
static bool error_of(const char *text, struct model_error *ret)
{
	struct config *c;
	struct err err = {""};
	bool is_known;

	assert_int_equal(config_new(&c), 0);
	if (config_parse(c, "f", text, strlen(text), &err) < 0 || config_finish(c, &err) < 0)
		fail_msg("%s:\n%s", text, err.text);
	is_known = model_error_of(c, ret);
	config_free(c);
	return is_known;
}

static double scale(const struct model_error *e, enum model_end end, uint32_t kind, uint64_t bytes,
		    uint32_t n_ranks)
{
	const struct nbox_op op = {.kind = kind, .bytes = bytes, .n_ranks = n_ranks};

	return model_error_scale(&(struct model_error_at){e, end}, &op);
}

static void a_preset_has_that_of_the_published_figures(void **state)
{
	struct model_error e;

	(void)state;
	assert_true(error_of("cluster: {nodes: 4, preset: dgx-h100}\n", &e));
	for (uint64_t bytes = 8; bytes < UINT64_C(1) << 32; bytes *= 8) {
		assert_true(scale(&e, MODEL_FAST, COLL_ALLREDUCE, bytes, 32) < 1);
		assert_true(scale(&e, MODEL_SLOW, COLL_ALLREDUCE, bytes, 32) > 1);
	}
	/* sizes are nccl-tests': 32 ranks' parts of 4 MiB are 128 MiB */
	assert_true(scale(&e, MODEL_SLOW, COLL_ALLGATHER, 4 << 20, 32) ==
		    scale(&e, MODEL_SLOW, COLL_ALLREDUCE, 128 << 20, 32));
	assert_true(scale(&e, MODEL_SLOW, COLL_ALLREDUCE, 4 << 20, 32) >
		    scale(&e, MODEL_SLOW, COLL_ALLREDUCE, 128 << 20, 32));
	assert_true(e.max_nodes > 2);
}

static void of_other_models_it_is_not_known(void **state)
{
	static const char *const texts[] = {
		"model: ring\n", "cluster: {nodes: 4, preset: dgx-h100}\nmodel: ring\n",
		"cluster: {nodes: 4, preset: dgx-h100}\nmodel: pinned\n",
		"network: {inter: {bandwidth: 10GB/s}}\n"};
	struct model_error e;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_false(error_of(texts[i], &e));
		assert_non_null(strstr(e.source, "not known"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_preset_has_that_of_the_published_figures),
		cmocka_unit_test(of_other_models_it_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
