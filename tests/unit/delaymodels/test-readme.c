/* The first code block of delaymodels/README.md, taken as it stands: compiled by
 * the build's compiler with nothing but the header, loaded and asked. */
#include "delay-test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/nbox-test-readme-XXXXXX";

/* Return: the number of lines. */
static int copy_block(const char *to)
{
	FILE *in = fopen(HEADER_DIR "/README.md", "r"), *out = fopen(to, "w");
	bool is_inside = false;
	char line[512];
	int n = 0;

	assert_true(in && out);
	while (fgets(line, sizeof(line), in)) {
		if (strcmp(line, "```c\n") == 0) {
			is_inside = true;
		} else if (strcmp(line, "```\n") == 0) {
			break;
		} else if (is_inside) {
			fputs(line, out);
			n++;
		}
	}
	fclose(in);
	assert_int_equal(fclose(out), 0);
	return n;
}

static void the_readmes_model_builds_and_answers(void **state)
{
	char source[64], object[64], command[1024];
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 12, 3, 8);
	struct delay_chain *opened = NULL;
	struct err err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(source, sizeof(source), "%s/linear.c", dir);
	snprintf(object, sizeof(object), "%s/linear.so", dir);
	assert_int_equal(copy_block(source), 20);
	snprintf(command, sizeof(command),
		 "%s -shared -fPIC -Wall -Wextra -Werror -fvisibility=hidden -I '%s' -o '%s' '%s'",
		 COMPILER, HEADER_DIR, object, source);
	assert_int_equal(system(command), 0);
	setenv("NBOX_MODEL_PATH", dir, 1);
	if (test_open("linear:per_rank=2us", NULL, 0, &opened, &err) < 0)
		fail_msg("%s", err.text);
	CHAIN d = opened;

	assert_true(test_op_ns(d, &op) == 24000);
	unlink(source);
	unlink(object);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_readmes_model_builds_and_answers),
	};

	return cmocka_run_group_tests_name("readme", tests, NULL, NULL);
}
