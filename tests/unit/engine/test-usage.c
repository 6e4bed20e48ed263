/* What ops put on the links of the network. */
#include <stdio.h>
#include <string.h>

#include "cmocka-all.h"
#include "engine/solve-p2p.h"
#include "engine/solve-set.h"
#include "engine/solver.h"
#include "engine/usage-op.h"
#include "fabric/link-number.h"
#include "plan-world.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))

static const struct usage_link *busiest(const struct usage *u)
{
	const struct usage_link *most = &u->links[0];

	for (uint32_t i = 1; i < u->n; i++)
		if (u->links[i].own_bytes / u->links[i].capacity > most->own_bytes / most->capacity)
			most = &u->links[i];
	return most;
}

static void check_op(const struct world *w, enum coll_kind kind, uint64_t bytes)
{
	struct sched s = op_of(w, kind, bytes);
	struct timing t = solve_it(w, &s, 0);
	const struct usage_link *l;
	struct err err = {""};
	struct usage *u;
	char name[64];
	double needs;

	assert_int_equal(usage_of_op(&s, &w->t, &w->m, w->d, 0, NULL, &u, &err), 0);
	assert_true(u->n > 0);
	for (uint32_t i = 0; i < u->n; i++)
		assert_true(u->links[i].bytes > 0 && u->links[i].connections > 0);
	l = busiest(u);
	needs = l->own_bytes / l->capacity;
	if (needs > t.end_ns * (1 + 1e-9))
		fail_msg("%s, %u ranks, %s of %lu: %g ns, but %s needs %g", w->f->name,
			 w->m.n_ranks, coll_kind_name(kind), (unsigned long)bytes, t.end_ns,
			 fabric_link_name(w->f, l->link, name, sizeof(name)), needs);
	if (bytes == (uint64_t)1 << 30) /* and not much longer */
		assert_true(needs > 0.4 * t.end_ns);
	usage_unref(u);
	timing_deinit(&t);
}

/* NCCL's own algorithms, on clusters of one and of many nodes: an op takes as long as its busiest
 * link at least. */
static void no_op_is_faster_than_its_links(void **state)
{
	static const char *const presets[] = {"dgx-h100", "dgx-a100", "dgx1-v100", "p5",
					      "gb200-nvl72"};
	static const enum coll_kind every[] = {COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCESCATTER,
					       COLL_BROADCAST, COLL_REDUCE,    COLL_ALLTOALL};
	static const uint32_t nodes[] = {1, 2, 8, 36};

	(void)state;
	for (size_t i = 0; i < N(presets) * N(nodes); i++) {
		struct world w =
			world_of(presets[i / N(nodes)], nodes[i % N(nodes)], 0, "nccl", NULL);

		for (size_t k = 0; k < N(every); k++)
			for (uint64_t bytes = 1 << 2; bytes <= (uint64_t)1 << 30; bytes <<= 4)
				check_op(&w, every[k], bytes);
		world_end(&w);
	}
}

/* The GPUs 1 of all nodes do as the GPUs 0: whose NIC is theirs, too. */
static int next_image(void *ctx, struct membership *ret)
{
	uint32_t *n_asked = ctx;

	*ret = (struct membership){.n_ranks = 8, .base = 1, .stride = 4};
	return (*n_asked)++ > 0;
}

static void images_load_the_links_that_they_share(void **state)
{
	struct world w = world_of("polaris", 8, 4, "nccl", NULL);
	uint32_t n_asked = 0, n_shared = 0;
	const struct usage_images images = {next_image, &n_asked};
	struct usage *alone, *u;
	struct err err = {""};
	struct sched s;

	(void)state;
	w.m = (struct membership){.n_ranks = 8, .stride = 4};
	s = op_of(&w, COLL_ALLREDUCE, 64 << 20);
	s.ranks_per_node = 1;
	assert_int_equal(usage_of_op(&s, &w.t, &w.m, w.d, 0, NULL, &alone, &err), 0);
	assert_int_equal(usage_of_op(&s, &w.t, &w.m, w.d, 0, &images, &u, &err), 0);
	assert_int_equal(n_asked, 2);
	for (uint32_t i = 0, k = 0; i < u->n; i++) {
		const struct usage_link *l = &u->links[i];
		bool is_nic = link_kind(l->link) == LINK_NIC;

		if (l->own_bytes == 0)
			continue;
		assert_true(l->link == alone->links[k].link &&
			    l->own_bytes == alone->links[k].bytes);
		assert_float_equal(l->bytes, l->own_bytes * (is_nic ? 2 : 1), 1);
		n_shared += is_nic;
		k++;
	}
	assert_int_equal(n_shared, 16);
	usage_unref(alone);
	usage_unref(u);
	world_end(&w);
}

