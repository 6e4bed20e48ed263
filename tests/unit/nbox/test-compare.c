/* Two runs side by side: what differs, by how much, and whether that is more than the runs vary. */
#include <stdint.h>

#include "cmocka-all.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "nbox/report/compare.h"

static void make_side(struct compare_side *s, const char *name, double step_ms, const char *yaml,
		      const char *versions)
{
	struct report_stat *t = &s->rep.step_ns;

	memset(s, 0, sizeof(*s));
	strcpy(s->dir, name);
	strcpy(s->info.command, "./train");
	s->rep.n_steps = 20;
	s->rep.n_ops = 100;
	s->rep.ops_per_step = 5;
	*t = (struct report_stat){.n = 18,
				  .p25 = step_ms * 0.95e6,
				  .p50 = step_ms * 1e6,
				  .p75 = step_ms * 1.05e6};
	s->rep.modelled_ns = 4e6;
	s->rep.exposed_ns = step_ms * 0.5e6;
	if (yaml) {
		assert_int_equal(config_new(&s->config), 0);
		assert_int_equal(config_parse(s->config, "a.yaml", yaml, strlen(yaml), NULL), 0);
	}
	s->versions = versions ? strdup(versions) : NULL;
}

static char *printed(const struct compare_side *a, const struct compare_side *b)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	compare_print(a, b, f);
	fclose(f);
	return text;
}

static void what_was_asked_for_is_compared_option_by_option(void **state)
{
	struct compare_side a, b;
	char *text;

	(void)state;
	make_side(&a, "a", 10, "cluster: {nodes: 64}\nwhat_if: [\"add:op=allreduce,delay=1ms\"]\n",
		  "nbox 1\ntorch 2.10\n");
	make_side(&b, "b", 12, "cluster: {nodes: 64}\nmodel: tree\n",
		  "nbox 1\ntorch 2.11\nnccl 2.28.9\n");
	strcpy(b.info.command, "./train --fast");
	text = printed(&a, &b);
	assert_non_null(
		strstr(text,
		       "command          A: ./train\n                    B: ./train --fast\n"));
	assert_non_null(strstr(
		text,
		"what-if          A: add:op=allreduce,delay=1ms\n                    B: -\n"));
	assert_non_null(strstr(text, "B: tree\n"));
	assert_non_null(strstr(text, "torch            A: 2.10\n                    B: 2.11\n"));
	assert_non_null(strstr(text, "nccl             A: -\n                    B: 2.28.9\n"));
	assert_null(strstr(text, "nodes"));
	assert_null(strstr(text, "   nbox "));
	free(text);
	text = printed(&a, &a);
	assert_non_null(strstr(text, "nothing differs in what was asked for\n"));
	free(text);
	compare_deinit(&a);
	compare_deinit(&b);
}

/* Of a run without config.yaml the record knows the most important; words of others cannot move the
 * cursor. */
static void runs_without_files_are_compared_by_their_records(void **state)
{
	struct compare_side a, b;
	char *text;

	(void)state;
	make_side(&a, "a", 10, NULL, NULL);
	text = printed(&a, &a);
	assert_non_null(strstr(text, "(A and B have no config.yaml that can be read"));
	free(text);
	make_side(&b, "b", 10, "model: tree\n", "torch \033[2J\n");
	a.rep.header.world_size = 128;
	b.rep.header.world_size = 256;
	strcpy(b.rep.header.model, "tr\tee");
	text = printed(&a, &b);
	assert_non_null(strstr(text, "ranks            A: 128 (0 x 0)\n"));
	assert_non_null(strstr(text, "B: tr?ee\n"));
	assert_null(strstr(text, "   way "));
	assert_non_null(strstr(text, "(A has no config.yaml that can be read"));
	assert_null(strchr(text, '\033'));
	free(text);
	b.rep.header.nccl = NCCL_FULL;
	strcpy(b.rep.took, "AllReduce ring LL");
	text = printed(&a, &b);
	assert_non_null(
		strstr(text, "   way              A: gate: nbox's decisions and messages, "));
	assert_non_null(strstr(text, " B: full: NCCL's own decisions and messages, "));
	assert_non_null(strstr(text, "   NCCL took        A: -\n"));
	free(text);
	compare_deinit(&a);
	compare_deinit(&b);
}

