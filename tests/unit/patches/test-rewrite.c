/* Records of virtual ranks: against a slow, obvious model, for random places of the ranks. */
#include "cmocka-all.h"

#include <errno.h>
#include <string.h>

#include "patches/rewrite.h"
#include "rng.h"

#define N_MAX 512
#define NODES_MAX 64

/* A communicator: its nodes, and who stands where. */
struct world {
	uint32_t n, node[N_MAX], template[N_MAX];
	struct rewrite_places places;
};

static void add_node(struct world *w, uint32_t node, const uint32_t *template, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++, w->n++) {
		w->node[w->n] = node;
		w->template[w->n] = template ? template[i] : w->n;
	}
}

/* The ranks in another order. */
static void shuffle(struct world *w, struct rng *rng)
{
	uint32_t to[N_MAX];
	struct world old = *w;

	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t j = (uint32_t)below(rng, i + 1);

		to[i] = i;
		to[i] = to[j];
		to[j] = i;
	}
	for (uint32_t i = 0; i < w->n; i++) {
		w->node[to[i]] = old.node[i];
		w->template[to[i]] = to[old.template[i]];
	}
}

/* One or two real nodes of 1 to 8 ranks, and virtual ones of each; half of them in odd order. */
static void make_world(struct world *w, struct rng *rng)
{
	uint32_t n_real = 1 + (uint32_t)below(rng, 2), size[2], start[2], real[2][8],
		 n_ranks = 2 + (uint32_t)below(rng, N_MAX - 1);
	uint32_t node = (uint32_t)below(rng, 1u << 31);

	memset(w, 0, sizeof(*w));
	for (uint32_t i = 0; i < n_real; i++) {
		size[i] = 1 + (uint32_t)below(rng, 8);
		start[i] = w->n;
		add_node(w, node++, NULL, size[i]);
		for (uint32_t k = 0; k < size[i]; k++)
			real[i][k] = start[i] + k;
	}
	for (uint32_t of = (uint32_t)below(rng, n_real); w->n + size[of] <= n_ranks;
	     of = (uint32_t)below(rng, n_real))
		add_node(w, node++, real[of], size[of]);
	if (below(rng, 2))
		shuffle(w, rng);
	w->places =
		(struct rewrite_places){.n_ranks = w->n, .node = w->node, .template = w->template};
}

static int64_t model_same_place(const struct world *w, uint32_t rank, int64_t of)
{
	for (uint32_t r = 0; r < w->n; r++)
		if (w->node[r] == w->node[rank] && w->template[r] == of)
			return r;
	return -1;
}

static const struct nccl_records *random_table(struct rng *rng)
{
	size_t n;
	const struct nccl_records *const *all = nccl_records_all(&n);

	return all[below(rng, n)];
}

static void random_bytes(struct rng *rng, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)rng_u64(rng);
}

static void test_ranks_are_found_at_the_same_place(void **state)
{
	struct rng rng;
	char sentence[256];

	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct world w;

		rng_seed(&rng, seed, 1);
		make_world(&w, &rng);
		assert_int_equal(rewrite_places_init(&w.places, sentence, sizeof(sentence)), 0);
		for (int i = 0; i < 200; i++) {
			uint32_t rank = (uint32_t)below(&rng, w.n);
			int64_t of = (int64_t)below(&rng, w.n + 4) - 2;

			assert_int_equal(rewrite_same_place(&w.places, rank, of),
					 model_same_place(&w, rank, of));
		}
		rewrite_places_deinit(&w.places);
	}
}

/* Records of GPUs, one a rank: hosts differ where nodes do, and nothing else changes but what must.
 */
static void test_hosts_of_peers_differ_as_nodes_do(void **state)
{
	static uint8_t records[N_MAX][256];
	uint64_t hash[2];
	struct rng rng;
	char sentence[256];

	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		const struct record_peer *p;
		struct world w;

		rng_seed(&rng, seed, 2);
		p = &random_table(&rng)->peer;
		make_world(&w, &rng);
		assert_int_equal(rewrite_places_init(&w.places, sentence, sizeof(sentence)), 0);
		hash[0] = rng_u64(&rng);
		hash[1] = hash[0] + 1; /* the two hosts are much alike */
		for (uint32_t r = 0; r < w.n; r++) {
			if (w.template[r] != r)
				continue;
			random_bytes(&rng, records[r], p->bytes);
			record_set_int(records[r], p->rank, (int32_t)r);
			record_set_u64(records[r], p->host_hash,
				       hash[w.node[r] % 2]); /* two real nodes follow each other */
		}
		for (uint32_t r = 0; r < w.n; r++) {
			uint8_t want[256], before[256];

			if (w.template[r] == r) {
				memcpy(before, records[r], p->bytes);
				rewrite_peer(p, &w.places, r, records[r]);
				assert_memory_equal(records[r], before, p->bytes);
				continue;
			}
			memcpy(records[r], records[w.template[r]], p->bytes);
			memcpy(want, records[r], p->bytes);
			rewrite_peer(p, &w.places, r, records[r]);
			memcpy(want + p->rank.at, &r, sizeof(r));
			memcpy(want + p->host_hash.at, records[r] + p->host_hash.at, 8);
			memset(want + p->comm.at, 0, 8);
			memset(want + p->cluster_uuid.at, 0, 16);
			assert_memory_equal(records[r], want, p->bytes);
		}
		for (uint32_t a = 0; a < w.n; a++)
			for (uint32_t b = 0; b < a; b++)
				if ((record_u64(records[a], p->host_hash) ==
				     record_u64(records[b], p->host_hash)) !=
				    (w.node[a] == w.node[b]))
					fail_msg("seed %d: ranks %u and %u", (int)seed, a, b);
		rewrite_places_deinit(&w.places);
	}
}

