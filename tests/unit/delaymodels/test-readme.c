/* The code blocks of delaymodels/README.md, taken as they stand: compiled by the build's compiler
 * with nothing but the header, loaded and asked. */
#include "delay-test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/nbox-test-readme-XXXXXX";

/* The @number-th block, from 0. Return: the number of lines. */
static int copy_block(int number, const char *to)
{
	FILE *in = fopen(HEADER_DIR "/README.md", "r"), *out = fopen(to, "w");
	bool is_inside = false;
	char line[512];
	int n = 0;

	assert_true(in && out);
	while (fgets(line, sizeof(line), in)) {
		if (strcmp(line, "```c\n") == 0) {
			is_inside = number-- == 0;
		} else if (strcmp(line, "```\n") == 0) {
			is_inside = false;
		} else if (is_inside) {
			fputs(line, out);
			n++;
		}
	}
	fclose(in);
	assert_int_equal(fclose(out), 0);
	return n;
}

/* Builds block @number, whose model is @name, and opens @spec. */
static struct delay_chain *open_block(int number, const char *name, int n_lines, const char *spec)
{
	char source[64], object[64], command[1024];
	struct delay_chain *opened = NULL;
	struct err err;

	assert_non_null(mkdtemp(dir));
	snprintf(source, sizeof(source), "%s/%s.c", dir, name);
	snprintf(object, sizeof(object), "%s/%s.so", dir, name);
	assert_int_equal(copy_block(number, source), n_lines);
	snprintf(command, sizeof(command),
		 "%s -shared -fPIC -Wall -Wextra -Werror -fvisibility=hidden -I '%s' -o '%s' '%s'",
		 COMPILER, HEADER_DIR, object, source);
	assert_int_equal(system(command), 0);
	setenv("NBOX_MODEL_PATH", dir, 1);
	if (test_open(spec, NULL, 0, &opened, &err) < 0)
		fail_msg("%s", err.text);
	unlink(source);
	unlink(object);
	rmdir(dir);
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	return opened;
}

static void the_readmes_model_builds_and_answers(void **state)
{
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 12, 3, 8);
	CHAIN d = open_block(0, "linear", 20, "linear:per_rank=2us");

	(void)state;
	assert_true(test_op_ns(d, &op) == 24000);
}

static void the_readmes_scheduler_builds_and_plans(void **state)
{
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 32, 4, 1 << 20);
	struct nbox_fabric fabric = {.struct_size = sizeof(fabric), .n_domains = 4, .n_nics = 8};
	CHAIN d = open_block(1, "rails", 30, "rails:chunk=1M");
	struct nbox_plan plan;
	struct err err = {""};

	(void)state;
	assert_true(delay_has_plan(d));
	assert_int_equal(delay_plan(d, &op, &fabric, &plan, &err), 0);
	assert_int_equal(plan.algo, NBOX_RING);
	assert_int_equal(plan.n_lanes, 16);
	assert_int_equal(plan.chunk_bytes, 1 << 20);
	fabric.n_domains = 17;
	assert_int_equal(delay_plan(d, &op, &fabric, &plan, &err), 0);
	assert_int_equal(plan.algo, NBOX_TREE);
	op.kind = NBOX_BROADCAST;
	assert_int_equal(delay_plan(d, &op, &fabric, &plan, &err), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_readmes_model_builds_and_answers),
		cmocka_unit_test(the_readmes_scheduler_builds_and_plans),
	};

	return cmocka_run_group_tests_name("readme", tests, NULL, NULL);
}
