/* Presets, paths, changes and what an op sees of a fabric. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "fabric/fabric.h"
#include "fabric/link-number.h"

static struct fabric *preset(const char *name, uint32_t n_nodes)
{
	struct err err = {""};
	struct fabric *f = NULL;

	assert_int_equal(fabric_preset(name, n_nodes, 0, &f, &err), 0);
	return f;
}

/* The path as text: names with blanks between them. */
static const char *path(const struct fabric *f, uint32_t src, uint32_t dst, uint32_t nic)
{
	static char text[1024];
	uint64_t links[FABRIC_PATH_MAX];
	int n = fabric_path(f, src, dst, nic, links);
	size_t used = 0;

	text[0] = '\0';
	assert_in_range(n, 0, FABRIC_PATH_MAX);
	for (int i = 0; i < n; i++) {
		char name[64];

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "",
					 fabric_link_name(f, links[i], name, sizeof(name)));
	}
	return text;
}

static struct fabric_link link_at(const struct fabric *f, uint32_t src, uint32_t dst, int i)
{
	uint64_t links[FABRIC_PATH_MAX];
	struct fabric_link l;

	assert_true(fabric_path(f, src, dst, FABRIC_NIC_NEAR, links) > i);
	fabric_link(f, links[i], &l);
	return l;
}

static double latency(const struct fabric *f, uint32_t src, uint32_t dst)
{
	uint64_t links[FABRIC_PATH_MAX];
	int n = fabric_path(f, src, dst, FABRIC_NIC_NEAR, links);
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += link_at(f, src, dst, i).latency_ns;
	return sum;
}

static void all_presets_hold_what_a_fabric_must(void **state)
{
	const char *name, *summary;
	size_t n = 0;

	(void)state;
	for (; (name = fabric_preset_name(n, &summary)); n++) {
		struct fabric *f = preset(name, 64);
		uint64_t links[FABRIC_PATH_MAX];
		uint32_t last = 64 * f->gpus_per_node - 1;

		assert_true(strlen(summary) > 0 && strlen(summary) < 100);
		assert_string_equal(f->name, name);
		assert_true(fabric_path(f, 0, last, FABRIC_NIC_NEAR, links) > 1);
		fabric_free(f);
	}
	assert_true(n >= 12);
}

static void a_wrong_preset_is_answered_with_the_nearest(void **state)
{
	struct err err = {""};
	struct fabric *f = NULL;

	(void)state;
	assert_int_equal(fabric_preset("dgxh100", 2, 0, &f, &err), -ENOENT);
	assert_non_null(strstr(err.text, "did you mean 'dgx-h100'?"));
	assert_int_equal(fabric_preset("zebra", 2, 0, &f, &err), -ENOENT);
	assert_non_null(strstr(err.text, "dgx-a100"));
	assert_int_equal(fabric_preset("dgx-h100", 2, 16, &f, &err), -EINVAL);
	assert_non_null(strstr(err.text, "a node has 8 GPUs"));
	assert_int_equal(fabric_preset("dgx-h100", 1000000000, 0, &f, &err), -EINVAL);
	assert_non_null(strstr(err.text, "ranks are possible"));
	assert_null(f);
}

static void a_message_inside_a_domain_crosses_two_ports(void **state)
{
	struct fabric *f = preset("dgx-h100", 2), *rack = preset("gb200-nvl72", 36);

	(void)state;
	assert_string_equal(path(f, 1, 3, FABRIC_NIC_NEAR), "node0.gpu1.out node0.gpu3.in");
	assert_string_equal(path(f, 3, 3, FABRIC_NIC_NEAR), "");
	assert_string_equal(path(rack, 0, 71, FABRIC_NIC_NEAR), "node0.gpu0.out node17.gpu3.in");
	assert_string_equal(path(rack, 71, 72, FABRIC_NIC_NEAR),
			    "node17.pcie3.out node17.nic3.out leaf3.up leaf4.down node18.nic0.in "
			    "node18.pcie0.in");
	assert_int_equal(fabric_domain(rack, 71), 0);
	assert_int_equal(fabric_domain(rack, 72), 18);
	assert_int_equal(fabric_domain_nodes(rack, 18), 18);
	fabric_free(rack);
	rack = preset("gb200-nvl72", 20);
	assert_int_equal(fabric_domain_nodes(rack, 18), 2);
	fabric_free(f);
	fabric_free(rack);
}