struct copies {
	uint32_t list[16];
	uint32_t n, n_ranks;
};

static uint32_t copies_of(void *ctx, uint32_t rank, const uint32_t **ret)
{
	struct copies *c = ctx;

	assert_int_equal(rank, 0);
	*ret = c->list;
	return c->n;
}

static bool are_together(void *ctx, uint32_t copy, uint32_t peer)
{
	const struct copies *c = ctx;

	return copy != 0 && peer < c->n_ranks;
}

/* Rank 0 is real; the other nodes do as it does. What crosses each link, in MiB. */
static struct usage *usage_of_calls(const struct world *w, const struct sched_p2p *calls,
				    uint32_t n)
{
	struct copies c = {.n = w->m.n_ranks, .n_ranks = w->m.n_ranks};
	const struct usage_copies copies = {copies_of, are_together, &c};
	const uint32_t rank = 0;
	struct err err = {""};
	struct usage *u;

	for (uint32_t i = 0; i < c.n; i++)
		c.list[i] = i;
	assert_int_equal(solve_p2p_usage(&rank, 1, &calls, &n, 1 << 20, &w->t, &w->m, w->d, 0, NULL,
					 &copies, false, &u, &err),
			 0);
	return u;
}

static double mib_on(const struct world *w, const struct usage *u, const char *name, bool is_own)
{
	char buf[64];

	for (uint32_t i = 0; i < u->n; i++)
		if (strcmp(fabric_link_name(w->f, u->links[i].link, buf, sizeof(buf)), name) == 0)
			return (is_own ? u->links[i].own_bytes : u->links[i].bytes) / (1 << 20);
	return 0;
}

/* A pipeline's send, a ring's step, and all to all, over 8 nodes of one GPU. */
static void virtual_ranks_send_as_the_real_one_does(void **state)
{
	struct world w = world_of("100gbe", 8, 1, "pinned", NULL);
	struct sched_p2p calls[14] = {{.peer = 1, .is_send = true, .bytes = 4 << 20},
				      {.peer = 7, .is_send = false, .bytes = 4 << 20}};
	struct usage *u = usage_of_calls(&w, calls, 1);

	(void)state;
	assert_float_equal(mib_on(&w, u, "node0.nic0.out", true), 4, 1e-9);
	assert_float_equal(mib_on(&w, u, "node0.nic0.out", false), 4, 1e-9);
	assert_float_equal(mib_on(&w, u, "node1.nic0.out", true), 0, 0);
	assert_float_equal(mib_on(&w, u, "node1.nic0.out", false), 4, 1e-9);
	assert_float_equal(mib_on(&w, u, "node7.nic0.out", false), 0, 0); /* the last stage */
	usage_unref(u);
	u = usage_of_calls(&w, calls, 2);
	for (uint32_t i = 0; i < 8; i++) {
		char name[64];

		snprintf(name, sizeof(name), "node%u.nic0.out", i);
		assert_float_equal(mib_on(&w, u, name, false), 4, 1e-9);
	}
	usage_unref(u);
	for (uint32_t i = 0; i < 14; i++)
		calls[i] =
			(struct sched_p2p){.peer = 1 + i / 2, .is_send = i % 2, .bytes = 1 << 20};
	u = usage_of_calls(&w, calls, 14);
	assert_float_equal(mib_on(&w, u, "node5.nic0.in", false), 7, 1e-9);
	assert_float_equal(mib_on(&w, u, "node5.nic0.out", true), 7, 1e-9);
	usage_unref(u);
	world_end(&w);
}

/* Planned ops message by message: one alone as solve() simulates it; two of the same ranks not
 * before the bytes of both have crossed their busiest link; one after the other; on other nodes. */
