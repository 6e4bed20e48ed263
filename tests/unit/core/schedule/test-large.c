/* Large worlds: a step of any rank agrees with the steps of its peers, which the test finds by
 * their own rules only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "forms.h"
#include "rng.h"
#include "schedule/schedule.h"

enum side { RECEIVES, SENDS };

/* The step of a thread that has message @index; numbers never fall along a thread. */
static void find_step(const struct sched *s, uint32_t rank, uint32_t thread, enum side side,
		      uint64_t index, struct sched_step *ret)
{
	uint64_t low = 0, high = sched_n_steps(s, rank, thread);

	while (low < high) {
		uint64_t mid = low + (high - low) / 2, at = mid;

		do { /* the next step that has a message of this side */
			sched_step(s, rank, thread, at++, ret);
		} while (at < high && (side == SENDS ? ret->n_send : ret->n_recv) == 0);
		if ((side == SENDS ? ret->n_send : ret->n_recv) == 0) {
			high = mid;
			continue;
		}
		if ((side == SENDS ? ret->send_index : ret->recv_index) == index)
			return;
		if ((side == SENDS ? ret->send_index : ret->recv_index) < index)
			low = at;
		else
			high = mid;
	}
	fail_msg("rank %u thread %u has no message %llu", rank, thread, (unsigned long long)index);
}

static void expect_among(const uint32_t *list, uint32_t n, uint32_t rank)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
		found += list[i] == rank;
	assert_int_equal(found, 1);
}

static void check_peers(const struct sched *s, uint32_t rank, uint32_t thread, uint64_t at)
{
	struct sched_step t, other;

	sched_step(s, rank, thread, at, &t);
	assert_true(t.bytes <= sched_max_step_bytes(s));
	for (uint32_t i = 0; i < t.n_send; i++) {
		uint32_t peer = t.send[i], k = sched_recv_thread(s, rank, peer, t.send_lane);

		assert_true(k < sched_n_threads(s, peer));
		find_step(s, peer, k, RECEIVES, t.send_index, &other);
		expect_among(other.recv, other.n_recv, rank);
		assert_int_equal(other.recv_lane, t.send_lane);
		assert_int_equal(other.bytes, t.bytes);
		assert_int_equal(sched_message_bytes(s, rank, peer, t.send_lane, t.send_index),
				 t.bytes);
		if (s->kind == COLL_ALLREDUCE)
			assert_int_equal(other.in_off, t.in_off);
	}
	for (uint32_t i = 0; i < t.n_recv; i++) {
		uint32_t peer = t.recv[i], k = sched_send_thread(s, peer, rank, t.recv_lane);

		assert_true(k < sched_n_threads(s, peer));
		find_step(s, peer, k, SENDS, t.recv_index, &other);
		expect_among(other.send, other.n_send, rank);
		assert_int_equal(other.send_lane, t.recv_lane);
		assert_int_equal(other.bytes, t.bytes);
		assert_int_equal(sched_message_bytes(s, peer, rank, t.recv_lane, t.recv_index),
				 t.bytes);
	}
}

static void both_ends_agree_on_each_message(void **state)
{
	static const uint32_t sizes[] = {2, 1000, 1024, 4096, 65535, 65536};
	struct rng r;

	(void)state;
	rng_seed(&r, 11, 0);
	for (unsigned f = 0; f < N_FORMS; f++)
		for (int round = 0; round < 60; round++) {
			uint32_t n = sizes[below(&r, 6)];
			struct sched s = {.kind = forms[f].kind,
					  .algo = forms[f].algo,
					  .n_ranks = n,
					  .ranks_per_node = n % 8 == 0 && below(&r, 2) ? 8 : 1,
					  .n_channels = 1 + (uint32_t)below(&r, 32),
					  .n_rails = (uint32_t)below(&r, 10),
					  .elem_bytes = 1u << below(&r, 4),
					  .slices = (uint32_t)below(&r, 4),
					  .root = (uint32_t)below(&r, n)};

			s.bytes = below(&r, UINT64_C(1) << below(&r, 41)) * s.elem_bytes;
			s.chunk_bytes = UINT64_C(1) << below(&r, 24);
			assert_int_equal(sched_init(&s, NULL), 0);
			for (int i = 0; i < 40; i++) {
				uint32_t rank = (uint32_t)below(&r, n);
				uint32_t thread = (uint32_t)below(&r, sched_n_threads(&s, rank));
				uint64_t n_steps = sched_n_steps(&s, rank, thread);

				if (n_steps > 0)
					check_peers(&s, rank, thread, below(&r, n_steps));
			}
		}
}

/* The largest call that is allowed, in the largest world: nothing overflows. */
static void nothing_overflows_in_the_largest_world(void **state)
{
	(void)state;
	for (unsigned f = 0; f < N_FORMS; f++) {
		struct sched s = {.kind = forms[f].kind,
				  .algo = forms[f].algo,
				  .n_ranks = 65536,
				  .ranks_per_node = 1,
				  .n_channels = 2,
				  .elem_bytes = 8,
				  .bytes = SCHED_MAX_BYTES,
				  .chunk_bytes = UINT64_MAX,
				  .slices = 2};
		uint64_t n = 65536, data = SCHED_MAX_BYTES;
		struct sched_step t;

		assert_int_equal(sched_init(&s, NULL), 0);
		sched_step(&s, 65535, 0, 0, &t);
		assert_true(t.in_off <= data * n && t.out_off <= data * n);
		assert_true(t.bytes > 0 && t.bytes <= sched_max_step_bytes(&s));
		assert_true(sched_total_messages(&s) <= n * n * 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_agree_on_each_message),
		cmocka_unit_test(nothing_overflows_in_the_largest_world),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
