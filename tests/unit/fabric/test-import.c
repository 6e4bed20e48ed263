/* Fabrics of other tools: NCCL's topology files and ASTRA-sim's networks. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "fabric/read/open.h"

static struct fabric *good(const char *text, uint32_t n_nodes)
{
	struct fabric *f = NULL;
	struct err err = {""};

	if (fabric_parse("dgx.xml", text, strlen(text), n_nodes, 0, &f, &err) < 0)
		fail_msg("%s", err.text);
	return f;
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

/* Two CPUs with four PCI switches each, a GPU and a NIC under each; six NVSwitches. A slow NIC
 * hangs on the first CPU. As NCCL writes it, in the order of bus numbers. */
static char *machine(const char *sm, const char *class, int links, const char *speed)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	assert_non_null(to);
	fprintf(to, "<system version=\"1\">\n");
	for (int i = 0; i < 8; i++) {
		if (i % 4 == 0)
			fprintf(to,
				"%s<cpu numaid=\"%d\" affinity=\"ff\" arch=\"x86_64\" "
				"vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"1\">\n",
				i ? "</cpu>\n" : "", i / 4);
		fprintf(to,
			"<pci busid=\"0000:%d0:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s "
			"PCIe\" link_width=\"16\">\n"
			"<pci busid=\"0000:%d1:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s "
			"PCIe\" link_width=\"16\"><gpu dev=\"%d\" sm=\"%s\" rank=\"%d\" gdr=\"1\">\n",
			i, i, 7 - i, sm, 7 - i);
		for (int k = 0; k < links; k++) /* to switches, or to the GPUs beside it */
			fprintf(to,
				"<nvlink target=\"0000:%x1:00.0\" count=\"3\" tclass=\"%s\"/>\n",
				links > 2 ? 15 : (i + 1 + 6 * k) % 8, class);
		fprintf(to,
			"</gpu></pci>\n<pci busid=\"0000:%d2:00.0\" class=\"0x020700\" "
			"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic><net name=\"mlx5_%d\" "
			"dev=\"%d\" speed=\"%s\" port=\"1\" gdr=\"1\"/></nic></pci></pci>\n",
			i, i, i, speed);
		if (i == 0)
			fprintf(to, "<nic><net name=\"eth0\" dev=\"9\" speed=\"10000\"/></nic>\n");
	}
	fprintf(to, "</cpu></system>\n");
	fclose(to);
	return text;
}

static void a_topology_file_gives_a_class(void **state)
{
	char *text = machine("90", "0x068000", 6, "400000");
	struct fabric *f = good(text, 64);
	const struct fabric_class *c = &f->classes[0];

	(void)state;
	assert_int_equal(f->n_nodes, 64);
	assert_false(f->has_size); /* the caller said so */
	assert_true(c->n_gpus == 8 && c->n_nics == 8 && c->sm == 90);
	assert_true(c->intra == FABRIC_NVSWITCH && c->has_nvls && c->gpu_bytes_per_ns == 450);
	assert_true(c->cpu == FABRIC_AMD && c->nic == FABRIC_INFINIBAND && c->has_gdr);
	assert_true(c->distance == FABRIC_PIX && c->nic_bytes_per_ns == 50);
	assert_true(c->pcie_bytes_per_ns > 63 && c->pcie_bytes_per_ns < 63.1);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(c->nic_gpu[i], i); /* each its own */
	assert_string_equal(c->gpu, "H100");
	fabric_free(f);
	free(text);
}

static void links_to_gpus_are_no_switch(void **state)
{
	char *text = machine("70", "0x030200", 2, "100000");
	struct fabric *f = good(text, 2);

	(void)state;
	assert_true(f->classes[0].intra == FABRIC_NVLINK && !f->classes[0].has_nvls);
	assert_true(f->classes[0].gpu_bytes_per_ns == 150);
	fabric_free(f);
	free(text);
	text = machine("80", "", 0, "100000");
	f = good(text, 2);
	assert_true(f->classes[0].intra == FABRIC_PCIE);
	assert_true(f->classes[0].gpu_bytes_per_ns > 63);
	fabric_free(f);
	free(text);
}

