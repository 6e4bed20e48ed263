/* Conversions against the formats' definition: every pattern decodes and encodes to
 * itself, values between neighbours go to the nearer one, powers are products. */
#include <stdbool.h>
#include <stdint.h>

#include "cmocka-all.h"
#include "rng.h"
#include <math.h>
#include <string.h>

#include "shim/data/scalar.h"

static const struct {
	ncclDataType_t dtype;
	unsigned int e_bits, m_bits;
	bool has_inf;
} formats[] = {
	{ncclFloat16, 5, 10, true},
	{ncclBfloat16, 8, 7, true},
	{ncclFloat8e4m3, 4, 3, false},
	{ncclFloat8e5m2, 5, 2, true},
};

/* By the book, with ldexp. */
static double value_of(unsigned int f, uint32_t bits)
{
	uint32_t m = bits & ((1u << formats[f].m_bits) - 1);
	int e = (int)(bits >> formats[f].m_bits) & ((1 << formats[f].e_bits) - 1);
	int bias = (1 << (formats[f].e_bits - 1)) - 1;

	if (e == 0)
		return ldexp(m, 1 - bias - (int)formats[f].m_bits);
	return ldexp(m + (1u << formats[f].m_bits), e - bias - (int)formats[f].m_bits);
}

/* Patterns of the finite numbers that are not negative. */
static uint32_t n_finite(unsigned int f)
{
	uint32_t top = ((1u << formats[f].e_bits) - 1) << formats[f].m_bits;

	return formats[f].has_inf ? top : top + (1u << formats[f].m_bits) - 1;
}

static uint32_t stored(unsigned int f, double v)
{
	uint32_t bits = 0;

	scalar_store(formats[f].dtype, v, &bits);
	return bits;
}

static void every_number_of_a_format_is_stored_as_itself(void **state)
{
	(void)state;
	for (unsigned int f = 0; f < 4; f++) {
		unsigned int sign = 1u << (formats[f].e_bits + formats[f].m_bits);

		for (uint32_t bits = 0; bits < n_finite(f); bits++) {
			assert_int_equal(stored(f, value_of(f, bits)), bits);
			if (bits)
				assert_int_equal(stored(f, -value_of(f, bits)), bits | sign);
		}
	}
}

static void values_are_rounded_to_nearest_even(void **state)
{
	(void)state;
	for (unsigned int f = 0; f < 4; f++) {
		for (uint32_t bits = 0; bits + 1 < n_finite(f); bits++) {
			double a = value_of(f, bits), b = value_of(f, bits + 1);

			assert_int_equal(stored(f, a + (b - a) * 0.49), bits);
			assert_int_equal(stored(f, a + (b - a) * 0.51), bits + 1);
			assert_int_equal(stored(f, a + (b - a) * 0.5), bits & 1 ? bits + 1 : bits);
		}
	}
}

static void too_large_a_value_becomes_the_largest_or_infinity(void **state)
{
	(void)state;
	for (unsigned int f = 0; f < 4; f++)
		assert_int_equal(stored(f, 1e300),
				 formats[f].has_inf ? n_finite(f) : n_finite(f) - 1);
}

static void times_wraps_like_a_sum(void **state)
{
	int8_t i8 = 100, r8;
	int32_t i32 = -7, r32;
	float f32 = 1.5f, rf;

	(void)state;
	scalar_times(ncclInt8, &i8, 3, &r8);
	assert_int_equal(r8, (int8_t)(100 + 100 + 100));
	scalar_times(ncclInt32, &i32, 1024, &r32);
	assert_int_equal(r32, -7168);
	scalar_times(ncclFloat32, &f32, 1024, &rf);
	assert_true(rf == 1536.0f);
}

static void a_power_is_a_product(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7, 0);
	for (int round = 0; round < 200; round++) {
		uint32_t n = 1 + (uint32_t)(rng_u64(&rng) % 9);
		int64_t i[3], want[3] = {1, 1, 1};
		double d[3], product[3] = {1, 1, 1};

		for (int k = 0; k < 3; k++) {
			i[k] = (int64_t)rng_u64(&rng);
			d[k] = rng_uniform(&rng) * 4 - 2;
			for (uint32_t e = 0; e < n; e++) {
				want[k] = (int64_t)((uint64_t)want[k] * (uint64_t)i[k]);
				product[k] *= d[k];
			}
		}
		scalar_power(ncclInt64, i, 3, n);
		scalar_power(ncclFloat64, d, 3, n);
		assert_memory_equal(i, want, sizeof(i));
		for (int k = 0; k < 3; k++)
			assert_true(fabs(d[k] - product[k]) <= 1e-14 * fabs(product[k]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_of_a_format_is_stored_as_itself),
		cmocka_unit_test(values_are_rounded_to_nearest_even),
		cmocka_unit_test(too_large_a_value_becomes_the_largest_or_infinity),
		cmocka_unit_test(times_wraps_like_a_sum),
		cmocka_unit_test(a_power_is_a_product),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