static void medians_differ_when_their_middle_halves_do_not_meet(void **state)
{
	static const struct {
		double ms;
		const char *percent;
		int is_beyond;
	} cases[] = {
		{10, "+0.0 %", 0}, {10.5, "+5.0 %", 0}, {12, "+20.0 %", 1},
		{8, "-20.0 %", 1}, {9.5, "-5.0 %", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct compare_side a, b;
		json_t *o, *step;
		char *text, line[128];

		make_side(&a, "a", 10, NULL, NULL);
		make_side(&b, "b", cases[i].ms, NULL, NULL);
		assert_int_equal(compare_is_beyond_noise(&a.rep.step_ns, &b.rep.step_ns),
				 cases[i].is_beyond);
		text = printed(&a, &b);
		snprintf(line, sizeof(line),
			 "   step, p50    ms  %14.3f %14.3f %10s  %s the noise\n", 10.0,
			 cases[i].ms, cases[i].percent, cases[i].is_beyond ? "beyond" : "within");
		if (!strstr(text, line))
			fail_msg("wanted: %sgot: %s", line, text);
		assert_non_null(
			strstr(text,
			       "modelled     ms           4.000          4.000     +0.0 %\n"));
		free(text);
		o = compare_json(&a, &b);
		step = json_object_get(json_object_get(o, "values"), "step_ms");
		assert_true(json_real_value(json_object_get(step, "b")) == cases[i].ms);
		assert_int_equal(json_is_true(json_object_get(step, "is_beyond_noise")),
				 cases[i].is_beyond);
		json_decref(o);
		compare_deinit(&a);
		compare_deinit(&b);
	}
}

/* The middle half of one step is that step: any other run would be beyond it. */
static void few_steps_say_nothing_of_the_noise(void **state)
{
	struct compare_side a, b;
	json_t *o, *values;
	char *text;

	(void)state;
	make_side(&a, "a", 10, NULL, NULL);
	make_side(&b, "b", 20, NULL, NULL);
	a.rep.step_ns.n = 1;
	a.rep.step_ns.p25 = a.rep.step_ns.p75 = a.rep.step_ns.p50;
	text = printed(&a, &b);
	assert_non_null(strstr(text, "+100.0 %\n"));
	assert_null(strstr(text, "beyond"));
	assert_null(strstr(text, "within"));
	assert_non_null(strstr(text, "noise: not known from 1 timed step of A and 18 of B"));
	free(text);
	o = compare_json(&a, &b);
	values = json_object_get(o, "values");
	assert_null(json_object_get(json_object_get(values, "step_ms"), "is_beyond_noise"));
	assert_null(json_object_get(json_object_get(values, "exposed_ms"), "is_beyond_noise"));
	json_decref(o);
	compare_deinit(&a);
	compare_deinit(&b);
}

/* A step is not compared with a whole run. */
static void a_run_without_steps_is_compared_as_a_whole(void **state)
{
	struct compare_side a, b;
	char *text;

	(void)state;
	make_side(&a, "a", 10, NULL, NULL);
	make_side(&b, "b", 0, NULL, NULL);
	b.rep.n_steps = 0;
	strcpy(b.rep.steps_how, "nothing repeats");
	text = printed(&a, &b);
	assert_null(strchr(text, '%'));
	assert_null(strstr(text, "noise"));
	assert_non_null(
		strstr(text, "B has no steps, its times are of all of the run: nothing repeats\n"));
	free(text);
	compare_deinit(&a);
	compare_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_asked_for_is_compared_option_by_option),
		cmocka_unit_test(runs_without_files_are_compared_by_their_records),
		cmocka_unit_test(medians_differ_when_their_middle_halves_do_not_meet),
		cmocka_unit_test(few_steps_say_nothing_of_the_noise),
		cmocka_unit_test(a_run_without_steps_is_compared_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
