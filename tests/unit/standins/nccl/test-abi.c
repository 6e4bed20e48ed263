/* Our nccl.h against NVIDIA's: every number, size, offset and initialiser. The
 * prototypes were compared by the compiler (abi-table.c). Built only where the
 * real header is installed. */
#include <stdint.h>
#include <string.h>

#include "cmocka-all.h"
#include <nccl.h>

#include "abi-table.h"

static void our_header_has_the_numbers_of_the_real_one(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; abi_ours[i].name && abi_theirs[i].name; i++) {
		assert_string_equal(abi_ours[i].name, abi_theirs[i].name);
		if (abi_ours[i].value != abi_theirs[i].value)
			fail_msg("%s is %lld in our header and %lld in the real one",
				 abi_ours[i].name, abi_ours[i].value, abi_theirs[i].value);
	}
	assert_null(abi_ours[i].name);
	assert_null(abi_theirs[i].name);
}

#ifdef ABI_HAS_228
static void initialisers_are_those_of_the_real_header(void **state)
{
	ncclConfig_t ours, theirs;
	ncclSimInfo_t sim_ours, sim_theirs;

	(void)state;
	memcpy(&ours, abi_config_ours, sizeof(ours));
	memcpy(&theirs, abi_config_theirs, sizeof(theirs));
	ours.version = theirs.version; /* another patch level is fine */
	assert_memory_equal(&ours, &theirs, sizeof(ours));
	memcpy(&sim_ours, abi_sim_ours, sizeof(sim_ours));
	memcpy(&sim_theirs, abi_sim_theirs, sizeof(sim_theirs));
	sim_ours.version = sim_theirs.version;
	assert_memory_equal(&sim_ours, &sim_theirs, offsetof(ncclSimInfo_t, estimatedTime) + 4);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_header_has_the_numbers_of_the_real_one),
#ifdef ABI_HAS_228
		cmocka_unit_test(initialisers_are_those_of_the_real_header),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
