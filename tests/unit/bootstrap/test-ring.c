/* The root, the ring and all-gathers: each real rank gets what a table of all ranks says. */
#include "cmocka-all.h"

#include <stdio.h>
#include <string.h>

#include "world.h"

struct job {
	const struct nccl_records *table;
	struct world world;
	uint8_t ids[4][NCCL_ID_BYTES];
	uint32_t n_ids, n_copied;
	uint64_t seed;
	struct bootstrap_comm *comm;
};

static void rank_runs(struct player *p)
{
	struct job *j = p->arg;
	struct rank_comm *c = rank_init(p, j->table, p->rank, j->world.n, j->ids[0], j->n_ids);
	uint8_t *contacts;

	if (j->world.n > 1) {
		contacts = rank_contacts(c, false);
		world_check_contacts(p, &j->world, c, contacts, false);
		world_init(c, &j->world, j->seed);
		for (uint32_t i = 0; i < j->n_copied; i++)
			world_copied(c, &j->world, 2, (uint8_t)i);
	}
	rank_close(c);
}

static void job_make(struct play *play, struct job *j, const struct nccl_records *table,
		     uint32_t n_ids)
{
	struct err err = {""};

	j->table = table;
	j->n_ids = n_ids;
	j->seed = rng_u64(&play->rng);
	if (bootstrap_comm_make(play->b, table, j->world.n, j->world.node, j->world.template, n_ids,
				j->ids[0], &j->comm, &err) < 0)
		fail_msg("%s", err.text);
	for (uint32_t k = 0; k < j->world.n_real; k++)
		play_add(play, rank_runs, j, j->world.real[k]);
}

static void job_check(struct play *play)
{
	if (!play_run(play) || play->n_failed) {
		play_explain(play);
		fail();
	}
}

static const struct {
	uint32_t n_real_nodes, n_nodes, per_node;
} sizes[] = {{1, 2, 1},  {1, 3, 1},   {1, 4, 1},  {2, 2, 1},  {2, 3, 1},  {2, 4, 1},
	     {1, 1, 2},  {1, 1, 3},   {1, 1, 4},  {1, 2, 2},  {1, 3, 2},  {2, 5, 2},
	     {3, 7, 1},  {1, 5, 3},   {1, 4, 4},  {1, 31, 1}, {1, 16, 4}, {4, 33, 1},
	     {2, 30, 2}, {1, 300, 1}, {1, 75, 4}, {1, 1, 1}};

static void each_rank_sees_all(const struct nccl_records *table)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (uint64_t seed = 0; seed < (sizes[i].n_nodes > 40 ? 2 : 8); seed++) {
			struct play *play = play_new(100 * i + seed);
			struct job j = {.n_copied = 3};
			char text[256];

			if (sizes[i].n_nodes > 40)
				play->chunk_max += 500;
			world_make(&j.world, &play->rng, sizes[i].n_real_nodes, sizes[i].n_nodes,
				   sizes[i].per_node, seed & 1);
			job_make(play, &j, table, 1);
			job_check(play);
			if (j.world.n > 1) {
				assert_int_equal(play->n_records[0],
						 table->n_contacts * j.world.n_real);
				assert_int_equal(play->n_records[4], 3 * j.world.n_real);
			}
			assert_string_equal(bootstrap_comm_waits(j.comm, text, sizeof(text)), "");
			bootstrap_comm_end(j.comm);
			play_free(play);
		}
	}
}

static void test_each_rank_sees_all_both_ways(void **state)
{
	each_rank_sees_all(table_new());
}

static void test_each_rank_sees_all_one_way(void **state)
{
	each_rank_sees_all(table_old());
}

static void test_several_ids_are_roots_of_a_part_each(void **state)
{
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct play *play = play_new(seed);
		struct job j = {0};

		world_make(&j.world, &play->rng, 2, 2 + (uint32_t)seed % 5, 2, seed & 1);
		job_make(play, &j, table_new(), 1 + (uint32_t)seed % 4);
		job_check(play);
		play_free(play);
	}
}

static void test_communicators_do_not_mix(void **state)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct play *play = play_new(seed);
		struct job j[3] = {{.n_copied = 1}, {.n_copied = 5}, {.n_copied = 2}};

		for (uint32_t i = 0; i < 3; i++) {
			world_make(&j[i].world, &play->rng, 1 + i % 2, 3 + i, 2, true);
			job_make(play, &j[i], i == 1 ? table_old() : table_new(), 1);
		}
		job_check(play);
		play_free(play);
	}
}

static void test_ranks_of_each_known_version_see_all(void **state)
{
	size_t n;
	const struct nccl_records *const *tables = nccl_records_all(&n);

	assert_true(n > 0);
	for (size_t i = 0; i < n; i++) {
		struct play *play = play_new(i);
		struct job j = {0};

		world_make(&j.world, &play->rng, 2, 5, 2, true);
		job_make(play, &j, tables[i], tables[i]->check_in.n_roots.bytes ? 2 : 1);
		job_check(play);
		play_free(play);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_rank_sees_all_both_ways),
		cmocka_unit_test(test_each_rank_sees_all_one_way),
		cmocka_unit_test(test_several_ids_are_roots_of_a_part_each),
		cmocka_unit_test(test_communicators_do_not_mix),
		cmocka_unit_test(test_ranks_of_each_known_version_see_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
