/* Our declarations of the CUDA runtime against NVIDIA's: constants, sizes, offsets. The types of
 * functions were compared when this was compiled. */
#include <stdint.h>

#include "abi-table.h"
#include "cmocka-all.h"

static void our_headers_have_the_values_of_the_real_ones(void **state)
{
	(void)state;
	assert_int_equal(abi_n_ours, abi_n_theirs);
	assert_true(abi_n_ours > 300);
	for (unsigned i = 0; i < abi_n_ours; i++) {
		assert_string_equal(abi_ours[i].name, abi_theirs[i].name);
		if (abi_ours[i].value != abi_theirs[i].value)
			fail_msg("%s is %llu here and %llu there", abi_ours[i].name,
				 abi_ours[i].value, abi_theirs[i].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_headers_have_the_values_of_the_real_ones)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
