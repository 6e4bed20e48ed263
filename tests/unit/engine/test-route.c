/* The routes of random fabrics, members and schedules: groups of nodes that stand for others have
 * the routes that these would have; as many lanes share a link as go over it; who leaves by which
 * NIC. */
#include <stdlib.h>
#include <string.h>

#include "base/number-table.h"
#include "cmocka-all.h"
#include "engine/route.h"
#include "fabric/fabric.h"
#include "fabric/link-number.h"
#include "rng.h"
#include "schedule/rails.h"
#include "schedule/schedule.h"

struct world {
	struct fabric *f;
	struct fabric_view view;
	struct membership m;
	struct sched s;
	uint32_t n_rails;
	struct routes *routes;
};

static void world_end(struct world *w)
{
	routes_free(w->routes);
	fabric_free(w->f);
}

/* All of the world, some of it, or a rank or two of each domain. */
static struct membership random_members(struct rng *r, const struct fabric *f)
{
	uint32_t n = f->n_nodes * f->gpus_per_node, gpus = f->gpus_per_node, stride, base;

	switch (below(r, 4)) {
	case 0:
		stride = gpus * f->classes[0].domain_nodes;
		stride = stride > 1 && below(r, 2) ? stride / 2 : stride;
		base = (uint32_t)below(r, n < stride ? n : stride);
		return (struct membership){.n_ranks = (n - base + stride - 1) / stride,
					   .base = base,
					   .stride = stride};
	case 1:
		base = (uint32_t)below(r, n);
		return (struct membership){.n_ranks = 1 + (uint32_t)below(r, n - base),
					   .base = base,
					   .stride = 1};
	default:
		return (struct membership){.n_ranks = n, .stride = 1};
	}
}

static struct sched random_sched(struct rng *r, const struct world *w)
{
	static const struct {
		enum coll_kind kind;
		enum sched_algo algo;
	} kinds[] = {{COLL_ALLREDUCE, SCHED_RING},
		     {COLL_ALLREDUCE, SCHED_TREE},
		     {COLL_BROADCAST, SCHED_CHAIN},
		     {COLL_ALLTOALL, SCHED_DIRECT}};
	uint32_t k = (uint32_t)below(r, 4), per = w->view.ranks_per_domain;
	uint32_t first = w->m.base % (w->f->gpus_per_node * w->f->classes[0].domain_nodes);

	if (!per && !first && w->m.stride == 1 && kinds[k].algo != SCHED_DIRECT)
		per = w->view.most_ranks_per_domain; /* the last domain is cut */
	struct sched s = {.kind = kinds[k].kind,
			  .algo = kinds[k].algo,
			  .n_ranks = w->m.n_ranks,
			  .ranks_per_node = per ? per : 1,
			  .n_rails = w->n_rails,
			  .n_channels = 1 + (uint32_t)below(r, 9),
			  .elem_bytes = 4,
			  .bytes = 1 << 20};

	assert_int_equal(sched_init(&s, NULL), 0);
	return s;
}

/* A ring of switches. */
static void lay_cables(struct fabric *f, uint32_t n_switches)
{
	f->n_switches = f->n_cables = n_switches;
	f->node_switch = calloc(f->n_nodes, sizeof(*f->node_switch));
	f->cables = calloc(n_switches, sizeof(*f->cables));
	for (uint32_t i = 0; i < f->n_nodes; i++)
		f->node_switch[i] = i % n_switches;
	for (uint32_t i = 0; i < n_switches; i++)
		f->cables[i] = (struct fabric_cable){i, (i + 1) % n_switches, 500, 25};
	f->n_cables -= n_switches < 3;
	assert_int_equal(fabric_check(f, NULL), 0);
}

