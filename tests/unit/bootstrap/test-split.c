/* ncclCommSplit and ncclCommShrink: children of the virtual size, and their children. */
#include "cmocka-all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "world.h"

#define NO_COLOR (-1)

struct job {
	const struct nccl_records *table;
	struct world world;
	uint8_t id[NCCL_ID_BYTES];
	struct bootstrap_comm *comm;
	uint64_t seed;
	bool is_shared;
	bool has_one_magic; /* children of one parent have, as before NCCL 2.23 */
	bool has_shrunk;
	uint32_t n_met;
};

/* All real ranks come here, without nbox. */
static void meet(struct player *p, struct job *j)
{
	uint32_t round = j->n_met++ / j->world.n_real;

	p->play->has_moved = true;
	while (j->n_met < (round + 1) * j->world.n_real)
		player_wait(p);
}

/* How rank @r votes: virtual ones have their template's color. */
static int32_t color_of(const struct world *w, uint64_t seed, uint32_t r)
{
	uint64_t h = rng_mix64(seed + 31 * w->template[r]);

	return h % 5 == 0 ? NO_COLOR : (int32_t)(h % 2);
}

static int32_t key_of(const struct world *w, uint64_t seed, uint32_t r)
{
	return seed % 3 == 0   ? -(int32_t)r
	       : seed % 3 == 1 ? (int32_t)(rng_mix64(seed + r) % 4)
			       : (int32_t)(rng_mix64(seed + r) >> 40) - 4000000;
}

/* The votes of the split that is under way: its communicator's world. */
static const struct world *vote_world;
static uint64_t vote_seed;

static int votes(struct play *play, struct bootstrap_comm *parent, int32_t *color, int32_t *key,
		 struct err *err)
{
	const struct world *w = vote_world;

	for (uint32_t r = 0; r < w->n; r++) {
		bool is_real = w->template[r] == r;

		if (is_real && color[r] != color_of(w, vote_seed, r))
			return err_set(err, 22, "the color of rank %u", r);
		if (is_real && key[r] != key_of(w, vote_seed, r) && key[r] != 0)
			return err_set(err, 22, "the key of rank %u", r);
		if (!is_real) {
			color[r] = color_of(w, vote_seed, r);
			key[r] = key_of(w, vote_seed, r);
		}
	}
	return 0;
}

static void gather_votes(struct rank_comm *c, const struct world *w, uint64_t seed)
{
	const struct record_split *s = &c->records->split;
	uint8_t *all = play_alloc(c->p->play, (size_t)w->n * s->bytes), *keys = all;

	vote_world = w;
	vote_seed = seed;
	record_set_int(all + c->rank * s->bytes, s->color, color_of(w, seed, c->rank));
	if (s->n_gathers == 2) {
		rank_gather(c, all, s->bytes);
		keys = play_alloc(c->p->play, (size_t)w->n * s->bytes);
	}
	record_set_int(keys + c->rank * s->bytes, s->key, key_of(w, seed, c->rank));
	rank_gather(c, keys, s->bytes);
	for (uint32_t r = 0; r < w->n; r++) {
		if (record_int(all + r * s->bytes, s->color) != color_of(w, seed, r) ||
		    record_int(keys + r * s->bytes, s->key) != key_of(w, seed, r))
			player_fail(c->p, "the vote of rank %u at rank %u", r, c->rank);
	}
}

/* The members of the child with @color, by a slow sort. */
static uint32_t members_of(const struct world *w, uint64_t seed, int32_t color, uint32_t *ranks)
{
	uint32_t n = 0, at;

	for (uint32_t r = 0; r < w->n; r++) {
		if (color_of(w, seed, r) != color)
			continue;
		for (at = n++; at > 0 && key_of(w, seed, ranks[at - 1]) > key_of(w, seed, r); at--)
			ranks[at] = ranks[at - 1];
		ranks[at] = r;
	}
	return n;
}

static struct rank_comm *child_runs(struct rank_comm *c, const struct world *w, struct job *j,
				    uint64_t magic, const uint32_t *ranks, uint32_t n,
				    struct world *part)
{
	struct rank_comm *child;

	world_part(w, ranks, n, part);
	if (n == 1)
		return NULL; /* its own neighbour: nbox sees nothing of it */
	child = rank_split(c, magic, ranks, n);
	world_check_contacts(c->p, part, child, rank_contacts(child, j->is_shared), j->is_shared);
	world_init(child, part, j->seed + magic);
	world_copied(child, part, 2, 9);
	if (child->records->barrier_tags[0])
		rank_barrier(child, child->records->barrier_tags[0]);
	return child;
}

static uint64_t magic_of(const struct job *j, const struct rank_comm *parent, uint64_t seed,
			 int32_t color)
{
	return j->has_one_magic ? parent->magic + 1 : rng_mix64(seed) + (uint64_t)color;
}