/* A switch a pair of GPUs, with @n NICs. */
static struct fabric *pairs(int n, const char *name, const char *speed)
{
	struct fabric *f;
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	fprintf(to, "<system><cpu arch=\"x86_64\" vendor=\"GenuineIntel\">\n");
	for (int i = 0; i < 4; i++) {
		fprintf(to, "<pci class=\"0x060400\">");
		for (int k = 0; k < 2; k++)
			fprintf(to,
				"<pci class=\"0x030200\"><gpu dev=\"%d\" sm=\"90\"><nvlink count=\"18\" "
				"tclass=\"0x068000\"/></gpu></pci>",
				2 * i + k);
		for (int k = 0; k < n; k++)
			fprintf(to,
				"<pci class=\"0x020000\"><nic><net name=\"%s%d\" speed=\"%s\" "
				"gdr=\"1\"/></nic></pci>",
				name, n * i + k, speed);
		fprintf(to, "</pci>\n");
	}
	fprintf(to, "</cpu></system>\n");
	fclose(to);
	f = good(text, 2);
	free(text);
	return f;
}

static void gpus_of_a_switch_share_its_nics(void **state)
{
	struct fabric *f = pairs(1, "rdmap", "100000");

	(void)state;
	assert_true(f->classes[0].n_nics == 4 && f->classes[0].nic == FABRIC_EFA2);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(f->classes[0].nic_gpu[i], 2 * i);
	fabric_free(f);
	f = pairs(2, "mlx5_", "200000");
	assert_true(f->classes[0].n_nics == 8 && f->classes[0].nic == FABRIC_ROCE);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(f->classes[0].nic_gpu[i], i);
	fabric_free(f);
}

static void more_nics_than_a_class_has_are_one_a_gpu(void **state)
{
	struct fabric *f = pairs(8, "rdmap", "100000");

	(void)state;
	assert_true(f->classes[0].n_nics == 8 && f->classes[0].nic_bytes_per_ns == 50);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(f->classes[0].nic_gpu[i], i);
	fabric_free(f);
}

/* A GPU, its NIC and what else is said of the two. */
static struct fabric *one(const char *gpu, const char *nic_pci, const char *net)
{
	struct fabric *f;
	char text[1024];

	snprintf(text, sizeof(text),
		 "<system><cpu arch=\"x86_64\" vendor=\"GenuineIntel\"><pci class=\"0x060400\">"
		 "<pci busid=\"0000:11:00.0\" class=\"0x030200\"><gpu dev=\"0\" %s/></pci>"
		 "<pci %s><nic><net %s/></nic></pci></pci></cpu></system>",
		 gpu, nic_pci, net);
	f = good(text, 2);
	return f;
}

static void nics_are_known_by_what_nccl_says_of_them(void **state)
{
	static const struct {
		const char *pci, *net;
		enum fabric_nic kind;
		double bytes_per_ns;
	} rows[] = {
		{"class=\"0x020000\" vendor=\"0x1d0f\" device=\"0xefa1\"",
		 "name=\"rdmap16s27\" speed=\"100000\" port=\"1\"", FABRIC_EFA, 12.5},
		{"class=\"0x020000\" vendor=\"0x1d0f\" device=\"0xefa2\"",
		 "name=\"rdmap79s0\" speed=\"100000\" port=\"1\"", FABRIC_EFA2, 12.5},
		{"class=\"0x020000\" vendor=\"0x14e4\" device=\"0x1760\"",
		 "name=\"bnxt_re0\" speed=\"400000\" port=\"1\"", FABRIC_ROCE, 50},
		{"class=\"0x020700\"", "name=\"ibp24s0\" speed=\"400000\" port=\"1\"",
		 FABRIC_INFINIBAND, 50},
		{"class=\"0x020000\"", "name=\"ens5\" speed=\"-1\" port=\"0\"", FABRIC_SOCKET,
		 1.25},
		{"class=\"0x020000\"", "name=\"ens5\"", FABRIC_SOCKET, 1.25},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fabric *f = one("sm=\"90\" gdr=\"1\"", rows[i].pci, rows[i].net);

		assert_int_equal(f->classes[0].nic, rows[i].kind);
		assert_true(f->classes[0].nic_bytes_per_ns == rows[i].bytes_per_ns);
		fabric_free(f);
	}
}

