/* Messages from rank to rank: set-ups of transports with virtual ranks, barriers, and what real
 * ranks say to each other. */
#include "cmocka-all.h"

#include <stdio.h>
#include <string.h>

#include "world.h"

struct job {
	const struct nccl_records *table;
	struct world world;
	uint8_t id[NCCL_ID_BYTES];
	struct bootstrap_comm *comm;
	uint64_t seed;
	void (*run)(struct rank_comm *c, struct job *j);
	uint64_t n_entries;
};

static void rank_runs(struct player *p)
{
	struct job *j = p->arg;
	struct rank_comm *c = rank_init(p, j->table, p->rank, j->world.n, j->id, 1);

	rank_contacts(c, false);
	world_init(c, &j->world, j->seed);
	j->run(c, j);
	rank_close(c);
}

static bool is_real(const struct world *w, uint32_t rank)
{
	return w->template[rank] == rank;
}

/* How many channels @from sends to @to with in a graph: both know. */
static uint32_t channels(const struct job *j, uint32_t graph, uint32_t from, uint32_t to)
{
	uint64_t h = rng_mix64(j->seed + graph * 1000003 + from * 1009 + to);

	return h % 4 == 0 ? 1 + (uint32_t)(h >> 8) % 5 : 0;
}

static void entry_of_receiver(const struct rank_comm *c, uint32_t from, uint32_t index,
			      uint8_t *entry)
{
	memset(entry, 0, c->records->connect_bytes);
	memcpy(entry, "NBOX-net", 8);
	entry[20] = (uint8_t)(1 + c->rank);
	entry[21] = (uint8_t)from;
	entry[22] = (uint8_t)index;
	if (c->records->use_gdr.bytes)
		record_set_int(entry, c->records->use_gdr, (int32_t)index & 1);
}

static void entry_of_sender(const struct rank_comm *c, uint32_t index, uint8_t *entry)
{
	memset(entry, 0, c->records->connect_bytes);
	record_set_int(entry, (struct record_field){0, 4}, (int32_t)c->rank);
	if (c->records->use_gdr.bytes)
		record_set_int(entry, c->records->use_gdr, (int32_t)(index + 1) & 1);
}

static void check_entry_for_send(struct rank_comm *c, const struct job *j, uint32_t to,
				 uint32_t index, const uint8_t *entry)
{
	uint8_t want[256] = {0};
	struct bootstrap_handle h = {.magic = c->magic, .from = c->rank, .to = to, .index = index};
	struct rank_comm as = *c;

	memcpy(h.head, BOOTSTRAP_HANDLE_HEAD, 8);
	memcpy(want, &h, sizeof(h));
	if (c->records->use_gdr.bytes)
		record_set_int(want, c->records->use_gdr, (int32_t)(index + 1) & 1);
	if (is_real(&j->world, to)) {
		as.rank = to;
		entry_of_receiver(&as, c->rank, index, want);
	}
	if (memcmp(entry, want, c->records->connect_bytes) != 0)
		player_fail(c->p, "rank %u's entry %u for a send from %u", to, index, c->rank);
}

static void check_entry_for_recv(struct rank_comm *c, const struct job *j, uint32_t from,
				 uint32_t index, const uint8_t *entry)
{
	uint8_t want[256] = {0};
	int32_t gdr = is_real(&j->world, from) ? (int32_t)(index + 1) & 1 : (int32_t)index & 1;

	record_set_int(want, (struct record_field){0, 4}, (int32_t)from);
	if (c->records->use_gdr.bytes)
		record_set_int(want, c->records->use_gdr, gdr);
	if (memcmp(entry, want, c->records->connect_bytes) != 0)
		player_fail(c->p, "rank %u's entry %u for a receive at %u", from, index, c->rank);
}

