/* Fabric files: what they say, what is wrong in them, and that what is written reads the same. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "fabric/read/open.h"
#include "fabric/read/write.h"

static int parse(const char *text, uint32_t n_nodes, struct fabric **ret, struct err *err)
{
	return fabric_parse("f.yaml", text, strlen(text), n_nodes, 0, ret, err);
}

static struct fabric *good(const char *text, uint32_t n_nodes)
{
	struct fabric *f = NULL;
	struct err err = {""};
	int r = parse(text, n_nodes, &f, &err);

	if (r < 0)
		fail_msg("%s", err.text);
	return f;
}

static char *written(const struct fabric *f)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	assert_non_null(to);
	fabric_write(f, to);
	fclose(to);
	return text;
}

/* The same links on every path between the first and the last ranks, and the same file again. */
static void assert_round_trip(const struct fabric *f)
{
	char *text = written(f), *again;
	struct fabric *g = good(text, 0);
	uint32_t last = f->n_nodes * f->gpus_per_node - 1;
	uint64_t a[FABRIC_PATH_MAX], b[FABRIC_PATH_MAX];
	int n = fabric_path(f, 0, last, FABRIC_NIC_NEAR, a);

	assert_int_equal(n, fabric_path(g, 0, last, FABRIC_NIC_NEAR, b));
	for (int i = 0; i < n; i++) {
		struct fabric_link x, y;

		assert_true(a[i] == b[i]);
		fabric_link(f, a[i], &x);
		fabric_link(g, b[i], &y);
		assert_true(x.latency_ns == y.latency_ns && x.bytes_per_ns == y.bytes_per_ns);
	}
	again = written(g);
	assert_string_equal(text, again);
	free(text);
	free(again);
	fabric_free(g);
}

static void presets_read_the_same_as_they_are_written(void **state)
{
	const char *name, *summary;

	(void)state;
	for (size_t i = 0; (name = fabric_preset_name(i, &summary)); i++) {
		struct fabric *f = NULL;
		struct err err = {""};

		assert_int_equal(fabric_open(name, 70, 0, &f, &err), 0);
		assert_int_equal(fabric_change(f, "node7.nic0.in", 1.0 / 3, 123.456, &err), 0);
		assert_round_trip(f);
		fabric_free(f);
	}
}

static const char two_classes[] = "name: mixed\n"
				  "classes:\n"
				  "  - {preset: dgx-h100, name: new}\n"
				  "  - name: old\n"
				  "    gpu: V100\n"
				  "    sm: 70\n"
				  "    gpus: 4\n"
				  "    intra: nvlink\n"
				  "    gpu_bandwidth: 150GB/s\n"
				  "    nic: infiniband\n"
				  "    nics: 2\n"
				  "    nic_bandwidth: 100Gbps\n"
				  "nodes: [{class: new, nodes: 3}, {class: old}]\n"
				  "network: {kind: leaf-spine, latency: 2us, nodes_per_leaf: 4}\n"
				  "links: [{link: leaf0.up, bandwidth: 10GB/s}]\n";

static void a_file_has_classes_a_network_and_links(void **state)
{
	struct fabric *f = good(two_classes, 8);

	(void)state;
	assert_int_equal(f->n_classes, 2);
	assert_true(f->has_size);
	assert_int_equal(f->gpus_per_node, 4); /* the smaller one's */
	assert_string_equal(fabric_class_of(f, 2)->name, "new");
	assert_string_equal(fabric_class_of(f, 7)->name, "old");
	assert_int_equal(f->classes[1].nic_gpu[1], 2);
	assert_int_equal(f->n_changes, 1);
	assert_string_equal(f->name, "mixed");
	assert_non_null(strstr(f->source, "f.yaml"));
	assert_round_trip(f);
	fabric_free(f);
}

static void a_preset_needs_no_more_than_its_name(void **state)
{
	struct fabric *f = good("preset: dgx-a100\nnetwork: {oversubscription: 2}\n", 64);

	(void)state;
	assert_false(f->has_size);
	assert_true(f->network.oversubscription == 2 && f->network.latency_ns == 2000);
	assert_int_equal(f->classes[0].n_nics, 8);
	fabric_free(f);
}

static const char cables[] = "preset: 100gbe\n"
			     "network:\n"
			     "  kind: cables\n"
			     "  switches: 3\n"
			     "  nodes: [{switch: 0, nodes: 2}, {switch: 2, nodes: 2}]\n"
			     "  cables:\n"
			     "    - {from: 0, to: 1, bandwidth: 40Gbps, latency: 1us}\n"
			     "    - {from: 1, to: 2, bandwidth: 10Gbps, latency: 5ms}\n";