static void gpu_and_nic_both_need_gpudirect(void **state)
{
	static const char net[] = "name=\"mlx5_0\" speed=\"400000\" port=\"1\" gdr=\"1\"";
	struct fabric *f = one("sm=\"90\" gdr=\"0\"", "class=\"0x020700\"", net);

	(void)state;
	assert_false(f->classes[0].has_gdr);
	fabric_free(f);
	f = one("sm=\"90\" gdr=\"1\"", "class=\"0x020700\"", net);
	assert_true(f->classes[0].has_gdr);
	fabric_free(f);
}

/* A V100 with a NIC at its CPU only, a P100 with one at its switch. */
static void the_weaker_of_two_gpus_is_the_class(void **state)
{
	struct fabric *f = good(
		"<system><cpu><pci><pci><gpu dev=\"0\" sm=\"70\"/></pci></pci><net name=\"mlx5_0\" "
		"speed=\"1000\"/></cpu><cpu><pci><pci><gpu dev=\"1\" sm=\"60\"/></pci><pci><net "
		"name=\"mlx5_1\" speed=\"1000\"/></pci></pci></cpu></system>",
		2);

	(void)state;
	assert_int_equal(f->classes[0].sm, 60);
	assert_int_equal(f->classes[0].n_nics, 2);
	assert_true(f->classes[0].distance == FABRIC_PHB);
	fabric_free(f);
	f = good("<system><cpu><pci><pci><gpu dev=\"0\" sm=\"60\"/></pci><pci><gpu dev=\"1\" "
		 "sm=\"70\"/></pci><net name=\"mlx5_0\" speed=\"1000\"/></pci></cpu></system>",
		 2);
	assert_int_equal(f->classes[0].sm, 60);
	fabric_free(f);
}

/* As NCCL writes what an NVSwitch joins over several hosts. */
static void hosts_of_one_nvswitch_are_a_domain(void **state)
{
	struct fabric *f;
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	(void)state;
	assert_non_null(to);
	fprintf(to, "<system version=\"1\">\n");
	for (int host = 0; host < 3; host++)
		for (int cpu = 0; cpu < 2; cpu++)
			fprintf(to,
				"<cpu host_hash=\"0x%x\" numaid=\"%d\" arch=\"arm64\">"
				"<pci busid=\"000%d:01:00.0\" class=\"0x030200\"><gpu dev=\"%d\" "
				"sm=\"100\" gdr=\"1\"><nvlink target=\"fffffff:ffff:ff\" "
				"count=\"18\" tclass=\"0x068000\"/></gpu></pci>"
				"<pci busid=\"000%d:02:00.0\" class=\"0x020700\"><nic><net "
				"name=\"mlx5_%d\" speed=\"400000\" port=\"1\" gdr=\"1\"/></nic></pci>"
				"</cpu>\n",
				0xabc + host, cpu, cpu, cpu, cpu, cpu);
	fprintf(to, "</system>\n");
	fclose(to);
	f = good(text, 0);
	assert_true(f->n_nodes == 3 && f->has_size && f->classes[0].domain_nodes == 3);
	assert_true(f->classes[0].n_gpus == 2 && f->classes[0].n_nics == 2);
	assert_true(f->classes[0].gpu_bytes_per_ns == 900);
	assert_int_equal(fabric_domain_nodes(f, 0), 3);
	fabric_free(f);
	free(text);
}

