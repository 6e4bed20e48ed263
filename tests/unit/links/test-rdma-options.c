/* The options of rdma links, and the device that they choose. */
#include "rdma-ends.h"

#include <arpa/inet.h>

static void options_are_strict(void **state)
{
	static const char *const bad[][2] = {
		{"TC", "256"}, {"TC", "x"}, {"QPS", "0"}, {"QPS", "5"}, {"RING", "4"}, {"RING", "3MiB"},
		{"MTU", "1000"}, {"POLL", "yes"}, {"HCA", ""}, {"RETRY_CNT", "8"}, {"MEMORY", "1000000"},
		{"TIMEOUT", "0"}, {"GIDINDEX", "1"},
	};
	struct rdma_options o;
	struct err err;

	(void)state;
	rdma_options_init(&o);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err.text[0] = 0;
		assert_true(rdma_options_set(&o, bad[i][0], bad[i][1], &err) < 0);
		assert_non_null(strstr(err.text, "NBOX_IB_"));
	}
	assert_non_null(strstr(err.text, "did you mean NBOX_IB_GID_INDEX?"));
	assert_int_equal(rdma_options_set(&o, "RING", "8MiB", &err), 0);
	assert_int_equal(rdma_options_set(&o, "GID_INDEX", "2", &err), 0);
	assert_int_equal(o.ring_bytes, 8 << 20);
	assert_int_equal(o.gid_index, 2);
}

static void devices_are_chosen(void **state)
{
	struct rdma_options o = use_options();
	struct sockaddr_storage a;
	struct err err;

	(void)state;
	assert_int_equal(rdma_own_address(&o, &a, &err), 0);
	assert_int_equal(((struct sockaddr_in *)&a)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	o.gid_index = 0; /* link-local: cannot be bound to */
	assert_int_equal(rdma_own_address(&o, &a, &err), -EADDRNOTAVAIL);
	assert_non_null(strstr(err.text, "no GID fits"));
	o.gid_index = -1;
	strcpy(o.hca, "fake1");
	assert_int_equal(rdma_own_address(&o, &a, &err), -ENODEV);
	assert_non_null(strstr(err.text, "did you mean 'fake0'?"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(options_are_strict), T(devices_are_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
