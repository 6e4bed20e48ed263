/* The bitmap against an array of bools, at the sizes where words end. */
#include "cmocka-all.h"
#include "rng.h"

#include <errno.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/cleanup.h"

static const uint64_t sizes[] = {0, 1, 2, 63, 64, 65, 127, 128, 129, 191, 192, 193, 1000};

#define MODEL_MAX 1000

static uint64_t slow_next(const bool *model, uint64_t n, uint64_t from)
{
	for (uint64_t i = from; i < n; i++)
		if (model[i])
			return i;
	return BITMAP_NONE;
}

static void check_equal(const struct bitmap *b, const bool *model, uint64_t n)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(bitmap_test(b, i), model[i]);
		count += model[i];
	}
	assert_int_equal(bitmap_count(b), count);
	for (uint64_t from = 0; from <= n + 65; from++)
		assert_true(bitmap_next_set(b, from) == slow_next(model, n, from));
	/* the rule of the header: nothing beyond the end */
	if (n % 64)
		assert_true((b->words[n / 64] >> (n % 64)) == 0);
}

static void random_op(struct bitmap *b, bool *model, uint64_t n, struct rng *rng)
{
	uint64_t bit = rng_u64(rng) % n, len;

	switch (rng_u64(rng) % 3) {
	case 0:
		bitmap_set(b, bit);
		model[bit] = true;
		break;
	case 1:
		assert_int_equal(bitmap_test_and_set(b, bit), !model[bit]);
		model[bit] = true;
		break;
	default:
		len = rng_u64(rng) % (n - bit + 1) % 8;
		bitmap_set_range(b, bit, len);
		memset(model + bit, true, len);
	}
}

static void random_ops_agree_with_an_array(void **state)
{
	(void)state;
	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		CLEANUP(bitmap_deinit) struct bitmap b = {0};
		bool model[MODEL_MAX] = {0};
		struct rng rng;
		uint64_t n = sizes[s];

		rng_seed(&rng, 1, n);
		assert_int_equal(bitmap_init(&b, n), 0);
		check_equal(&b, model, n);
		for (int i = 0; n && i < 100; i++) {
			random_op(&b, model, n, &rng);
			check_equal(&b, model, n);
		}
	}
}

/* Every range of every small size. */
static void every_range_of_every_small_size(void **state)
{
	(void)state;
	for (uint64_t n = 0; n <= 130; n++) {
		for (uint64_t first = 0; first <= n; first++) {
			for (uint64_t len = 0; len <= n - first; len++) {
				CLEANUP(bitmap_deinit) struct bitmap b = {0};

				assert_int_equal(bitmap_init(&b, n), 0);
				bitmap_set_range(&b, first, len);
				assert_int_equal(bitmap_count(&b), len);
				if (len) {
					assert_int_equal(bitmap_next_set(&b, 0), first);
					assert_true(bitmap_next_set(&b, first + len) ==
						    BITMAP_NONE);
				}
			}
		}
	}
}

static void nothing_and_too_much(void **state)
{
	struct bitmap b = {0};

	(void)state;
	bitmap_deinit(&b); /* a zeroed struct */
	assert_int_equal(bitmap_init(&b, UINT64_MAX), -ENOMEM);
	assert_null(b.words);
	bitmap_deinit(&b);
	bitmap_deinit(&b); /* twice */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_ops_agree_with_an_array),
		cmocka_unit_test(every_range_of_every_small_size),
		cmocka_unit_test(nothing_and_too_much),
	};

	return cmocka_run_group_tests_name("bitmap", tests, NULL, NULL);
}
