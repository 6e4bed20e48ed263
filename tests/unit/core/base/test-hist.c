/* The histogram against sorted arrays. */
#include "cmocka-all.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hist.h"
#include "base/rng.h"

#define N 5000

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t draw(struct rng *rng, int shape)
{
	switch (shape) {
	case 0:
		return rng_u64(rng) % 60; /* exact buckets */
	case 1:
		return rng_u64(rng) % 1000000;
	case 2:
		return rng_u64(rng) >> (rng_u64(rng) % 64); /* all magnitudes */
	default:
		return (uint64_t)exp(10 + 3 * rng_normal(rng));
	}
}

static void check_quantiles(const struct hist *h, const uint64_t *sorted, size_t n)
{
	static const double qs[] = {0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999};

	assert_true(hist_quantile(h, 0) == sorted[0]);
	assert_true(hist_quantile(h, -1) == sorted[0]);
	assert_true(hist_quantile(h, 1) == sorted[n - 1]);
	assert_true(hist_quantile(h, 2) == sorted[n - 1]);
	for (size_t i = 0; i < ARRAY_SIZE(qs); i++) {
		size_t rank = (size_t)ceil(qs[i] * (double)n);
		double truth = (double)sorted[rank ? rank - 1 : 0];
		double got = (double)hist_quantile(h, qs[i]);

		assert_true(fabs(got - truth) <= truth / 64);
		if (truth < 128)
			assert_true(got == truth);
	}
}

static void test_quantiles(void **state)
{
	static uint64_t values[N];
	static struct hist h, half[2], merged;

	(void)state;
	for (int shape = 0; shape < 4; shape++) {
		struct rng rng;
		double sum = 0;

		rng_seed(&rng, 4, (uint64_t)shape);
		hist_reset(&h);
		hist_reset(&half[0]);
		hist_reset(&half[1]);
		hist_reset(&merged);
		for (size_t i = 0; i < N; i++) {
			values[i] = draw(&rng, shape);
			sum += (double)values[i];
			hist_add(&h, values[i]);
			hist_add(&half[i % 3 == 0], values[i]);
		}
		qsort(values, N, sizeof(values[0]), compare);
		check_quantiles(&h, values, N);
		assert_true(h.n == N && h.min == values[0] && h.max == values[N - 1]);
		assert_true(h.sum == sum && hist_mean(&h) == sum / N);
		hist_merge(&merged, &half[0]);
		hist_merge(&merged, &half[1]);
		check_quantiles(&merged, values, N);
		assert_memory_equal(merged.counts, h.counts, sizeof(h.counts));
		assert_true(merged.min == h.min && merged.max == h.max && merged.n == h.n);
	}
}

/* One value alone is told exactly, whatever its size, to the last bucket. */
static void test_one_value(void **state)
{
	static struct hist h;

	(void)state;
	for (int shift = 0; shift < 64; shift++) {
		for (int64_t d = -1; d <= 1; d++) {
			uint64_t v = (UINT64_C(1) << shift) + (uint64_t)d;

			hist_reset(&h);
			hist_add(&h, v);
			assert_true(hist_quantile(&h, 0.5) == v);
			assert_true(hist_quantile(&h, 0) == v && hist_quantile(&h, 1) == v);
		}
	}
}

static void test_empty(void **state)
{
	static struct hist h, other;

	(void)state;
	hist_reset(&h);
	hist_reset(&other);
	assert_true(hist_quantile(&h, 0.5) == 0 && hist_mean(&h) == 0);
	hist_add(&other, 7);
	hist_merge(&other, &h); /* an empty one does not pull the minimum to 0 */
	assert_true(other.min == 7 && other.max == 7 && other.n == 1);
	hist_merge(&h, &other);
	assert_true(h.min == 7 && h.max == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_one_value),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests_name("hist", tests, NULL, NULL);
}
