/* Nodes and hops, against their definition. */
#include <stdint.h>

#include "cmocka-all.h"
#include "topology/topology.h"

static void the_default_is_one_node_of_eight(void **state)
{
	struct topology t;

	(void)state;
	topology_default(&t);
	assert_int_equal(t.n_nodes, 1);
	assert_int_equal(topology_world(&t), t.gpus_per_node);
	assert_true(t.inter.bytes_per_ns == 50 && t.inter.latency_ns == 5000);
	assert_true(t.intra.bytes_per_ns > t.inter.bytes_per_ns);
	assert_true(t.intra.latency_ns < t.inter.latency_ns);
}

static void hops_follow_the_nodes(void **state)
{
	(void)state;
	for (uint32_t gpus = 1; gpus <= 5; gpus++) {
		struct topology t = {.n_nodes = 4, .gpus_per_node = gpus};
		uint32_t rank = 0;

		assert_int_equal(topology_world(&t), 4 * gpus);
		for (uint32_t node = 0; node < 4; node++)
			for (uint32_t local = 0; local < gpus; local++)
				assert_int_equal(topology_node(&t, rank++), node);
		for (uint32_t a = 0; a < 4 * gpus; a++)
			for (uint32_t b = 0; b < 4 * gpus; b++)
				assert_int_equal(topology_hop(&t, a, b), a == b ? HOP_SELF
									 : a / gpus == b / gpus
										 ? HOP_INTRA
										 : HOP_INTER);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_is_one_node_of_eight),
		cmocka_unit_test(hops_follow_the_nodes),
	};

	return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
