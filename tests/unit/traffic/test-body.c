/* Memory of bodies: aligned, apart from each other, used again. */
#include "cmocka-all.h"

#include <stdlib.h>
#include <string.h>

#include "../../rng.h"
#include "traffic/body.h"

#define HELD 300

static void bodies_never_share_memory_and_are_used_again(void **state)
{
	struct traffic_bodies *all = traffic_bodies_new();
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
	struct traffic_bodies *all = traffic_bodies_new();

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
	struct traffic_bodies *all = traffic_bodies_new();
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_never_share_memory_and_are_used_again),
		cmocka_unit_test(memory_of_one_size_serves_all),
		cmocka_unit_test(sizes_waste_no_more_than_a_quarter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
