/* The bound against the loads of real schedules: none is below it, and some reach it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "fabric/fabric.h"
#include "rng.h"

#define GIB (1u << 30)
#define LINKS_MAX 4096

/* What has crossed each link. */
struct load {
	uint64_t links[LINKS_MAX];
	double bytes[LINKS_MAX], latency_ns;
	size_t n;
};

static void send(const struct fabric *f, struct load *l, uint32_t src, uint32_t dst, uint32_t nic,
		 double bytes)
{
	uint64_t links[FABRIC_PATH_MAX];
	int n = fabric_path(f, src, dst, nic, links);

	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		size_t k;

		for (k = 0; k < l->n && l->links[k] != links[i]; k++)
			;
		assert_true(k < LINKS_MAX);
		if (k == l->n) {
			l->links[l->n] = links[i];
			l->bytes[l->n++] = 0;
		}
		l->bytes[k] += bytes;
	}
}

/* What the busiest link takes. */
static double busiest(const struct fabric *f, const struct load *l)
{
	double ns = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct fabric_link link;

		fabric_link(f, l->links[i], &link);
		ns = fmax(ns, l->bytes[i] / link.bytes_per_ns);
	}
	return ns;
}

static struct fabric *preset(const char *name, uint32_t n_nodes)
{
	struct err err = {""};
	struct fabric *f = NULL;

	assert_int_equal(fabric_preset(name, n_nodes, 0, &f, &err), 0);
	return f;
}