/* nbox fit --fabric writes efficiencies of its own, and what it found them from. */
static void a_fitted_fabric_knows_its_error_and_range(void **state)
{
	struct fabric *f =
		good("preset: dgx-h100\nclasses:\n  - preset: dgx-h100\n    name: n\n"
		     "    nic_efficiency: 0.5\n    gpu_efficiency: 0.25\n"
		     "fitted: {points: 12, error: 0.031, min_ranks: 16, max_ranks: 64, "
		     "min_bytes: 8, max_bytes: 17179869184}\n"
		     "residuals: [{op: allreduce, bytes: 8, factor: 0.5}, {op: allreduce, "
		     "bytes: 32, factor: 2}, {op: alltoall, bytes: 8, factor: 3}]\n",
		     4);
	struct fabric *again;
	struct fabric_link port, nic;
	char *text;
	uint64_t links[FABRIC_PATH_MAX];

	(void)state;
	assert_int_equal(f->fit.n_points, 12);
	assert_true(f->fit.error == 0.031 && f->fit.max_bytes == 17179869184.);
	assert_true(fabric_residual(f, COLL_ALLREDUCE, 4) == 0.5);
	assert_true(fabs(fabric_residual(f, COLL_ALLREDUCE, 16) - 1) < 1e-12);
	assert_true(fabric_residual(f, COLL_ALLREDUCE, 64) == 2);
	assert_true(fabric_residual(f, COLL_ALLTOALL, 1) == 3);
	assert_true(fabric_residual(f, COLL_REDUCE, 8) == 1);
	assert_int_equal(fabric_path(f, 0, 1, FABRIC_NIC_NEAR, links), 2);
	fabric_link(f, links[0], &port);
	assert_true(port.bytes_per_ns == 450 * .25);
	assert_true(fabric_path(f, 0, 8, FABRIC_NIC_NEAR, links) >= 2);
	nic.bytes_per_ns = 0;
	for (int i = 0; i < 2 && nic.bytes_per_ns != 25; i++)
		fabric_link(f, links[i], &nic);
	assert_true(nic.bytes_per_ns == 25);
	text = written(f); /* for any number of nodes */
	again = good(text, 16);
	assert_int_equal(again->n_nodes, 16);
	assert_memory_equal(&again->fit, &f->fit, sizeof(f->fit));
	assert_int_equal(again->n_residuals, 3);
	assert_memory_equal(again->residuals, f->residuals, 3 * sizeof(*f->residuals));
	assert_true(again->classes[0].nic_efficiency == .5);
	fabric_free(again);
	fabric_free(f);
	free(text);
}

static void cables_join_switches(void **state)
{
	struct fabric *f = good(cables, 0);
	uint64_t links[FABRIC_PATH_MAX];
	struct fabric_link l;

	(void)state;
	assert_int_equal(fabric_path(f, 0, 3, FABRIC_NIC_NEAR, links), 6);
	fabric_link(f, links[3], &l);
	assert_true(l.latency_ns == 5e6 && l.bytes_per_ns == 1.25);
	assert_true(f->has_size && f->n_nodes == 4);
	assert_round_trip(f);
	fabric_free(f);
}

