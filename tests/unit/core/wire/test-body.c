/* Bodies of control frames: a good one of each type passes; the same with one spoiled field does
 * not. */
#include <stdint.h>

#include "cmocka-all.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"
#include "schedule/schedule.h"
#include "wire/wire.h"

_Static_assert(WIRE_KINDS == COLL_KINDS, "kinds of wire and schedule");
_Static_assert(WIRE_KIND_SENDRECV == COLL_SENDRECV, "kinds of wire and schedule");
_Static_assert(WIRE_DTYPES == COLL_DTYPES, "data types of wire and schedule");
_Static_assert(WIRE_ALGOS == SCHED_ALGOS, "algorithms of wire and schedule");

static uint64_t seq; /* of the frames */

/* Checks @body in memory of exactly its size, one byte off any alignment. */
static int check(uint32_t type, uint32_t comm, const void *body, size_t n)
{
	struct err err = {""};
	struct wire_hdr h;
	char *odd = malloc(n + 1);
	int r;

	assert_non_null(odd);
	memcpy(odd + 1, body, n);
	wire_hdr_init(&h, type, n);
	h.comm = comm;
	h.seq = seq;
	r = wire_body_check(&h, odd + 1, &err);
	assert_true(r == 0 || r == -EPROTO);
	assert_int_equal(r == 0, err.text[0] == '\0');
	free(odd);
	return r;
}

#define GOOD(type, m) assert_int_equal(check(type, 7, &(m), sizeof(m)), 0)
#define BAD(type, m) assert_int_equal(check(type, 7, &(m), sizeof(m)), -EPROTO)
#define SPOIL(type, m, field, value)        \
	do {                                \
		__typeof__(m) spoiled_ = m; \
		spoiled_.field = value;     \
		BAD(type, spoiled_);        \
	} while (0)

static void a_hello_is_checked(void **state)
{
	struct wire_hello m = {.role = 1, .host = "here"};

	(void)state;
	GOOD(WIRE_HELLO, m);
	SPOIL(WIRE_HELLO, m, role, 3);
	memset(m.host, 'x', sizeof(m.host));
	BAD(WIRE_HELLO, m);
}

static void a_welcome_is_checked(void **state)
{
	struct wire_welcome m = {.world = 16, .n_nodes = 2, .gpus_per_node = 8, .n_real = 8};

	(void)state;
	GOOD(WIRE_WELCOME, m);
	SPOIL(WIRE_WELCOME, m, world, 0);
	SPOIL(WIRE_WELCOME, m, n_real, 17);
	SPOIL(WIRE_WELCOME, m, exchange, EXCHANGE_PAYLOAD + 1);
	SPOIL(WIRE_WELCOME, m, data, DATA_NONE + 1);
	SPOIL(WIRE_WELCOME, m, same_clock, 2);
	SPOIL(WIRE_WELCOME, m, wants_groups, 2);
	SPOIL(WIRE_WELCOME, m, tunes, 2);
}

static void a_group_is_checked(void **state)
{
	struct {
		struct wire_group m;
		uint32_t ranks[3];
	} g = {.m = {.name = "7", .n_ranks = 3}};

	(void)state;
	GOOD(WIRE_GROUP, g);
	SPOIL(WIRE_GROUP, g, m.n_ranks, 2);
	SPOIL(WIRE_GROUP, g, m.n_ranks, 0);
	SPOIL(WIRE_GROUP, g, m.n_ranks, UINT32_MAX);
	SPOIL(WIRE_GROUP, g, m.name[0], 0);
	BAD(WIRE_GROUP, g.ranks);
	memset(g.m.name, 'x', sizeof(g.m.name));
	BAD(WIRE_GROUP, g);
}

static void a_note_is_checked(void **state)
{
	struct wire_text m = {.code = 95, .text = "host functions"};

	(void)state;
	GOOD(WIRE_NOTE, m);
	SPOIL(WIRE_NOTE, m, code, 0);
	memset(m.text, 'x', sizeof(m.text));
	BAD(WIRE_NOTE, m);
}