static double bound(const struct fabric *f, enum coll_kind kind, uint64_t bytes,
		    const struct membership *m)
{
	char where[128];

	return fabric_bound(f, kind, bytes, 0, m, where, sizeof(where));
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static void known_clusters_have_known_bounds(void **state)
{
	struct fabric *f = preset("dgx-h100", 64);
	struct membership world = {.n_ranks = 512, .stride = 1}, node = {.n_ranks = 8, .stride = 1};
	double nic = 8 * 50 * 0.98;
	char where[128];

	(void)state;
	/* the whole buffer twice, less a node's own part, out of each node */
	assert_true(is_near(bound(f, COLL_ALLREDUCE, GIB, &world), 2 * 63 / 64.0 * GIB / nic));
	assert_true(is_near(bound(f, COLL_ALLGATHER, GIB / 512, &world),
			    504 * (double)(GIB / 512) / nic));
	assert_true(is_near(bound(f, COLL_REDUCESCATTER, GIB / 512, &world),
			    504 * (double)(GIB / 512) / nic));
	assert_true(is_near(bound(f, COLL_ALLTOALL, GIB / 512, &world),
			    8 * 504 * (double)(GIB / 512) / nic));
	assert_true(is_near(bound(f, COLL_BROADCAST, GIB, &world), (double)GIB / nic));
	/* one port, NVLS or not */
	assert_true(is_near(bound(f, COLL_ALLREDUCE, GIB, &node), GIB / 369.0));
	f->classes[0].has_nvls = false;
	assert_true(is_near(bound(f, COLL_ALLREDUCE, GIB, &node), 1.75 * GIB / 369.0));
	/* 8 bytes: from one row of leaves to the other */
	assert_true(
		is_near(fabric_bound(f, COLL_ALLREDUCE, 8, 0, &world, where, sizeof(where)), 2600));
	assert_string_equal(where, "latency from node0 to node63");
	/* half of the bandwidth between leaves */
	f->network.oversubscription = 4;
	fabric_bound(f, COLL_ALLTOALL, GIB / 512, 0, &world, where, sizeof(where));
	assert_string_equal(where, "the leaves of node0 to node31");
	fabric_free(f);
}

static void one_rank_a_node_has_the_nic_near_to_it(void **state)
{
	struct fabric *f = preset("dgx-h100", 8);
	struct membership rail = {.n_ranks = 8, .base = 3, .stride = 8};

	(void)state;
	assert_true(is_near(bound(f, COLL_ALLREDUCE, GIB, &rail), 2 * 7 / 8.0 * GIB / 49));
	f->network.nodes_per_leaf = 4; /* and the leaves of one rail, each a quarter of its NICs */
	f->network.oversubscription = 4;
	assert_true(is_near(bound(f, COLL_ALLTOALL, GIB, &rail), 4 * 4.0 * GIB / 49));
	fabric_free(f);
}

static void cables_between_sites_count(void **state)
{
	struct fabric *f = preset("dgx-h100", 4);
	struct membership world = {.n_ranks = 32, .stride = 1};
	char where[128];
	struct err err = {""};

	(void)state;
	f->network.kind = FABRIC_CABLES;
	f->n_switches = 2;
	f->node_switch = calloc(4, sizeof(*f->node_switch));
	f->node_switch[2] = f->node_switch[3] = 1;
	f->cables = calloc(1, sizeof(*f->cables));
	f->cables[0] = (struct fabric_cable){0, 1, 5e6, 10};
	f->n_cables = 1;
	assert_int_equal(fabric_check(f, &err), 0);
	/* a partial sum each way */
	assert_true(is_near(fabric_bound(f, COLL_ALLREDUCE, GIB, 0, &world, where, sizeof(where)),
			    GIB / 10.0));
	assert_string_equal(where, "the cables of sw0");
	assert_true(is_near(fabric_bound(f, COLL_ALLREDUCE, 8, 0, &world, where, sizeof(where)),
			    5e6 + 2000));
	fabric_free(f);
}

static void a_slow_link_counts(void **state)
{
	struct fabric *f = preset("dgx-h100", 8);
	struct membership world = {.n_ranks = 64, .stride = 1};
	struct err err = {""};
	char where[128];

	(void)state;
	assert_int_equal(fabric_change(f, "node3.nic*.in", 1, -1, &err), 0);
	assert_true(is_near(fabric_bound(f, COLL_ALLREDUCE, GIB, 0, &world, where, sizeof(where)),
			    GIB / 8.0 / 0.98));
	assert_string_equal(where, "the NICs of node3");
	assert_int_equal(fabric_change(f, "node5.nic*", -1, 1e9, &err), 0);
	assert_true(is_near(fabric_bound(f, COLL_ALLREDUCE, 8, 0, &world, where, sizeof(where)),
			    1e9 + 1000));
	fabric_free(f);
}

/* The root alone receives of a gather or a reduction, and sends a scatter or a broadcast. */
static void the_root_has_all_the_bytes(void **state)
{
	struct fabric *f = preset("dgx-h100", 8);
	struct membership world = {.n_ranks = 64, .stride = 1};
	const double slow = 8 * 2 * 0.98, nics = 8 * 49, root = 369 + 49, all = (double)GIB;
	struct err err = {""};
	char where[128];
	const struct {
		enum coll_kind kind;
		double slow_root, other_root; /* where the slow node is the root's, and where not */
	} cases[] = {{COLL_GATHER, 56 * all / slow, 63 * all / root},
		     {COLL_REDUCE, all / slow, all / nics},
		     {COLL_SCATTER, 63 * all / root, 8 * all / slow},
		     {COLL_BROADCAST, all / (369 + 2 * 0.98), all / slow}};

	(void)state;
	assert_int_equal(fabric_change(f, "node3.nic*.in", 2, -1, &err), 0);
	for (size_t i = 0; i < 4; i++) {
		double a = fabric_bound(f, cases[i].kind, GIB, 27, &world, where, sizeof(where));
		double b = fabric_bound(f, cases[i].kind, GIB, 2, &world, where, sizeof(where));

		assert_true(is_near(a, cases[i].slow_root));
		assert_true(is_near(b, cases[i].other_root));
	}
	fabric_free(f);
}

/* A tree of switches, perhaps with another cable, and nodes anywhere. */
static void random_cables(struct rng *rng, struct fabric *f)
{
	uint32_t n = 1 + (uint32_t)below(rng, 5), i;

	f->n_switches = n;
	f->node_switch = calloc(f->n_nodes, sizeof(*f->node_switch));
	f->cables = calloc(n, sizeof(*f->cables));
	for (i = 0; i < f->n_nodes; i++)
		f->node_switch[i] = (uint32_t)below(rng, n);
	for (i = 1; i < n; i++)
		f->cables[f->n_cables++] = (struct fabric_cable){(uint32_t)below(rng, i), i, 0,
								 1 + rng_uniform(rng) * 200};
	if (n > 2 && below(rng, 2))
		f->cables[f->n_cables++] =
			(struct fabric_cable){n - 1, 0, 0, 1 + rng_uniform(rng) * 200};
}

/* Small fabrics of every kind of network, with some links changed. */
static struct fabric *random_fabric(struct rng *rng)
{
	static const char *const names[] = {"dgx-a100", "dgx-h100",    "p4d",      "polaris",
					    "100gbe",   "gb200-nvl72", "dgx1-v100"};
	static const char *const links[] = {"node*.nic0.out", "node1.nic0.in", "node0.gpu0",
					    "node2.gpu*.in",  "leaf0.up",      "leaf*.down",
					    "sw*.sw*"};
	struct fabric *f = preset(names[below(rng, 7)], 2 + (uint32_t)below(rng, 5));
	struct err err = {""};

	if (f->classes[0].domain_nodes > 1)
		f->classes[0].domain_nodes = 1 + (uint32_t)below(rng, 3);
	f->gpus_per_node = 1 + (uint32_t)below(rng, f->classes[0].n_gpus);
	f->network.kind = (enum fabric_network_kind)below(rng, FABRIC_CABLES + 1);
	if (f->network.kind == FABRIC_CABLES)
		random_cables(rng, f);
	f->network.nodes_per_leaf = 1 + (uint32_t)below(rng, 3);
	f->network.leaves_per_pod = 1 + (uint32_t)below(rng, 2);
	f->network.oversubscription = 1 + (double)below(rng, 4);
	assert_int_equal(fabric_check(f, &err), 0);
	for (uint64_t n = below(rng, 3); n > 0; n--)
		(void)fabric_change(f, links[below(rng, 7)], 0.5 + rng_uniform(rng) * 100, -1,
				    &err);
	return f;
}

static uint32_t random_members(struct rng *rng, const struct fabric *f, uint32_t *table)
{
	uint32_t world = f->n_nodes * f->gpus_per_node, n = 0;

	for (uint32_t i = 0; i < world; i++)
		if (below(rng, 4))
			table[n++] = i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = (uint32_t)below(rng, i), old = table[i - 1];

		table[i - 1] = table[k];
		table[k] = old;
	}
	return n;
}

