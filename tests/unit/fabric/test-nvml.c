/* What is asked of NVML, by one that is made up. */
#include "cmocka-all.h"
#include "fabric/read/nvml.h"

static void links_that_are_up_are_counted(void **state)
{
	struct nvml *n = nvml_open();
	uint32_t sm = 0, links = 0;

	(void)state;
	assert_non_null(n);
	assert_int_equal(nvml_ask(n, "0000:18:00.0", &sm, &links), 0);
	assert_true(sm == 90 && links == 16);
	assert_int_equal(nvml_ask(n, "0000:19:00.0", &sm, &links), -1);
	nvml_close(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(links_that_are_up_are_counted)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