/* One step: what it receives with from i behind, what it sends with to i ahead. */
static void setup_step(struct rank_comm *c, struct job *j, uint32_t graph, uint32_t i)
{
	uint32_t behind = (c->rank + c->n - i) % c->n, ahead = (c->rank + i) % c->n,
		 size = c->records->connect_bytes;
	uint32_t recvs = channels(j, graph, behind, c->rank),
		 sends = channels(j, graph, c->rank, ahead);
	uint8_t recv[5 * 256], send[10 * 256];
	int32_t tag = (int32_t)((i << 8) + graph);

	for (uint32_t k = 0; k < recvs; k++)
		entry_of_receiver(c, behind, k, recv + k * size);
	for (uint32_t k = 0; k < sends; k++)
		entry_of_sender(c, k, send + k * size);
	if (!is_real(&j->world, behind))
		j->n_entries += recvs;
	if (!is_real(&j->world, ahead))
		j->n_entries += sends;
	if (behind == ahead && recvs + sends) {
		uint8_t both[10 * 256];

		memcpy(both, recv, recvs * size);
		memcpy(both + recvs * size, send, sends * size);
		rank_send(c, ahead, tag, both, (int32_t)((recvs + sends) * size));
		rank_recv(c, ahead, tag, both, (int32_t)((recvs + sends) * size));
		memcpy(send, both, sends * size);
		memcpy(recv, both + sends * size, recvs * size);
	} else {
		if (recvs)
			rank_send(c, behind, tag, recv, (int32_t)(recvs * size));
		if (sends)
			rank_send(c, ahead, tag, send, (int32_t)(sends * size));
		if (sends)
			rank_recv(c, ahead, tag, send, (int32_t)(sends * size));
		if (recvs)
			rank_recv(c, behind, tag, recv, (int32_t)(recvs * size));
	}
	for (uint32_t k = 0; k < sends; k++)
		check_entry_for_send(c, j, ahead, k, send + k * size);
	for (uint32_t k = 0; k < recvs; k++)
		check_entry_for_recv(c, j, behind, k, recv + k * size);
}

static void sync_step(struct rank_comm *c, struct job *j, uint32_t graph, uint32_t i)
{
	uint32_t behind = (c->rank + c->n - i) % c->n, ahead = (c->rank + i) % c->n, flag = 0;
	uint32_t recvs = channels(j, graph, behind, c->rank),
		 sends = channels(j, graph, c->rank, ahead);
	int32_t tag = (int32_t)((i << 8) + 128 + graph), n = c->records->has_two_heads ? 4 : 0;

	if (sends || (behind == ahead && recvs))
		rank_send(c, ahead, tag, &flag, n);
	if (recvs && behind != ahead)
		rank_send(c, behind, tag, &flag, n);
	if (sends || (behind == ahead && recvs))
		rank_recv(c, ahead, tag, &flag, n);
	if (recvs && behind != ahead)
		rank_recv(c, behind, tag, &flag, n);
}

static void run_setup(struct rank_comm *c, struct job *j)
{
	for (uint32_t graph = 0; graph < 6; graph++) {
		for (uint32_t i = 1; i < c->n; i++)
			setup_step(c, j, graph, i);
		for (uint32_t i = 1; i < c->n; i++)
			sync_step(c, j, graph, i);
	}
}

static void run_barriers(struct rank_comm *c, struct job *j)
{
	for (int i = 0; i < 5; i++) {
		rank_barrier(c, 0xbeef);
		if (i % 2)
			world_copied(c, &j->world, 2, (uint8_t)i);
	}
}

#define LONG_BYTES 200000

/* Real ranks of the world, among themselves. */
static void run_local(struct rank_comm *c, struct job *j)
{
	const struct world *w = &j->world;
	uint32_t bytes = 3000;
	uint8_t *all = play_alloc(c->p->play, (size_t)w->n_real * bytes);
	uint8_t *one = play_alloc(c->p->play, LONG_BYTES);

	for (uint32_t k = 0; k < w->n_real; k++)
		memset(all + k * bytes, w->real[k] == c->rank ? (int)(0x40 + k) : 0, bytes);
	if (w->n_real > 1)
		rank_local_gather(c, w->real, w->n_real, all, bytes);
	for (uint32_t i = 0; i < w->n_real * bytes; i++) {
		if (all[i] != 0x40 + i / bytes)
			player_fail(c->p, "byte %u of an all-gather of a node", i);
	}
	/* a long message from the first to all others, as a broadcast has it */
	memset(one, 0x33, LONG_BYTES);
	for (uint32_t k = 1; k < w->n_real; k++) {
		if (c->rank == w->real[0])
			rank_send(c, w->real[k], (int32_t)w->real[k], one, LONG_BYTES);
	}
	if (c->rank != w->real[0]) {
		/* late, so that the sender is held back before */
		for (int i = 0; i < 500; i++) {
			c->p->play->has_moved = true;
			player_wait(c->p);
		}
		memset(one, 0, LONG_BYTES);
		rank_recv(c, w->real[0], (int32_t)c->rank, one, LONG_BYTES);
		for (size_t i = 0; i < LONG_BYTES; i++) {
			if (one[i] != 0x33)
				player_fail(c->p, "byte %zu of a broadcast", i);
		}
	}
}

static void run_all(struct rank_comm *c, struct job *j)
{
	run_barriers(c, j);
	run_setup(c, j);
	run_barriers(c, j);
}

