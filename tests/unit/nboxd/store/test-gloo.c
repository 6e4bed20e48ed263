/* Gloo's addresses, and its barrier: played step by step by all ranks in random orders, a
 * virtual rank sends exactly what it would if it were there. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "nboxd/store/gloo/gloo.h"
#include "rng.h"
#include "talk.h"

/* --- addresses --------------------------------------------------------------------------- */

static struct store_bytes view(const struct buffer *b, size_t n)
{
	return (struct store_bytes){b->data, n};
}

static void addresses_are_read_as_they_are_written(void **state)
{
	struct sockaddr_storage a = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&a;
	struct gloo_address got;
	struct buffer b;
	int64_t id;

	(void)state;
	in->sin_family = AF_INET;
	in->sin_port = htons(1024);
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(gloo_address_write(&a, 5, 0, &b), 0);
	assert_int_equal(b.n, 8 + 5 + 8 + 136); /* as long as gloo's own */
	assert_int_equal(gloo_address_parse(view(&b, b.n), &got), 0);
	assert_int_equal(got.n_peers, 0);
	assert_memory_equal(&got.sockaddr, &a, sizeof(a));
	/* cut anywhere it is none */
	for (size_t n = 0; n < b.n; n++)
		assert_int_equal(gloo_address_parse(view(&b, n), &got), -EPROTO);
	b.data[0] = 200; /* a host name longer than all */
	assert_int_equal(gloo_address_parse(view(&b, b.n), &got), -EPROTO);
	memset(b.data, 0xff, 8);
	assert_int_equal(gloo_address_parse(view(&b, b.n), &got), -EPROTO);
	buffer_deinit(&b);

	assert_int_equal(gloo_address_write(&a, 3, 8, &b), 0);
	assert_int_equal(gloo_address_parse(view(&b, b.n), &got), 0);
	assert_int_equal(got.n_peers, 8);
	memcpy(&id, b.data + b.n - 8, 8);
	assert_int_equal(id, 3 * 8 + 7);
	assert_int_equal(gloo_address_parse(view(&b, b.n - 3), &got), -EPROTO);
	buffer_deinit(&b);
	a.ss_family = AF_UNIX;
	assert_int_equal(gloo_address_write(&a, 0, 0, &b), 0);
	assert_int_equal(gloo_address_parse(view(&b, b.n), &got), -EPROTO);
	buffer_deinit(&b);
}

static void a_slot_names_its_kind_of_call(void **state)
{
	(void)state;
	assert_int_equal(gloo_kind(UINT64_C(7) << 56 | 99), GLOO_BARRIER);
	assert_int_equal(gloo_kind(UINT64_C(6) << 56), GLOO_BROADCAST);
	assert_int_equal(gloo_kind(12345), GLOO_P2P);
	assert_int_equal(gloo_kind(UINT64_MAX), GLOO_P2P);
	assert_string_equal(gloo_kind_name(GLOO_ALLREDUCE), "all_reduce");
}

/* --- the barrier ---------------------------------------------------------------------------- */

#define RANKS_MAX 48
static uint32_t n_ranks;
static bool real[RANKS_MAX], has_begun[RANKS_MAX];
static unsigned step[RANKS_MAX]; /* of every rank, as the model plays it */
static bool sent[RANKS_MAX][RANKS_MAX];

static bool is_real(void *ctx, uint32_t rank)
{
	(void)ctx;
	return real[rank];
}

static bool has_come(void *ctx, uint32_t from, uint32_t to)
{
	(void)ctx;
	assert_true(real[from]);
	return sent[from][to];
}

/* One step of @rank, if it can. */
static bool advance(uint32_t rank)
{
	uint32_t d = 1u << step[rank], from = (rank + n_ranks - d % n_ranks) % n_ranks;

	if ((real[rank] && !has_begun[rank]) || d >= n_ranks)
		return false;
	if (!sent[rank][(rank + d) % n_ranks]) {
		sent[rank][(rank + d) % n_ranks] = true;
		return true;
	}
	if (!sent[from][rank])
		return false;
	step[rank]++;
	return true;
}

/* Every question that a real rank could ask now has the answer of the model, in which all
 * that can happen has happened. */
static void compare(const struct gloo_barrier *b)
{
	for (uint32_t v = 0; v < n_ranks; v++)
		for (uint32_t d = 1; d < n_ranks && !real[v]; d <<= 1)
			assert_int_equal(gloo_barrier_may_send(b, v, (v + d) % n_ranks),
					 sent[v][(v + d) % n_ranks]);
}

static void a_virtual_rank_sends_when_a_real_one_would(void **state)
{
	struct gloo_barrier b = {.is_real = is_real, .has_come = has_come};
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7, 0);
	for (int run = 0; run < 400; run++) {
		uint32_t n_begun = 0, n_real = 0;

		n_ranks = b.n_ranks = 1 + (uint32_t)(rng_u64(&rng) % RANKS_MAX);
		memset(has_begun, 0, sizeof(has_begun));
		memset(step, 0, sizeof(step));
		memset(sent, 0, sizeof(sent));
		for (uint32_t r = 0; r < n_ranks; r++)
			n_real += real[r] = rng_u64(&rng) % 4 == 0;
		for (;;) {
			bool moved = true;

			while (moved) {
				moved = false;
				for (uint32_t r = 0; r < n_ranks; r++)
					moved = advance(r) || moved;
			}
			compare(&b);
			/* nobody leaves before all real ranks have come */
			for (uint32_t r = 0; r < n_ranks && n_begun < n_real; r++)
				assert_true(n_ranks == 1 || 1u << step[r] < n_ranks);
			if (n_begun == n_real)
				break;
			for (uint32_t r = (uint32_t)(rng_u64(&rng) % n_ranks);;
			     r = (r + 1) % n_ranks)
				if (real[r] && !has_begun[r]) {
					has_begun[r] = true;
					n_begun++;
					break;
				}
		}
		for (uint32_t r = 0; r < n_ranks; r++)
			assert_true(1u << step[r] >= n_ranks);
	}
	/* not a step of this barrier */
	n_ranks = b.n_ranks = 8;
	assert_int_equal(gloo_barrier_may_send(&b, 0, 3), -EINVAL);
	assert_int_equal(gloo_barrier_may_send(&b, 0, 0), -EINVAL);
	assert_int_equal(gloo_barrier_may_send(&b, 8, 0), -EINVAL);
	assert_int_equal(gloo_barrier_may_send(&b, 0, 9), -EINVAL);
	b.n_ranks = 0;
	assert_int_equal(gloo_barrier_may_send(&b, 0, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_read_as_they_are_written),
		cmocka_unit_test(a_slot_names_its_kind_of_call),
		cmocka_unit_test(a_virtual_rank_sends_when_a_real_one_would),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
