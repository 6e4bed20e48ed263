/* Which setting differs between runs, and whether it is a number. */
#include <math.h>
#include <stdint.h>

#include "cmocka-all.h"
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "nbox/page/points.h"

#define RUNS 3

struct expected {
	const char *yaml[RUNS];
	const char *axis; /* "": no number */
	double x[RUNS];
	const char *settings[RUNS];
};

static const struct expected table[] = {
	{{"what_if: [\"add:op=allreduce,delay=500us\"]", "",
	  "what_if: [\"add:op=allreduce,delay=10ms\"]"},
	 "what-if add:op=allreduce,delay (ms)",
	 {.5, 0, 10},
	 {"delay=500us", "none", "delay=10ms"}},
	{{"what_if: [\"slow:rank=3,compute=1.25\"]", "what_if: [\"slow:rank=3,compute=1.5\"]", ""},
	 "what-if slow:rank=3,compute",
	 {1.25, 1.5, 1},
	 {"compute=1.25", "compute=1.5", "none"}},
	{{"what_if: [\"slow:compute=2,rank=3\"]", "what_if: [\"slow:compute=12,rank=3\"]", ""},
	 "what-if slow:compute",
	 {2, 12, 1},
	 {"compute=2,rank=3", "compute=12,rank=3", "none"}},
	{{"", "", "what_if: [\"add:delay=5ms\"]"},
	 "what-if add:delay (ms)",
	 {0, 0, 5},
	 {"none", "none", "delay=5ms"}},
	{{"cluster: {nodes: 8}", "cluster: {nodes: 16}", "cluster: {nodes: 128}"},
	 "nodes",
	 {8, 16, 128},
	 {"8", "16", "128"}},
	{{"network: {inter: {bandwidth: 12.5GB/s}}", "network: {inter: {bandwidth: 400Gbps}}",
	  "network: {inter: {bandwidth: 1Tbps}}"},
	 "inter-bandwidth (Gbit/s)",
	 {100, 400, 1000},
	 {"12.5GB/s", "400Gbps", "1Tbps"}},
	{{"model: ring", "model: tree", "model: none"},
	 "",
	 {0},
	 {"model ring", "model tree", "model none"}},
	{{"what_if: [\"add:delay=5ms\"]", "what_if: [\"add:delay=5\"]", ""}, "", {0}, {NULL}},
	{{"what_if: [\"add:delay=5ms\"]", "what_if: [\"jitter:sigma=5%\"]", ""}, "", {0}, {NULL}},
	{{"cluster: {nodes: 8}", "cluster: {nodes: 16}", "cluster: {nodes: 16}\nmodel: ring"},
	 "",
	 {0},
	 {"nodes 8, model nccl", "nodes 16, model nccl", "nodes 16, model ring"}},
	{{"", "", ""}, "", {0}, {"run0", "run1", "run2"}},
};

static void what_differs_is_the_axis(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
		const struct expected *e = &table[k];
		static struct compare_side sides[RUNS];
		struct points p;

		memset(sides, 0, sizeof(sides));
		for (int i = 0; i < RUNS; i++) {
			snprintf(sides[i].dir, sizeof(sides[i].dir), "run%d", i);
			assert_int_equal(config_new(&sides[i].config), 0);
			if (e->yaml[i][0])
				assert_int_equal(config_parse(sides[i].config, "a.yaml", e->yaml[i],
							      strlen(e->yaml[i]), NULL),
						 0);
		}
		assert_int_equal(points_make(sides, RUNS, &p), 0);
		assert_string_equal(p.axis, e->axis);
		for (int i = 0; i < RUNS; i++) {
			if (e->axis[0])
				assert_true(fabs(p.list[i].x - e->x[i]) < 1e-9);
			if (e->settings[i])
				assert_string_equal(p.list[i].setting, e->settings[i]);
			compare_deinit(&sides[i]);
		}
		points_deinit(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_differs_is_the_axis),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