static void wrong_topology_files_get_a_sentence(void **state)
{
	static const struct {
		const char *text, *sentence;
	} wrong[] = {
		{"<system></system>", "dgx.xml: no GPU"},
		{"<html/>", "dgx.xml:1:1: <html>: a topology file of NCCL begins with <system>"},
		{"<system><cpu>", "dgx.xml:1:14: no XML: no element found"},
		{"<!DOCTYPE lolz [<!ENTITY a \"lol\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]>"
		 "<system>&b;</system>",
		 "document types and entities are not taken here"},
		{"<!DOCTYPE s SYSTEM \"/etc/passwd\"><system/>", "are not taken here"},
		{"<system>&b;</system>", "no XML: undefined entity"},
		{"<system><nvlink count=\"1\"/></system>", "nvlink stands under no gpu"},
		{"<system><cpu><pci link_speed=\"-1\"/></cpu></system>",
		 "link_speed=\"-1\" is no number of 0 to 1000"},
		{"<system><cpu><pci><gpu dev=\"0\" sm=\"90\"><nvlink count=\"nan\"/></gpu></pci></cpu>"
		 "</system>",
		 "count=\"nan\" is no number"},
		{"<system><cpu><pci><gpu dev=\"0\"/></pci></cpu></system>", "sm is missing"},
		{"<system><cpu><pci><gpu dev=\"0\" sm=\"90\"/></pci><net net=\"0\" speed=\"1000\"/></cpu>"
		 "</system>",
		 "a node without NIC reaches no other one"},
		{"<system><cpu><pci><gpu dev=\"0\" sm=\"90\"/></pci></cpu></system>",
		 "a node without NIC reaches no other one"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct fabric *f = NULL;
		struct err err = {""};

		assert_true(fabric_parse("dgx.xml", wrong[i].text, strlen(wrong[i].text), 2, 0, &f,
					 &err) < 0);
		if (!strstr(err.text, wrong[i].sentence))
			fail_msg("'%s' where '%s' was expected", err.text, wrong[i].sentence);
		assert_null(f);
	}
}

static void nesting_without_end_is_refused(void **state)
{
	char text[64 * 5 + 16] = "<system>";
	struct fabric *f = NULL;
	struct err err = {""};

	(void)state;
	for (int i = 0; i < 64; i++)
		strcat(text, "<pci>");
	assert_true(fabric_parse("dgx.xml", text, strlen(text), 2, 0, &f, &err) < 0);
	assert_non_null(strstr(err.text, "deeper than 32"));
}

static struct fabric_link slowest(const struct fabric *f, uint32_t src, uint32_t dst)
{
	struct fabric_link all = {0, INFINITY}, l;
	uint64_t links[FABRIC_PATH_MAX];
	int n = fabric_path(f, src, dst, FABRIC_NIC_NEAR, links);

	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		fabric_link(f, links[i], &l);
		all.latency_ns += l.latency_ns;
		all.bytes_per_ns = fmin(all.bytes_per_ns, l.bytes_per_ns);
	}
	return all;
}

static void dimensions_of_astra_sim_are_node_leaf_and_spine(void **state)
{
	static const char one[] = "topology: [Switch]\nnpus_count: [4]\nbandwidth: [50.0]  # GB/s\n"
				  "latency: [500.0]  # ns\n";
	static const char three[] =
		"topology: [ Ring, Switch, Switch ]\nnpus_count: [ 8, 4, 2 ]\n"
		"bandwidth: [ 100.0, 50.0, 25.0 ]\nlatency: [ 50, 500, 1000 ]\n";
	struct fabric *f = good(one, 0);
	struct fabric_link l = slowest(f, 0, 3);

	(void)state;
	assert_int_equal(f->n_nodes, 4);
	assert_true(l.latency_ns == 1000 && is_near(l.bytes_per_ns, 50 * 1.073741824));
	fabric_free(f);
	f = good(three, 0);
	assert_true(f->n_nodes == 8 && f->gpus_per_node == 8 && f->classes[0].n_nics == 8);
	assert_true(f->network.kind == FABRIC_RAIL && f->network.oversubscription == 2);
	l = slowest(f, 0, 1); /* a neighbor: of two links */
	assert_true(l.latency_ns == 50 && is_near(l.bytes_per_ns, 200 * 1.073741824));
	l = slowest(f, 0, 63 - 7);
	assert_true(l.latency_ns == 1000 + 2000);
	fabric_free(f);
}