static void what_a_job_tells_is_checked(void **state)
{
	char texts[] = "2.28.9\0NCCL_ALGO=Ring";

	(void)state;
	GOOD(WIRE_JOB, texts);
	texts[sizeof(texts) - 1] = 'x';
	BAD(WIRE_JOB, texts);
}

static void a_comm_init_is_checked(void **state)
{
	struct wire_comm_init m = {.n_ranks = 4, .rank = 3};
	struct {
		struct wire_comm_init m;
		uint32_t ranks[4];
	} with_list = {.m = {.n_ranks = 4, .rank = 3}};

	(void)state;
	GOOD(WIRE_COMM_INIT, with_list);
	SPOIL(WIRE_COMM_INIT, with_list, m.n_ranks, 5);
	SPOIL(WIRE_COMM_INIT, with_list, m.n_ranks, 0x40000004); /* 4 * n wraps to 16 */
	GOOD(WIRE_COMM_INIT, m);
	SPOIL(WIRE_COMM_INIT, m, rank, 4);
	SPOIL(WIRE_COMM_INIT, m, n_ranks, 0);
}

static void a_comm_ready_is_checked(void **state)
{
	struct {
		struct wire_comm_ready ready;
		struct wire_member member[2];
	} m = {
		.ready = {.n_ranks = 8,
			  .rank = 5,
			  .n_real = 2,
			  .gpus_per_node = 4,
			  .base = 3,
			  .stride = 2,
			  .ranks_per_node = 4,
			  .channels = 2,
			  .chunk_bytes = 1 << 20},
		.member = {{1, 5}, {5, 13}},
	};
	struct {
		struct wire_comm_ready ready;
		struct wire_member member[2];
		uint32_t world_ranks[8];
	} with_list = {.ready = m.ready,
		       .member = {{1, 30}, {5, 7}},
		       .world_ranks = {1, 30, 2, 40, 3, 7, 9, 8}};
	struct wire_comm_ready none = {.cookie = 9};

	(void)state;
	GOOD(WIRE_COMM_READY, m);
	GOOD(WIRE_COMM_READY, with_list);
	SPOIL(WIRE_COMM_READY, with_list, world_ranks[5], 8); /* the member says 7 */
	SPOIL(WIRE_COMM_READY, with_list, ready.n_ranks, 9);
	GOOD(WIRE_COMM_READY, none);
	SPOIL(WIRE_COMM_READY, m, ready.rank, 8);
	SPOIL(WIRE_COMM_READY, m, ready.rank, 4); /* not among the real ones */
	SPOIL(WIRE_COMM_READY, m, ready.n_ranks, 0);
	SPOIL(WIRE_COMM_READY, m, ready.n_ranks, 1);
	SPOIL(WIRE_COMM_READY, m, ready.n_real, 1);
	SPOIL(WIRE_COMM_READY, m, ready.n_real, 3);
	SPOIL(WIRE_COMM_READY, m, ready.n_ranks, WIRE_WORLD_MAX + 1);
	SPOIL(WIRE_COMM_READY, m, ready.n_real, UINT32_MAX);
	SPOIL(WIRE_COMM_READY, m, ready.gpus_per_node, 0);
	SPOIL(WIRE_COMM_READY, m, ready.base, 4); /* not the members' world ranks */
	SPOIL(WIRE_COMM_READY, m, ready.stride, UINT32_MAX);
	SPOIL(WIRE_COMM_READY, m, member[1].world_rank, 14);
	SPOIL(WIRE_COMM_READY, m, ready.is_guess, 2);
	SPOIL(WIRE_COMM_READY, m, ready.ranks_per_node, 0);
	SPOIL(WIRE_COMM_READY, m, ready.ranks_per_node, 3);
	SPOIL(WIRE_COMM_READY, m, ready.channels, 0);
	SPOIL(WIRE_COMM_READY, m, ready.channels, WIRE_CHANNELS_MAX + 1);
	SPOIL(WIRE_COMM_READY, m, ready.chunk_bytes, WIRE_BODY_MAX + 1);
	SPOIL(WIRE_COMM_READY, m, ready.algo[COLL_SENDRECV], SCHED_ALGOS);
	SPOIL(WIRE_COMM_READY, m, ready.data[COLL_SENDRECV], DATA_NONE + 1);
	SPOIL(WIRE_COMM_READY, m, member[0].rank, 5); /* twice */
	SPOIL(WIRE_COMM_READY, m, member[0].rank, 6); /* not sorted */
	SPOIL(WIRE_COMM_READY, m, member[1].rank, 8);
	assert_int_equal(check(WIRE_COMM_READY, 7, &m, sizeof(m.ready) - 1), -EPROTO);
}

