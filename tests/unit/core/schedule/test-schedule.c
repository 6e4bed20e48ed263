/* All collectives over all algorithms, executed: the right result on every rank, in any order.
 * world.c asserts the rest on the way. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "forms.h"
#include "world.h"

static struct sched request(unsigned form, uint32_t n)
{
	return (struct sched){.kind = forms[form].kind,
			      .algo = forms[form].algo,
			      .n_ranks = n,
			      .ranks_per_node = 1,
			      .n_channels = 1,
			      .elem_bytes = 4};
}

/* NCCL gives no in-place form of AllToAll. */
static enum world_place any_place(const struct sched *s, struct rng *r)
{
	return s->kind != COLL_ALLTOALL && below(r, 2) ? WORLD_IN_PLACE : WORLD_OUT_OF_PLACE;
}

static void init_and_run(struct sched *s, enum world_place place, struct rng *r)
{
	struct err err = {""};

	assert_int_equal(sched_init(s, &err), 0);
	world_run_same(s, place, r);
}

/* Every n, few elements: fewer than ranks, as many, one more, none. */
static void small_counts_give_the_right_result(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 1, 0);
	for (unsigned f = 0; f < N_FORMS; f++)
		for (uint32_t n = 1; n <= 17; n++)
			for (uint64_t count = 0; count <= 2 * n + 1; count++) {
				struct sched s = request(f, n);

				s.bytes = count * s.elem_bytes;
				s.chunk_bytes = 1 + below(&r, 64);
				s.slices = (uint32_t)below(&r, 4);
				s.root = (uint32_t)below(&r, n);
				init_and_run(&s, any_place(&s, &r), &r);
			}
}

static void buffers_may_be_in_or_out_of_place(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 2, 0);
	for (unsigned f = 0; f < N_FORMS; f++)
		for (uint32_t n = 1; n <= 17; n++)
			for (uint32_t root = 0; root < n; root++)
				for (int place = 0; place < 2; place++) {
					struct sched s = request(f, n);

					if (s.kind == COLL_ALLTOALL && place)
						continue;
					s.bytes = 37 * s.elem_bytes;
					s.chunk_bytes = 8;
					s.root = root;
					init_and_run(&s,
						     place ? WORLD_IN_PLACE : WORLD_OUT_OF_PLACE,
						     &r);
				}
}

static const uint32_t elems[] = {1, 2, 3, 4, 8, 12, 16, 24, 4096, 16384};

/* Everything at random; large elements make several channels cheap. */
static void random_requests_give_the_right_result(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 3, 0);
	for (int round = 0; round < 3000; round++) {
		uint32_t n = 1 + (uint32_t)below(&r, 17);
		struct sched s = request((unsigned)below(&r, N_FORMS), n);

		s.ranks_per_node = 1 + (uint32_t)below(&r, n);
		s.n_channels = 1 + (uint32_t)below(&r, 5);
		s.n_rails = (uint32_t)below(&r, 6);
		s.elem_bytes = elems[below(&r, sizeof(elems) / sizeof(elems[0]))];
		s.bytes = below(&r, below(&r, 8) ? 60 : 400) * s.elem_bytes;
		s.chunk_bytes = 1 + below(&r, 12 * s.elem_bytes + 40);
		if (below(&r, 8) == 0)
			s.chunk_bytes = 0;
		s.slices = (uint32_t)below(&r, 5);
		s.root = (uint32_t)below(&r, n);
		init_and_run(&s, any_place(&s, &r), &r);
	}
}

/* Channel c enters a node at its rail's rank, and leaves it at the one before. */
static void channels_enter_a_node_by_their_rail(void **state)
{
	(void)state;
	for (uint32_t rails = 0; rails <= 8; rails = rails ? 2 * rails : 1) {
		struct sched s = request(0, 24);

		s.ranks_per_node = 8;
		s.n_channels = 16;
		s.n_rails = rails;
		s.bytes = 1 << 20;
		for (s.algo = SCHED_RING; s.algo <= SCHED_TREE; s.algo++) {
			assert_int_equal(sched_init(&s, NULL), 0);
			for (uint16_t c = 0; c < s.n_channels; c++) {
				uint32_t head = rails ? c % rails * (8 / rails) : 0;
				uint32_t last = (head + 7) % 8;
				bool is_ring = s.algo == SCHED_RING;
				uint32_t src = is_ring ? last : 16 + head;
				uint32_t dst = is_ring ? 8 + head : head;
				uint16_t lane = is_ring ? c : (uint16_t)(c * 4);

				assert_true(sched_conn_messages(&s, src, dst, lane) > 0);
				for (uint32_t i = 0; i < 8; i++)
					if (i != last && is_ring)
						assert_true(sched_conn_messages(&s, 8 + i,
										8 + (i + 1) % 8,
										lane) > 0);
			}
		}
	}
}