static void rings_and_meshes_of_astra_sim_have_cables(void **state)
{
	static const char ring[] = "topology: [Ring]\nnpus_count: [8]\nbandwidth: [50]\n"
				   "latency: [500]\n";
	static const char mesh[] = "topology: [FullyConnected]\nnpus_count: [8]\nbandwidth: [50]\n"
				   "latency: [500]\n";
	static const char both[] = "topology: [FullyConnected, Ring]\nnpus_count: [4, 8]\n"
				   "bandwidth: [100, 50]\nlatency: [50, 500]\n";
	struct fabric *f = good(ring, 0);
	struct fabric_link l = slowest(f, 0, 4);

	(void)state;
	assert_true(l.latency_ns == 4 * 500 && is_near(l.bytes_per_ns, 50 * 1.073741824));
	fabric_free(f);
	f = good(mesh, 0);
	l = slowest(f, 0, 4);
	assert_true(l.latency_ns == 500 && is_near(l.bytes_per_ns, 50 * 1.073741824));
	fabric_free(f);
	f = good(both, 0); /* three links a GPU; the four GPUs' links between two nodes are one */
	assert_true(is_near(slowest(f, 0, 1).bytes_per_ns, 300 * 1.073741824));
	assert_true(is_near(f->cables[0].bytes_per_ns, 200 * 1.073741824));
	fabric_free(f);
}

static void wrong_networks_of_astra_sim_get_a_sentence(void **state)
{
	static const struct {
		const char *text, *sentence;
	} wrong[] = {
		{"topology: [Rng]\nnpus_count: [8]\nbandwidth: [50]\nlatency: [500]\n",
		 "dgx.xml:1:12: topology: unknown 'Rng'; did you mean 'Ring'?"},
		{"topology: [Ring]\nnpus_count: [8]\nbandwidth: [50]\n", "'latency:' is missing"},
		{"topology: [Ring, Switch]\nnpus_count: [8]\nbandwidth: [50]\nlatency: [5]\n",
		 "npus_count: a value is missing"},
		{"topology: [Ring]\nnpus_count: [8]\nbandwidth: [-50]\nlatency: [500]\n",
		 "bandwidth: '-50' is no number"},
		{"topology: [Ring]\nnpus_count: [8, 4]\nbandwidth: [50]\nlatency: [500]\n",
		 "npus_count: more values than dimensions: 1"},
		{"topology: [Ring]\nnpus_count: [0]\nbandwidth: [50]\nlatency: [500]\n",
		 "a dimension without NPUs"},
		{"topology: [Switch]\nnpus_count: [1000000000]\nbandwidth: [50]\nlatency: [500]\n",
		 "too many nodes"},
		{"topology: [Ring]\nnpus_count: [64]\nbandwidth: [50]\nlatency: [500]\n",
		 "that is too far for a path"},
		{"topology: [Ring, Ring, Ring]\nnpus_count: [2, 2, 2]\nbandwidth: [5, 5, 5]\n"
		 "latency: [5, 5, 5]\n",
		 "both must be Switch"},
		{"topology: [Ring, Ring, Ring, Ring]\nnpus_count: [2]\nbandwidth: [5]\nlatency: [5]\n",
		 "more than 3 dimensions"},
		{"topology: []\nnpus_count: [2]\nbandwidth: [5]\nlatency: [5]\n", "no dimension"},
		{"topology: [Ring]\nnpus: [8]\nbandwidth: [50]\nlatency: [500]\n",
		 "unknown key 'npus'; did you mean 'npus_count'?"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct fabric *f = NULL;
		struct err err = {""};

		assert_true(fabric_parse("dgx.xml", wrong[i].text, strlen(wrong[i].text), 0, 0, &f,
					 &err) < 0);
		if (!strstr(err.text, wrong[i].sentence))
			fail_msg("'%s' where '%s' was expected", err.text, wrong[i].sentence);
		assert_null(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_topology_file_gives_a_class),
		cmocka_unit_test(links_to_gpus_are_no_switch),
		cmocka_unit_test(gpus_of_a_switch_share_its_nics),
		cmocka_unit_test(more_nics_than_a_class_has_are_one_a_gpu),
		cmocka_unit_test(nics_are_known_by_what_nccl_says_of_them),
		cmocka_unit_test(gpu_and_nic_both_need_gpudirect),
		cmocka_unit_test(the_weaker_of_two_gpus_is_the_class),
		cmocka_unit_test(hosts_of_one_nvswitch_are_a_domain),
		cmocka_unit_test(wrong_topology_files_get_a_sentence),
		cmocka_unit_test(nesting_without_end_is_refused),
		cmocka_unit_test(dimensions_of_astra_sim_are_node_leaf_and_spine),
		cmocka_unit_test(rings_and_meshes_of_astra_sim_have_cables),
		cmocka_unit_test(wrong_networks_of_astra_sim_get_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