/* A record as real rank @t would send it: its set elements are ranks of its node or -1, the others
 * 0.
 * @want: the record of @rank. */
static void make_graph(const struct world *w, const struct record_graph *g, uint32_t t,
		       uint32_t rank, struct rng *rng, uint8_t *have, uint8_t *want)
{
	int32_t tree = (int32_t)below(rng, g->n_channels_max / 2 + 1),
		ring = (int32_t)below(rng, g->n_channels_max / 2 + 1);
	int32_t heads = (int32_t)below(rng, g->n_channels_max + 1u);

	random_bytes(rng, have, g->bytes);
	memset(have + g->arrays_at, 0, RECORD_ARRAYS * g->n_channels_max * 4u);
	memcpy(have + g->n_channels.at, &tree, 4);
	memcpy(have + g->graph_bytes + g->n_channels.at, &ring, 4);
	memcpy(have + g->nvls_head_count.at, &heads, 4);
	memcpy(want, have, g->bytes);
	for (int a = 0; a < RECORD_ARRAYS; a++) {
		int32_t n = a == RECORD_NVLS_HEADS ? heads : tree < ring ? tree : ring;

		for (int32_t c = 0; c < n; c++) {
			size_t at =
				g->arrays_at + 4u * ((uint32_t)a * g->n_channels_max + (uint32_t)c);
			int32_t from = -1, to = -1;

			if (below(rng, 8)) {
				do
					from = (int32_t)below(rng, w->n);
				while (w->node[from] != w->node[t]);
				to = (int32_t)model_same_place(w, rank, from);
				assert_true(to >= 0);
			}
			memcpy(have + at, &from, 4);
			memcpy(want + at, &to, 4);
		}
	}
}

static void test_ranks_in_graphs_become_those_of_the_other_node(void **state)
{
	static uint8_t have[4096], want[4096];
	struct rng rng;
	char sentence[256];

	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		const struct record_graph *g;
		struct world w;

		rng_seed(&rng, seed, 3);
		g = &random_table(&rng)->graph;
		make_world(&w, &rng);
		assert_int_equal(rewrite_places_init(&w.places, sentence, sizeof(sentence)), 0);
		for (int i = 0; i < 8; i++) {
			uint32_t rank = (uint32_t)below(&rng, w.n);

			make_graph(&w, g, w.template[rank], rank, &rng, have, want);
			assert_int_equal(rewrite_graph(g, &w.places, rank, have), 0);
			assert_memory_equal(have, want, g->bytes);
		}
		rewrite_places_deinit(&w.places);
	}
}

static void test_ranks_of_other_nodes_and_wrong_counts_are_refused(void **state)
{
	/* two real nodes of two ranks, two virtual ones of the first */
	static const uint32_t node[] = {0, 0, 1, 1, 2, 2, 3, 3},
			      template[] = {0, 1, 2, 3, 0, 1, 0, 1};
	static const int32_t wrong[] = {2, 3, 4, 5, 7, 8, 1000000, -2, INT32_MIN, INT32_MAX};
	struct rewrite_places p = {.n_ranks = 8, .node = node, .template = template};
	const struct record_graph *g;
	uint8_t record[4096];
	char sentence[1024];
	int32_t channels = 1;

	(void)state;
	g = &nccl_records_find(NCCL_CODE(2, 28, 9), true, sentence, sizeof(sentence))->graph;
	assert_int_equal(rewrite_places_init(&p, sentence, sizeof(sentence)), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		memset(record, 0, sizeof(record));
		memcpy(record + g->n_channels.at, &channels, 4);
		memcpy(record + g->graph_bytes + g->n_channels.at, &channels, 4);
		assert_int_equal(rewrite_graph(g, &p, 7, record), 0);
		memset(record + g->arrays_at, 0, 2048);
		memcpy(record + g->arrays_at + 4 * 64 * RECORD_TREE_CHILD1, &wrong[i], 4);
		assert_int_equal(rewrite_graph(g, &p, 7, record), -EINVAL);
		if (wrong[i] >= 0 && wrong[i] <= 64)
			continue;
		memset(record, 0, sizeof(record));
		memcpy(record + g->nvls_head_count.at, &wrong[i], 4);
		assert_int_equal(rewrite_graph(g, &p, 7, record), -EINVAL);
		memset(record, 0, sizeof(record));
		memcpy(record + g->n_channels.at, &wrong[i], 4);
		memcpy(record + g->graph_bytes + g->n_channels.at, &wrong[i], 4);
		assert_int_equal(rewrite_graph(g, &p, 7, record), -EINVAL);
	}
	rewrite_places_deinit(&p);
}

