/* What a job file may say, and the sentences for what it may not. */
#include "cmocka-all.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "stepper/job.h"

static void each_statement_sets_what_it_names(void **state)
{
	CLEANUP(job_deinit) struct job job = {0};
	struct err err = {""};

	(void)state;
	assert_int_equal(job_parse("a.job",
				   "# a comment\n"
				   "parallel tp=2 pp=2 dp=8  # and another\n"
				   "style hsdp\n\n\tshard 4\r\n"
				   "micro 3\nupdate 1.5ms\n"
				   "layer x3 forward=2ms backward=4ms params=1MiB send=64KiB\n"
				   "layer backward=1us forward=0ms tp=2B moe=3K",
				   &job, &err),
			 0);
	assert_int_equal(job.tp, 2);
	assert_int_equal(job.pp, 2);
	assert_int_equal(job.dp, 8);
	assert_int_equal(job.style, JOB_HSDP);
	assert_int_equal(job.shard, 4);
	assert_int_equal(job.micro, 3);
	assert_true(job.update_ns == 1.5e6);
	assert_int_equal(job.n_layers, 4);
	assert_true(job.layers[2].forward_ns == 2e6 && job.layers[2].backward_ns == 4e6);
	assert_int_equal(job.layers[2].params_bytes, 1 << 20);
	assert_int_equal(job.layers[2].send_bytes, 64 << 10);
	assert_int_equal(job.layers[2].line, 8);
	assert_true(job.layers[3].forward_ns == 0 && job.layers[3].backward_ns == 1e3);
	assert_int_equal(job.layers[3].tp_bytes, 2);
	assert_int_equal(job.layers[3].moe_bytes, 3 << 10);
	assert_int_equal(job.layers[3].line, 9);
}

static void what_is_not_said_is_plain_ddp(void **state)
{
	CLEANUP(job_deinit) struct job job = {0};
	struct err err = {""};

	(void)state;
	assert_int_equal(job_parse("a", "layer forward=1ms backward=2ms", &job, &err), 0);
	assert_int_equal(job.tp * job.pp * job.micro, 1);
	assert_int_equal(job.dp, 0);
	assert_int_equal(job.style, JOB_DDP);
	assert_int_equal(job.bucket_bytes, 25 << 20);
	assert_int_equal(job.n_layers, 1);
	assert_int_equal(job_fit(&job, 6, &err), 0);
	assert_int_equal(job.dp, 6);
}

#define LAYER "\nlayer forward=1ms backward=2ms"

