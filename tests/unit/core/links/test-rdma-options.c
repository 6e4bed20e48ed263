/* The options of rdma links, and the devices that they choose. */
#include "rdma-ends.h"

#include "links/rdma/address.h"

#include <arpa/inet.h>

static void options_are_strict(void **state)
{
	static const char *const bad[][2] = {
		{"TC", "256"},     {"TC", "x"},        {"QPS", "0"},          {"QPS", "5"},
		{"RING", "4"},     {"RING", "3MiB"},   {"MTU", "1000"},       {"POLL", "yes"},
		{"HCA", ""},       {"RETRY_CNT", "8"}, {"MEMORY", "1000000"}, {"TIMEOUT", "0"},
		{"GIDINDEX", "1"},
	};
	struct rdma_options o;
	struct err err;

	(void)state;
	rdma_options_init(&o);
	assert_int_equal(o.timeout, 18);
	assert_int_equal(o.retry_count, 7);
	assert_int_equal(o.inline_bytes, 256);
	assert_int_equal(o.memory_bytes, 1 << 30);
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

static void options_choose_the_device(void **state)
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

/* A GID of InfiniBand is no address, also where it looks like one: IPoIB's is. */
static void an_infiniband_port_has_the_address_of_its_ipoib(void **state)
{
	struct rdma_options o = use_options();
	struct sockaddr_storage a;
	struct err err;

	(void)state;
	fake_faults.is_infiniband = true;
	for (int i = 0; i < 2; i++) {
		fake_faults.has_subnet_prefix = i;
		assert_int_equal(rdma_own_address(&o, &a, &err), 0);
		assert_int_equal(a.ss_family, AF_INET);
		assert_int_equal(((struct sockaddr_in *)&a)->sin_addr.s_addr, htonl(0x7f000002));
	}
	o.gid_index = 0;
	assert_int_equal(rdma_own_address(&o, &a, &err), 0);
	/* its global address, not the one of the link */
	fake_faults.ipoib_has_v6_only = true;
	assert_int_equal(rdma_own_address(&o, &a, &err), 0);
	assert_int_equal(a.ss_family, AF_INET6);
	assert_int_equal(((struct sockaddr_in6 *)&a)->sin6_addr.s6_addr[0], 0x20);
	for (int i = 0; i < 2; i++) {
		fake_faults.has_no_ipoib = i == 0;
		fake_faults.ipoib_is_down = i == 1;
		assert_int_equal(rdma_own_address(&o, &a, &err), -ENXIO);
		assert_non_null(
			strstr(err.text,
			       "the port is InfiniBand, and no interface of IPoIB over it"));
	}
}

/* ... and a link from and to it works as over RoCE. Inside a subnet no GID is used: none takes
 * another's place. */
static void a_link_works_over_infiniband(void **state)
{
	struct rdma_options o = use_options();
	struct ends e;

	(void)state;
	fake_faults.is_infiniband = true;
	strcpy(o.hca, "fake0");
	rdma_options_use(&o);
	converse("rdma:auto:0", 60, 60, 60, 0);
	fake_faults.is_infiniband = true;
	o.gid_index = 0;
	rdma_options_use(&o);
	ends_open(&e);
	assert_int_equal(fake_seen.ah.grh.sgid_index, 2); /* as the connection manager had it */
	ends_close(&e);
}

/* The device gets what the options ask for, and the defaults otherwise. */
static void options_reach_the_queue_pair(void **state)
{
	struct rdma_options o = use_options();
	struct ends e;

	(void)state;
	for (int i = 0; i < 2; i++) {
		rdma_options_use(&o);
		ends_open(&e);
		assert_int_equal(fake_seen.mtu, i ? IBV_MTU_1024 : IBV_MTU_4096);
		assert_int_equal(fake_seen.ah.grh.traffic_class, i ? 106 : 0);
		assert_int_equal(fake_seen.ah.grh.sgid_index, i ? 3 : 2);
		assert_int_equal(fake_seen.timeout, i ? 20 : 18);
		assert_int_equal(fake_seen.retries, i ? 3 : 7);
		assert_int_equal(fake_seen.rnr_retries, 6); /* 7 would be for ever */
		assert_int_equal(fake_seen.rnr_timer, 12);
		assert_int_equal(fake_seen.inline_bytes, i ? 64 : 256);
		ends_close(&e);
		fake_faults.has_roce_v1 = true;
		o.gid_index = 3;
		o.mtu = 1024;
		o.traffic_class = 106;
		o.timeout = 20;
		o.retry_count = 3;
		o.inline_bytes = 64;
	}
	o.mtu = 4096; /* not more than the path has */
	fake_faults.path_mtu = IBV_MTU_2048;
	rdma_options_use(&o);
	ends_open(&e);
	assert_int_equal(fake_seen.mtu, IBV_MTU_2048);
	ends_close(&e);
}

/* A GID that is not of the address that is listened at: no link, and never over another one. */
static void a_gid_of_another_address_is_refused(void **state)
{
	struct rdma_options o = use_options();
	struct err why;
	struct ends e;
	int r;

	(void)state;
	ends_init(&e);
	o.gid_index = 0;
	rdma_options_use(&o);
	assert_int_equal(listener_open(ADDR, &e.l, &why), 0);
	o.gid_index = -1;
	rdma_options_use(&o);
	r = ends_meet(&e, connect_b, &why);
	assert_int_equal(r, -EADDRNOTAVAIL);
	assert_int_equal(e.r, -ECONNREFUSED);
	if (!strstr(why.text, "device fake0 port 1, QP ") || !strstr(why.text, " to rdma:") ||
	    !strstr(why.text,
		    "GID 0 was asked for (NBOX_IB_GID_INDEX), and the connection is over GID 2"))
		fail_msg("%s", why.text);
	ends_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(options_are_strict),
		T(options_choose_the_device),
		T(an_infiniband_port_has_the_address_of_its_ipoib),
		T(a_link_works_over_infiniband),
		T(options_reach_the_queue_pair),
		T(a_gid_of_another_address_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