static double ring(const struct fabric *f, const struct membership *m, double bytes)
{
	struct load l = {.n = 0};

	for (uint32_t i = 0; i < m->n_ranks; i++)
		send(f, &l, m->table[i], m->table[(i + 1) % m->n_ranks], FABRIC_NIC_NEAR, bytes);
	return busiest(f, &l);
}

/* Is NIC @nic near to a rank of the op on @node? */
static bool has_nic(const struct fabric *f, const struct membership *m, uint32_t node, uint32_t nic)
{
	for (uint32_t i = 0; i < m->n_ranks; i++)
		if (m->table[i] / f->gpus_per_node == node &&
		    fabric_near_nics(&f->classes[0], m->table[i] % f->gpus_per_node) >> nic & 1)
			return true;
	return false;
}

/* Every pair, each by the NIC near to it, or both by that near to the receiver where it can be. */
static double pairs(const struct fabric *f, const struct membership *m, double bytes, bool is_rail)
{
	struct load l = {.n = 0};

	for (uint32_t i = 0; i < m->n_ranks; i++)
		for (uint32_t k = 0; k < m->n_ranks; k++) {
			uint32_t to = m->table[k] % f->gpus_per_node;
			uint32_t nic = fabric_near_nic(&f->classes[0], to, k);

			if (!is_rail || f->classes[0].domain_nodes > 1 ||
			    !has_nic(f, m, m->table[i] / f->gpus_per_node, nic))
				nic = FABRIC_NIC_NEAR;
			send(f, &l, m->table[i], m->table[k], nic, bytes);
		}
	return busiest(f, &l);
}

static double star(const struct fabric *f, const struct membership *m, uint32_t root, double bytes,
		   bool is_out)
{
	struct load l = {.n = 0};

	for (uint32_t i = 0; i < m->n_ranks; i++)
		if (is_out)
			send(f, &l, m->table[root], m->table[i], FABRIC_NIC_NEAR, bytes);
		else
			send(f, &l, m->table[i], m->table[root], FABRIC_NIC_NEAR, bytes);
	return busiest(f, &l);
}

/* Leaves of a binary tree over the list. */
static double tree(const struct fabric *f, const struct membership *m, double bytes, bool is_both)
{
	struct load l = {.n = 0};

	for (uint32_t i = 1; i < m->n_ranks; i++) {
		send(f, &l, m->table[(i - 1) / 2], m->table[i], FABRIC_NIC_NEAR, bytes);
		if (is_both)
			send(f, &l, m->table[i], m->table[(i - 1) / 2], FABRIC_NIC_NEAR, bytes);
	}
	return busiest(f, &l);
}

