/* What nbox oracle reads: NCCL's log, the lines of nbox-oracle, a topology's NICs, its own options.
 */
#include <stdint.h>

#include "cmocka-all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/read/net-devices.h"
#include "nbox/oracle/fits.h"
#include "nbox/oracle/request.h"
#include "nbox/oracle/result.h"

/* Two nodes of two GPUs, two channels: as NCCL 2.28.9 prints them, shortened. */
static const char text[] =
	"vm:61:115 [0] NCCL INFO Pattern 4, crossNic 1, nChannels 2, bw 24.000000/12.000000, type NVL/PXN, sameChannels 0\n"
	"vm:61:115 [0] NCCL INFO Pattern 3, crossNic 0, nChannels 1, bw 30.000000/24.000000, type NVL/PIX, sameChannels 1\n"
	"vm:61:116 [1] NCCL INFO Pattern 4, crossNic 1, nChannels 9, bw 9.000000/9.000000, type SYS/SYS, sameChannels 0\n"
	"vm:61:115 [0] NCCL INFO comm 0x7f6464c72010 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0\n"
	"vm:61:115 [0] NCCL INFO Ring 00 : 3 -> 0 -> 1\n"
	"vm:61:116 [1] NCCL INFO Ring 00 : 0 -> 1 -> 2\n"
	"vm:61:115 [0] NCCL INFO Ring 01 : 1 -> 0 -> 3\n"
	"vm:61:116 [1] NCCL INFO Ring 01 : 2 -> 1 -> 0\n"
	"vm:61:115 [0] NCCL INFO Tree 0 : -1 -> 0 -> 2/-1/-1\n"
	"vm:61:115 [0] NCCL INFO Trees [0] 1/2/-1->0->-1 [1] 1/-1/-1->0->2\n"
	"vm:61:116 [1] NCCL INFO Trees [0] -1/-1/-1->1->0 [1] -1/-1/-1->1->0\n"
	"vm:61:115 [0] NCCL INFO   Algorithm   |                            Tree                  |                            Ring                  |\n"
	"vm:61:115 [0] NCCL INFO  Max NThreads |            512 |            640 |            512 |            256 |            640 |            512 |\n"
	"vm:61:115 [0] NCCL INFO   Algorithm   |                            NVLS                  |                             PAT                  |\n"
	"vm:61:115 [0] NCCL INFO  Max NThreads |              0 |              0 |            640 |              0 |              0 |            640 |\n"
	"vm:61:115 [0] NCCL INFO threadThresholds 8/8/64 | 32/8/64 | 512 | 512\n"
	"vm:61:115 [0] NCCL INFO 2 coll channels, 2 collnet channels, 4 nvls channels, 8 p2p channels, 1 p2p channels per peer\n";

static void a_log_tells_graphs_orders_and_channels(void **state)
{
	struct nccl_log *l = malloc(sizeof(*l));
	uint16_t ranks[8];

	(void)state;
	nccl_log_parse(text, sizeof(text) - 1, l);
	assert_int_equal(l->n_ranks, 4);
	assert_int_equal(l->n_nodes, 2);
	assert_int_equal(l->n_graphs, 2); /* the first rank's */
	assert_int_equal(l->graphs[0].cross_nic, 1);
	assert_true(l->graphs[0].bw_inter == 12);
	assert_string_equal(l->graphs[0].type_inter, "PXN");
	assert_int_equal(l->n_nvls_channels, 4);
	assert_int_equal(l->n_p2p_channels, 8);
	assert_int_equal(oracle_ring_of(l, 0, 2, ranks), 2);
	assert_int_equal(ranks[0], 0);
	assert_int_equal(oracle_ring_of(l, 1, 2, ranks), 2);
	assert_int_equal(ranks[0], 1);
	assert_int_equal(oracle_ring_of(l, 2, 2, ranks), 0);
	assert_int_equal(oracle_tree_of(l, 1, 2, ranks), 2);
	assert_int_equal(ranks[1], 1);
	assert_int_equal(oracle_tree_of(l, 2, 2, ranks), 0);
	free(l);
}

static void few_bytes_take_few_channels(void **state)
{
	struct nccl_log *l = malloc(sizeof(*l));

	(void)state;
	nccl_log_parse(text, sizeof(text) - 1, l);
	/* 256 threads with 32 bytes each */
	assert_int_equal(nccl_log_channels(l, ALGO_RING, 0, 8), 1);
	assert_int_equal(nccl_log_channels(l, ALGO_RING, 0, 2 * 8192 - 1), 1);
	assert_int_equal(nccl_log_channels(l, ALGO_RING, 0, 2 * 8192), 2);
	assert_int_equal(nccl_log_channels(l, ALGO_RING, 0, UINT64_MAX), 2);
	/* no more than all channels where nodes are several, and NVLS alone */
	assert_int_equal(nccl_log_channels(l, ALGO_NVLS, 2, 8), 2);
	assert_int_equal(nccl_log_channels(l, ALGO_NVLS_TREE, 2, 8), 4);
	assert_int_equal(nccl_log_channels(l, ALGO_PAT, 2, 640 * 64), 1);
	/* what the log does not tell */
	assert_int_equal(nccl_log_channels(l, ALGO_COLLNET_CHAIN, 2, 8), DECISIONS_NOT_KNOWN);
	nccl_log_parse("", 0, l);
	assert_int_equal(nccl_log_channels(l, ALGO_RING, 0, 8), DECISIONS_NOT_KNOWN);
	free(l);
}

