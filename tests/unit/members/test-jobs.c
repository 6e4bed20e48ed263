/* Jobs as PyTorch runs them: worlds of 8 to 4096 ranks with random axes, in which one node is real.
 * Each communicator of such a job is made in each way that there is. What is said to be exact must
 * be the truth, and the rest must be flagged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "members/by-id.h"
#include "members/color.h"
#include "members/split.h"
#include "rng.h"

#define ROUNDS 60

struct job {
	struct topology topology;
	struct layout layout;
	uint32_t world, gpus, real[16];
	struct cluster cluster;
};

struct tally {
	unsigned n, exact, guessed, waits;
	uint64_t longest_ns;
};

/* Of this thread alone: the machine may be busy. */
static uint64_t cpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void tally_print(const char *what, const struct tally *t)
{
	printf("# %-38s %6u: %6u exact, %5u guessed, %4u waiting, longest %llu us\n", what, t->n,
	       t->exact, t->guessed, t->waits, (unsigned long long)t->longest_ns / 1000);
}

static void job_random(struct job *j, struct rng *rng)
{
	static const uint32_t factors[] = {2, 2, 2, 2, 4, 4, 8, 3, 6};
	uint32_t n_axes = 1 + (uint32_t)(rng_u64(rng) % 4), node;
	char text[128];
	size_t used;

	do {
		used = 0;
		j->world = 1;
		for (uint32_t i = 0; i < n_axes; i++) {
			uint32_t n = factors[rng_u64(rng) % ARRAY_SIZE(factors)];

			n *= rng_u64(rng) % 3 == 0 ? factors[rng_u64(rng) % ARRAY_SIZE(factors)]
						   : 1;
			j->world *= n;
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%sx%u=%u",
						 i ? "," : "", i, n);
		}
		j->gpus = 1u << rng_u64(rng) % 4;
	} while (j->world < 8 || j->world > 4096 || j->world % j->gpus || j->world == j->gpus);
	topology_default(&j->topology);
	j->topology.gpus_per_node = j->gpus;
	j->topology.n_nodes = j->world / j->gpus;
	node = rng_u64(rng) % 2 ? 0 : (uint32_t)(rng_u64(rng) % j->topology.n_nodes);
	for (uint32_t i = 0; i < j->gpus; i++)
		j->real[i] = node * j->gpus + i;
	assert_int_equal(layout_parse(text, j->world, &j->layout, NULL), 0);
	j->cluster = (struct cluster){.topology = &j->topology, .real = j->real, .n_real = j->gpus};
}

/* The group of each real rank along @axes, once each. */
static size_t groups_along(const struct job *j, uint32_t axes, struct radix *ret)
{
	size_t n = 0;

	for (uint32_t i = 0; i < j->gpus; i++) {
		bool is_new = true;

		layout_group(&j->layout, axes, j->real[i], &ret[n]);
		for (size_t k = 0; k < n; k++)
			is_new = is_new && !radix_equal(&ret[k], &ret[n]);
		n += is_new;
	}
	return n;
}

static size_t real_of(const struct job *j, const struct radix *r, struct wire_member *ret)
{
	size_t n = 0;

	for (uint32_t i = 0; i < j->gpus; i++)
		if (radix_find(r, j->real[i]) >= 0)
			ret[n++] = (struct wire_member){(uint32_t)radix_find(r, j->real[i]),
							j->real[i]};
	return n;
}

/* What is claimed must be so. */
static void check(const struct job *j, const char *way, const struct radix *truth,
		  const struct members *m, struct tally *t)
{
	uint32_t n = radix_size(truth);
	bool is_same = m->map.n_ranks == n;

	for (uint32_t i = 0; is_same && i < n; i++)
		is_same = membership_world(&m->map, i) == radix_at(truth, i);
	t->n++;
	t->exact += m->sure == MEMBERS_EXACT;
	t->guessed += m->sure == MEMBERS_GUESSED;
	assert_true(m->sure == MEMBERS_EXACT || m->sure == MEMBERS_GUESSED);
	if (m->sure == MEMBERS_EXACT && !is_same)
		fail_msg(
			"%s: world %u, %u a node, real from %u, axes %u %u %u %u: group of %u from "
			"%u stride %u is said to be %s by %s: %u ranks, base %u stride %u",
			way, j->world, j->gpus, j->real[0], j->layout.axis[0].size,
			j->layout.n_axes > 1 ? j->layout.axis[1].size : 1,
			j->layout.n_axes > 2 ? j->layout.axis[2].size : 1,
			j->layout.n_axes > 3 ? j->layout.axis[3].size : 1, n, truth->base,
			truth->level[0].stride, members_sure_name(m->sure),
			members_source_name(m->source), m->map.n_ranks,
			membership_world(&m->map, 0), m->map.stride);
}

