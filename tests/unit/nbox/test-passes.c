/* Which sends and receives of a record are a pipeline's messages. */
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "nbox/pipe/passes.h"
#include "schedule/coll.h"

#define MESSAGE 32768

/* As PyTorch's stages: both neighbours greet each other before the first message. */
static void a_greeting_is_no_message(void **state)
{
	const struct record_call hello[] = {{1, 1, 4}, {1, 0, 4}};
	const struct record_call send[] = {{1, 1, MESSAGE}}, receive[] = {{1, 0, MESSAGE}};
	const struct record_call both[] = {{1, 1, MESSAGE}, {1, 0, MESSAGE}};
	const struct record_comm comm = {.n_ranks = 2, .stride = 1};
	struct record_op ops[] = {{.n_calls = 2, .calls = hello},
				  {.n_calls = 1, .calls = send},
				  {.n_calls = 2, .calls = both},
				  {.n_calls = 1, .calls = receive}};
	struct rows_row rows[ARRAY_SIZE(ops)];
	struct record rec = {.ops = ops, .n_ops = ARRAY_SIZE(ops)};
	const struct rows_graph g = {.rec = &rec, .rows = rows, .n = ARRAY_SIZE(ops)};
	struct passes p;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(ops); i++) {
		ops[i].kind = COLL_SENDRECV;
		ops[i].name = i + 1;
		ops[i].of = &comm;
		rows[i] = (struct rows_row){.is_op = true, .index = i};
	}
	assert_int_equal(passes_find(&g, 0, -1, 1, &p), 0);
	assert_int_equal(p.way[PASSES_TO_NEXT].n, 2);
	assert_ptr_equal(p.way[PASSES_TO_NEXT].ops[0], &ops[1]);
	assert_int_equal(p.way[PASSES_FROM_NEXT].n, 2);
	assert_ptr_equal(p.way[PASSES_FROM_NEXT].ops[0], &ops[2]);
	assert_int_equal(p.way[PASSES_TO_PREVIOUS].n, 0);
	passes_deinit(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_greeting_is_no_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