static void a_far_nic_is_reached_through_the_gpu_next_to_it(void **state)
{
	struct fabric *f = preset("dgx-h100", 2), *rack = preset("gb200-nvl72", 36);

	(void)state;
	assert_string_equal(path(f, 1, 9, 1),
			    "node0.pcie1.out node0.nic1.out node1.nic1.in node1.pcie1.in");
	assert_string_equal(path(f, 1, 11, 2),
			    "node0.gpu1.out node0.gpu2.in node0.pcie2.out node0.nic2.out "
			    "node1.nic2.in node1.pcie2.in node1.gpu2.out node1.gpu3.in");
	/* two rails: the spine is between them */
	assert_string_equal(path(f, 1, 11, FABRIC_NIC_NEAR),
			    "node0.pcie1.out node0.nic1.out leaf1.up leaf3.down node1.nic3.in "
			    "node1.pcie3.in");
	/* NICs of a rack count on */
	assert_string_equal(path(rack, 0, 72, 5),
			    "node0.gpu0.out node1.gpu1.in node1.pcie1.out node1.nic1.out leaf1.up "
			    "leaf5.down node19.nic1.in node19.pcie1.in node19.gpu1.out "
			    "node18.gpu0.in");
	/* the rack's NIC 4 is NIC 0 of its second node: near to GPU 0 there, not here */
	assert_string_equal(path(rack, 0, 72, 4),
			    "node0.gpu0.out node1.gpu0.in node1.pcie0.out node1.nic0.out leaf0.up "
			    "leaf4.down node19.nic0.in node19.pcie0.in node19.gpu0.out "
			    "node18.gpu0.in");
	f->gpus_per_node = 2; /* the GPU next to NIC 2 is not there: through the host */
	assert_string_equal(path(f, 1, 3, 2),
			    "node0.pcie1.out node0.nic2.out node1.nic2.in node1.pcie1.in");
	fabric_free(f);
	fabric_free(rack);
}

static void two_gpus_that_share_a_nic_both_reach_it(void **state)
{
	struct fabric *f = preset("p4d", 2);

	(void)state;
	assert_string_equal(path(f, 1, 9, FABRIC_NIC_NEAR),
			    "node0.pcie1.out node0.nic0.out node1.nic0.in node1.pcie1.in");
	assert_int_equal(fabric_near_nics(&f->classes[0], 3), 2);
	fabric_free(f);
}

/* Below the first GPU that has NICs all of that one's are near, too. */
static void gpus_without_a_nic_have_those_of_a_neighbor(void **state)
{
	struct fabric_class c = {.n_gpus = 8, .n_nics = 3, .nic_gpu = {4, 4, 6}};

	(void)state;
	assert_int_equal(fabric_near_nics(&c, 0), 3);
	assert_int_equal(fabric_near_nics(&c, 4), 3);
	assert_int_equal(fabric_near_nics(&c, 5), 3);
	assert_int_equal(fabric_near_nics(&c, 7), 4);
	assert_int_equal(fabric_near_nic(&c, 1, 3), 1);
	c.n_nics = 0;
	assert_int_equal(fabric_near_nics(&c, 7), 0);
	assert_int_equal(fabric_near_nic(&c, 7, 1), 0);
}

static void a_node_without_nvlink_goes_through_its_pcie_port(void **state)
{
	struct fabric *f = preset("100gbe", 2);

	(void)state;
	assert_string_equal(path(f, 0, 1, FABRIC_NIC_NEAR),
			    "node0.gpu0.out node0.nic0.out node1.nic0.in node1.gpu0.in");
	fabric_free(f);
}

