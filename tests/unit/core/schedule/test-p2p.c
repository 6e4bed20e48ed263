/* Groups of point-to-point calls, executed between all ranks of small worlds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "world.h"

#define MAX_CALLS 400
#define ELEM 4

struct group {
	struct sched_p2p calls[WORLD_MAX][MAX_CALLS];
	uint64_t n_in[WORLD_MAX], n_out[WORLD_MAX]; /* bytes of buffers in use */
	struct sched s[WORLD_MAX];
	const struct sched *pointer[WORLD_MAX];
};

static void add(struct group *g, uint32_t rank, uint32_t peer, bool is_send, uint64_t bytes)
{
	uint64_t *end = is_send ? &g->n_in[rank] : &g->n_out[rank];

	assert_true(g->s[rank].n_p2p < MAX_CALLS);
	g->calls[rank][g->s[rank].n_p2p++] =
		(struct sched_p2p){.peer = peer, .is_send = is_send, .bytes = bytes, .off = *end};
	*end += bytes + ELEM;
}

static void start(struct group *g, uint32_t n, uint64_t chunk)
{
	memset(g, 0, sizeof(*g));
	for (uint32_t r = 0; r < n; r++) {
		g->s[r] = (struct sched){.kind = COLL_SENDRECV,
					 .algo = SCHED_DIRECT,
					 .n_ranks = n,
					 .ranks_per_node = 1,
					 .n_channels = 3,
					 .slices = 2,
					 .elem_bytes = ELEM,
					 .chunk_bytes = chunk,
					 .p2p = g->calls[r],
					 .p2p_rank = r};
		g->pointer[r] = &g->s[r];
	}
}

static void finish(struct group *g, uint32_t n, struct rng *r)
{
	struct err err = {""};

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(sched_init(&g->s[i], &err), 0);
	world_run(g->pointer, n, WORLD_OUT_OF_PLACE, r);
}

/* Any calls between any ranks, to oneself too, several between the same two, with
 * and without bytes; receives in another order than sends to other peers. */
static void random_groups_deliver_all_bytes(void **state)
{
	static struct group g;
	struct rng r;

	(void)state;
	rng_seed(&r, 5, 0);
	for (int round = 0; round < 500; round++) {
		uint32_t n = 1 + (uint32_t)below(&r, 17);
		uint64_t n_pairs = below(&r, 120);
		struct {
			uint32_t src, dst;
			uint64_t bytes;
		} late[120];
		uint32_t n_late = 0;

		start(&g, n, ELEM * (1 + below(&r, 9)));
		for (uint64_t i = 0; i < n_pairs; i++) {
			uint32_t src = (uint32_t)below(&r, n), dst = (uint32_t)below(&r, n);
			uint64_t bytes = below(&r, 4) ? below(&r, 40) * ELEM : 0;

			add(&g, src, dst, true, bytes);
			late[n_late].src = src;
			late[n_late].dst = dst;
			late[n_late++].bytes = bytes;
			while (n_late > 0 && below(&r, 2)) {
				n_late--; /* keeps the order: the oldest first */
				add(&g, late[0].dst, late[0].src, false, late[0].bytes);
				memmove(late, late + 1, n_late * sizeof(late[0]));
			}
		}
		for (uint32_t i = 0; i < n_late; i++)
			add(&g, late[i].dst, late[i].src, false, late[i].bytes);
		finish(&g, n, &r);
	}
}

/* PyTorch's all_to_all: a loop of sends and receives with all peers. */
static void calls_can_make_an_all_to_all(void **state)
{
	static struct group g;
	struct rng r;

	(void)state;
	rng_seed(&r, 6, 0);
	for (uint32_t n = 1; n <= 17; n++) {
		start(&g, n, 0);
		for (uint32_t rank = 0; rank < n; rank++)
			for (uint32_t peer = 0; peer < n; peer++) {
				add(&g, rank, peer, true, (rank * n + peer) % 5 * ELEM);
				add(&g, rank, peer, false, (peer * n + rank) % 5 * ELEM);
			}
		finish(&g, n, &r);
	}
}