static void sets_of_planned_ops(void **state)
{
	struct world w = world_of("dgx-a100", 4, 0, "nccl", NULL);
	struct membership halves[] = {{.n_ranks = 16, .stride = 1},
				      {.n_ranks = 16, .base = 16, .stride = 1}};
	struct sched s = op_of(&w, COLL_ALLREDUCE, 64 << 20), half;
	double alone = solve_it(&w, &s, 1).end_ns, needs, half_alone;
	struct set_op set[2] = {{.s = &s, .m = &w.m, .after = SIM_SET_NONE},
				{.s = &s, .m = &w.m, .after = SIM_SET_NONE}};
	struct sim_set_result result;
	struct err err = {""};
	struct usage *u;

	(void)state;
	assert_int_equal(solve_set(set, 1, &w.t, w.d, &result, &err), 0);
	assert_float_equal(set[0].end_ns, alone, 1e-9 * alone);
	assert_int_equal(usage_of_op(&s, &w.t, &w.m, w.d, 0, NULL, &u, &err), 0);
	needs = busiest(u)->own_bytes / busiest(u)->capacity;
	assert_int_equal(solve_set(set, 2, &w.t, w.d, &result, &err), 0);
	assert_true(set[1].end_ns >= 2 * needs && set[1].end_ns < 2 * alone);
	set[1].after = 0;
	assert_int_equal(solve_set(set, 2, &w.t, w.d, &result, &err), 0);
	assert_float_equal(set[1].end_ns, 2 * alone, 1e-9 * alone);

	w.m = halves[0];
	half = op_of(&w, COLL_ALLREDUCE, 64 << 20);
	half_alone = solve_it(&w, &half, 1).end_ns;
	for (int i = 0; i < 2; i++)
		set[i] = (struct set_op){.s = &half, .m = &halves[i], .after = SIM_SET_NONE};
	assert_int_equal(solve_set(set, 2, &w.t, w.d, &result, &err), 0);
	for (int i = 0; i < 2; i++)
		assert_float_equal(set[i].end_ns, half_alone, 1e-9 * half_alone);
	usage_unref(u);
	world_end(&w);
}

static struct usage *of_comm(struct solver *solver, const struct world *w, uint32_t comm,
			     uint64_t bytes)
{
	struct sched s = op_of(w, COLL_ALLREDUCE, bytes);
	struct err err = {""};
	struct usage *u;

	if (solver_usage(solver, comm, &s, &w->m, 0, NULL, &u, &err))
		fail_msg("%s", err.text);
	return u;
}

/* Others' are kept as they are, however many communicators come and go. */
static void what_a_communicator_put_on_links_goes_with_it(void **state)
{
	struct world w = world_of("dgx-h100", 2, 8, "nccl", NULL);
	struct usage *stays[2], *gone[2], *again;
	struct solver *solver;

	(void)state;
	assert_int_equal(solver_new(&w.t, w.d, &solver), 0);
	for (int i = 0; i < 2; i++)
		stays[i] = of_comm(solver, &w, 7, (uint64_t)1 << 20 << i);
	for (uint32_t comm = 8; comm < 100; comm++) {
		for (int i = 0; i < 2; i++) {
			gone[i] = usage_ref(of_comm(solver, &w, comm, (uint64_t)1 << 20 << i));
			assert_int_equal(gone[i]->n_refs, 2);
		}
		solver_forget(solver, comm);
		for (int i = 0; i < 2; i++)
			assert_int_equal(gone[i]->n_refs, 1); /* ours */
		again = of_comm(solver, &w, comm, 1 << 20);
		assert_ptr_not_equal(again, gone[0]);
		assert_int_equal(again->number, gone[0]->number);
		solver_forget(solver, comm);
		solver_forget(solver, comm);
		for (int i = 0; i < 2; i++) {
			usage_unref(gone[i]);
			assert_ptr_equal(of_comm(solver, &w, 7, (uint64_t)1 << 20 << i), stays[i]);
		}
	}
	solver_free(solver);
	world_end(&w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_op_is_faster_than_its_links),
		cmocka_unit_test(images_load_the_links_that_they_share),
		cmocka_unit_test(virtual_ranks_send_as_the_real_one_does),
		cmocka_unit_test(sets_of_planned_ops),
		cmocka_unit_test(what_a_communicator_put_on_links_goes_with_it),
	};

	take_dirs(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