static const uint32_t sizes[][3] = {{1, 2, 1}, {2, 4, 1}, {1, 3, 2}, {1, 2, 2}, {2, 3, 2},
				    {4, 9, 1}, {1, 2, 3}, {1, 4, 4}, {1, 12, 1}};

static void runs(void (*run)(struct rank_comm *, struct job *), const struct nccl_records *table,
		 uint64_t n_seeds)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (uint64_t seed = 0; seed < n_seeds; seed++) {
			struct play *play = play_new(1000 * i + seed);
			struct job j = {.table = table, .run = run, .seed = seed};
			struct err err = {""};

			if (run == run_local && play->chunk_max < 200)
				play->chunk_max = 200;
			if (run == run_local)
				play->pipe_max += 500;
			world_make(&j.world, &play->rng, sizes[i][0], sizes[i][1], sizes[i][2],
				   seed & 1);
			if (bootstrap_comm_make(play->b, table, j.world.n, j.world.node,
						j.world.template, 1, j.id, &j.comm, &err) < 0)
				fail_msg("%s", err.text);
			for (uint32_t k = 0; k < j.world.n_real; k++)
				play_add(play, rank_runs, &j, j.world.real[k]);
			if (!play_run(play) || play->n_failed) {
				play_explain(play);
				fail();
			}
			assert_int_equal(bootstrap_comm_transports(j.comm), j.n_entries);
			play_free(play);
		}
	}
}

static void test_virtual_ranks_set_up_transports(void **state)
{
	runs(run_setup, table_new(), 6);
	runs(run_setup, table_old(), 6);
}

static void test_transports_are_set_up_in_each_known_version(void **state)
{
	size_t n;
	const struct nccl_records *const *tables = nccl_records_all(&n);

	for (size_t i = 0; i < n; i++)
		runs(run_setup, tables[i], 1);
}

static void test_barriers_pass_when_all_have_come(void **state)
{
	runs(run_barriers, table_new(), 6);
	runs(run_barriers, table_old(), 6);
}

static void test_real_ranks_hear_each_other(void **state)
{
	runs(run_local, table_new(), 3);
	runs(run_local, table_old(), 3);
}

static void test_barriers_and_transports_come_in_turn(void **state)
{
	runs(run_all, table_new(), 2);
}

/* The first of two real ranks sends more than anybody holds; the other never looks. */
static void floods(struct player *p)
{
	struct job *j = p->arg;
	struct rank_comm *c = rank_init(p, j->table, p->rank, j->world.n, j->id, 1);
	int32_t head[2] = {(int32_t)c->rank, 9}, size = 10 << 20, frame = sizeof(head), type = 1;
	uint8_t *bytes = play_alloc(p->play, 10 << 20);
	struct wire *w;

	rank_contacts(c, false);
	world_init(c, &j->world, j->seed);
	if (c->rank != j->world.real[0])
		return;
	w = player_connect(p, c->addresses + (size_t)j->world.real[1] * NCCL_ADDRESS_BYTES);
	player_send(p, w, &c->magic, sizeof(c->magic));
	player_send(p, w, &type, sizeof(type));
	player_send(p, w, &frame, sizeof(frame));
	player_send(p, w, head, sizeof(head));
	player_send(p, w, &size, sizeof(size));
	while (j->n_entries < 10 << 20) {
		j->n_entries += (uint64_t)player_try_send(p, w, bytes, (size_t)size);
		player_wait(p);
	}
}

static void test_what_a_rank_does_not_read_is_held_back(void **state)
{
	for (uint64_t seed = 0; seed < 5; seed++) {
		struct play *play = play_new(seed);
		struct job j = {.table = table_new()};
		struct err err = {""};

		play->chunk_max = 5000;
		world_make(&j.world, &play->rng, 2, 3, 1, false);
		assert_int_equal(bootstrap_comm_make(play->b, j.table, j.world.n, j.world.node,
						     j.world.template, 1, j.id, &j.comm, &err),
				 0);
		play_add(play, floods, &j, j.world.real[0]);
		play_add(play, floods, &j, j.world.real[1]);
		assert_false(play_run(play));
		assert_int_equal(play->n_failed, 0);
		assert_in_range(j.n_entries, 60000, 160000);
		play_free(play);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_virtual_ranks_set_up_transports),
		cmocka_unit_test(test_transports_are_set_up_in_each_known_version),
		cmocka_unit_test(test_barriers_pass_when_all_have_come),
		cmocka_unit_test(test_real_ranks_hear_each_other),
		cmocka_unit_test(test_barriers_and_transports_come_in_turn),
		cmocka_unit_test(test_what_a_rank_does_not_read_is_held_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