static void each_call_is_found_by_its_lane(void **state)
{
	struct sched_p2p calls[] = {
		{.peer = 1, .is_send = true, .bytes = 10},
		{.peer = 1, .is_send = true},
		{.peer = 1, .is_send = true, .bytes = 20},
		{.peer = 0, .bytes = 30, .off = 7},
		{.peer = 2, .bytes = 40},
		{.peer = 2, .bytes = 0},
		{.peer = 2, .bytes = 50},
		{.peer = 2, .is_send = true, .bytes = 3},
		{.peer = 0, .is_send = true, .bytes = 30, .off = 5},
	};
	struct sched s = {.kind = COLL_SENDRECV,
			  .algo = SCHED_DIRECT,
			  .n_ranks = 3,
			  .ranks_per_node = 1,
			  .n_channels = 1,
			  .elem_bytes = 1,
			  .chunk_bytes = 16,
			  .p2p = calls,
			  .n_p2p = 9};
	struct sched_step t;

	(void)state;
	assert_int_equal(sched_init(&s, NULL), 0);
	assert_int_equal(sched_conn_messages(&s, 0, 1, 0), 1);
	assert_int_equal(sched_conn_messages(&s, 0, 1, 1), 2);
	assert_int_equal(sched_conn_messages(&s, 0, 1, 2), 0);
	assert_int_equal(sched_conn_messages(&s, 1, 0, 0), 0);
	assert_int_equal(sched_conn_messages(&s, 1, 2, 0), 0);
	assert_int_equal(sched_conn_messages(&s, 2, 0, 1), 4);
	assert_int_equal(sched_conn_messages(&s, 0, 0, 0), 0);
	assert_int_equal(sched_message_bytes(&s, 0, 1, 1, 1), 4);
	assert_int_equal(sched_message_bytes(&s, 0, 1, 1, 2), 0);
	assert_int_equal(sched_send_thread(&s, 0, 1, 1), 2);
	assert_int_equal(sched_recv_thread(&s, 2, 0, 1), 6);
	assert_int_equal(sched_recv_thread(&s, 2, 0, 2), UINT32_MAX);
	assert_int_equal(sched_n_steps(&s, 0, 1), 0);
	assert_int_equal(sched_n_steps(&s, 0, 3), 0);
	assert_int_equal(sched_n_steps(&s, 0, 8), 2);
	sched_step(&s, 0, 8, 1, &t);
	assert_int_equal(t.flags, STEP_INPUT | STEP_OUTPUT);
	assert_int_equal(t.in_off, 21);
	assert_int_equal(t.out_off, 23);
	assert_int_equal(t.bytes, 14);
	assert_int_equal(t.n_send + t.n_recv, 0);
	assert_int_equal(sched_total_messages(&s), 1 + 2 + 3 + 4 + 1);
}

static void expect_refusal(const struct sched_p2p *calls, uint32_t n, uint32_t rank,
			   const char *word)
{
	struct sched_p2p copy[8];
	struct sched s = {.kind = COLL_SENDRECV,
			  .algo = SCHED_DIRECT,
			  .n_ranks = 3,
			  .ranks_per_node = 1,
			  .n_channels = 1,
			  .elem_bytes = 1,
			  .p2p = copy,
			  .n_p2p = n,
			  .p2p_rank = rank};
	struct err err = {""};

	memcpy(copy, calls, n * sizeof(*calls));
	assert_int_equal(sched_init(&s, &err), -EINVAL);
	assert_non_null(strstr(err.text, word));
}

static void bad_calls_are_refused(void **state)
{
	const struct sched_p2p far = {.peer = 3, .is_send = true, .bytes = 1};
	const struct sched_p2p huge = {.peer = 1, .bytes = SCHED_MAX_BYTES + 1};
	const struct sched_p2p own = {.peer = 1, .is_send = true, .bytes = 1};
	const struct sched_p2p uneven[] = {{.peer = 1, .is_send = true, .bytes = 1},
					   {.peer = 1, .bytes = 2}};

	(void)state;
	expect_refusal(&far, 1, 0, "send to 3");
	expect_refusal(&huge, 1, 0, "receive from 1");
	expect_refusal(&own, 1, 1, "itself");
	expect_refusal(uneven, 2, 1, "itself");
	expect_refusal(&own, 1, 3, "rank 3");
}

static void more_lanes_than_fit_are_refused(void **state)
{
	uint32_t n = 65537;
	struct sched_p2p *calls = calloc(n, sizeof(*calls));
	struct sched s = {.kind = COLL_SENDRECV,
			  .algo = SCHED_DIRECT,
			  .n_ranks = 3,
			  .ranks_per_node = 1,
			  .n_channels = 1,
			  .elem_bytes = 1,
			  .p2p = calls,
			  .n_p2p = n};

	(void)state;
	for (uint32_t i = 0; i < n; i++)
		calls[i] = (struct sched_p2p){.peer = 1, .bytes = 1};
	assert_int_equal(sched_init(&s, NULL), -EINVAL);
	s.n_p2p = n - 1;
	assert_int_equal(sched_init(&s, NULL), 0);
	assert_int_equal(sched_recv_thread(&s, 1, 0, 65535), 65535);
	free(calls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_groups_deliver_all_bytes),
		cmocka_unit_test(calls_can_make_an_all_to_all),
		cmocka_unit_test(each_call_is_found_by_its_lane),
		cmocka_unit_test(bad_calls_are_refused),
		cmocka_unit_test(more_lanes_than_fit_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
