/* Message counts and sizes against NCCL's closed forms (facts of 2.28, section 6.3), with NCCL's
 * chunk sizes and slices. No expected number comes from the code under test. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "schedule/schedule.h"
#include "schedule/tree.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define RING_CHUNK (2 * MIB) /* Simple: stepSize 512 KiB * chunkSteps 4 */
#define LL_CHUNK (32 * KIB)  /* LL: data of half a step */
#define TREE_CHUNK (512 * KIB)

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* Sent and received messages of one rank on a lane, and their bytes, by walking
 * through all its steps. */
struct sums {
	uint64_t sent, received, sent_bytes, received_bytes;
};

static struct sums walk(const struct sched *s, uint32_t rank, uint32_t thread)
{
	struct sums sum = {0, 0, 0, 0};
	struct sched_step t;

	for (uint64_t i = 0; i < sched_n_steps(s, rank, thread); i++) {
		sched_step(s, rank, thread, i, &t);
		sum.sent += t.n_send;
		sum.received += t.n_recv;
		sum.sent_bytes += t.n_send * t.bytes;
		sum.received_bytes += t.n_recv * t.bytes;
	}
	return sum;
}

static struct sched ring(enum coll_kind kind, uint32_t n, uint64_t bytes, uint64_t chunk,
			 uint32_t slices)
{
	struct sched s = {.kind = kind,
			  .algo = SCHED_RING,
			  .n_ranks = n,
			  .ranks_per_node = 1,
			  .n_channels = 1,
			  .elem_bytes = 4,
			  .bytes = bytes,
			  .chunk_bytes = chunk,
			  .slices = slices};

	assert_int_equal(sched_init(&s, NULL), 0);
	return s;
}

static const uint64_t sizes[] = {4,           1000,     64 * KIB,      MIB,
				 3 * MIB + 4, 40 * MIB, 100 * MIB + 8, 257 * MIB};
