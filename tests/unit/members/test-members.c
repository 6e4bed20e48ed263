/* Membership: communicators made with an id, splits against a slow obvious model, shrinks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "members/by-id.h"
#include "members/split.h"
#include "rng.h"

static struct topology topology;
static uint32_t real[64];
static struct cluster cluster;

static void world(uint32_t nodes, uint32_t gpus, uint32_t first_real, size_t n_real)
{
	topology_default(&topology);
	topology.n_nodes = nodes;
	topology.gpus_per_node = gpus;
	for (size_t i = 0; i < n_real; i++)
		real[i] = first_real + (uint32_t)i;
	cluster = (struct cluster){.topology = &topology, .real = real, .n_real = n_real};
}

struct by_id {
	const char *what;
	uint32_t n_ranks;
	struct wire_member known[4];
	size_t n_known;
	int r;
	enum members_sure sure;
	uint32_t first, last; /* world ranks of the first and last member */
};

/* 4 nodes of 4, node 0 is real. */
static const struct by_id cases[] = {
	{"the world", 16, {{0, 0}, {1, 1}, {2, 2}, {3, 3}}, 4, 0, 0, 0, 15},
	{"the world, one known", 16, {{2, 2}}, 1, 0, 0, 0, 15},
	{"the world in another order", 16, {{0, 1}}, 1, -EINVAL, 0, 0, 0},
	{"all real", 4, {{0, 0}, {1, 1}, {2, 2}, {3, 3}}, 4, 0, 0, 0, 3},
	{"all real, backwards", 4, {{0, 3}, {1, 2}, {2, 1}, {3, 0}}, 4, 0, 0, 3, 0},
	{"one a node", 4, {{0, 2}}, 1, 0, MEMBERS_GUESSED, 2, 14},
	{"one a node of half the world", 2, {{0, 1}}, 1, 0, MEMBERS_GUESSED, 1, 5},
	{"every second rank", 8, {{0, 0}, {1, 2}}, 2, 0, MEMBERS_GUESSED, 0, 14},
	{"a row that would take other real ranks",
	 8,
	 {{0, 0}, {1, 1}},
	 2,
	 0,
	 MEMBERS_GUESSED,
	 0,
	 9},
	{"no pattern", 5, {{0, 0}, {1, 3}, {2, 1}}, 3, 0, MEMBERS_GUESSED, 0, 5},
	{"too many for the world", 17, {{0, 0}}, 1, -EINVAL, 0, 0, 0},
	{"more virtual ones than there are", 15, {{0, 1}, {1, 0}}, 2, -EINVAL, 0, 0, 0},
};

static void known_members_keep_their_places_and_guesses_are_flagged(void **state)
{
	(void)state;
	world(4, 4, 0, 4);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct by_id *t = &cases[i];
		struct members m = {0};
		struct err err = {""};
		int r = members_by_id(&cluster, t->n_ranks, t->known, t->n_known, MEMBERS_SETTLED,
				      &m, &err);

		if (r != t->r)
			fail_msg("%s: %d instead of %d: %s", t->what, r, t->r, err.text);
		if (r < 0)
			assert_true(err.text[0]);
		if (r < 0)
			continue;
		if (m.sure != t->sure || m.map.n_ranks != t->n_ranks ||
		    membership_world(&m.map, 0) != t->first ||
		    membership_world(&m.map, t->n_ranks - 1) != t->last)
			fail_msg("%s: %u to %u, guess %d", t->what, membership_world(&m.map, 0),
				 membership_world(&m.map, t->n_ranks - 1), (int)m.sure);
		/* Known members are where they said; no rank twice; no other real rank. */
		for (size_t k = 0; k < t->n_known; k++)
			assert_int_equal(membership_world(&m.map, t->known[k].rank),
					 t->known[k].world_rank);
		for (uint32_t a = 0; a < t->n_ranks; a++)
			for (uint32_t b = 0; b < a; b++)
				assert_int_not_equal(membership_world(&m.map, a),
						     membership_world(&m.map, b));
		members_deinit(&m);
	}
}

