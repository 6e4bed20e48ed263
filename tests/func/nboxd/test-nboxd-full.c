/* Full mode: NCCL itself runs at the virtual size. Workers that go through MEET to the id that
 * nboxd makes, ranks that speak NCCL's bootstrap to it, and communicators that cannot be. */
#include <pthread.h>
#include <stdatomic.h>

#include "../bootstrap/client.h"
#include "../bootstrap/wire.h"
#include "full-world.h"

#define NODE 2u
#define PATIENCE_NS (120 * NS_PER_S)

/* --- NCCL's bootstrap --------------------------------------------------------------- */

struct runner {
	pthread_t thread;
	struct said_world *w;
	const uint8_t *id;
	uint32_t rank;
	int (*more)(struct client *c); /* NULL: nothing behind the init */
	int r;
	char why[256];
};

static _Atomic bool is_given_up;

static void *run_rank(void *ctx)
{
	struct runner *r = ctx;
	struct client c;
	uint8_t at[NCCL_ADDRESS_BYTES] = {0};

	memcpy(at, r->id + r->w->records->id_address.at, sizeof(at)); /* the root's host: ours */
	wire_abort_by(&is_given_up);
	client_new(&c, r->w, r->rank, at, clock_now_ns() + PATIENCE_NS);
	r->r = client_init(&c, r->id, 1);
	if (r->r == 0 && r->more)
		r->r = r->more(&c);
	if (r->r < 0)
		snprintf(r->why, sizeof(r->why), "%.250s", wire_error());
	client_free(&c);
	return NULL;
}

static uint32_t nodes[N_RANKS], templates[N_RANKS];

static void fill_world(struct said_world *w)
{
	char sentence[256];

	for (uint32_t r = 0; r < N_RANKS; r++) {
		nodes[r] = r / NODE;
		templates[r] = r % NODE;
	}
	*w = (struct said_world){.n_ranks = N_RANKS,
				 .node = nodes,
				 .template = templates,
				 .seed = 11,
				 .records = nccl_records_find(NCCL_CODE(2, 28, 9), false, sentence,
							      sizeof(sentence))};
	assert_non_null(w->records);
	assert_int_equal(said_world_init(w), 0);
}

static void begin_ranks(struct runner *r, struct said_world *w, uint32_t n,
			int (*more)(struct client *c))
{
	is_given_up = false;
	for (uint32_t i = 0; i < n; i++) {
		r[i] = (struct runner){.w = w, .id = f[i].local_id, .rank = i, .more = more};
		assert_int_equal(pthread_create(&r[i].thread, NULL, run_rank, &r[i]), 0);
	}
}

static void end_ranks(struct runner *r, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		pthread_join(r[i].thread, NULL);
}

/* As NCCL's ring sets up: rank 1 sends to virtual rank 2, rank 0 receives from virtual rank 7. */
static int set_up(struct client *c)
{
	uint8_t to[N_RANKS] = {0}, from[N_RANKS] = {0};
	struct client_edges e = {.n_send = to, .n_recv = from};

	to[2] = c->rank == 1;
	from[N_RANKS - 1] = c->rank == 0;
	return client_transports(c, &e);
}

static void nccls_init_goes_through(void **state)
{
	struct said_world w;
	struct runner r[N_REAL];

	(void)state;
	fill_world(&w);
	start_comm("shm", "messages", "");
	begin_ranks(r, &w, N_REAL, set_up);
	end_ranks(r, N_REAL);
	for (uint32_t i = 0; i < N_REAL; i++)
		if (r[i].r < 0)
			fail_msg("rank %u: %s", i, r[i].why);
	assert_true(is_said((void *)(uintptr_t) "\"transports\": 2"));
	settle(0);
	settle(1);
	assert_int_equal(f[0].n[WIRE_ABORT] + f[1].n[WIRE_ABORT], 0);
	stop();
	said_world_deinit(&w);
}

static int vote(struct client *c)
{
	int32_t color[N_RANKS] = {0}, key[N_RANKS] = {0};

	return client_vote(c, color, key);
}

