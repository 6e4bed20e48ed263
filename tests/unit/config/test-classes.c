/* Classes of ranks, from a layout and a fabric. */
#include <errno.h>
#include <string.h>

#include "cmocka-all.h"
#include "config/classes.h"

static struct layout parse(const char *text, uint32_t world)
{
	struct layout l;

	assert_int_equal(layout_parse(text, world, &l, NULL), 0);
	return l;
}

/* @want: a letter a rank, from 'a'. */
static void check(const char *axes, const char *layout, const char *want, const struct fabric *f,
		  uint32_t gpus)
{
	uint32_t world = (uint32_t)strlen(want);
	struct layout l = parse(layout, world);
	struct classes c;

	assert_int_equal(classes_make(axes, &l, 1, f, world, gpus, &c, NULL), 0);
	for (uint32_t i = 0; i < world; i++)
		assert_int_equal('a' + (c.of ? c.of[i] : 0), want[i]);
	classes_deinit(&c);
}

static void ranks_of_one_place_along_the_axes_are_a_class(void **state)
{
	(void)state;
	check(NULL, "tp=2,pp=2,dp=2", "aabbaabb", NULL, 2); /* pp by itself */
	check(NULL, "tp=2,dp=2,pp=2", "aaaabbbb", NULL, 2);
	check("none", "tp=2,dp=2,pp=2", "aaaaaaaa", NULL, 2);
	check(NULL, "tp=4,dp=2", "aaaaaaaa", NULL, 2);
	check("ep", "ep=2,dp=4", "abababab", NULL, 2);
	check("pp+ep", "ep=2,pp=2,dp=2", "acbdacbd", NULL, 2); /* as the layout has them */
	check(NULL, "pp=1,dp=4", "aaaa", NULL, 2);
}

static void nodes_with_other_gpus_are_classes_of_their_own(void **state)
{
	struct fabric_nodes nodes[] = {{0, 2, 0}, {2, 1, 1}, {3, 1, 2}};
	struct fabric f = {.n_nodes = 4,
			   .gpus_per_node = 2,
			   .classes = {{.gpu = "H100"}, {.gpu = "A100"}, {.gpu = "H100"}},
			   .n_classes = 3,
			   .nodes = nodes,
			   .n_nodes_runs = 3};
	struct layout l = parse("tp=2,dp=2,pp=2", 8);
	struct classes c;
	char name[64];

	(void)state;
	check(NULL, "dp=8", "aaaabbaa", &f, 2);
	assert_int_equal(classes_make(NULL, &l, 1, &f, 8, 2, &c, NULL), 0);
	assert_int_equal(c.n, 3);
	assert_string_equal(classes_name(&c, 5, "A100", name, sizeof(name)), "pp=1 A100");
	assert_true(c.of[5] != c.of[7]);
	classes_deinit(&c);
}

static void an_unknown_axis_is_refused(void **state)
{
	struct layout l = parse("tp=2,pipe=2", 4);
	struct classes c;
	struct err err;

	(void)state;
	assert_int_equal(classes_make("pip", &l, 1, NULL, 4, 1, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'pipe'?"));
	assert_int_equal(classes_make("tp+x", &l, 1, NULL, 4, 1, &c, &err), -EINVAL);
	assert_int_equal(classes_make("pp", NULL, 0, NULL, 4, 1, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "there is none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_of_one_place_along_the_axes_are_a_class),
		cmocka_unit_test(nodes_with_other_gpus_are_classes_of_their_own),
		cmocka_unit_test(an_unknown_axis_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