/* A rank behind a node's channels is 0 in NCCL's record, even where the node has no rank 0. */
static void test_elements_that_nccl_does_not_set_stay_as_they_are(void **state)
{
	static const uint32_t node[] = {0, 1, 2}, template[] = {0, 1, 1};
	struct rewrite_places p = {.n_ranks = 3, .node = node, .template = template};
	const struct record_graph *g;
	uint8_t record[4096] = {0}, want[4096];
	char sentence[1024];

	(void)state;
	g = &nccl_records_find(NCCL_CODE(2, 28, 9), true, sentence, sizeof(sentence))->graph;
	assert_int_equal(rewrite_places_init(&p, sentence, sizeof(sentence)), 0);
	memcpy(want, record, sizeof(record));
	assert_int_equal(rewrite_graph(g, &p, 2, record), 0);
	assert_memory_equal(record, want, sizeof(want));
	rewrite_places_deinit(&p);
}

static void test_nodes_that_are_not_like_their_real_one_are_refused(void **state)
{
	static const struct {
		uint32_t n, node[6], template[6];
		const char *sentence;
	} cases[] = {
		{5,
		 {0, 0, 1, 1, 2},
		 {0, 1, 0, 1, 0},
		 "node 2 has 1 ranks of the communicator and is made of node 0, which has 2"},
		{5,
		 {0, 0, 1, 1, 1},
		 {0, 1, 0, 1, 1},
		 "node 1 has 3 ranks of the communicator and is made of node 0, which has 2"},
		{4,
		 {0, 0, 1, 1},
		 {0, 1, 0, 0},
		 "rank 3 of the communicator, on node 1, is made of rank 0 on node 0"},
		{6,
		 {0, 0, 1, 1, 2, 2},
		 {0, 1, 2, 3, 0, 3},
		 "rank 5 of the communicator, on node 2, is made of rank 3 on node 1"},
		{3,
		 {0, 0, 0},
		 {0, 1, 0},
		 "rank 2 of the communicator, on node 0, is made of rank 0 on node 0"},
		{3,
		 {0, 1, 2},
		 {0, 0, 1},
		 "rank 2 of the communicator is made of rank 1, which is none of its real ranks"},
		{2,
		 {0, 1},
		 {0, 2},
		 "rank 1 of the communicator is made of rank 2, which is none of its real ranks"},
	};
	char sentence[512];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rewrite_places p = {.n_ranks = cases[i].n,
					   .node = cases[i].node,
					   .template = cases[i].template};

		assert_int_equal(rewrite_places_init(&p, sentence, sizeof(sentence)), -EINVAL);
		sentence[strlen(cases[i].sentence)] = '\0';
		assert_string_equal(sentence, cases[i].sentence);
		assert_null(p.by_place);
	}
}

static void test_contacts_get_the_given_address(void **state)
{
	uint8_t address[NCCL_ADDRESS_BYTES], record[256], want[256];
	size_t n;
	const struct nccl_records *const *all = nccl_records_all(&n);

	(void)state;
	memset(address, 7, sizeof(address));
	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c < all[i]->n_contacts; c++) {
			memset(record, 9, sizeof(record));
			memset(want, 9, sizeof(want));
			if (!c)
				memset(want, 7, sizeof(address));
			rewrite_contact(&all[i]->contacts[c], address, record);
			assert_memory_equal(record, want, sizeof(want));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks_are_found_at_the_same_place),
		cmocka_unit_test(test_hosts_of_peers_differ_as_nodes_do),
		cmocka_unit_test(test_ranks_in_graphs_become_those_of_the_other_node),
		cmocka_unit_test(test_ranks_of_other_nodes_and_wrong_counts_are_refused),
		cmocka_unit_test(test_elements_that_nccl_does_not_set_stay_as_they_are),
		cmocka_unit_test(test_nodes_that_are_not_like_their_real_one_are_refused),
		cmocka_unit_test(test_contacts_get_the_given_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