static void nccls_own_split_is_refused(void **state)
{
	struct said_world w;
	struct runner r[N_REAL];

	(void)state;
	fill_world(&w);
	start_comm("shm", "messages", "");
	begin_ranks(r, &w, N_REAL, vote);
	aborted(N_REAL, "nobody here knows how virtual ranks split");
	is_given_up = true;
	end_ranks(r, N_REAL);
	assert_true(r[0].r < 0 && r[1].r < 0);
	stop();
	said_world_deinit(&w);
}

static void a_rank_that_does_not_check_in_is_named_then_given_up(void **state)
{
	struct said_world w;
	struct runner r[N_REAL];

	(void)state;
	fill_world(&w);
	start_comm("shm", "messages", "--timeout 8s");
	begin_ranks(r, &w, 1, NULL);
	assert_true(
		fakes_pump(f, N_REAL, is_said, (void *)(uintptr_t) "the root waits for ranks 1"));
	daemon_will_say(&d, "NCCL's bootstrap of communicator 1 has waited");
	aborted(N_REAL, "that is the timeout");
	is_given_up = true;
	end_ranks(r, 1);
	stop();
	said_world_deinit(&w);
}

static void a_rank_that_dies_in_its_init_ends_the_communicator(void **state)
{
	struct said_world w;
	struct runner r[N_REAL];

	(void)state;
	fill_world(&w);
	start_comm("shm", "messages", "");
	begin_ranks(r, &w, 1, NULL);
	assert_true(
		fakes_pump(f, N_REAL, is_said, (void *)(uintptr_t) "the root waits for ranks 1"));
	fake_close(&f[1]);
	aborted(1, "vanished");
	end_ranks(r, 1); /* its connections are hung up */
	assert_true(r[0].r < 0);
	stop();
	said_world_deinit(&w);
}

/* --- communicators that cannot be ----------------------------------------------------- */

static void an_nccl_that_nobody_has_told_has_no_records(void **state)
{
	(void)state;
	start("shm", "messages", "");
	check_in();
	promise();
	aborted(N_REAL, "no worker has told which version its NCCL is");
	settle(0);
	assert_int_equal(f[0].n[WIRE_MEET], 0);
	stop();
}

static void an_unknown_nccl_is_refused(void **state)
{
	(void)state;
	start("shm", "messages", "");
	tell_job(&f[0], "2.18.1");
	tell_job(&f[1], "2.18.1");
	check_in();
	promise();
	aborted(N_REAL, "--nccl gate runs with any");
	stop();
}

/* A communicator of world ranks 0, 1 and 2: node 1 has one of its two ranks. */
static void a_node_that_has_not_all_its_ranks_is_refused(void **state)
{
	struct {
		struct wire_comm_init m;
		uint32_t ranks[3];
	} init = {.m = {.n_ranks = 3}, .ranks = {0, 1, 2}};

	(void)state;
	start("shm", "messages", "");
	for (uint32_t i = 0; i < N_REAL; i++) {
		tell_job(&f[i], NCCL);
		memset(init.m.id, 9, sizeof(init.m.id));
		init.m.rank = init.m.world_rank = i;
		fake_send(&f[i], WIRE_COMM_INIT, 0, i, 0, &init,
			  sizeof(init.m) + sizeof(init.ranks));
	}
	assert_true(fakes_got(f, N_REAL, WIRE_COMM_READY, 1));
	promise();
	aborted(N_REAL, "NCCL needs each virtual node to have the ranks of its real one");
	assert_non_null(strstr(f[0].abort.text, "--nccl gate"));
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nccls_init_goes_through),
		cmocka_unit_test(nccls_own_split_is_refused),
		cmocka_unit_test(a_rank_that_does_not_check_in_is_named_then_given_up),
		cmocka_unit_test(a_rank_that_dies_in_its_init_ends_the_communicator),
		cmocka_unit_test(an_nccl_that_nobody_has_told_has_no_records),
		cmocka_unit_test(an_unknown_nccl_is_refused),
		cmocka_unit_test(a_node_that_has_not_all_its_ranks_is_refused),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