static void splits_and_shrinks_are_checked(void **state)
{
	struct wire_comm_split split = {.parent = 7, .rank = 2, .color = -1};
	struct {
		struct wire_comm_split split;
		uint32_t ranks[3];
	} with_list = {0};
	struct {
		struct wire_comm_shrink shrink;
		uint32_t excluded[3];
	} m = {.shrink = {.parent = 7, .n_excluded = 3}};

	(void)state;
	GOOD(WIRE_COMM_SPLIT, split);
	assert_int_equal(check(WIRE_COMM_SPLIT, 7, &split, sizeof(split) - 4), -EPROTO);
	with_list.split = split;
	GOOD(WIRE_COMM_SPLIT, with_list);
	assert_int_equal(check(WIRE_COMM_SPLIT, 7, &with_list, sizeof(with_list) - 1), -EPROTO);
	SPOIL(WIRE_COMM_SPLIT, split, parent, 8);
	SPOIL(WIRE_COMM_SPLIT, split, color, -2);
	GOOD(WIRE_COMM_SHRINK, m);
	SPOIL(WIRE_COMM_SHRINK, m, shrink.n_excluded, 2);
	SPOIL(WIRE_COMM_SHRINK, m, shrink.n_excluded, 0x40000003); /* 4 * n wraps to 12 */
	assert_int_equal(check(WIRE_COMM_SHRINK, 7, &m, 4), -EPROTO);
}

static void an_arrive_is_checked(void **state)
{
	struct {
		struct wire_arrive arrive;
		struct wire_p2p p2p[2];
	} m = {
		.arrive = {.kind = COLL_SENDRECV, .n_p2p = 2, .count = WIRE_COUNT_MAX},
		.p2p = {{1, 1, 100}, {2, 0, 0}},
	};
	struct wire_arrive ring = {.kind = COLL_ALLREDUCE, .dtype = COLL_FLOAT8E5M2};

	(void)state;
	seq = WIRE_SEQ_P2P;
	GOOD(WIRE_ARRIVE, m);
	assert_int_equal(check(WIRE_ARRIVE, 7, &ring, sizeof(ring)), -EPROTO);
	SPOIL(WIRE_ARRIVE, m, arrive.kind, COLL_ALLTOALL);
	SPOIL(WIRE_ARRIVE, m, arrive.n_p2p, 1);
	SPOIL(WIRE_ARRIVE, m, arrive.n_p2p, 0x10000002); /* 16 * n wraps to 32 */
	SPOIL(WIRE_ARRIVE, m, arrive.count, WIRE_COUNT_MAX + 1);
	SPOIL(WIRE_ARRIVE, m, p2p[1].is_send, 2);
	SPOIL(WIRE_ARRIVE, m, p2p[1].bytes, WIRE_COUNT_MAX + 1);
	SPOIL(WIRE_ARRIVE, m, arrive.took.n_channels, 1); /* NCCL takes nothing for these */
	assert_int_equal(check(WIRE_ARRIVE, 7, &m, 10), -EPROTO);
	seq = 0;
	assert_int_equal(check(WIRE_ARRIVE, 7, &m, sizeof(m)), -EPROTO);
	GOOD(WIRE_ARRIVE, ring);
	SPOIL(WIRE_ARRIVE, ring, kind, COLL_KINDS);
	SPOIL(WIRE_ARRIVE, ring, dtype, COLL_DTYPES);
	SPOIL(WIRE_ARRIVE, ring, n_p2p, 1);
	ring.took = (struct wire_took){PLUGIN_TREE, PLUGIN_LL, 24, 0};
	GOOD(WIRE_ARRIVE, ring);
	SPOIL(WIRE_ARRIVE, ring, took.algorithm, WIRE_NCCL_DIRECT);
}

