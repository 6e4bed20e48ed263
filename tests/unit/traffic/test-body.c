/* Memory of bodies: aligned, apart from each other, used again. */
#include "cmocka-all.h"

#include <stdlib.h>
#include <string.h>

#include "../../rng.h"
#include "traffic/body.h"

#define HELD 300

static void bodies_never_share_memory_and_are_used_again(void **state)
{
	struct traffic_bodies *all = traffic_bodies_new(UINT64_C(1) << 30);
	struct traffic_body *held[HELD] = {NULL};
	unsigned char fill[HELD];
	uint64_t mapped = 0;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1, 0);
	for (uint32_t i = 0; i < 40000; i++) {
		uint32_t k = (uint32_t)(rng_u64(&rng) % HELD);
		uint64_t bytes = 1 + rng_u64(&rng) % (UINT64_C(1) << (rng_u64(&rng) % 17));

		if (held[k]) {
			for (uint64_t b = 0; b < held[k]->bytes; b += 61)
				assert_int_equal(held[k]->at[b], fill[k]);
			assert_int_equal(held[k]->at[held[k]->bytes - 1], fill[k]);
			traffic_body_unref(traffic_body_ref(held[k]));
			traffic_body_unref(held[k]);
		}
		held[k] = traffic_body_new(all, bytes);
		assert_non_null(held[k]);
		assert_int_equal(held[k]->bytes, bytes);
		assert_int_equal((uintptr_t)held[k]->at % 64, 0);
		memset(held[k]->at, fill[k] = (unsigned char)i, bytes);
		if (i == 20000)
			mapped = traffic_bodies_mapped(all);
	}
	assert_true(traffic_bodies_mapped(all) <= mapped + (UINT64_C(1) << 24));
	assert_null(traffic_bodies_free(all));
}

static void sizes_waste_no_more_than_a_quarter(void **state)
{
	struct traffic_bodies *all = traffic_bodies_new(UINT64_C(1) << 30);

	(void)state;
	assert_null(traffic_body_new(all, 0));
	assert_null(traffic_body_new(all, UINT64_MAX));
	for (uint64_t bytes = 257; bytes < UINT64_C(1) << 24; bytes += bytes / 7) {
		uint64_t before = traffic_bodies_lent(all), grown;

		assert_non_null(traffic_body_new(all, bytes));
		grown = traffic_bodies_lent(all) - before;
		assert_true(grown >= bytes && grown <= bytes + bytes / 4 + 64);
	}
	traffic_bodies_free(all);
	assert_null(traffic_bodies_free(NULL));
	traffic_body_unref(NULL);
}

/* Somebody who fills it with one size after the other leaves room for the next. */
static void memory_of_one_size_serves_all(void **state)
{
	struct traffic_bodies *all = traffic_bodies_new(UINT64_C(1) << 30);
	struct traffic_body *first = NULL, *body;
	uint64_t n, most = 0;

	(void)state;
	for (uint64_t bytes = 300; bytes < UINT64_C(1) << 22; bytes *= 2) {
		for (n = 0; n < (UINT64_C(32) << 20) / bytes; n++) {
			body = traffic_body_new(all, bytes);
			assert_non_null(body);
			memcpy(body->at, &first, sizeof(first)); /* a list of them */
			first = body;
		}
		if (!most)
			most = traffic_bodies_mapped(all);
		for (; first; first = body) {
			memcpy(&body, first->at, sizeof(body));
			traffic_body_unref(first);
		}
		assert_int_equal(traffic_bodies_lent(all), 0);
		assert_true(traffic_bodies_mapped(all) <= 2 * most);
	}
	traffic_bodies_free(all);
}

static uint64_t take_all(struct traffic_bodies *all, uint64_t bytes, struct traffic_body **ret)
{
	struct traffic_body *body, *first = NULL;
	uint64_t n = 0;

	for (; (body = traffic_body_new(all, bytes)); n++) {
		memcpy(body->at, &first, sizeof(first)); /* a list of them */
		body->at[bytes - 1] = 1;
		first = body;
	}
	*ret = first;
	return n;
}

/* Neither long ones after short ones, nor the other way round. */
static void no_sequence_of_sizes_takes_more_than_it_may(void **state)
{
	static const uint64_t sizes[] = {1000,     5 << 20, 300,           32 << 20, (3 << 20) / 2,
					 65 << 19, 4096,    (5 << 20) + 1, 64 << 20, 9};
	const uint64_t most = 64 << 20;
	struct traffic_bodies *all = traffic_bodies_new(most);
	struct traffic_body *first, *body;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t n = take_all(all, sizes[i], &first);

		if (sizes[i] != 65 << 19 && sizes[i] > 256)
			assert_true(n * sizes[i] >= most / 5 * 3);
		assert_true(n > 0);
		assert_true(traffic_bodies_mapped(all) <= most);
		for (; first; first = body) {
			memcpy(&body, first->at, sizeof(body));
			traffic_body_unref(first);
		}
		assert_int_equal(traffic_bodies_lent(all), 0);
	}
	assert_null(traffic_body_new(all, most + 1));
	traffic_bodies_free(all);
}

/* A long one finds its place between short ones that stay. */
static void a_long_body_lies_between_others(void **state)
{
	struct traffic_bodies *all = traffic_bodies_new(64 << 20);
	struct traffic_body *held[16], *body;

	(void)state;
	for (int i = 0; i < 16; i++) {
		held[i] = traffic_body_new(all, 4 << 20);
		assert_non_null(held[i]);
		memset(held[i]->at, i, held[i]->bytes);
	}
	for (int i = 5; i < 9; i++)
		traffic_body_unref(held[i]);
	assert_null(traffic_body_new(all, 20 << 20));
	body = traffic_body_new(all, 16 << 20);
	assert_non_null(body);
	memset(body->at, 0xee, body->bytes);
	assert_null(traffic_body_new(all, 1));
	for (int i = 0; i < 16; i++) {
		if (i >= 5 && i < 9)
			continue;
		for (uint64_t b = 0; b < held[i]->bytes; b += 4093)
			assert_int_equal(held[i]->at[b], i);
		traffic_body_unref(held[i]);
	}
	traffic_body_unref(body);
	assert_int_equal(traffic_bodies_lent(all), 0);
	traffic_bodies_free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_never_share_memory_and_are_used_again),
		cmocka_unit_test(memory_of_one_size_serves_all),
		cmocka_unit_test(no_sequence_of_sizes_takes_more_than_it_may),
		cmocka_unit_test(a_long_body_lies_between_others),
		cmocka_unit_test(sizes_waste_no_more_than_a_quarter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
