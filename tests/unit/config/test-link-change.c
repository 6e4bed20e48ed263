/* Which links the what-ifs `link` and `load` name, on each kind of network, and what becomes of
 * them. Sentences of errors: tests/func/nbox/wrong-inputs.txt. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "config/link-change.h"
#include "config/rack-nodes.h"
#include "fabric/fabric.h"

static struct link_change parsed(const char *text, const struct fabric *f)
{
	struct link_change c;
	struct err err = {""};

	if (link_change_parse(text, f, &c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

/* The names of its links, the first @n and the last. */
static const char *names(const char *text, const struct fabric *f, size_t n)
{
	static char all[1024];
	struct link_change c = parsed(text, f);
	size_t used = 0;

	all[0] = '\0';
	for (size_t i = 0; i < c.n_links; i++) {
		char name[64];

		if (i < n || i + 1 == c.n_links)
			used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s",
						 used ? " " : "",
						 fabric_link_name(f, c.links[i], name,
								  sizeof(name)));
	}
	snprintf(all + used, sizeof(all) - used, ", %zu", c.n_links);
	free(c.links);
	return all;
}

static struct fabric *fabric_of(const char *preset, enum fabric_network_kind kind, uint32_t n_nodes)
{
	struct fabric *f = NULL;
	struct err err;

	assert_int_equal(fabric_preset(preset, n_nodes, 0, &f, &err), 0);
	f->network.kind = kind;
	f->network.nodes_per_leaf = 4;
	f->network.leaves_per_pod = 2;
	f->network.oversubscription = 1;
	assert_int_equal(fabric_check(f, &err), 0);
	return f;
}

static void links_are_named_by_name_node_rail_and_rack(void **state)
{
	struct fabric *f = fabric_of("dgx-h100", FABRIC_RAIL, 8);

	(void)state;
	assert_string_equal(names("link:name=node3.nic2,slower=2", f, 1),
			    "node3.nic2.out node3.nic2.in, 2");
	assert_string_equal(names("link:name=leaf1.up+node3.nic*.out+node3.nic0,slower=2", f, 2),
			    "node3.nic0.out node3.nic0.in leaf1.up, 10");
	assert_string_equal(names("link:node=1+5-6,slower=2", f, 1),
			    "node1.nic0.out node6.nic7.in, 48");
	/* its NICs, and its leaf of each of the two groups of nodes */
	assert_string_equal(names("link:rail=2,slower=2", f, 1), "node0.nic2.out leaf10.down, 20");
	assert_string_equal(names("link:rack=9,slower=2", f, 1), "leaf9.up leaf9.down, 2");
	assert_string_equal(names("load:link=node3.nic2.in,bandwidth=1Gbps", f, 1),
			    "node3.nic2.in, 1");
	fabric_free(f);
	f = fabric_of("dgx-h100", FABRIC_FAT_TREE, 16);
	assert_string_equal(names("link:rail=2,slower=2", f, 1),
			    "node0.nic2.out node15.nic2.in, 32"); /* no rails: NICs alone */
	assert_string_equal(names("link:rack=1+3,slower=2", f, 1), "leaf1.up leaf3.down, 4");
	assert_string_equal(names("link:name=pod*,slower=2", f, 1), "pod0.up pod1.down, 4");
	fabric_free(f);
	f = fabric_of("dgx-h100", FABRIC_DRAGONFLY, 16);
	assert_string_equal(names("link:name=group0.to1,slower=2", f, 1), "group0.to1.out, 1");
	fabric_free(f);
	f = fabric_of("dgx-h100", FABRIC_SWITCH, 4);
	assert_int_equal(link_change_parse("link:rack=0,slower=2", f, &(struct link_change){0},
					   &(struct err){""}),
			 -ENOENT);
	assert_int_equal(link_change_parse("link:name=node1.nic8,slower=2", f,
					   &(struct link_change){0}, &(struct err){""}),
			 -ENOENT);
	fabric_free(f);
}

static void assert_nodes(const struct fabric *f, const char *text, const char *want)
{
	struct err err = {""};
	char *got;

	if (rack_nodes(text, f, &got, &err) < 0)
		fail_msg("%s", err.text);
	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
	free(got);
}

/* Leaves 8 to 15 are of nodes 4 to 7, one a rail. */
static void a_rack_of_ranks_is_its_nodes(void **state)
{
	struct fabric *f = fabric_of("dgx-h100", FABRIC_RAIL, 10);

	(void)state;
	assert_nodes(f, "slow:rack=9,compute=2", "slow:node=4-7,compute=2");
	assert_nodes(f, "fail:time=1s,rack=9-10+0+16", "fail:time=1s,node=0-3+4-7+8-9");
	assert_nodes(f, "add:delay=1ms", NULL);
	assert_nodes(f, "track=1", NULL);
	fabric_free(f);
	f = fabric_of("dgx-h100", FABRIC_FAT_TREE, 9);
	assert_nodes(f, "hang:rack=2,for=1s", "hang:node=8,for=1s");
	fabric_free(f);
}

static void assert_change(const char *text, double lost, double from_ns, double until_ns)
{
	struct fabric *f = fabric_of("dgx-h100", FABRIC_RAIL, 8);
	struct link_change c = parsed(text, f);
	const struct moment start = {0};
	double from, until;

	assert_true(fabs(c.lost - lost) < 1e-15);
	when_window(&c.when, &start, &from, &until);
	assert_true(from == from_ns);
	assert_true(until == until_ns);
	free(c.links);
	fabric_free(f);
}

static void a_change_says_what_is_lost_and_when(void **state)
{
	(void)state;
	assert_change("link:node=1,slower=4", 0.75, 0, INFINITY);
	assert_change("link:node=1,slower=150%,for=2s", 1 - 1 / 1.5, 0, 2e9);
	assert_change("link:node=1,loss=1%,from=1s,for=1ms", 0.01, 1e9, 1.001e9);
	assert_change("link:node=1,down=2s,from=10s", 1, 10e9, 12e9);
	assert_change("load:node=1,bandwidth=8Gbps,from=1s", 0, 1e9, INFINITY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_are_named_by_name_node_rail_and_rack),
		cmocka_unit_test(a_rack_of_ranks_is_its_nodes),
		cmocka_unit_test(a_change_says_what_is_lost_and_when),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
