/* Random numbers: the published generator, one sequence a seed, independent
 * streams, and moments. */
#include "cmocka-all.h"

#include <math.h>

#include "base/rng.h"

/* xoshiro256** from the state {1, 2, 3, 4}: the first is rotl(2 * 5, 7) * 9. */
static void test_published_values(void **state)
{
	static const uint64_t expect[] = {11520, 0, 1509978240, 1215971899390074240};
	struct rng r = {{1, 2, 3, 4}};

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_true(rng_u64(&r) == expect[i]);
}

static void test_same_seed_same_numbers(void **state)
{
	struct rng a, b;

	(void)state;
	rng_seed(&a, 42, 7);
	rng_seed(&b, 42, 7);
	for (int i = 0; i < 1000; i++)
		assert_true(rng_u64(&a) == rng_u64(&b));
}

/* Neighbouring seeds and streams, zero included, share no number. */
static void test_streams_differ(void **state)
{
	uint64_t seen[64];
	int n = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		for (uint64_t stream = 0; stream < 8; stream++) {
			struct rng r;

			rng_seed(&r, seed, stream);
			seen[n] = rng_u64(&r);
			for (int i = 0; i < n; i++)
				assert_true(seen[i] != seen[n]);
			n++;
		}
	}
}

/* With a fixed seed these are exact statements, not a matter of luck. */
static void test_moments(void **state)
{
	enum { N = 200000 };
	double u1 = 0, u2 = 0, n1 = 0, n2 = 0, n3 = 0, n4 = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 5, 0);
	for (int i = 0; i < N; i++) {
		double u = rng_uniform(&r), x = rng_normal(&r);

		assert_true(u >= 0 && u < 1);
		assert_true(isfinite(x));
		u1 += u / N;
		u2 += u * u / N;
		n1 += x / N;
		n2 += x * x / N;
		n3 += x * x * x / N;
		n4 += x * x * x * x / N;
	}
	assert_true(fabs(u1 - 0.5) < 0.003);
	assert_true(fabs(u2 - u1 * u1 - 1.0 / 12) < 0.002);
	assert_true(fabs(n1) < 0.01 && fabs(n2 - 1) < 0.02 && fabs(n3) < 0.05);
	assert_true(fabs(n4 - 3) < 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_values),
		cmocka_unit_test(test_same_seed_same_numbers),
		cmocka_unit_test(test_streams_differ),
		cmocka_unit_test(test_moments),
	};

	return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