/* ncclCommInitRank for the groups along all sets of axes. */
static void by_id(const struct job *j, const char *way, struct tally *t)
{
	uint32_t all = (1u << j->layout.n_axes) - 1;

	for (uint32_t axes = 1; axes < all; axes++) {
		struct radix groups[16];
		size_t n_groups = groups_along(j, axes, groups);

		for (size_t g = 0; g < n_groups; g++) {
			uint32_t n = radix_size(&groups[g]);
			struct wire_member known[16];
			size_t n_known = real_of(j, &groups[g], known);
			struct members m = {0};
			struct err err = {""};
			uint64_t start_ns = cpu_now_ns();
			int r = members_by_id(&j->cluster, n, known, n_known, MEMBERS_AT_ONCE, &m,
					      &err);

			start_ns = cpu_now_ns() - start_ns;
			t->longest_ns = start_ns > t->longest_ns ? start_ns : t->longest_ns;
			if (r == MEMBERS_WAIT) {
				t->waits++;
				r = members_by_id(&j->cluster, n, known, n_known, MEMBERS_ALL_CAME,
						  &m, &err);
			}
			assert_int_equal(r, 0);
			check(j, way, &groups[g], &m, t);
			members_deinit(&m);
		}
	}
}

enum coloring { BY_TUPLE, BY_FOLD, BY_LOWEST };

static int32_t color_of(enum coloring how, const struct radix *r)
{
	struct color_hash h = COLOR_HASH_INIT;
	uint32_t n = radix_size(r);

	for (uint32_t i = 0; i < n; i++)
		color_hash_add(&h, radix_at(r, i));
	return how == BY_TUPLE  ? color_of_tuple(&h)
	       : how == BY_FOLD ? color_of_fold(&h)
				: (int32_t)radix_at(r, 0);
}

static void by_split(struct job *j, enum coloring how, const char *way, struct tally *t)
{
	const struct membership parent = {j->world, 0, 1, NULL};
	uint32_t all = (1u << j->layout.n_axes) - 1;

	j->cluster.is_torch = true;
	for (uint32_t axes = 1; axes < all; axes++) {
		struct split_vote votes[16];
		struct radix groups[16];
		size_t n_groups = groups_along(j, axes, groups);

		for (uint32_t i = 0; i < j->gpus; i++) {
			struct radix r;

			layout_group(&j->layout, axes, j->real[i], &r);
			votes[i] = (struct split_vote){j->real[i], color_of(how, &r),
						       (int32_t)radix_find(&r, j->real[i])};
		}
		for (size_t g = 0; g < n_groups; g++) {
			struct members m = {0};
			uint32_t *ranks = NULL;
			struct err warning;
			uint64_t start_ns = cpu_now_ns();

			assert_int_equal(members_split(&j->cluster, &parent, votes, j->gpus,
						       SPLIT_TEMPLATE, color_of(how, &groups[g]),
						       &m, &ranks, &warning),
					 0);
			start_ns = cpu_now_ns() - start_ns;
			t->longest_ns = start_ns > t->longest_ns ? start_ns : t->longest_ns;
			check(j, way, &groups[g], &m, t);
			free(ranks);
			members_deinit(&m);
		}
	}
	j->cluster.is_torch = false;
}

static void with_layout(struct job *j)
{
	j->cluster.layouts = &j->layout;
	j->cluster.n_layouts = 1;
}

static void what_is_said_to_be_exact_is_the_truth(void **state)
{
	struct tally id = {0}, id_layout = {0}, tuple = {0}, fold = {0}, lowest = {0},
		     lowest_layout = {0};
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7, 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct job j;

		job_random(&j, &rng);
		by_id(&j, "by id", &id);
		by_split(&j, BY_TUPLE, "tuple", &tuple);
		by_split(&j, BY_FOLD, "fold", &fold);
		by_split(&j, BY_LOWEST, "lowest rank", &lowest);
		with_layout(&j);
		by_id(&j, "by id with layout", &id_layout);
		by_split(&j, BY_LOWEST, "lowest rank with layout", &lowest_layout);
	}
	tally_print("by id", &id);
	tally_print("by id, with layout", &id_layout);
	tally_print("split, hash of the tuple", &tuple);
	tally_print("split, folded hash", &fold);
	tally_print("split, lowest rank", &lowest);
	tally_print("split, lowest rank, with layout", &lowest_layout);
	/* A hash leaves nothing open. */
	assert_int_equal(tuple.exact, tuple.n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_said_to_be_exact_is_the_truth)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