/* Eight cables are as far as a path goes. */
static void a_path_has_up_to_eight_cables(void **state)
{
	static const char chain[] =
		"preset: p5\nnetwork:\n  kind: cables\n  switches: 10\n"
		"  nodes: [{switch: 0, nodes: 1}, {switch: %d, nodes: 1}]\n  cables:\n";
	struct err err = {""};

	(void)state;
	for (int far = 8; far <= 9; far++) {
		struct fabric *f = NULL;
		uint64_t links[FABRIC_PATH_MAX];
		char text[1024];
		size_t used = (size_t)snprintf(text, sizeof(text), chain, far);
		int r;

		for (int i = 0; i < 9; i++)
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 "    - {from: %d, to: %d, bandwidth: 1GB/s}\n", i,
						 i + 1);
		r = parse(text, 0, &f, &err);
		if (far == 9) {
			assert_int_equal(r, -EINVAL);
			assert_non_null(strstr(err.text, "more than 8 cables"));
			continue;
		}
		assert_int_equal(r, 0);
		/* by the farthest NICs, too */
		assert_int_equal(fabric_path(f, 0, 8, 7, links), FABRIC_PATH_MAX);
		fabric_free(f);
	}
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
	static const struct {
		const char *text, *sentence;
		uint32_t n_nodes;
	} wrong[] = {
		{"", "f.yaml:1:1: the file is empty", 2},
		{"[1, 2]", "f.yaml:1:1: a fabric: keys are expected", 2},
		{"preset: dgx-h100\npreset: p5\n", "f.yaml:2:1: key 'preset' is here a second time",
		 2},
		{"preset: dgx-h10\n", "f.yaml:1:9: there is no preset 'dgx-h10'; did you mean", 2},
		{"presett: x\n", "f.yaml:1:1: unknown key 'presett'; did you mean 'preset'?", 2},
		{"zebra: x\n", "there are: name, preset, classes, nodes, network, links", 2},
		{"preset: dgx-h100\n", "ranks are possible", 1000000000},
		{"classes: [{preset: p5, nic_gpu: [1]}]\n", "did you mean 'nic_gpus'?", 2},
		{"classes: [{preset: p5, nic_gpus: [1]}]\n", "8 NICs want 8 numbers", 2},
		{"classes: [{preset: p5, nics: 17}]\n", "nics: 17 are too many", 2},
		{"classes: [{preset: p5, gpu_bandwidth: 450}]\n",
		 "f.yaml:1:39: gpu_bandwidth: ", 2},
		{"classes: [{preset: p5, gpu_bandwidth: -450GB/s}]\n", "is negative", 2},
		{"classes: [{preset: p5, intra: nvlnk}]\n", "did you mean 'nvlink'?", 2},
		{"classes: [{name: x, sm: 90}]\n", "f.yaml:1:11: class: 'gpus:' is missing", 2},
		{"classes: [{preset: p5}, {preset: p5}]\n", "a second class 'p5'", 2},
		{"classes: [{preset: p5}]\n", "no network", 2},
		{"preset: p5\nnodes: [{class: p4, nodes: 2}]\n", "did you mean 'p5'?", 2},
		{"preset: p5\nnodes: [{class: p5, nodes: 2}]\n", "2 nodes are here, 3 are wanted",
		 3},
		{"preset: p5\nnodes: [{class: p5}]\n", "'nodes:' is missing", 0},
		{"preset: p5\nnodes: [{class: p5, nodes: 0}, {class: p5}]\n", "nodes: at least 1",
		 2},
		{"preset: p5\nclasses: [{preset: p5}, {preset: p4d}]\n",
		 "class p4d has no nodes: name it under nodes, or take it out", 2},
		{"preset: alps\nnetwork: {nodes_per_leaf: 1, leaves_per_pod: 1}\n",
		 "network: 5000 groups; at most 4096", 5000},
		{"preset: p5\nlinks: [{link: node0.nic0}]\n", "links: what is different?", 2},
		{"preset: p5\nnodes: [{class: p5, nodes: 4294967295}, {class: p5, nodes: 2}]\n",
		 "too many", 0},
		{"preset: p5\nnetwork: {kind: rail}\n", "nodes_per_leaf: N", 2},
		{"preset: p5\nnetwork: {kind: star}\n", "kind: unknown 'star'; there are: switch",
		 2},
		{"preset: p5\nnetwork: {kind: cables}\n", "'switches:' is missing", 2},
		{"preset: p5\nnetwork: {cables: []}\n", "'cables:' is of kind: cables only", 2},
		{"preset: p5\nnetwork: {kind: cables, switches: 2, nodes: [{switch: 0, nodes: 1}], "
		 "cables: []}\n",
		 "node1 has no cable", 2},
		{"preset: p5\nnetwork: {kind: cables, switches: 2, nodes: [{switch: 0, nodes: 1}, "
		 "{switch: 1, nodes: 1}], cables: []}\n",
		 "there is no way from node0 to node1: a cable is missing", 2},
		{"preset: p5\nnetwork: {kind: cables, switches: 1, nodes: [{switch: 0, nodes: 2}], "
		 "cables: [{from: 0, to: 0, bandwidth: 1Gbps}]}\n",
		 "it must join two switches", 2},
		{"preset: p5\nnetwork: {kind: cables, switches: 4000000000, nodes: [{switch: 0, "
		 "nodes: 2}], cables: []}\n",
		 "switches; 1 to 1024", 2},
		{"preset: p5\nlinks: [{link: node9.nic0, bandwidth: 1Gbps}]\n", "there are 0 to 1",
		 2},
		{"preset: p5\nlinks: [{link: node0.nic0, bandwidth: 0Gbps}]\n", "is zero", 2},
		{"preset: p5\nresiduals: [{op: allreduce, bytes: 8}]\n", "'factor:' is missing", 2},
		{"preset: p5\nresiduals: [{op: allreduce, bytes: 8, factor: 0}]\n",
		 "a factor must be 0.1 to 10", 2},
		{"preset: p5\nresiduals: [{op: reduce, bytes: 8, factor: 1}, {op: allreduce, "
		 "bytes: 9, factor: 1}]\n",
		 "AllReduce of 9 bytes: bytes must be above 0, and rise", 2},
		{"preset: !!binary p5\n", "tags (!) are not taken", 2},
		{"name: \"a\\uFFFEb\"\npreset: p5\n", "a control character in the text", 2},
		{"preset: p5\nclasses: [{preset: p5, domain_nodes: 0}]\n",
		 "class p5: domain_nodes: at least 1", 2},
		{"preset: p5\n---\npreset: p5\n", "a second document", 2},
		{"preset: \"p5\n", "no YAML", 2},
		{"a: &a [*a]\n", "f.yaml:1:", 2},
		{"a:\n  [[[[[[[[[[[[[[[[[[[[[[", "f.yaml:2:1: brackets deeper than 16", 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct fabric *f = NULL;
		struct err err = {""};

		assert_true(parse(wrong[i].text, wrong[i].n_nodes, &f, &err) < 0);
		assert_null(f);
		if (!strstr(err.text, wrong[i].sentence))
			fail_msg("'%s' where '%s' was expected", err.text, wrong[i].sentence);
		assert_int_equal(strncmp(err.text, "f.yaml", 6), 0);
	}
}