/* Three of a row of four real ranks: the fourth will come, unless it has come elsewhere. */
static void a_row_of_real_ranks_waits_for_its_last(void **state)
{
	const struct wire_member known[] = {{0, 0}, {1, 1}, {2, 2}};
	struct members m = {0};
	struct err err = {""};

	(void)state;
	world(4, 4, 0, 4);
	assert_int_equal(members_by_id(&cluster, 4, known, 3, MEMBERS_SETTLED, &m, &err),
			 MEMBERS_WAIT);
	assert_int_equal(members_by_id(&cluster, 4, known, 3, MEMBERS_ALL_CAME, &m, &err), 0);
	assert_int_equal(m.sure, MEMBERS_GUESSED);
	assert_int_equal(membership_world(&m.map, 3), 4);
	members_deinit(&m);
}

/* The obvious model of a split: lists of (key, rank), sorted by insertion. */
static size_t slow_split(const struct split_vote *votes, size_t n_votes, enum split_policy policy,
			 int32_t color, uint32_t *ret)
{
	int64_t keys[256];
	size_t n = 0;
	uint32_t gpus = topology.gpus_per_node;

	for (uint32_t r = 0; r < topology_world(&topology); r++) {
		const struct split_vote *v = NULL, *from = NULL;
		size_t same = 0, k = 0;
		int64_t key;
		size_t at;

		for (size_t i = 0; i < n_votes; i++) {
			v = votes[i].rank == r ? &votes[i] : v;
			same += votes[i].rank % gpus == r % gpus;
		}
		for (size_t i = 0; i < n_votes && !v; i++)
			if (votes[i].rank % gpus == r % gpus && k++ == r / gpus % same)
				from = &votes[i];
		if (!v && !from)
			from = &votes[r % n_votes];
		if (v) {
			if (v->color != color)
				continue;
			key = v->key;
		} else {
			if ((policy == SPLIT_SAME ? votes[0].color : from->color) != color)
				continue;
			if (policy == SPLIT_NODE && r / gpus != from->rank / gpus)
				continue;
			key = (int64_t)from->key + r - from->rank;
		}
		for (at = n; at > 0 && keys[at - 1] > key; at--) {
			keys[at] = keys[at - 1];
			ret[at] = ret[at - 1];
		}
		keys[at] = key;
		ret[at] = r;
		n++;
	}
	return n;
}

static void virtual_ranks_vote_as_their_templates(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1, 0);
	for (int round = 0; round < 500; round++) {
		uint32_t gpus = 1 + (uint32_t)(rng_u64(&rng) % 8),
			 nodes = 1 + (uint32_t)(rng_u64(&rng) % 8);
		size_t n_real = 1 + rng_u64(&rng) % (gpus * nodes);
		struct split_vote votes[64];
		struct membership parent = {gpus * nodes, 0, 1, NULL};
		enum split_policy policy = (enum split_policy)(rng_u64(&rng) % 3);
		int32_t n_colors = 1 + (int32_t)(rng_u64(&rng) % 3);

		world(nodes, gpus, (uint32_t)(rng_u64(&rng) % (gpus * nodes - n_real + 1)), n_real);
		for (size_t i = 0; i < n_real; i++)
			votes[i] = (struct split_vote){real[i],
						       (int32_t)(rng_u64(&rng) % 3) % n_colors,
						       (int32_t)(rng_u64(&rng) % 5)};
		for (int32_t color = 0; color < n_colors; color++) {
			uint32_t want[64], *ranks = NULL;
			size_t n = slow_split(votes, n_real, policy, color, want);
			struct members m = {0};
			struct err warning;

			assert_int_equal(members_split(&cluster, &parent, votes, n_real, policy,
						       color, &m, &ranks, &warning),
					 0);
			assert_int_equal(m.map.n_ranks, n);
			for (size_t i = 0; i < n; i++) {
				assert_int_equal(ranks[i], want[i]);
				assert_int_equal(membership_world(&m.map, (uint32_t)i), want[i]);
			}
			free(ranks);
			members_deinit(&m);
		}
	}
}