static void a_line_that_is_cut_off_tells_no_edge(void **state)
{
	struct nccl_log *l = malloc(sizeof(*l));
	char all[2048], *line = strcpy(all, "vm:61:115 [0] NCCL INFO ") + 24;
	int last;

	(void)state;
	strcpy(line, "Trees");
	for (int c = 0; strlen(line) < 1100; c++)
		sprintf(line + strlen(line), " [%d] 10001/10002/-1->0->123456", c);
	line[1027] = 0; /* so many characters NCCL has room for */
	nccl_log_parse(all, strlen(all), l);
	last = atoi(strrchr(line, '[') + 1);
	assert_int_equal(l->tree_up[last - 1][0], 123456);
	assert_int_equal(l->tree_up[last][0], NCCL_LOG_NONE);
	free(l);
}

static void the_first_warning_is_the_reason(void **state)
{
	char last[32];

	(void)state;
	nccl_log_last("x NCCL INFO a\ny a.cc:1 NCCL WARN the cause\nz a.cc:2 NCCL WARN what came\n",
		      last, sizeof(last));
	assert_string_equal(last, "the cause");
	nccl_log_last("x NCCL INFO a\ny NCCL INFO b", last, sizeof(last));
	assert_string_equal(last, "b");
	nccl_log_last("", last, sizeof(last));
	assert_string_equal(last, "");
}

static void costs_come_back_as_they_were_said(void **state)
{
	struct oracle_costs c = {.op = ORACLE_REDUCE, .bytes = 8, .n_algos = 7, .n_protos = 3}, d;
	char line[ORACLE_LINE_MAX];

	(void)state;
	for (int i = 0; i < 21; i++)
		c.us[i] = i % 4 ? 1.0f / (float)i : -1;
	oracle_costs_print(&c, line, sizeof(line));
	assert_int_equal(oracle_costs_parse(line, &d), 0);
	assert_int_equal(d.op, ORACLE_REDUCE);
	for (int i = 0; i < 21; i++)
		assert_true(c.us[i] == d.us[i]);
	strcat(line, " 1");
	assert_int_not_equal(oracle_costs_parse(line, &d), 0);
	assert_int_not_equal(oracle_costs_parse("costs allreduce 8 17 3", &d), 0);
	assert_int_not_equal(oracle_costs_parse("costs allreduce 8 1 1 nan", &d), 0);
	assert_int_not_equal(oracle_costs_parse("costs alltoall 8 1 1 2", &d), 0);
}

static void a_topology_tells_its_nics(void **state)
{
	static const char xml[] =
		"<nic><net name=\"mlx5_0\" dev=\"0\" speed=\"200000\" port=\"2\" latency=\"1.500000\" guid=\"0x1f\" maxconn=\"7\" gdr=\"1\"/></nic>"
		"<net name=\"b\" speed=\"100\"/>";
	struct net_device d[NET_DEVICES_MAX];
	struct err err;
	size_t n;

	(void)state;
	assert_int_equal(net_devices_parse("t", xml, d, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_string_equal(d[0].name, "mlx5_0");
	assert_int_equal(d[0].mbps, 200000);
	assert_int_equal(d[0].port, 2);
	assert_int_equal(d[0].guid, 31);
	assert_int_equal(d[0].n_comms, 7);
	assert_true(d[0].has_gdr && d[0].latency_us == 1.5f);
	assert_true(!d[1].has_gdr && d[1].port == 1);
	assert_int_not_equal(net_devices_parse("t", "<net name=\"b\"", d, &n, &err), 0);
	assert_int_not_equal(net_devices_parse("t", "<net name=\"b\"/>", d, &n, &err), 0);
	assert_int_not_equal(net_devices_parse("t", "<system/>", d, &n, &err), 0);
}

static void shapes_are_nodes_and_perhaps_ranks_on_each(void **state)
{
	static const char *const wrong[] = {"",     "0",   "2x",   "x8",   "2x0",
					    "2x65", "1.5", "2,,3", "2x8x1"};
	struct oracle_shape s[ORACLE_WORLDS_MAX];
	struct err err;
	size_t n;

	(void)state;
	assert_int_equal(oracle_shapes_parse("2,16x4", s, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(s[0].n_nodes, 2);
	assert_int_equal(s[0].gpus_per_node, 0);
	assert_int_equal(s[1].gpus_per_node, 4);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_not_equal(oracle_shapes_parse(wrong[i], s, &n, &err), 0);
}

static void a_record_with_other_graphs_than_the_log_does_not_fit(void **state)
{
	const struct record_graph r = {.n_graphs = 3,
				       .graph_bytes = 8,
				       .pattern = {0, 4},
				       .n_channels = {4, 4}};
	int32_t record[6] = {4, 2, 3, 1, 0, 0};
	struct nccl_log *l = malloc(sizeof(*l));

	(void)state;
	nccl_log_parse(text, sizeof(text) - 1, l);
	assert_true(graph_record_fits(&r, (const uint8_t *)record, l));
	record[3] = 2;
	assert_false(graph_record_fits(&r, (const uint8_t *)record, l));
	free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_tells_graphs_orders_and_channels),
		cmocka_unit_test(few_bytes_take_few_channels),
		cmocka_unit_test(a_line_that_is_cut_off_tells_no_edge),
		cmocka_unit_test(the_first_warning_is_the_reason),
		cmocka_unit_test(costs_come_back_as_they_were_said),
		cmocka_unit_test(a_topology_tells_its_nics),
		cmocka_unit_test(shapes_are_nodes_and_perhaps_ranks_on_each),
		cmocka_unit_test(a_record_with_other_graphs_than_the_log_does_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