static void a_flood_of_stars_is_refused(void **state)
{
	char text[8192] = "preset: p5\nlinks:\n";
	struct fabric *f = NULL;
	struct err err = {""};

	(void)state;
	for (int i = 0; i < 65; i++)
		strcat(text, "- {link: \"node*.gpu*\", bandwidth: 1GB/s}\n");
	assert_int_equal(parse(text, 2, &f, &err), -EINVAL);
	assert_string_equal(err.text, "f.yaml:67:3: more than 64 names with a star");
}

/* Without NICs only one domain works, whatever the other classes have. */
static void nodes_without_nics_are_one_domain(void **state)
{
	static const char rack[] =
		"classes: [{preset: gb200-nvl72, nics: 0, nic_gpus: []}, {preset: gb200-nvl72, "
		"name: b}]\nnetwork: {preset: gb200-nvl72}\n"
		"nodes: [{class: gb200-nvl72, nodes: 9}, {class: b, nodes: 9}]\n";
	struct fabric *f = NULL;
	struct err err = {""};

	(void)state;
	assert_int_equal(parse(rack, 0, &f, &err), -EINVAL);
	assert_non_null(strstr(err.text, "a node without NIC reaches no other one"));
	f = good("preset: gb200-nvl72\nclasses: [{preset: gb200-nvl72, nics: 0}]\n", 18);
	fabric_free(f);
}

/* The name of a file is cut between letters: of this one the last one that fits has two bytes. */
static void long_file_names_stay_utf8(void **state)
{
	static const char name[] = "/tmp/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa9\xc3\xa9.yaml";
	struct fabric *f = NULL;
	struct err err = {""};

	(void)state;
	assert_int_equal(fabric_parse(name, "preset: p5\n", 11, 2, 0, &f, &err), 0);
	assert_string_equal(f->name, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	fabric_free(f);
}

static void a_file_that_is_not_there_is_no_preset(void **state)
{
	struct fabric *f = NULL;
	struct err err = {""};

	(void)state;
	assert_int_equal(fabric_open("/nowhere/f.yaml", 2, 0, &f, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/f.yaml"));
	assert_int_equal(fabric_open("dgx-h1000", 2, 0, &f, &err), -ENOENT);
	assert_non_null(strstr(err.text, "did you mean 'dgx-h100'?"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(presets_read_the_same_as_they_are_written),
		cmocka_unit_test(a_file_has_classes_a_network_and_links),
		cmocka_unit_test(a_preset_needs_no_more_than_its_name),
		cmocka_unit_test(a_fitted_fabric_knows_its_error_and_range),
		cmocka_unit_test(cables_join_switches),
		cmocka_unit_test(a_path_has_up_to_eight_cables),
		cmocka_unit_test(what_is_wrong_is_said_with_its_place),
		cmocka_unit_test(a_flood_of_stars_is_refused),
		cmocka_unit_test(nodes_without_nics_are_one_domain),
		cmocka_unit_test(long_file_names_stay_utf8),
		cmocka_unit_test(a_file_that_is_not_there_is_no_preset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