static void splits(struct player *p)
{
	struct job *j = p->arg;
	const struct world *w = &j->world;
	struct world *part = play_alloc(p->play, sizeof(*part)),
		     *part2 = play_alloc(p->play, sizeof(*part2));
	struct rank_comm *c = rank_init(p, j->table, p->rank, w->n, j->id, 1), *child, *grandchild;
	uint32_t ranks[WORLD_RANKS_MAX], n;

	rank_contacts(c, false);
	world_init(c, w, j->seed);
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t seed = j->seed + i;
		int32_t color = color_of(w, seed, c->rank);

		meet(p, j); /* so that the votes' seed is one for all */
		gather_votes(c, w, seed);
		if (color == NO_COLOR)
			continue;
		n = members_of(w, seed, color, ranks);
		child = child_runs(c, w, j, magic_of(j, c, seed, color), ranks, n, part);
		/* Only one child splits on: the votes' world is one for all. */
		if (child && color == 0) {
			gather_votes(child, part, seed + 77);
			color = color_of(part, seed + 77, child->rank);
			n = color == NO_COLOR ? 0 : members_of(part, seed + 77, color, ranks);
			grandchild =
				n ? child_runs(child, part, j, magic_of(j, child, seed + 77, color),
					       ranks, n, part2)
				  : NULL;
			if (grandchild)
				rank_close(grandchild);
		}
		if (child)
			rank_close(child);
	}
	rank_close(c);
}

static const uint32_t sizes[][3] = {{1, 2, 1}, {2, 4, 1}, {1, 3, 2},  {2, 3, 2}, {4, 9, 1},
				    {1, 2, 3}, {1, 4, 4}, {1, 12, 1}, {2, 20, 2}};

static void runs(player_fn *run, const struct nccl_records *table, uint64_t n_seeds)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (uint64_t seed = 0; seed < n_seeds; seed++) {
			struct play *play = play_new(1000 * i + seed);
			struct job j = {.table = table,
					.seed = 100 * seed + i,
					.is_shared = seed % 2,
					.has_one_magic = seed / 2 % 2};
			struct err err = {""};

			play->votes = votes;
			world_make(&j.world, &play->rng, sizes[i][0], sizes[i][1], sizes[i][2],
				   seed & 1);
			if (bootstrap_comm_make(play->b, table, j.world.n, j.world.node,
						j.world.template, 1, j.id, &j.comm, &err) < 0)
				fail_msg("%s", err.text);
			for (uint32_t k = 0; k < j.world.n_real; k++)
				play_add(play, run, &j, j.world.real[k]);
			if (!play_run(play) || play->n_failed) {
				play_explain(play);
				fail_msg("size %zu seed %u", i, (unsigned)seed);
			}
			if (seed % 3 == 0)
				bootstrap_comm_end(j.comm);
			for (unsigned k = 0; k < play->n_children && seed % 4 == 0; k++)
				bootstrap_comm_end(play->children[k]);
			play_free(play);
		}
	}
}

static void test_children_have_the_members_that_the_votes_say(void **state)
{
	runs(splits, table_new(), 24);
}

static void test_children_before_2_23_have_them_too(void **state)
{
	runs(splits, table_old(), 24);
}

static void test_children_in_each_known_version(void **state)
{
	size_t n;
	const struct nccl_records *const *tables = nccl_records_all(&n);

	for (size_t i = 0; i < n; i++)
		runs(splits, tables[i], 2);
}

/* Without the first real rank and all that are made of it, or without the last virtual node. */
static void shrinks(struct player *p)
{
	struct job *j = p->arg;
	const struct world *w = &j->world;
	struct world *part = play_alloc(p->play, sizeof(*part));
	struct rank_comm *c = rank_init(p, j->table, p->rank, w->n, j->id, 1), *child;
	uint32_t out[WORLD_RANKS_MAX], in[WORLD_RANKS_MAX], n_out = 0, n_in = 0;
	bool is_virtual = j->seed % 2;
	struct err err = {""};

	for (uint32_t r = 0; r < w->n; r++) {
		if (is_virtual
			    ? w->node[r] == w->node[w->n - 1] && w->template[w->n - 1] != w->n - 1
			    : w->template[r] == w->real[0])
			out[n_out++] = r;
		else
			in[n_in++] = r;
	}
	rank_contacts(c, false);
	world_init(c, w, j->seed);
	meet(p, j);
	if (n_out && n_in && !j->has_shrunk) {
		j->has_shrunk = true;
		if (bootstrap_comm_shrink(j->comm, out, n_out, &err) < 0)
			player_fail(p, "%s", err.text);
	}
	if (n_out && n_in && (is_virtual || c->rank != w->real[0])) {
		child = child_runs(c, w, j, j->seed, in, n_in, part);
		if (child)
			rank_close(child);
	}
	rank_close(c);
}

static void test_a_shrunk_communicator_lacks_those_left_out(void **state)
{
	runs(shrinks, table_new(), 12);
	runs(shrinks, table_old(), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children_have_the_members_that_the_votes_say),
		cmocka_unit_test(test_children_before_2_23_have_them_too),
		cmocka_unit_test(test_children_in_each_known_version),
		cmocka_unit_test(test_a_shrunk_communicator_lacks_those_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
