/* Our own declarations against a stock nccl.h, where one is installed. The two cannot
 * be in one file: this one has ours, abi-stock.c the other. */
#include <stdint.h>

#include "cmocka-all.h"
#include "shim/real/nccl-api.h"
#include "tests/unit/shim/abi.h"

static void numbers_are_those_of_nccl_h(void **state)
{
	static const long ours[] = {ABI_NUMBERS};

	(void)state;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (ours[i] != abi_stock[i])
			fail_msg("number %zu of ABI_NUMBERS is %ld, in nccl.h %ld", i, ours[i],
				 abi_stock[i]);
}

static void a_config_begins_as_in_nccl_h(void **state)
{
	(void)state;
	assert_int_equal(offsetof(ncclConfig_t, blocking), abi_stock_blocking);
	assert_true(NCCL_CONFIG_HEAD <= abi_stock_config);
	assert_int_equal(offsetof(ncclConfig_t, net_name), abi_stock_names[0]);
	if (abi_stock_names[1]) {
		assert_int_equal(offsetof(ncclConfig_t, comm_name), abi_stock_names[1]);
		assert_int_equal(offsetof(ncclConfig_t, nvls_ctas), abi_stock_names[2]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_nccl_h),
		cmocka_unit_test(a_config_begins_as_in_nccl_h),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
