/* Laws of counts, beside an obvious model of them. */
#include "cmocka-all.h"

#include "replay/law.h"
#include "rng.h"

#define SIZES 3

static uint64_t split(uint64_t total, uint32_t n)
{
	return total / n + (total % n != 0);
}

/* The smallest whole number that is not below a fraction. */
static int64_t above(int64_t numerator, int64_t denominator)
{
	int64_t k = -20000;

	while (k * denominator < numerator)
		k++;
	return k;
}

static bool fits(const struct law_sample *s, size_t n, struct law *law)
{
	uint64_t count;

	if (!law_fit(s, n, law))
		return false;
	for (size_t i = 0; i < n; i++) {
		assert_true(law_count(law, s[i].size, &count));
		assert_int_equal(count, s[i].count);
	}
	return true;
}

/* Shares of a total, filled up to whole ones: the law is found, and what it says elsewhere is the
 * share of the largest total that was split like this. */
static void test_total(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1, 0);
	for (int turn = 0; turn < 3000; turn++) {
		uint64_t total = 1 + rng_u64(&rng) % 400, most = total, count;
		uint32_t sizes[SIZES], to = 1 + (uint32_t)(rng_u64(&rng) % 40);
		size_t n = 2 + rng_u64(&rng) % (SIZES - 1);
		struct law_sample s[SIZES];
		struct law law;
		bool is_split = true;

		for (size_t i = 0; i < n; i++) {
			sizes[i] = 1 + (uint32_t)(i * 12 + rng_u64(&rng) % 12);
			s[i] = (struct law_sample){sizes[i], split(total, sizes[i])};
		}
		while (is_split) {
			for (size_t i = 0; i < n; i++)
				is_split &= split(most + 1, sizes[i]) == s[i].count;
			most += is_split;
		}
		assert_true(fits(s, n, &law));
		assert_true(law.kind <= LAW_TOTAL);
		assert_true(law_make(LAW_TOTAL, s, n, &law));
		assert_true(law_count(&law, to, &count));
		assert_int_equal(count, split(most, to));
		assert_false(law_is_beyond(&law, 1000));
	}
}

/* Two counts that are no simpler: one that falls is a + b / n, one that rises a + b x n. */
static void test_lines(void **state)
{
	struct rng rng;
	int n_lines = 0;

	(void)state;
	rng_seed(&rng, 2, 0);
	for (int turn = 0; turn < 3000; turn++) {
		int64_t n1 = 1 + (int64_t)(rng_u64(&rng) % 10),
			n2 = n1 + 1 + (int64_t)(rng_u64(&rng) % 10),
			n = 1 + (int64_t)(rng_u64(&rng) % 40), want;
		int64_t c1 = (int64_t)(rng_u64(&rng) % 100), c2 = (int64_t)(rng_u64(&rng) % 100);
		const struct law_sample s[] = {{(uint32_t)n2, (uint64_t)c2},
					       {(uint32_t)n1, (uint64_t)c1}};
		struct law law;
		uint64_t count;

		assert_true(fits(s, 2, &law));
		if (law.kind < LAW_FALL)
			continue;
		n_lines++;
		assert_int_equal(law.kind, c2 < c1 ? LAW_FALL : LAW_RISE);
		want = c2 < c1 ? above(c1 * n * (n2 - n1) + (c2 - c1) * n2 * (n - n1),
				       n * (n2 - n1))
			       : above(c1 * (n2 - n1) + (c2 - c1) * (n - n1), n2 - n1);
		assert_int_equal(law_count(&law, (uint32_t)n, &count), want >= 0);
		if (want >= 0)
			assert_int_equal(count, want);
		assert_int_equal(law_is_beyond(&law, (uint32_t)n), n < n1 || n > n2);
	}
	assert_true(n_lines > 1000);
}

static void test_simplest(void **state)
{
	const struct law_sample keep[] = {{2, 7}, {4, 7}, {8, 7}}, grow[] = {{2, 6}, {4, 12}},
				none[] = {{2, 6}, {4, 9}, {8, 6}},
				huge[] = {{2, UINT64_MAX}, {4, 1}};
	struct law law;
	uint64_t count;

	(void)state;
	assert_true(fits(keep, 3, &law));
	assert_int_equal(law.kind, LAW_KEEP);
	assert_true(fits(grow, 2, &law));
	assert_int_equal(law.kind, LAW_GROW);
	assert_true(law_count(&law, 5, &count));
	assert_int_equal(count, 15);
	assert_false(fits(none, 3, &law));
	assert_true(law_fit_nearest(none, 3, 7, &law));
	assert_int_equal(law.few.size, 4);
	assert_int_equal(law.many.size, 8);
	assert_true(law_fit_nearest(none, 3, 1, &law));
	assert_int_equal(law.many.size, 4);
	assert_false(law_fit_nearest(none, 1, 1, &law));
	assert_true(fits(huge, 2, &law));
	assert_false(law_count(&law, 1, &count)); /* above 2^64 */
	assert_false(law_count(&law, 1 << 20, &count));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_total),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_simplest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
