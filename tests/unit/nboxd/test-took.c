/* What NCCL took, as the summary says it. */
#include <string.h>

#include "cmocka-all.h"
#include "nboxd/full/took.h"
#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"

static struct took t;

static int clear(void **state)
{
	(void)state;
	t = (struct took){.n = 0};
	return 0;
}

static void ops_are_counted_by_what_was_taken(void **state)
{
	char text[256];

	(void)state;
	assert_string_equal(took_print(&t, text, sizeof(text)), "");
	took_add(&t, COLL_BROADCAST, PLUGIN_RING, PLUGIN_LL128, 1);
	for (int i = 0; i < 30; i++)
		took_add(&t, COLL_ALLREDUCE, PLUGIN_TREE, i % 3 ? PLUGIN_SIMPLE : PLUGIN_LL, 2);
	assert_string_equal(took_print(&t, text, sizeof(text)),
			    "AllReduce tree Simple, 2 channels (20 ops); "
			    "AllReduce tree LL, 2 channels (10 ops); "
			    "Broadcast ring LL128, 1 channel (1 op)");
}

static void a_short_line_has_whole_parts_only(void **state)
{
	char text[128];

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		took_add(&t, COLL_ALLREDUCE, PLUGIN_TREE, PLUGIN_SIMPLE, 1 + i);
	assert_int_equal(t.n, TOOK_MAX);
	took_print(&t, text, sizeof(text));
	assert_true(strlen(text) > 60 && text[strlen(text) - 1] == ')');
	assert_string_equal(took_print(&t, text, 20), "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(ops_are_counted_by_what_was_taken, clear),
		cmocka_unit_test_setup(a_short_line_has_whole_parts_only, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
