/* rdma links over a real device (or soft-RoCE in the virtual machine): the conversations
 * that shm and tcp links have, and a few ends. NBOX_TEST_RDMA is an address of such a
 * device, without rdma: and port; where it is not set there is nothing to test. */
#include "conversation.h"

#include "links/rdma/private.h"

static char addr[128];

static void polling(void **state)
{
	(void)state;
	converse(addr, 100, 0, 0, 0);
}

static void sleeping(void **state)
{
	(void)state;
	converse(addr, 150, 100, 100, 0);
}

static void mixed_with_holds(void **state)
{
	(void)state;
	converse(addr, 150, 90, 70, 20);
}

static void several_queue_pairs(void **state)
{
	struct rdma_options o;

	(void)state;
	rdma_options_init(&o);
	o.qps = 3;
	rdma_options_use(&o);
	converse(addr, 100, 100, 100, 0);
	o.qps = 1;
	rdma_options_use(&o);
}

static void nobody_there(void **state)
{
	struct err err = {""};
	char closed[160];
	struct peer p;

	(void)state;
	peer_init(&p, 1);
	snprintf(closed, sizeof(closed), "%.*s:1", (int)(strlen(addr) - 2), addr);
	assert_true(link_connect(closed, 5000, &peer_events, &p, &p.link, &err) < 0);
	fprintf(stderr, "# %s\n", err.text);
	assert_non_null(strstr(err.text, "nobody listens there"));
}

static void all_was_given_back(void **state)
{
	(void)state;
	for (int i = 0; i < RDMA_THINGS; i++) {
		fprintf(stderr, "# thing %d: made %lu gone %lu\n", i,
			(unsigned long)rdma_counts.made[i], (unsigned long)rdma_counts.gone[i]);
		assert_int_equal(rdma_counts.made[i], rdma_counts.gone[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleeping),
		cmocka_unit_test(mixed_with_holds),
		cmocka_unit_test(several_queue_pairs),
		cmocka_unit_test(polling),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(all_was_given_back),
	};

	if (!getenv("NBOX_TEST_RDMA")) {
		printf("1..0 # SKIP NBOX_TEST_RDMA names no address of an RDMA device\n");
		return 0;
	}
	snprintf(addr, sizeof(addr), "rdma:%s:0", getenv("NBOX_TEST_RDMA"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
