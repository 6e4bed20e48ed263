/* Names, sizes and factors of calls. */
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "schedule/coll.h"

static void names_round_trip(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < COLL_KINDS; k++)
		assert_int_equal(coll_kind_parse(coll_kind_name(k)), k);
	assert_int_equal(coll_kind_parse("all_reduce"), COLL_ALLREDUCE);
	assert_int_equal(coll_kind_parse("ALL-TO-ALL"), COLL_ALLTOALL);
	assert_int_equal(coll_kind_parse("alltoall"), COLL_ALLTOALL);
	assert_int_equal(coll_kind_parse("reduce_scatter_"), COLL_REDUCESCATTER);
	assert_int_equal(coll_kind_parse("reduce"), COLL_REDUCE);
	assert_int_equal(coll_kind_parse(""), -1);
	assert_int_equal(coll_kind_parse("reduces"), -1);
	assert_int_equal(coll_kind_parse("all reduce"), -1);
	assert_string_equal(coll_kind_name(COLL_KINDS), "?");
	assert_string_equal(coll_dtype_name(COLL_DTYPES), "?");
	assert_int_equal(coll_dtype_bytes(COLL_DTYPES), 0);
}

static void dtypes_are_nccls(void **state)
{
	static const struct {
		const char *name;
		size_t bytes;
	} want[] = {{"int8", 1},   {"uint8", 1},    {"int32", 4},  {"uint32", 4},
		    {"int64", 8},  {"uint64", 8},   {"half", 2},   {"float", 4},
		    {"double", 8}, {"bfloat16", 2}, {"f8e4m3", 1}, {"f8e5m2", 1}};

	(void)state;
	for (uint32_t i = 0; i < COLL_DTYPES; i++) {
		assert_string_equal(coll_dtype_name(i), want[i].name);
		assert_int_equal(coll_dtype_bytes(i), want[i].bytes);
	}
}

static void buffers_are_nccls(void **state)
{
	/* rank's and root's input and output, in units of the call's bytes, n = 8 */
	static const int want[COLL_KINDS][4] = {
		[COLL_ALLREDUCE] = {1, 1, 1, 1},     [COLL_ALLGATHER] = {1, 1, 8, 8},
		[COLL_REDUCESCATTER] = {8, 8, 1, 1}, [COLL_BROADCAST] = {0, 1, 1, 1},
		[COLL_REDUCE] = {1, 1, 0, 1},        [COLL_ALLTOALL] = {8, 8, 8, 8},
		[COLL_GATHER] = {1, 1, 0, 8},        [COLL_SCATTER] = {0, 8, 1, 1},
		[COLL_SENDRECV] = {1, 1, 1, 1},
	};

	(void)state;
	for (uint32_t k = 0; k < COLL_KINDS; k++)
		for (int root = 0; root < 2; root++) {
			assert_int_equal(coll_input_bytes(k, 100, 8, root), want[k][root] * 100);
			assert_int_equal(coll_output_bytes(k, 100, 8, root),
					 want[k][2 + root] * 100);
		}
}

static void factors_are_nccl_tests(void **state)
{
	(void)state;
	assert_true(coll_busbw_factor(COLL_ALLREDUCE, 4) == 1.5);
	assert_true(coll_busbw_factor(COLL_ALLGATHER, 4) == 0.75);
	assert_true(coll_busbw_factor(COLL_REDUCESCATTER, 4) == 0.75);
	assert_true(coll_busbw_factor(COLL_ALLTOALL, 4) == 0.75);
	assert_true(coll_busbw_factor(COLL_BROADCAST, 4) == 1);
	assert_true(coll_busbw_factor(COLL_REDUCE, 4) == 1);
	assert_true(coll_busbw_factor(COLL_SENDRECV, 4) == 1);
	assert_true(coll_busbw_factor(COLL_ALLREDUCE, 1) == 0);
	assert_true(coll_busbw_factor(COLL_ALLREDUCE, 0) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_round_trip),
		cmocka_unit_test(dtypes_are_nccls),
		cmocka_unit_test(buffers_are_nccls),
		cmocka_unit_test(factors_are_nccl_tests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