/* Another network, whose leaves and pods are small. */
static struct fabric_network random_network(struct rng *r)
{
	return (struct fabric_network){.kind = (enum fabric_network_kind)below(r, 6),
				       .latency_ns = 2000,
				       .hop_latency_ns = 300,
				       .nodes_per_leaf = 1 + (uint32_t)below(r, 9),
				       .leaves_per_pod = 1 + (uint32_t)below(r, 4),
				       .oversubscription = 1 + (double)below(r, 2)};
}

static void random_fabrics(struct rng *r, struct fabric *ret[2])
{
	static const char *const presets[] = {"dgx-h100", "dgx-2h",  "gb200-nvl72", "p4d",
					      "alps",     "polaris", "rtx6000d",    "lab"};
	static const char *const links[] = {"node0.nic0", "node3.nic1.out", "leaf0",
					    "node1.gpu2", "node*.gpu0",     "leaf5.up",
					    "pod1.up",    "group1.to0",     "leaf11.down"};
	uint32_t preset = (uint32_t)below(r, 8), nodes = 1 + (uint32_t)below(r, 99);
	uint32_t n_switches = 1 + (uint32_t)below(r, 5);
	struct fabric_network net = random_network(r);
	bool has_preset_network = below(r, 3) == 0;
	const char *link = below(r, 2) ? NULL : links[below(r, 9)];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(fabric_preset(presets[preset], nodes, 0, &ret[i], NULL), 0);
		ret[i]->network = has_preset_network ? ret[i]->network : net;
		if (ret[i]->network.kind == FABRIC_CABLES)
			lay_cables(ret[i], n_switches);
		if (link)
			fabric_change(ret[i], link, 1, 7000, NULL);
	}
}

/* The same twice, but that every NIC of the second was changed to what it is: there nobody stands
 * for another. */
static void make_worlds(struct rng *r, struct world w[2])
{
	struct fabric *f[2];

	random_fabrics(r, f);
	w[0].f = f[0];
	w[1].f = f[1];
	assert_int_equal(fabric_change(w[1].f, "node*.nic0.out", -1, -1, NULL), 0);
	w[0].m = w[1].m = random_members(r, w[0].f);
	w[0].n_rails = w[1].n_rails = 1 + (uint32_t)below(r, 8);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fabric_view(w[i].f, &w[i].m, &w[i].view), 0);
	w[0].s = w[1].s = random_sched(r, &w[0]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(routes_new(w[i].f, &w[i].m, &w[i].s, &w[i].view, w[i].n_rails,
					    &w[i].routes),
				 0);
}

static const struct route *route_of(const struct world *w, const struct sched_conn *c)
{
	uint32_t number = routes_find(w->routes, c->src, c->dst, c->lane);

	return number == ROUTE_NONE ? NULL : routes_get(w->routes, number);
}

static void groups_have_the_routes_of_those_that_stand_for_them(void **state)
{
	uint32_t n_seen = 0, n_grouped = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 13);
	for (int i = 0; i < 400; i++) {
		struct world w[2];

		make_worlds(&r, w);
		assert_int_equal(routes_period(w[1].routes), w[1].m.n_ranks);
		n_grouped += routes_period(w[0].routes) < w[0].m.n_ranks;
		for (int k = 0; k < 30; k++) {
			uint32_t rank = (uint32_t)below(&r, w[0].m.n_ranks), n_in, n_out;
			struct sched_conn *conns;

			assert_int_equal(sched_conns(&w[0].s, rank, &conns, &n_in, &n_out), 0);
			for (uint32_t c = 0; c < n_in + n_out; c += 1 + (n_in + n_out) / 16) {
				const struct route *a = route_of(&w[0], &conns[c]);
				const struct route *b = route_of(&w[1], &conns[c]);

				if (!a || !b || memcmp(a, b, sizeof(*a)) != 0)
					fail_msg("%s, %u nodes, %u ranks from %u by %u: from %u to "
						 "%u, lane %u",
						 w[0].f->name, w[0].f->n_nodes, w[0].m.n_ranks,
						 w[0].m.base, w[0].m.stride, conns[c].src,
						 conns[c].dst, conns[c].lane);
				n_seen++;
			}
			free(conns);
		}
		world_end(&w[0]);
		world_end(&w[1]);
	}
	assert_true(n_seen > 50000 && n_grouped > 60);
}

