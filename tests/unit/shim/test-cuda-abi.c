/* Our own declarations of the CUDA driver against the vendor's cuda.h, where one is
 * installed. The types of functions are compared while cuda-abi-stock.c compiles. */
#include <stdint.h>

#include "cmocka-all.h"
#include "tests/unit/shim/cuda-abi.h"

static void numbers_and_layouts_are_those_of_cuda_h(void **state)
{
	(void)state;
	assert_int_equal(n_cuda_abi_ours, n_cuda_abi_stock);
	for (size_t i = 0; i < n_cuda_abi_ours; i++)
		if (cuda_abi_ours[i] != cuda_abi_stock[i])
			fail_msg("number %zu of CUDA_ABI_NUMBERS is %ld, in cuda.h %ld", i,
				 cuda_abi_ours[i], cuda_abi_stock[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_layouts_are_those_of_cuda_h)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