static void networks_cross_the_switches_that_they_have(void **state)
{
	struct fabric *f = preset("dgx-h100", 64);
	struct err err = {""};

	(void)state;
	f->network.kind = FABRIC_LEAF_SPINE;
	f->network.nodes_per_leaf = 8;
	f->network.oversubscription = 2;
	f->network.leaves_per_pod = 2;
	assert_int_equal(fabric_check(f, &err), 0);
	assert_string_equal(path(f, 0, 7 * 8 + 1, FABRIC_NIC_NEAR),
			    "node0.pcie0.out node0.nic0.out node7.nic1.in node7.pcie1.in");
	assert_string_equal(path(f, 0, 8 * 8, FABRIC_NIC_NEAR),
			    "node0.pcie0.out node0.nic0.out leaf0.up leaf1.down node8.nic0.in "
			    "node8.pcie0.in");
	assert_true(fabs(link_at(f, 0, 64, 2).bytes_per_ns - 8 * 8 * 49 / 2.0) < 1e-9);
	f->network.kind = FABRIC_FAT_TREE;
	assert_string_equal(path(f, 0, 63 * 8, FABRIC_NIC_NEAR),
			    "node0.pcie0.out node0.nic0.out leaf0.up pod0.up pod3.down leaf7.down "
			    "node63.nic0.in node63.pcie0.in");
	assert_true(fabs(link_at(f, 0, 63 * 8, 3).bytes_per_ns - 16 * 8 * 49 / 2.0) < 1e-9);
	f->network.kind = FABRIC_DRAGONFLY;
	assert_string_equal(path(f, 0, 63 * 8, FABRIC_NIC_NEAR),
			    "node0.pcie0.out node0.nic0.out leaf0.up group0.to3.out leaf7.down "
			    "node63.nic0.in node63.pcie0.in");
	/* 16 nodes a group, half of their bandwidth to three other groups */
	assert_true(fabs(link_at(f, 0, 63 * 8, 3).bytes_per_ns - 16 * 8 * 49 / 2.0 / 3) < 1e-9);
	assert_true(latency(f, 0, 63 * 8) == 2000 + 3 * 300);
	assert_true(latency(f, 0, 8 * 8) == 2000 + 300); /* two routers of a group */
	fabric_free(f);
	f = preset("dgx-h100", 40);
	f->network.kind = FABRIC_DRAGONFLY;
	f->network.nodes_per_leaf = 8;
	f->network.leaves_per_pod = 2;
	/* the last group lacks nodes, but no cables */
	assert_true(fabs(link_at(f, 0, 39 * 8, 3).bytes_per_ns - 16 * 8 * 49 / 2.0) < 1e-9);
	assert_true(link_at(f, 39 * 8, 0, 3).bytes_per_ns == link_at(f, 0, 39 * 8, 3).bytes_per_ns);
	fabric_free(f);
}

/* Three nodes of a dgx-h100, one of @last. */
static struct fabric *two_classes(const struct fabric_class *last)
{
	struct fabric *f = preset("dgx-h100", 4);
	struct fabric_nodes runs[] = {{0, 3, 0}, {3, 1, 1}};
	struct err err = {""};

	f->classes[f->n_classes++] = *last;
	free(f->nodes);
	f->nodes = malloc(sizeof(runs));
	memcpy(f->nodes, runs, sizeof(runs));
	f->n_nodes_runs = 2;
	assert_int_equal(fabric_check(f, &err), 0);
	return f;
}

/* Three nodes with eight NICs, one with two: only those are at the third leaf. */
static void a_leaf_of_rails_has_the_nics_of_its_number(void **state)
{
	struct fabric *same = preset("dgx-h100", 1), *f;
	struct fabric_link l;

	(void)state;
	same->classes[0].n_nics = 2;
	f = two_classes(&same->classes[0]);
	fabric_free(same);
	fabric_link(f, link_number(LINK_LEAF, 1, 0, LINK_UP), &l);
	assert_true(fabs(l.bytes_per_ns - 4 * 49) < 1e-9);
	fabric_link(f, link_number(LINK_LEAF, 2, 0, LINK_UP), &l);
	assert_true(fabs(l.bytes_per_ns - 3 * 49) < 1e-9);
	fabric_free(f);
}

/* Of 8 bytes. */
static double bound(const struct fabric *f, enum coll_kind kind, uint32_t root)
{
	struct membership world = {.n_ranks = f->n_nodes * f->gpus_per_node, .stride = 1};
	char where[64];

	return fabric_bound(f, kind, 8, root, &world, where, sizeof(where));
}

