/* The fabric of a configuration: presets, plain fabrics of the hop options, single links. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "config/config.h"

/* Of a cluster file's text. Return: finished; fails the test. */
static struct config *finished(const char *text)
{
	struct config *c;
	struct err err = {""};

	assert_int_equal(config_new(&c), 0);
	if ((text[0] && config_parse(c, "f", text, strlen(text), &err) < 0) ||
	    config_finish(c, &err) < 0)
		fail_msg("%s:\n%s", text, err.text);
	return c;
}

static void a_preset_gives_the_size_of_a_node_and_its_hops(void **state)
{
	struct config *c = finished("cluster: {nodes: 4, preset: gb200-nvl72}\n");

	(void)state;
	assert_int_equal(c->topology.gpus_per_node, 4);
	assert_int_equal(c->world, 16);
	assert_non_null(c->fabric);
	assert_string_equal(c->fabric->name, "gb200-nvl72");
	assert_int_equal(c->fabric->n_nodes, 4);
	config_free(c);
	c = finished("cluster: {nodes: 4, preset: dgx-h100}\n");
	/* less than the data sheets' 450 and 50: what NCCL gets */
	assert_true(c->topology.intra.bytes_per_ns > 300 && c->topology.intra.bytes_per_ns < 450);
	assert_true(c->topology.inter.bytes_per_ns > 40 && c->topology.inter.bytes_per_ns < 50);
	assert_true(c->topology.inter.latency_ns >= 1000 && c->topology.inter.latency_ns < 5000);
	assert_true(c->topology.intra.latency_ns > 0 && c->topology.intra.latency_ns <= 1000);
	config_free(c);
	/* what was said goes before it; fewer GPUs share the node's NICs no more than they must */
	c = finished("cluster: {nodes: 4, gpus_per_node: 2, preset: dgx-h100}\n"
		     "network: {inter: {bandwidth: 1GB/s}}\n");
	assert_int_equal(c->topology.gpus_per_node, 2);
	assert_int_equal(c->fabric->gpus_per_node, 2);
	assert_true(c->topology.inter.bytes_per_ns == 1);
	config_free(c);
	/* four NICs for eight GPUs */
	c = finished("cluster: {nodes: 4, preset: dgx1-v100}\n");
	assert_true(c->topology.inter.bytes_per_ns > 5 && c->topology.inter.bytes_per_ns < 6.25);
	config_free(c);
}

static void hops_make_a_plain_fabric_and_nothing_makes_none(void **state)
{
	struct config *c = finished("");
	struct fabric_link l;
	uint64_t links[FABRIC_PATH_MAX];
	double least = 1e9, latency_ns = 0;
	int n;

	(void)state;
	assert_null(c->fabric);
	config_free(c);
	c = finished("cluster: {nodes: 2, gpus_per_node: 32}\nnetwork: {inter: {bandwidth: 10GB/s, "
		     "latency: 3us}}\n");
	assert_non_null(c->fabric);
	n = fabric_path(c->fabric, 0, 32, FABRIC_NIC_NEAR, links);
	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		fabric_link(c->fabric, links[i], &l);
		least = l.bytes_per_ns < least ? l.bytes_per_ns : least;
		latency_ns += l.latency_ns;
	}
	/* 32 GPUs of 10 GB/s have 16 NICs of 20 */
	assert_true(least > 19.99 && least < 20.01);
	assert_true(latency_ns > 2999 && latency_ns < 3001);
	config_free(c);
}

static void a_cable_changes_the_links_of_its_name(void **state)
{
	struct config *c = finished("cluster: {nodes: 4, preset: dgx-h100}\nnetwork:\n  cables:\n"
				    "    node3.nic2: 100Gbps\n    'node*.nic1.out': '1GB/s,9us'\n");

	(void)state;
	assert_int_equal(c->fabric->n_changes, 2 + 4);
	config_free(c);
}

static void what_is_written_gives_the_same_fabric(void **state)
{
	struct config *c = finished("cluster: {nodes: 4, preset: dgx-h100}\nnetwork:\n  cables:\n"
				    "    node3.nic2: 100Gbps\n"),
		      *again;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	assert_int_equal(config_write(c, f), 0);
	fclose(f);
	again = finished(text);
	assert_int_equal(again->fabric->n_changes, 2);
	assert_string_equal(again->fabric->name, "dgx-h100");
	assert_true(again->topology.inter.bytes_per_ns == c->topology.inter.bytes_per_ns);
	config_free(again);
	config_free(c);
	free(text);
	/* defaults are written as remarks: given, they would be a fabric */
	c = finished("");
	f = open_memstream(&text, &n);
	assert_int_equal(config_write(c, f), 0);
	fclose(f);
	assert_non_null(
		strstr(text, "\n# network.inter.bandwidth: 50GB/s  # default inter-bandwidth"));
	again = finished(text);
	assert_null(again->fabric);
	config_free(again);
	config_free(c);
	free(text);
}