static void channels_share_the_bytes(void **state)
{
	(void)state;
	for (unsigned f = 0; f < N_FORMS; f++) {
		struct sched s = request(f, 4);
		uint32_t used[8] = {0}, n_in, n_out;
		struct sched_conn *c;

		s.n_channels = 8;
		s.bytes = 1 << 20;
		assert_int_equal(sched_init(&s, NULL), 0);
		for (uint32_t rank = 0; rank < 4; rank++) {
			assert_int_equal(sched_conns(&s, rank, &c, &n_in, &n_out), 0);
			for (uint32_t i = 0; i < n_in + n_out; i++)
				used[c[i].lane / (s.algo == SCHED_TREE ? 4 : 1)]++;
			free(c);
		}
		for (int i = 0; i < 8; i++)
			assert_true(used[i] > 0 && used[i] == used[0]);
		/* a small call uses one */
		s.bytes = 1024;
		assert_int_equal(sched_init(&s, NULL), 0);
		for (uint32_t rank = 0; rank < 4; rank++) {
			assert_int_equal(sched_conns(&s, rank, &c, &n_in, &n_out), 0);
			assert_true(n_in + n_out > 0);
			for (uint32_t i = 0; i < n_in + n_out; i++)
				assert_true(c[i].lane < (s.algo == SCHED_TREE ? 4 : 1));
			free(c);
		}
	}
}

static void expect_refusal(struct sched s, const char *word)
{
	struct err err = {""};

	assert_int_equal(sched_init(&s, &err), -EINVAL);
	assert_non_null(strstr(err.text, word));
	assert_int_equal(sched_init(&s, NULL), -EINVAL);
}

static void bad_requests_are_refused(void **state)
{
	struct sched good = request(0, 8), s;

	(void)state;
	good.bytes = 64;
	assert_int_equal(sched_init(&good, NULL), 0);
	s = good, s.slices = 1024, s.bytes = SCHED_MAX_BYTES, s.elem_bytes = 1 << 20;
	assert_int_equal(sched_init(&s, NULL), 0);
	s = good, s.kind = COLL_KINDS, expect_refusal(s, "unknown");
	s = good, s.algo = SCHED_ALGOS, expect_refusal(s, "unknown");
	s = good, s.algo = SCHED_CHAIN, expect_refusal(s, "does not do AllReduce");
	s = good, s.kind = COLL_ALLTOALL, expect_refusal(s, "direct does");
	s = good, s.n_ranks = 0, expect_refusal(s, "ranks");
	s = good, s.n_ranks = SCHED_MAX_RANKS + 1, expect_refusal(s, "ranks");
	s = good, s.ranks_per_node = s.n_ranks + 1, expect_refusal(s, "ranks cannot be on");
	s = good, s.ranks_per_node = 0, expect_refusal(s, "nodes of 0");
	s = good, s.n_channels = 0, expect_refusal(s, "channels");
	s = good, s.n_channels = SCHED_MAX_CHANNELS + 1, expect_refusal(s, "channels");
	s = good, s.elem_bytes = 0, expect_refusal(s, "elements");
	s = good, s.bytes = 66, expect_refusal(s, "elements");
	s = good, s.bytes = SCHED_MAX_BYTES + 4, expect_refusal(s, "more than");
	s = good, s.slices = 5000, expect_refusal(s, "slices");
	s = request(4, 8), s.root = 8, expect_refusal(s, "root 8");
}

static void names_go_there_and_back(void **state)
{
	(void)state;
	for (uint32_t a = 0; a < SCHED_ALGOS; a++)
		assert_int_equal(sched_algo_parse(sched_algo_name(a)), a);
	assert_int_equal(sched_algo_parse("Ring"), SCHED_RING);
	assert_int_equal(sched_algo_parse("rin"), -1);
	assert_string_equal(sched_algo_name(99), "?");
	for (uint32_t k = 0; k < COLL_KINDS; k++) {
		struct sched s = {.kind = k,
				  .algo = sched_default_algo(k),
				  .n_ranks = 4,
				  .ranks_per_node = 2,
				  .n_channels = 2,
				  .elem_bytes = 1,
				  .bytes = 100};

		assert_int_equal(sched_init(&s, NULL), 0);
	}
}

/* A made schedule can be changed and made again. */
static void a_copy_can_be_made_again(void **state)
{
	struct sched s = request(0, 6), fresh = s;
	struct rng r;

	(void)state;
	rng_seed(&r, 4, 0);
	s.bytes = 8;
	assert_int_equal(sched_init(&s, NULL), 0);
	s.bytes = fresh.bytes = 1 << 12;
	s.slices = fresh.slices = 3;
	assert_int_equal(sched_init(&s, NULL), 0);
	assert_int_equal(sched_init(&fresh, NULL), 0);
	assert_memory_equal(&s, &fresh, sizeof(s));
	world_run_same(&s, WORLD_IN_PLACE, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_counts_give_the_right_result),
		cmocka_unit_test(buffers_may_be_in_or_out_of_place),
		cmocka_unit_test(random_requests_give_the_right_result),
		cmocka_unit_test(channels_enter_a_node_by_their_rail),
		cmocka_unit_test(channels_share_the_bytes),
		cmocka_unit_test(bad_requests_are_refused),
		cmocka_unit_test(names_go_there_and_back),
		cmocka_unit_test(a_copy_can_be_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