/* Two nodes of each of two stages, one of each real: colors that are no layout's. */
static void virtual_ranks_vote_as_real_ones_of_their_class(void **state)
{
	static const uint32_t stages[8] = {[4] = 1, 1, 1, 1};
	const struct split_vote votes[] = {{0, 7, 0}, {1, 7, 1}, {4, 9, 4}, {5, 9, 5}};
	struct membership parent = {8, 0, 1, NULL};

	(void)state;
	world(4, 2, 0, 4);
	cluster.classes = stages;
	for (int32_t stage = 0; stage < 2; stage++) {
		uint32_t *ranks = NULL;
		struct members m = {0};
		struct err warning;

		assert_int_equal(members_split(&cluster, &parent, votes, 4, SPLIT_TEMPLATE,
					       votes[2 * stage].color, &m, &ranks, &warning),
				 0);
		assert_int_equal(m.map.n_ranks, 4);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(ranks[i], 4 * (uint32_t)stage + i);
		free(ranks);
		members_deinit(&m);
	}
}

/* tp=4,pp=2,dp=2 on 4 nodes of 4, node 0 real. */
static void a_layout_answers_at_once_what_it_leaves_no_choice_about(void **state)
{
	const struct wire_member one = {1, 1}, first = {0, 0};
	struct members m = {0};
	struct err err = {""};
	struct layout layout;

	(void)state;
	assert_int_equal(layout_parse("tp=4,pp=2,dp=2", 16, &layout, NULL), 0);
	world(4, 4, 0, 4);
	cluster.layouts = &layout;
	cluster.n_layouts = 1;
	/* tp or pp+dp: rank 1 of the group says which */
	assert_int_equal(members_by_id(&cluster, 4, &one, 1, MEMBERS_AT_ONCE, &m, &err),
			 MEMBERS_WAIT);
	assert_int_equal(members_by_id(&cluster, 4, &first, 1, MEMBERS_AT_ONCE, &m, &err),
			 MEMBERS_WAIT);
	/* the other real ranks did not come: it is pp+dp */
	assert_int_equal(members_by_id(&cluster, 4, &first, 1, MEMBERS_SETTLED, &m, &err), 0);
	assert_int_equal(m.source, MEMBERS_LAYOUT);
	assert_int_equal(m.sure, MEMBERS_EXACT);
	assert_int_equal(membership_world(&m.map, 3), 12);
	/* pp or dp */
	assert_int_equal(members_by_id(&cluster, 2, &first, 1, MEMBERS_AT_ONCE, &m, &err),
			 MEMBERS_WAIT);
	assert_int_equal(members_by_id(&cluster, 2, &first, 1, MEMBERS_SETTLED, &m, &err), 0);
	assert_int_equal(m.source, MEMBERS_LAYOUT);
	assert_int_equal(m.sure, MEMBERS_GUESSED);
	assert_int_equal(membership_world(&m.map, 1), 4);
	/* not even one axis has 3 ranks, and no guess is made at once */
	assert_int_equal(members_by_id(&cluster, 3, &first, 1, MEMBERS_AT_ONCE, &m, &err),
			 MEMBERS_WAIT);
	assert_int_equal(members_by_id(&cluster, 3, &first, 1, MEMBERS_SETTLED, &m, &err), 0);
	assert_int_equal(m.source, MEMBERS_GUESS);
}

/* Each voter has a color of its own: it may be alone, or with virtual ranks. A color that is a rank
 * below the voter's shows that it is not alone. */