static void cables_are_followed_by_the_fewest(void **state)
{
	/* sw0 - sw1 - sw2 - sw3 - sw0 */
	static const struct fabric_cable ring[] = {{0, 1, 100, 10},
						   {1, 2, 100, 10},
						   {2, 3, 100, 10},
						   {3, 0, 500, 10}};
	struct fabric *f = preset("100gbe", 4);
	struct err err = {""};

	(void)state;
	f->network.kind = FABRIC_CABLES;
	f->n_switches = 4;
	f->n_cables = 4;
	f->cables = malloc(sizeof(ring));
	memcpy(f->cables, ring, sizeof(ring));
	f->node_switch = calloc(4, sizeof(*f->node_switch));
	for (uint32_t i = 0; i < 4; i++)
		f->node_switch[i] = i;
	assert_int_equal(fabric_check(f, &err), 0);
	assert_string_equal(path(f, 0, 3, FABRIC_NIC_NEAR),
			    "node0.gpu0.out node0.nic0.out sw3.sw0.in node3.nic0.in node3.gpu0.in");
	assert_true(link_at(f, 0, 3, 2).latency_ns == 500);
	assert_int_equal(fabric_change(f, "sw3.sw0", 1, -1, &err), 0);
	assert_true(link_at(f, 0, 3, 2).bytes_per_ns == 1);
	assert_int_equal(fabric_change(f, "sw*.sw0", 1, -1, &err), 0);
	assert_int_equal(f->n_changes, 2); /* of no other cable */
	/* which way a cable is slow: from its first switch */
	assert_int_equal(fabric_change(f, "sw0.sw1.out", -1, 1e6, &err), 0);
	assert_int_equal(fabric_change(f, "sw3.sw0.in", -1, 1e6, &err), 0);
	assert_true(bound(f, COLL_BROADCAST, 0) > 1e6 && bound(f, COLL_BROADCAST, 2) < 1e6);
	f->n_cables = 2; /* node 3 is alone */
	assert_int_equal(fabric_check(f, &err), -EINVAL);
	assert_non_null(strstr(err.text, "there is no way from node0 to node3"));
	fabric_free(f);
}