/* But of trees, where how many children share a port differs from node to node. All connections of
 * a large all-to-all would take long. */
static void ranks_for_which_none_stands_have_all_routes(void **state)
{
	static const uint32_t most_ranks[SCHED_ALGOS] = {
		[SCHED_RING] = UINT32_MAX, [SCHED_CHAIN] = UINT32_MAX, [SCHED_DIRECT] = 50};
	uint32_t n_skipped = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 15);
	for (int i = 0; i < 400; i++) {
		uint32_t n_routes[2] = {0}, n_in, n_out;
		struct sched_conn *conns;
		struct world w[2];

		make_worlds(&r, w);
		for (int all = 0; all < 2 && w[0].m.n_ranks <= most_ranks[w[0].s.algo]; all++)
			for (uint32_t rank = 0; rank < w[0].m.n_ranks;) {
				assert_int_equal(sched_conns(&w[0].s, rank, &conns, &n_in, &n_out),
						 0);
				for (uint32_t c = 0; c < n_in + n_out; c++) {
					uint32_t number = routes_find(w[0].routes, conns[c].src,
								      conns[c].dst, conns[c].lane);

					assert_true(number != ROUTE_NONE);
					n_routes[all] = number >= n_routes[all] ? number + 1
										: n_routes[all];
				}
				free(conns);
				n_skipped += !all && routes_next(w[0].routes, rank + 1) > rank + 1;
				rank = all ? rank + 1 : routes_next(w[0].routes, rank + 1);
			}
		if (n_routes[1] && n_routes[0] != n_routes[1])
			fail_msg("%s, %u nodes, %u ranks: %u routes of %u", w[0].f->name,
				 w[0].f->n_nodes, w[0].m.n_ranks, n_routes[0], n_routes[1]);
		world_end(&w[0]);
		world_end(&w[1]);
	}
	assert_true(n_skipped > 60);
}

/* What @rank's lanes put on links between domains. */
static void count_lanes(struct world *w, uint32_t rank, struct number_table *lanes,
			uint32_t most[LINK_KINDS])
{
	uint64_t links[FABRIC_PATH_MAX];
	struct sched_conn *conns;
	uint32_t n_in, n_out;

	assert_int_equal(sched_conns(&w->s, rank, &conns, &n_in, &n_out), 0);
	for (uint32_t c = n_in; c < n_in + n_out; c++) {
		const struct route *route = route_of(w, &conns[c]);
		int n = routes_links(w->routes, conns[c].src, conns[c].dst, conns[c].lane, links);

		assert_int_equal(n, route->n_links);
		for (int i = 0; i < n && route->hop == NBOX_INTER; i++) {
			enum link_kind kind = link_kind(links[i]);
			uint32_t *at = kind != LINK_GPU ? number_table_at(lanes, links[i]) : most;

			*at += 1;
			most[kind] = *at > most[kind] ? *at : most[kind];
		}
	}
	free(conns);
}