static const uint32_t ns[] = {2, 3, 5, 8, 16, 31};
#define FOR_ALL(n, bytes)                                                                    \
	for (unsigned n##i_ = 0; n##i_ < sizeof(ns) / sizeof(ns[0]); n##i_++)                \
		for (unsigned b##i_ = 0; b##i_ < sizeof(sizes) / sizeof(sizes[0]); b##i_++)  \
			for (uint64_t n = ns[n##i_], bytes = sizes[b##i_], once_ = 1; once_; \
			     once_ = 0)

/* 4(n-1) a loop in Simple (2 slices), 2(n-1) in LL. A loop is n chunks. Every rank
 * sends and receives all but its n-th part twice. */
static void ring_allreduce_matches_the_closed_form(void **state)
{
	(void)state;
	FOR_ALL(n, bytes)
	{
		struct sched s = ring(COLL_ALLREDUCE, (uint32_t)n, bytes, RING_CHUNK, 2);
		struct sums sum = walk(&s, (uint32_t)n / 2, 0);
		uint64_t want = 4 * (n - 1) * ceil_div(bytes, n * RING_CHUNK), all = 0;

		assert_int_equal(sum.sent, want);
		assert_int_equal(sum.received, want);
		assert_int_equal(sched_total_messages(&s), want * n);
		s = ring(COLL_ALLREDUCE, (uint32_t)n, bytes, LL_CHUNK, 1);
		sum = walk(&s, 0, 0);
		assert_int_equal(sum.sent, 2 * (n - 1) * ceil_div(bytes, n * LL_CHUNK));
		assert_int_equal(sum.received, sum.sent);
		/* in sum over all ranks exactly 2(n-1) times the data */
		for (uint32_t r = 0; r < n; r++)
			all += walk(&s, r, 0).sent_bytes;
		assert_int_equal(all, 2 * (n - 1) * bytes);
	}
}

/* n-1 forms; here NCCL's channel bytes are those of the big buffer. */
static void ring_allgather_and_reducescatter_match_the_closed_form(void **state)
{
	(void)state;
	FOR_ALL(n, bytes)
	{
		for (int k = 0; k < 2; k++) {
			enum coll_kind kind = k ? COLL_REDUCESCATTER : COLL_ALLGATHER;
			struct sched s = ring(kind, (uint32_t)n, bytes, RING_CHUNK, 2);
			uint64_t loops = ceil_div(n * bytes, n * RING_CHUNK);
			struct sums sum = walk(&s, 1, 0);

			assert_int_equal(sum.sent, 2 * (n - 1) * loops);
			assert_int_equal(sum.received, 2 * (n - 1) * loops);
			assert_int_equal(sum.sent_bytes, (n - 1) * bytes);
			assert_int_equal(sum.received_bytes, (n - 1) * bytes);
			s = ring(kind, (uint32_t)n, bytes, LL_CHUNK, 1);
			sum = walk(&s, 0, 0);
			assert_int_equal(sum.sent, (n - 1) * ceil_div(bytes, LL_CHUNK));
		}
	}
}

/* One message a chunk of 512 KiB; the root (Reduce: its successor) receives
 * nothing, the last sends nothing. */
static void pipelines_send_each_chunk_over_each_edge(void **state)
{
	(void)state;
	FOR_ALL(n, bytes)
	{
		for (int k = 0; k < 2; k++) {
			struct sched s = ring(k ? COLL_REDUCE : COLL_BROADCAST, (uint32_t)n, bytes,
					      TREE_CHUNK, 1);
			uint64_t loops = ceil_div(bytes, TREE_CHUNK);
			uint32_t first = k ? 1 : 0, last = k ? 0 : (uint32_t)n - 1;

			for (uint32_t r = 0; r < n; r++) {
				struct sums sum = walk(&s, r, 0);

				assert_int_equal(sum.sent, r == last ? 0 : loops);
				assert_int_equal(sum.received, r == first ? 0 : loops);
				assert_int_equal(sum.sent_bytes, r == last ? 0 : bytes);
			}
			assert_int_equal(sched_total_messages(&s), (n - 1) * loops);
		}
	}
}

/* ceil(data of the tree / chunk) messages on each edge, up and down. */
static void tree_allreduce_matches_the_closed_form(void **state)
{
	(void)state;
	FOR_ALL(n, bytes)
	{
		struct sched s = {.kind = COLL_ALLREDUCE,
				  .algo = SCHED_TREE,
				  .n_ranks = (uint32_t)n * 2,
				  .ranks_per_node = 2,
				  .n_channels = 1,
				  .elem_bytes = 4,
				  .bytes = bytes,
				  .chunk_bytes = 2 * TREE_CHUNK};
		uint64_t half = ceil_div(ceil_div(bytes, 2), 16) * 16, sum = 0;

		half = half < bytes ? half : bytes;
		assert_int_equal(sched_init(&s, NULL), 0);
		for (uint32_t tree = 0; tree < 2; tree++) {
			uint64_t part = tree ? bytes - half : half;

			for (uint32_t r = 0; r < s.n_ranks; r++) {
				int64_t up = sched_tree_parent(&s, r, 0, tree);

				if (up < 0)
					continue;
				for (uint16_t d = 0; d < 2; d++) {
					uint32_t a = d ? (uint32_t)up : r, b = d ? r : (uint32_t)up;
					uint16_t lane = (uint16_t)(tree * 2 + d);

					assert_int_equal(sched_conn_messages(&s, a, b, lane),
							 ceil_div(part, TREE_CHUNK));
					sum += ceil_div(part, TREE_CHUNK);
				}
			}
		}
		assert_int_equal(sched_total_messages(&s), sum);
	}
}

static void direct_kinds_have_a_message_a_pair(void **state)
{
	(void)state;
	FOR_ALL(n, bytes)
	{
		for (uint32_t kind = COLL_ALLTOALL; kind <= COLL_SCATTER; kind++) {
			struct sched s = {.kind = kind,
					  .algo = SCHED_DIRECT,
					  .n_ranks = (uint32_t)n,
					  .ranks_per_node = 1,
					  .n_channels = 1,
					  .elem_bytes = 4,
					  .bytes = bytes,
					  .chunk_bytes = 128 * KIB};
			uint64_t pairs = kind == COLL_ALLTOALL ? n * (n - 1) : n - 1;

			assert_int_equal(sched_init(&s, NULL), 0);
			assert_int_equal(sched_total_messages(&s),
					 pairs * ceil_div(bytes, 128 * KIB));
		}
	}
}

/* 512 ranks, 100 MiB, 16 channels: 6.25 MiB a channel, one loop, chunks of 12.5 KiB:
 * 4 * 511 = 2044 messages of 6.25 KiB a channel each way. */
static void a_worked_example_matches(void **state)
{
	struct sched s = {.kind = COLL_ALLREDUCE,
			  .algo = SCHED_RING,
			  .n_ranks = 512,
			  .ranks_per_node = 8,
			  .n_channels = 16,
			  .elem_bytes = 4,
			  .bytes = 100 * MIB,
			  .chunk_bytes = RING_CHUNK,
			  .slices = 2};

	(void)state;
	assert_int_equal(sched_init(&s, NULL), 0);
	for (uint32_t channel = 0; channel < 16; channel++) {
		struct sums sum = walk(&s, 300, channel);

		assert_int_equal(sum.sent, 2044);
		assert_int_equal(sum.received, 2044);
		for (uint64_t i = 0; i < 2044; i++)
			assert_int_equal(sched_message_bytes(&s, 300, 301, (uint16_t)channel, i),
					 6400);
	}
	assert_int_equal(sched_total_messages(&s), UINT64_C(2044) * 16 * 512);
}

/* Empty chunks and empty second slices are sent all the same: of one element, rank 0
 * passes on chunk 0 at position 3 only. */
static void empty_slices_are_messages(void **state)
{
	struct sched s = ring(COLL_ALLREDUCE, 4, 4, RING_CHUNK, 2);

	(void)state;
	assert_int_equal(sched_conn_messages(&s, 0, 1, 0), 12);
	for (uint64_t i = 0; i < 12; i++)
		assert_int_equal(sched_message_bytes(&s, 0, 1, 0, i), i == 3 * 2 ? 4 : 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_allreduce_matches_the_closed_form),
		cmocka_unit_test(ring_allgather_and_reducescatter_match_the_closed_form),
		cmocka_unit_test(pipelines_send_each_chunk_over_each_edge),
		cmocka_unit_test(tree_allreduce_matches_the_closed_form),
		cmocka_unit_test(direct_kinds_have_a_message_a_pair),
		cmocka_unit_test(a_worked_example_matches),
		cmocka_unit_test(empty_slices_are_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