static void changes_match_by_name_and_star(void **state)
{
	struct fabric *f = preset("dgx-h100", 64);
	struct fabric_link l;
	struct err err = {""};

	(void)state;
	assert_int_equal(fabric_change(f, "node3.nic2", 6.25, -1, &err), 0);
	assert_int_equal(f->n_changes, 2);
	l = link_at(f, 3 * 8 + 2, 2, 1);
	assert_true(l.bytes_per_ns == 6.25 * 0.98 && l.latency_ns == 1000);
	l = link_at(f, 2, 3 * 8 + 2, 2);
	assert_true(l.bytes_per_ns == 6.25 * 0.98);
	assert_int_equal(fabric_change(f, "node*.nic2.out", -1, 7000, &err), 0);
	assert_int_equal(f->n_changes, 65);
	l = link_at(f, 3 * 8 + 2, 2, 1);
	assert_true(l.bytes_per_ns == 6.25 * 0.98 && l.latency_ns == 7000);
	l = link_at(f, 2, 3 * 8 + 2, 2);
	assert_true(l.bytes_per_ns == 6.25 * 0.98 && l.latency_ns == 1000);
	assert_int_equal(fabric_change(f, "leaf1.up", 100, -1, &err), 0);
	l = link_at(f, 1, 32 * 8 + 1, 2);
	assert_true(l.bytes_per_ns == 100 * 0.98);
	assert_int_equal(fabric_change(f, "node*.*", 1, 1, &err), -ENOENT);
	assert_int_equal(fabric_change(f, "node64.nic0", 1, 1, &err), -ENOENT);
	assert_non_null(strstr(err.text, "there are 0 to 63"));
	assert_int_equal(fabric_change(f, "node0.nic9.in", 1, 1, &err), -ENOENT);
	assert_non_null(strstr(err.text, "there are 0 to 7"));
	assert_int_equal(fabric_change(f, "pod0.up", 1, 1, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no such links"));
	assert_int_equal(fabric_change(f, "node0.nics0", 1, 1, &err), -ENOENT);
	assert_non_null(strstr(err.text, "did you mean 'node0.nic0'?"));
	assert_int_equal(fabric_change(f, "cable", 1, 1, &err), -ENOENT);
	assert_non_null(strstr(err.text, "names are"));
	assert_int_equal(fabric_change(f, "node0.nic0", 0, -1, &err), -EINVAL);
	assert_int_equal(fabric_change(f, "node0.nic0", NAN, -1, &err), -EINVAL);
	assert_int_equal(fabric_change(f, "node0.nic0", 1e-12, -1, &err), -EINVAL);
	assert_int_equal(fabric_change(f, "node0.nic0", -1, 1e13, &err), -EINVAL);
	f->classes[0].n_nics = 2; /* node3.nic2 is gone */
	assert_int_equal(fabric_check(f, &err), -EINVAL);
	assert_non_null(strstr(err.text, "node0.nic2.out is changed, but there is no such NIC"));
	fabric_free(f);
}

static void every_link_of_a_path_is_found_by_its_name(void **state)
{
	const char *name, *summary;
	struct err err = {""};

	(void)state;
	for (size_t p = 0; (name = fabric_preset_name(p, &summary)); p++) {
		struct fabric *f = preset(name, 300);
		uint64_t links[FABRIC_PATH_MAX];
		int n = fabric_path(f, 1, 299 * f->gpus_per_node, 1, links);

		for (int i = 0; i < n; i++) {
			char text[64];
			struct fabric_link l;

			fabric_link_name(f, links[i], text, sizeof(text));
			assert_int_equal(fabric_change(f, text, 3, 4, &err), 0);
			fabric_link(f, links[i], &l);
			assert_true(l.bytes_per_ns == 3 * fabric_link_efficiency(f, links[i]) &&
				    l.latency_ns == 4);
		}
		assert_int_equal(f->n_changes, n);
		fabric_free(f);
	}
}

static void an_op_sees_its_domains_and_the_nics_near_to_it(void **state)
{
	struct fabric *f = preset("dgx-h100", 64), *rack = preset("gb200-nvl72", 36);
	struct membership world = {.n_ranks = 512, .stride = 1};
	struct membership rail = {.n_ranks = 64, .base = 3, .stride = 8};
	uint32_t uneven[] = {0, 1, 2, 8};
	struct membership table = {.n_ranks = 4, .table = uneven};
	struct fabric_view v;

	(void)state;
	assert_int_equal(fabric_view(f, &world, &v), 0);
	assert_true(v.n_domains == 64 && v.ranks_per_domain == 8 && v.n_nics == 8);
	assert_true(v.has_nvls && v.has_gdr && v.sm_min == 90 && v.intra == FABRIC_NVSWITCH);
	assert_true(v.nic_bytes_per_ns == 50 && v.gpu_bytes_per_ns == 450);
	assert_int_equal(fabric_view(f, &rail, &v), 0);
	assert_true(v.n_domains == 64 && v.ranks_per_domain == 1 && v.n_nics == 1);
	assert_int_equal(fabric_view(f, &table, &v), 0);
	assert_true(v.n_domains == 2 && v.ranks_per_domain == 0 && v.most_ranks_per_domain == 3);
	assert_true(v.n_nics == 1);
	world.n_ranks = 144;
	assert_int_equal(fabric_view(rack, &world, &v), 0);
	assert_true(v.n_domains == 2 && v.ranks_per_domain == 72 && v.n_nics == 72);
	assert_true(v.has_order && v.nic_payload_bytes_per_ns == 49);
	fabric_free(rack);
	rack = preset("p4d", 2);
	world.n_ranks = 16;
	assert_int_equal(fabric_view(rack, &world, &v), 0);
	assert_true(!v.has_order && v.nic_payload_bytes_per_ns < v.nic_bytes_per_ns);
	fabric_free(f);
	fabric_free(rack);
}

static void the_weaker_of_two_classes_is_seen(void **state)
{
	struct fabric *old = preset("dgx-a100", 1), *f;
	struct membership world = {.n_ranks = 32, .stride = 1};
	struct fabric_view v;

	(void)state;
	old->classes[0].has_gdr = false;
	f = two_classes(&old->classes[0]);
	assert_int_equal(fabric_view(f, &world, &v), 0);
	assert_true(v.sm_min == 80 && v.sm_max == 90 && !v.has_nvls && v.cpu == FABRIC_OTHER_CPU);
	assert_true(v.nic_bytes_per_ns == 25 && v.gpu_bytes_per_ns == 300);
	assert_true(v.gpu_latency_ns == 600 && !v.has_gdr);
	assert_true(link_at(f, 0, 31, 1).bytes_per_ns > 48);
	assert_true(link_at(f, 31, 0, 1).bytes_per_ns < 25);
	fabric_free(f);
	fabric_free(old);
}

static void bisects(const struct fabric *f, double bytes_per_ns, uint32_t n_half)
{
	uint32_t n;

	assert_true(fabs(fabric_bisection(f, &n) / bytes_per_ns - 1) < 1e-9);
	assert_int_equal(n, n_half);
}

/* Nodes are halved between domains; a leaf or pod with nodes of both halves is on one side. */
static void a_bisection_is_what_the_narrowest_cut_carries(void **state)
{
	struct fabric *f = preset("gb200-nvl72", 36);
	const double node = 4 * 50 * 0.98; /* its NICs */
	struct err err = {""};

	(void)state;
	f->network.nodes_per_leaf = 18;
	f->network.oversubscription = 4;
	bisects(f, 18 * node / 4, 72);
	f->network.nodes_per_leaf = 8; /* two leaves go up, two nodes are on the third */
	bisects(f, (16 / 4.0 + 2) * node, 72);
	f->network.nodes_per_leaf = 32; /* 14 nodes are on the first half's, four go down */
	bisects(f, (14 + 4 / 4.0) * node, 72);
	f->network = (struct fabric_network){.kind = FABRIC_FAT_TREE,
					     .nodes_per_leaf = 4,
					     .leaves_per_pod = 3,
					     .oversubscription = 1};
	assert_int_equal(fabric_change(f, "pod*", 10, -1, &err), 0);
	bisects(f, 10 * 0.98 + 6 * node, 72); /* a pod goes up, six nodes are on the second */
	f->n_nodes = f->nodes[0].n = 20;
	f->network.kind = FABRIC_SWITCH;
	bisects(f, 2 * node, 8); /* the second domain */
	f->n_nodes = f->nodes[0].n = 18;
	bisects(f, 9 * 4 * 900 * 0.82, 36); /* inside the only domain */
	assert_int_equal(fabric_change(f, "node*.gpu*.in", 100, -1, &err), 0);
	bisects(f, 9 * 4 * 100 * 0.82, 36);
	fabric_free(f);
}

static void a_bisection_is_of_the_nics_and_rails_that_ranks_have(void **state)
{
	struct fabric *f = NULL, *last = preset("p4d", 1);
	struct err err = {""};

	(void)state;
	assert_int_equal(fabric_preset("dgx-h100", 64, 2, &f, &err), 0);
	bisects(f, 32 * 2 * 49, 64);
	f->network.oversubscription = 4;
	bisects(f, 32 * 2 * 49 / 4.0, 64);
	assert_int_equal(fabric_change(f, "leaf2.up", 1, -1, &err), 0); /* nobody's rail */
	bisects(f, 32 * 2 * 49 / 4.0, 64);
	f->network.kind = FABRIC_LEAF_SPINE; /* two NICs share what eight have */
	bisects(f, 32 * 2 * 49, 64);
	fabric_free(f);
	f = two_classes(&last->classes[0]); /* its last node has one NIC near to two GPUs */
	f->gpus_per_node = 2;
	bisects(f, 2 * 49 + 12.5 * 0.85, 4);
	f->network.nodes_per_leaf = 2;
	f->network.oversubscription = 8;
	bisects(f, 2 * (49 + 12.5 * 0.85) / 8, 4);
	fabric_free(f);
	fabric_free(last);
}

static void impossible_fabrics_get_a_sentence(void **state)
{
	struct err err = {""};
	struct fabric *f = preset("dgx-h100", 4);
	struct fabric good = *f;

	(void)state;
	f->classes[0].nic_bytes_per_ns = -1;
	assert_int_equal(fabric_check(f, &err), -EINVAL);
	assert_non_null(strstr(err.text, "bandwidth"));
	f->classes[0] = good.classes[0];
	f->classes[0].gpu_bytes_per_ns = NAN;
	assert_int_equal(fabric_check(f, &err), -EINVAL);
	f->classes[0] = good.classes[0];
	f->classes[0].n_nics = 0;
	assert_int_equal(fabric_check(f, &err), -EINVAL);
	assert_non_null(strstr(err.text, "without NIC"));
	f->classes[0].n_nics = 17;
	assert_int_equal(fabric_check(f, &err), -EINVAL);
	f->classes[0] = good.classes[0];
	f->classes[0].nic_gpu[7] = 99;
	assert_int_equal(fabric_check(f, &err), -EINVAL);
	f->classes[0] = good.classes[0];
	f->network.oversubscription = 0.5;
	assert_int_equal(fabric_check(f, &err), -EINVAL);
	f->network = good.network;
	f->network.latency_ns = INFINITY;
	assert_int_equal(fabric_check(f, &err), -EINVAL);
	f->network = good.network;
	f->nodes[0].first = 1;
	assert_int_equal(fabric_check(f, &err), -EINVAL);
	f->nodes[0].first = 0;
	assert_int_equal(fabric_check(f, &err), 0);
	fabric_free(f);
}

/* A connection keeps its cable, up and down; over many each cable of a leaf has as many. */
static void a_connection_takes_one_cable_of_a_leaf(void **state)
{
	struct fabric *f = NULL;
	struct err err;
	uint32_t n_on[16] = {0}, n_moved = 0;
	struct fabric_link all, one;

	(void)state;
	assert_int_equal(fabric_preset("p4d", 16, 0, &f, &err), 0);
	f->network.kind = FABRIC_LEAF_SPINE;
	f->network.nodes_per_leaf = 8;
	f->network.oversubscription = 2;
	assert_int_equal(fabric_check(f, &err), 0);
	assert_int_equal(link_cables(f, 0), 16); /* 8 nodes of 4 NICs, 2:1 */
	for (uint32_t src = 0; src < 64; src++) {
		for (uint32_t dst = 64; dst < 128; dst++) {
			uint64_t links[FABRIC_PATH_MAX], plain[FABRIC_PATH_MAX];
			int n = fabric_path(f, src, dst, FABRIC_NIC_NEAR, plain), up = 0;
			uint32_t before = 0;

			for (uint32_t seed = 0; seed < 3; seed++) {
				memcpy(links, plain, sizeof(links));
				f->network.ecmp = seed;
				fabric_ecmp(f, src, dst, 3, links, (uint32_t)n);
				for (int i = 0; i < n; i++) {
					if (link_kind(links[i]) != LINK_LEAF || seed == 0) {
						assert_true(links[i] == plain[i]);
						continue;
					}
					if (link_direction(links[i]) == LINK_DOWN)
						assert_int_equal(link_b(links[i]),
								 link_b(links[up]));
					else
						up = i;
				}
				if (seed == 1)
					n_on[(before = link_b(links[up])) - 1]++;
				else if (seed == 2)
					n_moved += link_b(links[up]) != before;
			}
		}
	}
	for (int i = 0; i < 16; i++) /* 256 in the mean */
		assert_in_range(n_on[i], 256 - 5 * 16, 256 + 5 * 16);
	assert_true(n_moved > 3500);
	fabric_link(f, link_number(LINK_LEAF, 0, 0, LINK_UP), &all);
	fabric_link(f, link_number(LINK_LEAF, 0, 5, LINK_UP), &one);
	assert_true(fabs(one.bytes_per_ns * 16 - all.bytes_per_ns) < 1e-9);
	assert_true(one.latency_ns == all.latency_ns);
	fabric_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_presets_hold_what_a_fabric_must),
		cmocka_unit_test(a_wrong_preset_is_answered_with_the_nearest),
		cmocka_unit_test(a_message_inside_a_domain_crosses_two_ports),
		cmocka_unit_test(a_far_nic_is_reached_through_the_gpu_next_to_it),
		cmocka_unit_test(two_gpus_that_share_a_nic_both_reach_it),
		cmocka_unit_test(gpus_without_a_nic_have_those_of_a_neighbor),
		cmocka_unit_test(a_node_without_nvlink_goes_through_its_pcie_port),
		cmocka_unit_test(networks_cross_the_switches_that_they_have),
		cmocka_unit_test(a_leaf_of_rails_has_the_nics_of_its_number),
		cmocka_unit_test(cables_are_followed_by_the_fewest),
		cmocka_unit_test(changes_match_by_name_and_star),
		cmocka_unit_test(every_link_of_a_path_is_found_by_its_name),
		cmocka_unit_test(an_op_sees_its_domains_and_the_nics_near_to_it),
		cmocka_unit_test(the_weaker_of_two_classes_is_seen),
		cmocka_unit_test(a_bisection_is_what_the_narrowest_cut_carries),
		cmocka_unit_test(a_bisection_is_of_the_nics_and_rails_that_ranks_have),
		cmocka_unit_test(impossible_fabrics_get_a_sentence),
		cmocka_unit_test(a_connection_takes_one_cable_of_a_leaf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