static void nodes_are_otherwise_than_their_preset_says(void **state)
{
	struct config *c = finished("cluster: {nodes: 32, preset: gb200-nvl72, domain_nodes: 16}\n"
				    "network: {nics: '2x100Gbps,7us'}\n");
	const struct fabric_class *k = &c->fabric->classes[0];

	(void)state;
	assert_int_equal(k->domain_nodes, 16);
	assert_int_equal(k->n_nics, 2);
	assert_int_equal(k->nic_gpu[1], 2);
	assert_true(k->nic_bytes_per_ns == 12.5);
	assert_true(c->fabric->network.latency_ns == 7000);
	config_free(c);
	/* so slow that its figure in GB/s has an exponent */
	c = finished("cluster: {nodes: 2, preset: p5}\nnetwork: {nics: '1x10Kbps,0.01ns'}\n");
	assert_true(c->topology.inter.bytes_per_ns > 1e-7 &&
		    c->topology.inter.bytes_per_ns < 1.25e-6 / 8);
	config_free(c);
}

static void what_is_wrong_is_said_where_it_stands(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"cluster: {preset: dgx-h10}\n",
		 "f:1:19: there is no preset 'dgx-h10'; did you mean 'dgx-h100'?"},
		{"cluster: {prest: dgx-h100}\n",
		 "f:1:11: unknown key 'cluster.prest'; did you mean 'preset'?"},
		{"cluster: {preset: dgx-h100, gpus_per_node: 16}\n",
		 "f:1:44: 16 gpus per node are more than a node of dgx-h100 has: 8 (f:1:19)"},
		{"cluster: {preset: dgx-h100}\nnetwork: {fabric: f.yaml}\n",
		 "f:2:19: a fabric and a preset (f:1:19): give one of them"},
		{"network: {fabric: /no/such/file}\n", "f:1:19: "},
		{"cluster: {domain_nodes: 2}\n",
		 "f:1:25: there is no fabric whose nodes could be otherwise"},
		{"cluster: {preset: p5}\nnetwork: {nics: 8}\n",
		 "f:2:17: '8' is no number of NICs and their rate"},
		{"cluster: {preset: p5}\nnetwork: {nics: 1x10000000TB/s}\n",
		 "f:2:17: class p5: a bandwidth must be"},
		{"cluster: {preset: p5}\nnetwork: {nics: 17x1Gbps}\n",
		 "f:2:17: a node has 1 to 16 NICs, not 17"},
		{"cluster: {preset: alps, domain_nodes: 2}\n",
		 "f:1:39: class alps: only an NVSwitch joins"},
		{"cluster: {preset: p5}\nnetwork: {nics: 4x100}\n",
		 "f:2:17: inter: '100' has no unit"},
		{"network: {cables: {node3.nic2: 100Gbps}}\n",
		 "f:1:32: there is no fabric whose link could be otherwise"},
		{"cluster: {preset: p5}\nnetwork: {cables: {node0.nic2: 100}}\n",
		 "f:2:32: '100' has no unit"},
		{"cluster: {preset: p5}\nnetwork: {cables: {node0.nic2: "
		 "1.00000000000000000000000000000000GB/s}}\n",
		 "f:2:32: 'node0.nic2=1.00000000000000000000000000000000GB/s' is no NAME=RATE"},
		{"cluster: {preset: p5}\nnetwork: {cables: {node0.nic2: '1GB/s,3'}}\n",
		 "f:2:32: '3' has no unit"},
		{"cluster: {preset: p5}\nnetwork: {cables: {node0.nick2: 1GB/s}}\n",
		 "f:2:33: no link is called 'node0.nick2'"},
		{"cluster: {preset: p5}\nnetwork: {cables: {node2.nic2: 1GB/s}}\n",
		 "f:2:32: 'node2.nic2': 2 is too large; there are 0 to 1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config *c;
		struct err err = {""};
		int r;

		assert_int_equal(config_new(&c), 0);
		r = config_parse(c, "f", cases[i].text, strlen(cases[i].text), &err);
		r = r < 0 ? r : config_finish(c, &err);
		if (r != -EINVAL || strncmp(err.text, cases[i].want, strlen(cases[i].want)) != 0)
			fail_msg("%s\ngot:  %s\nwant: %s", cases[i].text, err.text, cases[i].want);
		config_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_preset_gives_the_size_of_a_node_and_its_hops),
		cmocka_unit_test(hops_make_a_plain_fabric_and_nothing_makes_none),
		cmocka_unit_test(nodes_are_otherwise_than_their_preset_says),
		cmocka_unit_test(a_cable_changes_the_links_of_its_name),
		cmocka_unit_test(what_is_written_gives_the_same_fabric),
		cmocka_unit_test(what_is_wrong_is_said_where_it_stands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