static void no_schedule_beats_the_bound(void **state)
{
	struct rng rng;
	uint32_t table[64], n_reached = 0, n_sent = 0;
	char where[128];

	(void)state;
	rng_seed(&rng, 14, 0);
	for (int i = 0; i < 3000; i++) {
		struct fabric *f = random_fabric(&rng);
		struct membership m = {.table = table};
		double bytes = 1e9, n, slack = 1 + 1e-9, b;
		uint32_t root;

		m.n_ranks = random_members(&rng, f, table);
		if (m.n_ranks >= 2) {
			n = m.n_ranks;
			root = (uint32_t)below(&rng, m.n_ranks);
			b = bound(f, COLL_ALLREDUCE, 1000000000, &m);
			assert_true(b <= slack * ring(f, &m, 2 * (n - 1) / n * bytes));
			assert_true(b <= slack * tree(f, &m, bytes, true));
			b = bound(f, COLL_ALLGATHER, 1000000000, &m);
			assert_true(b <= slack * ring(f, &m, (n - 1) * bytes));
			assert_true(b <= slack * pairs(f, &m, bytes, false));
			b = bound(f, COLL_REDUCESCATTER, 1000000000, &m);
			assert_true(b <= slack * ring(f, &m, (n - 1) * bytes));
			b = bound(f, COLL_SENDRECV, 1000000000, &m);
			assert_true(b <= slack * ring(f, &m, bytes));
			n_sent += is_near(b, ring(f, &m, bytes));
			b = bound(f, COLL_ALLTOALL, 1000000000, &m);
			assert_true(b <= slack * pairs(f, &m, bytes, false));
			assert_true(b <= slack * pairs(f, &m, bytes, true));
			n_reached += is_near(b, pairs(f, &m, bytes, false));
			b = bound(f, COLL_BROADCAST, 1000000000, &m);
			assert_true(b <= slack * tree(f, &m, bytes, false));
			b = fabric_bound(f, COLL_SCATTER, 1000000000, root, &m, where,
					 sizeof(where));
			assert_true(b <= slack * star(f, &m, root, bytes, true));
			b = fabric_bound(f, COLL_GATHER, 1000000000, root, &m, where,
					 sizeof(where));
			assert_true(b <= slack * star(f, &m, root, bytes, false));
			b = fabric_bound(f, COLL_REDUCE, 1000000000, root, &m, where,
					 sizeof(where));
			assert_true(b <= slack * star(f, &m, root, bytes, false));
		}
		fabric_free(f);
	}
	assert_true(n_reached > 100 && n_sent > 100); /* else it says too little */
}

/* By domains that are alike, from a list of ranks, and rank by rank, as with a changed link. */
static void all_ways_to_the_bound_agree(void **state)
{
	struct rng rng;
	uint32_t table[64];

	(void)state;
	rng_seed(&rng, 15, 0);
	for (int i = 0; i < 1000; i++) {
		struct fabric *f = random_fabric(&rng);
		uint32_t world = f->n_nodes * f->gpus_per_node, root;
		struct membership range = {.base = (uint32_t)below(&rng, world), .stride = 1};
		struct membership list = {.table = table};
		struct fabric_link same;
		struct err err = {""};
		char where[128];

		range.n_ranks = list.n_ranks = (uint32_t)below(&rng, world - range.base) + 1;
		root = (uint32_t)below(&rng, range.n_ranks);
		for (uint32_t k = 0; k < range.n_ranks; k++)
			table[k] = range.base + k;
		for (int kind = 0; kind < COLL_KINDS; kind++) {
			double a = fabric_bound(f, (enum coll_kind)kind, 1 << 20, root, &range,
						where, sizeof(where));

			assert_true(is_near(a, fabric_bound(f, (enum coll_kind)kind, 1 << 20, root,
							    &list, where, sizeof(where))));
		}
		if (!f->n_changes) { /* a change that changes nothing */
			double a = fabric_bound(f, COLL_ALLTOALL, 1 << 20, root, &range, where,
						sizeof(where));
			uint64_t links[FABRIC_PATH_MAX];
			char name[64];

			if (world > 1 && fabric_path(f, 0, world - 1, FABRIC_NIC_NEAR, links) > 0) {
				fabric_link(f, links[0], &same);
				fabric_link_name(f, links[0], name, sizeof(name));
				assert_int_equal(
					fabric_change(f, name,
						      same.bytes_per_ns /
							      fabric_link_efficiency(f, links[0]),
						      -1, &err),
					0);
				assert_true(is_near(a, fabric_bound(f, COLL_ALLTOALL, 1 << 20, root,
								    &range, where, sizeof(where))));
			}
		}
		fabric_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_clusters_have_known_bounds),
		cmocka_unit_test(one_rank_a_node_has_the_nic_near_to_it),
		cmocka_unit_test(cables_between_sites_count),
		cmocka_unit_test(a_slow_link_counts),
		cmocka_unit_test(the_root_has_all_the_bytes),
		cmocka_unit_test(no_schedule_beats_the_bound),
		cmocka_unit_test(all_ways_to_the_bound_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