static void what_nccl_took_is_checked(void **state)
{
	struct wire_took m = {PLUGIN_RING, PLUGIN_SIMPLE, WIRE_CHANNELS_MAX, 0};

	(void)state;
	seq = 0;
	GOOD(WIRE_TOOK, m);
	SPOIL(WIRE_TOOK, m, algorithm, WIRE_NCCL_DIRECT);
	SPOIL(WIRE_TOOK, m, protocol, PLUGIN_N_PROTOCOLS);
	SPOIL(WIRE_TOOK, m, n_channels, WIRE_CHANNELS_MAX + 1);
	seq = WIRE_SEQ_P2P;
	SPOIL(WIRE_TOOK, m, n_channels, 1);
	m.n_channels = 0; /* of a group that has collectives, too */
	GOOD(WIRE_TOOK, m);
	seq = 0;
}

static void what_a_tuner_asks_is_checked(void **state)
{
	struct wire_tune m = {.n_ranks = 16,
			      .n_nodes = 16,
			      .kind = COLL_REDUCE,
			      .bytes = 1 << 20,
			      .took = {PLUGIN_TREE, PLUGIN_LL128, 4, 0}};

	(void)state;
	GOOD(WIRE_TUNE, m);
	SPOIL(WIRE_TUNE, m, n_ranks, 1);
	SPOIL(WIRE_TUNE, m, n_ranks, WIRE_WORLD_MAX + 1);
	SPOIL(WIRE_TUNE, m, n_nodes, 0);
	SPOIL(WIRE_TUNE, m, n_nodes, 17);
	SPOIL(WIRE_TUNE, m, kind, COLL_ALLTOALL);
	SPOIL(WIRE_TUNE, m, bytes, UINT64_MAX);
	SPOIL(WIRE_TUNE, m, n_of_comm, WIRE_CHANNELS_MAX + 1);
	SPOIL(WIRE_TUNE, m, took.algorithm, WIRE_NCCL_DIRECT);
	SPOIL(WIRE_TUNE, m, took.n_channels, WIRE_CHANNELS_MAX + 1);
}

static void a_point_is_checked(void **state)
{
	struct {
		struct wire_point point;
		struct wire_dep deps[2];
	} m = {
		.point = {.name = 7, .kind = WIRE_POINT_HOST, .n_deps = 2},
		.deps = {{.name = 5, .is_same_stream = 1}, {.name = WIRE_NAME_CAPTURED | 6}},
	};
	struct {
		struct wire_arrive arrive;
		struct wire_dep dep;
	} op = {.arrive = {.kind = COLL_ALLREDUCE, .n_deps = 1}, .dep = {.name = 7}};

	(void)state;
	GOOD(WIRE_POINT, m);
	SPOIL(WIRE_POINT, m, point.name, 0);
	SPOIL(WIRE_POINT, m, point.kind, WIRE_POINT_KINDS);
	SPOIL(WIRE_POINT, m, point.n_deps, 1);
	SPOIL(WIRE_POINT, m, point.n_deps, 0x10000002); /* 16 * n wraps to 32 */
	SPOIL(WIRE_POINT, m, deps[1].name, 0);
	SPOIL(WIRE_POINT, m, deps[0].is_same_stream, 2);
	GOOD(WIRE_ARRIVE, op);
	SPOIL(WIRE_ARRIVE, op, arrive.n_deps, 2);
	SPOIL(WIRE_ARRIVE, op, dep.name, 0);
}

