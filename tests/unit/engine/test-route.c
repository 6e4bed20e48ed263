/* The routes of random fabrics, members and schedules: groups of nodes that stand for others have
 * the routes that these would have. */
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "engine/route.h"
#include "fabric/fabric.h"
#include "rng.h"
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

/* The same twice, but that every NIC of the second was changed to what it is: there nobody stands
 * for another. */
static void make_worlds(struct rng *r, struct world w[2])
{
	static const char *const presets[] = {"dgx-h100", "dgx-2h",  "gb200-nvl72", "p4d",
					      "alps",     "polaris", "rtx6000d",    "lab"};
	static const char *const links[] = {"node0.nic0", "node3.nic1.out", "leaf0",
					    "node1.gpu2", "node*.gpu0",     "leaf5.up"};
	uint32_t preset = (uint32_t)below(r, 8), nodes = 1 + (uint32_t)below(r, 99);
	const char *link = below(r, 2) ? NULL : links[below(r, 6)];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(fabric_preset(presets[preset], nodes, 0, &w[i].f, NULL), 0);
		if (link)
			fabric_change(w[i].f, link, 1, 7000, NULL);
	}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_have_the_routes_of_those_that_stand_for_them),
	};

	return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