/* Of a ring. Links of a kind count as the busiest of them, but each cable as itself. */
static void as_many_lanes_share_a_link_as_go_over_it(void **state)
{
	uint32_t n_seen = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 14);
	for (int i = 0; i < 400; i++) {
		struct number_table lanes = {0};
		uint32_t most[LINK_KINDS] = {0};
		uint64_t links[FABRIC_PATH_MAX];
		struct world w[2];

		make_worlds(&r, w);
		for (uint32_t rank = 0; rank < w[0].m.n_ranks && w[0].s.algo == SCHED_RING; rank++)
			count_lanes(&w[0], rank, &lanes, most);
		for (uint32_t rank = 0; rank < w[0].m.n_ranks && w[0].s.algo == SCHED_RING;
		     rank++) {
			uint16_t lane = (uint16_t)below(&r, w[0].s.n_channels);
			uint32_t next = sched_next(&w[0].s, lane, rank);
			const struct route *route =
				route_of(&w[0], &(struct sched_conn){.src = rank,
								     .dst = next,
								     .lane = lane});

			routes_links(w[0].routes, rank, next, lane, links);
			for (uint32_t k = 0; k < route->n_links && route->hop == NBOX_INTER; k++) {
				enum link_kind kind = link_kind(links[k]);
				uint32_t expected = kind == LINK_CABLE
							    ? number_table_get(&lanes, links[k])
							    : most[kind];

				if (kind != LINK_GPU && route->links[k].flows != expected)
					fail_msg("%s, %u nodes, %u ranks from %u by %u, %u rails: "
						 "%u lanes of %u on a link of kind %d, not %u",
						 w[0].f->name, w[0].f->n_nodes, w[0].m.n_ranks,
						 w[0].m.base, w[0].m.stride, w[0].n_rails,
						 route->links[k].flows, w[0].s.n_channels, kind,
						 expected);
				n_seen++;
			}
		}
		number_table_deinit(&lanes);
		world_end(&w[0]);
		world_end(&w[1]);
	}
	assert_true(n_seen > 10000);
}

/* The NIC between domains by which a connection leaves (LINK_OUT), or comes in. */
static uint64_t nic_of(const struct world *w, const struct sched_conn *c, unsigned direction)
{
	uint64_t links[FABRIC_PATH_MAX];
	int n = routes_links(w->routes, c->src, c->dst, c->lane, links);

	for (int i = 0; i < n; i++)
		if (link_kind(links[i]) == LINK_NIC && link_direction(links[i]) == direction)
			return links[i];
	return 0;
}

static uint64_t near_nic(const struct fabric *f, uint32_t node, uint32_t world_rank,
			 unsigned direction)
{
	uint32_t local = world_rank % f->gpus_per_node;

	return link_number(LINK_NIC, node, fabric_near_nic(fabric_class_of(f, node), local, 0),
			   direction);
}

/* A peer's message comes in by its nearest NIC. It has left by the one of that rail where NVLink
 * leads there from the rank's GPU, but not from node to node. */
static void a_peers_message_comes_in_by_its_nearest_nic(void **state)
{
	uint32_t n_seen = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 16);
	for (int i = 0; i < 400; i++) {
		struct world w[2];

		make_worlds(&r, w);
		for (int k = 0; k < 30 && w[0].s.algo == SCHED_DIRECT; k++) {
			const struct fabric *f = w[0].f;
			const struct sched_conn c = {.src = (uint32_t)below(&r, w[0].m.n_ranks),
						     .dst = (uint32_t)below(&r, w[0].m.n_ranks)};
			uint32_t src = membership_world(&w[0].m, c.src);
			uint32_t dst = membership_world(&w[0].m, c.dst);
			uint32_t from = src / f->gpus_per_node, to = dst / f->gpus_per_node;
			bool has_rails = f->classes[0].intra != FABRIC_PCIE &&
					 f->classes[0].domain_nodes == 1;

			if (fabric_domain(f, src) == fabric_domain(f, dst))
				continue;
			n_seen++;
			assert_true(nic_of(&w[0], &c, LINK_IN) == near_nic(f, to, dst, LINK_IN));
			assert_true(nic_of(&w[0], &c, LINK_OUT) ==
				    near_nic(f, from, has_rails ? dst : src, LINK_OUT));
		}
		world_end(&w[0]);
		world_end(&w[1]);
	}
	assert_true(n_seen > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_have_the_routes_of_those_that_stand_for_them),
		cmocka_unit_test(ranks_for_which_none_stands_have_all_routes),
		cmocka_unit_test(as_many_lanes_share_a_link_as_go_over_it),
		cmocka_unit_test(a_peers_message_comes_in_by_its_nearest_nic),
	};

	return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