static void a_wrong_line_is_named_with_its_statement_and_a_way_out(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{"lyer x8", "j:1: unknown statement 'lyer'; did you mean 'layer'?"},
		{"nothing",
		 "j:1: unknown statement 'nothing'; there are: parallel style bucket buckets group "
		 "shard micro schedule update layer"},
		{"\n\nlayer foward=2ms",
		 "j:3: layer: unknown key 'foward'; did you mean 'forward'?"},
		{"layer forward=2 backward=1ms",
		 "j:1: layer: forward: '2' has no unit; units of a time: ns us ms s"},
		{"layer forward=2ms", "j:1: layer: a layer needs forward= and backward=, such as "
				      "layer x8 forward=2.5ms backward=5ms params=1MiB"},
		{"layer 8 forward=2ms",
		 "j:1: layer: '8' stands alone: write x8 for so many layers"},
		{"layer x0 forward=2ms", "j:1: layer: x0: '0' is no number from 1 to 16777216"},
		{"layer x65537 forward=1ms backward=1ms",
		 "j:1: layer: there are more than 65536 layers"},
		{"layer forward=1ms forward=2ms", "j:1: layer: forward is given twice"},
		{"layer forward", "j:1: layer: forward needs a value: forward=..."},
		{"layer params=2TiB", "j:1: layer: params: '2TiB' is too large: at most 1TiB"},
		{"bucket 25",
		 "j:1: bucket: '25' has no unit; units of a size: B K M G T KiB MiB GiB "
		 "TiB KB MB GB TB"},
		{"micro 2\nmicro 3", "j:2: micro: the first one is in line 1"},
		{"micro", "j:1: micro: one value is wanted"},
		{"update 1 ms", "j:1: update: one value is wanted"},
		{"style ddq", "j:1: style: unknown style 'ddq'; did you mean 'ddp'?"},
		{"parallel pp=2\nschedule egaer" LAYER LAYER,
		 "j:2: schedule: unknown schedule 'egaer'; did you mean 'eager'?"},
		{"schedule eager" LAYER, "j:1: schedule: one stage has none: write parallel pp=2"},
		{"parallel", "j:1: parallel: parallel needs sizes, such as parallel tp=2 dp=4"},
		{"parallel ep=2", "j:1: parallel: unknown key 'ep'; did you mean 'tp'?"},
		{"micro 3", "j: it has no layer"},
		{"style fsdp\nbucket 1MiB" LAYER, "j:2: bucket: style fsdp has no buckets"},
		{"buckets 2,x" LAYER, "j:1: buckets: 'x' is no count: write decimal digits only"},
		{"buckets 2" LAYER " params=1B",
		 "j:1: buckets: they hold 2 gradients, and 1 layers have params"},
		{"style fsdp\nbuckets 1" LAYER " params=1B",
		 "j:2: buckets: for style ddp without a pipeline, instead of bucket"},
		{"style fsdp\ngroup 8" LAYER, "j:2: group: style fsdp has no buckets"},
		{"style hsdp\nshard 1" LAYER,
		 "j:2: shard: a group of one rank shards nothing: write style ddp"},
		{"micro 1048577" LAYER,
		 "j: 1048577 micro-batches of 1 layers are more than 1048576 steps"},
		{"shard 2" LAYER, "j:1: shard: only style hsdp has groups to shard in"},
		{"style hsdp" LAYER,
		 "j:1: style hsdp needs the ranks of a sharding group, such as shard 4"},
		{"parallel pp=2" LAYER,
		 "j:1: parallel: the layers, 1, do not divide into pp=2 stages"},
		{"parallel pp=2" LAYER LAYER,
		 "j:2: layer: layer 0 ends a stage and needs the bytes that go to the next, such as "
		 "send=1MiB"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct err err = {""};
		struct job job;

		assert_int_equal(job_parse("j", wrong[i].text, &job, &err), -EINVAL);
		assert_string_equal(err.text, wrong[i].why);
	}
}

static void a_world_that_does_not_fit_is_named_with_the_product(void **state)
{
	static const struct {
		const char *parallel, *why;
		unsigned world;
	} wrong[] = {
		{"parallel tp=3", "the world has 4 ranks, and tp=3 x pp=1 = 3 does not divide it",
		 4},
		{"parallel tp=2 dp=4", "the world has 4 ranks, and tp=2 x pp=1 x dp=4 is 8", 4},
		{"style hsdp\nshard 4", "shard 4 does not divide dp=6", 6},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		CLEANUP(job_deinit) struct job job = {0};
		struct err err = {""};
		char text[128];

		snprintf(text, sizeof(text), "%s" LAYER, wrong[i].parallel);
		assert_int_equal(job_parse("j", text, &job, &err), 0);
		assert_int_equal(job_fit(&job, wrong[i].world, &err), -EINVAL);
		assert_string_equal(err.text, wrong[i].why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_statement_sets_what_it_names),
		cmocka_unit_test(what_is_not_said_is_plain_ddp),
		cmocka_unit_test(a_wrong_line_is_named_with_its_statement_and_a_way_out),
		cmocka_unit_test(a_world_that_does_not_fit_is_named_with_the_product),
	};

	return cmocka_run_group_tests_name("stepper-job", tests, NULL, NULL);
}