static void texts_are_checked(void **state)
{
	struct wire_text m = {.code = EPIPE, .text = "why"};

	(void)state;
	GOOD(WIRE_ABORT, m);
	GOOD(WIRE_ERROR, m);
	SPOIL(WIRE_ERROR, m, code, 0);
	SPOIL(WIRE_ERROR, m, code, -EPIPE);
	SPOIL(WIRE_ABORT, m, code, INT32_MIN);
	memset(m.text, 'x', sizeof(m.text));
	BAD(WIRE_ABORT, m);
	BAD(WIRE_ERROR, m);
}

static void a_status_is_checked(void **state)
{
	(void)state;
	assert_int_equal(check(WIRE_STATUS, 0, "", 0), 0);
	assert_int_equal(check(WIRE_STATUS, 0, "{}", 2), 0);
	assert_int_equal(check(WIRE_STATUS, 0, "{}", 3), 0);
	assert_int_equal(check(WIRE_STATUS, 0, "{\0}", 3), -EPROTO);
}

static void all_other_types_are_checked(void **state)
{
	struct wire_release release = {.start_ns = 5, .end_ns = 5};
	struct wire_conn conn = {.src = 1, .dst = 0, .n_ranks = 2};
	struct wire_done done = {0};
	struct wire_ping ping = {0};
	uint8_t id[WIRE_ID_BYTES] = {0};

	(void)state;
	GOOD(WIRE_RELEASE, release);
	SPOIL(WIRE_RELEASE, release, end_ns, 4);
	GOOD(WIRE_CONN, conn);
	SPOIL(WIRE_CONN, conn, src, 2);
	SPOIL(WIRE_CONN, conn, dst, 2);
	SPOIL(WIRE_CONN, conn, lane, 65536);
	GOOD(WIRE_DONE, done);
	GOOD(WIRE_PING, ping);
	GOOD(WIRE_LOCAL_ID, id);
	assert_int_equal(check(WIRE_BYE, 0, "", 0), 0);
	assert_int_equal(check(WIRE_COMM_FREE, 7, "", 0), 0);
	assert_int_equal(check(WIRE_MEET, 7, "", 0), 0);
	assert_int_equal(check(WIRE_MEET, 7, "a", 1), -EPROTO);
	assert_int_equal(check(WIRE_MESSAGE, 7, "abc", 3), 0);
	assert_int_equal(check(WIRE_BOOT, 7, "abc", 3), 0);
}

/* No type of exact size takes one byte more or less, and no type that has a
 * body takes a null one. */
static void sizes_are_exact(void **state)
{
	static const uint8_t zeroes[4096];
	struct wire_hdr h;
	uint32_t t, n, n_ok;

	(void)state;
	for (t = 1; t < WIRE_TYPE_END; t++) {
		if (t == WIRE_MESSAGE || t == WIRE_BOOT || t == WIRE_STATUS ||
		    t == WIRE_COMM_SPLIT || t == WIRE_JOB || t == WIRE_CLASSES)
			continue;
		for (n = 0, n_ok = 0; n < 1024; n++) {
			wire_hdr_init(&h, t, n);
			n_ok += wire_body_check(&h, zeroes, NULL) == 0;
		}
		assert_true(n_ok <= 1);
	}
	wire_hdr_init(&h, WIRE_HELLO, sizeof(struct wire_hello));
	assert_int_equal(wire_body_check(&h, NULL, NULL), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_is_checked),
		cmocka_unit_test(a_welcome_is_checked),
		cmocka_unit_test(a_group_is_checked),
		cmocka_unit_test(a_note_is_checked),
		cmocka_unit_test(what_a_job_tells_is_checked),
		cmocka_unit_test(a_comm_init_is_checked),
		cmocka_unit_test(a_comm_ready_is_checked),
		cmocka_unit_test(splits_and_shrinks_are_checked),
		cmocka_unit_test(an_arrive_is_checked),
		cmocka_unit_test(what_nccl_took_is_checked),
		cmocka_unit_test(what_a_tuner_asks_is_checked),
		cmocka_unit_test(a_point_is_checked),
		cmocka_unit_test(texts_are_checked),
		cmocka_unit_test(a_status_is_checked),
		cmocka_unit_test(all_other_types_are_checked),
		cmocka_unit_test(sizes_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