static void where_each_voter_could_be_alone_the_layout_is_a_guess(void **state)
{
	const struct membership parent = {16, 0, 1, NULL};
	struct split_vote votes[4];
	struct layout layout;
	struct err warning;

	(void)state;
	assert_int_equal(layout_parse("tp=4,dp=4", 16, &layout, NULL), 0);
	for (int by_lowest = 0; by_lowest < 2; by_lowest++) {
		struct members m = {0};
		uint32_t *ranks = NULL;
		int32_t color = by_lowest ? 0 : 70;

		world(4, 4, 4, 4);
		cluster.layouts = &layout;
		cluster.n_layouts = 1;
		cluster.is_torch = by_lowest;
		for (uint32_t i = 0; i < 4; i++)
			votes[i] = (struct split_vote){4 + i, color + (int32_t)i, 1};
		assert_int_equal(members_split(&cluster, &parent, votes, 4, SPLIT_TEMPLATE, color,
					       &m, &ranks, &warning),
				 0);
		assert_int_equal(m.source, MEMBERS_LAYOUT);
		assert_int_equal(m.map.n_ranks, 4);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(membership_world(&m.map, i), 4 * i);
		assert_int_equal(m.sure, by_lowest ? MEMBERS_EXACT : MEMBERS_GUESSED);
		free(ranks);
		members_deinit(&m);
	}
}

static void a_shrink_leaves_the_named_ranks_out(void **state)
{
	const struct membership parent = {8, 3, 2, NULL};
	static const uint32_t out[] = {7, 0, 3, 99};
	static const uint32_t want[] = {1, 2, 4, 5, 6};
	struct members m = {0};
	uint32_t *ranks = NULL;

	(void)state;
	world(8, 4, 0, 4);
	assert_int_equal(members_shrink(&parent, out, 4, &m, &ranks), 0);
	assert_int_equal(m.map.n_ranks, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(ranks[i], want[i]);
		assert_int_equal(membership_world(&m.map, i), 3 + 2 * want[i]);
	}
	free(ranks);
	members_deinit(&m);
}

static void ranks_per_node_are_counted_in_equal_runs(void **state)
{
	static const uint32_t even[] = {0, 1, 4, 5, 8, 9}, odd[] = {0, 1, 4, 5, 8};
	static const uint32_t mixed[] = {0, 4, 1, 5};
	const struct {
		struct membership m;
		uint32_t want;
	} t[] = {
		{{16, 0, 1, NULL}, 4}, {{4, 0, 1, NULL}, 4}, {{4, 2, 1, NULL}, 2},
		{{4, 0, 4, NULL}, 1},  {{8, 0, 2, NULL}, 2}, {{1, 5, 1, NULL}, 1},
		{{5, 0, 1, NULL}, 1},  {{6, 0, 0, even}, 2}, {{5, 0, 0, odd}, 1},
		{{4, 0, 0, mixed}, 1}, {{3, 0, 1, NULL}, 3}, {{6, 1, 1, NULL}, 3},
	};

	(void)state;
	world(8, 4, 0, 4);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		if (members_per_node(&t[i].m, &topology) != t[i].want)
			fail_msg("case %zu: %u instead of %u", i,
				 members_per_node(&t[i].m, &topology), t[i].want);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_members_keep_their_places_and_guesses_are_flagged),
		cmocka_unit_test(a_row_of_real_ranks_waits_for_its_last),
		cmocka_unit_test(virtual_ranks_vote_as_their_templates),
		cmocka_unit_test(virtual_ranks_vote_as_real_ones_of_their_class),
		cmocka_unit_test(a_layout_answers_at_once_what_it_leaves_no_choice_about),
		cmocka_unit_test(where_each_voter_could_be_alone_the_layout_is_a_guess),
		cmocka_unit_test(a_shrink_leaves_the_named_ranks_out),
		cmocka_unit_test(ranks_per_node_are_counted_in_equal_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
