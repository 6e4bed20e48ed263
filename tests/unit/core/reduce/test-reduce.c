/* Reductions against obvious models. The model decodes a small float from its definition and
 * rounds by a search for the nearest of all its values; it reduces in double (or 64-bit integers)
 * and rounds once. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "reduce/reduce.h"
#include "reduce/smallfloat.h"

struct format {
	enum coll_dtype t;
	int exp_bits, man_bits;
	bool has_inf; /* else the largest exponent is numbers, but for all ones: NaN */
	bool saturates;
	double max;
};

static const struct format formats[] = {
	{COLL_FLOAT16, 5, 10, true, false, 65504},
	{COLL_BFLOAT16, 8, 7, true, false, 0x1.fep127},
	{COLL_FLOAT8E4M3, 4, 3, false, true, 448},
	{COLL_FLOAT8E5M2, 5, 2, true, true, 57344},
};

static double decode(const struct format *f, uint32_t v)
{
	uint32_t man = v & ((1u << f->man_bits) - 1);
	uint32_t exp = v >> f->man_bits & ((1u << f->exp_bits) - 1);
	uint32_t top = (1u << f->exp_bits) - 1;
	int bias = (1 << (f->exp_bits - 1)) - 1;
	double sign = v >> (f->exp_bits + f->man_bits) & 1 ? -1 : 1;

	if (f->has_inf && exp == top)
		return man ? NAN : sign * INFINITY;
	if (!f->has_inf && exp == top && man == (1u << f->man_bits) - 1)
		return NAN;
	if (!exp)
		return sign * ldexp(man, 1 - bias - f->man_bits);
	return sign * ldexp(man + (1u << f->man_bits), (int)exp - bias - f->man_bits);
}

/* The nearest value of the format; of two equally near ones the even one. Values
 * of one sign are ordered like their bits, so this is a binary search. */
static uint32_t encode(const struct format *f, double x)
{
	uint32_t sign = signbit(x) ? 1u << (f->exp_bits + f->man_bits) : 0, lo = 0, hi;
	double a = fabs(x), step;

	if (isnan(x))
		return UINT32_MAX;
	for (hi = (1u << (f->exp_bits + f->man_bits)) - 1; !(decode(f, hi) <= f->max);)
		hi--;
	step = f->max - decode(f, hi - 1);
	if (a > f->max && f->saturates)
		return sign | hi;
	if (a >= f->max + step / 2)
		return sign | (hi + 1); /* infinity */
	if (a >= f->max)
		return sign | hi;
	while (hi - lo > 1) {
		uint32_t mid = (lo + hi) / 2;

		*(decode(f, mid) <= a ? &lo : &hi) = mid;
	}
	if (a - decode(f, lo) > decode(f, hi) - a ||
	    (a - decode(f, lo) == decode(f, hi) - a && lo & 1))
		lo = hi;
	return sign | lo;
}

static float widen(enum coll_dtype t, uint32_t v)
{
	return t == COLL_FLOAT16      ? half_float((uint16_t)v)
	       : t == COLL_BFLOAT16   ? bfloat_float((uint16_t)v)
	       : t == COLL_FLOAT8E4M3 ? e4m3_float((uint8_t)v)
				      : e5m2_float((uint8_t)v);
}

static uint32_t narrow(enum coll_dtype t, float x)
{
	return t == COLL_FLOAT16      ? float_half(x)
	       : t == COLL_BFLOAT16   ? float_bfloat(x)
	       : t == COLL_FLOAT8E4M3 ? float_e4m3(x)
				      : float_e5m2(x);
}

static void check_narrow(const struct format *f, float x)
{
	uint32_t got = narrow(f->t, x), want = encode(f, x);

	if (want == UINT32_MAX ? !isnan(decode(f, got)) : got != want)
		fail_msg("format %d: %a gives %#x, not %#x", (int)f->t, (double)x, got, want);
}

static void small_floats_are_converted_exactly(void **state)
{
	size_t i;

	(void)state;
	srand(1);
	for (i = 0; i < 4; i++) {
		const struct format *f = &formats[i];
		uint32_t n = 1u << (1 + f->exp_bits + f->man_bits), v;

		for (v = 0; v < n; v++) {
			double x = decode(f, v), up = decode(f, (v + 1) & (n - 1));
			float got = widen(f->t, v);

			if (isnan(x)) {
				assert_true(isnan(got));
				continue;
			}
			if ((double)got != x || !signbit(got) != !signbit(x))
				fail_msg("format %d: %#x is %a, not %a", (int)f->t, v, (double)got,
					 x);
			if (n > 256 && v % 61 && v > 40 && (v & 0x3ff) > 2)
				continue; /* the slow model */
			check_narrow(f, got);
			if (isfinite(x) && isfinite(up) && (v & (n / 2 - 1)) + 1 < n / 2) {
				float mid = (float)((x + up) / 2);

				check_narrow(f, mid);
				check_narrow(f, nextafterf(mid, -INFINITY));
				check_narrow(f, nextafterf(mid, INFINITY));
			}
		}
		check_narrow(f, (float)f->max);
		check_narrow(f, nextafterf((float)f->max, INFINITY));
		check_narrow(f, INFINITY);
		check_narrow(f, -INFINITY);
		check_narrow(f, NAN);
		check_narrow(f, 0x1p-140f);
		for (v = 0; v < 300; v++) {
			uint32_t bits = (uint32_t)rand() << 16 ^ (uint32_t)rand();
			float x;

			memcpy(&x, &bits, 4);
			check_narrow(f, x);
		}
	}
}

static const size_t sizes[] = {8, 8, 32, 32, 64, 64, 16, 32, 64, 16, 8, 8};

static double load(enum coll_dtype t, const void *buf, size_t i)
{
	if (t == COLL_FLOAT32)
		return ((const float *)buf)[i];
	if (t == COLL_FLOAT64)
		return ((const double *)buf)[i];
	return decode(&formats[t == COLL_FLOAT16      ? 0
			       : t == COLL_BFLOAT16   ? 1
			       : t == COLL_FLOAT8E4M3 ? 2
						      : 3],
		      sizes[t] == 16 ? ((const uint16_t *)buf)[i] : ((const uint8_t *)buf)[i]);
}

/* Is element i of @buf the double @x rounded to the type? */
static bool holds(enum coll_dtype t, const void *buf, size_t i, double x)
{
	double got = load(t, buf, i);
	size_t f;

	if (isnan(x))
		return isnan(got);
	if (t == COLL_FLOAT32)
		return got == (double)(float)x;
	if (t == COLL_FLOAT64)
		return got == x;
	for (f = 0; formats[f].t != t;)
		f++;
	return got == decode(&formats[f], encode(&formats[f], x));
}

static double model(int op, double x, double y)
{
	return op == COLL_SUM    ? x + y
	       : op == COLL_PROD ? x * y
	       : isnan(x)        ? y /* fmax() would keep a signalling NaN */
	       : isnan(y)        ? x
	       : op == COLL_MAX  ? fmax(x, y)
				 : fmin(x, y);
}

enum { N = 1037 };

static void floats_are_reduced_as_by_hand(void **state)
{
	static const enum coll_dtype types[] = {COLL_FLOAT16,  COLL_FLOAT32,    COLL_FLOAT64,
						COLL_BFLOAT16, COLL_FLOAT8E4M3, COLL_FLOAT8E5M2};
	static double a[N], b[N], d[N];
	size_t k, i;
	int op, form;

	(void)state;
	for (k = 0; k < 6; k++) {
		enum coll_dtype t = types[k];
		size_t n = sizes[t] == 8 ? N : 200;

		for (op = 0; op < 4; op++) {
			for (form = 0; form < 3; form++) {
				/* d, into a, into b */
				double *out = form == 0 ? d : form == 1 ? a : b;
				static double ka[N], kb[N];

				for (i = 0; i < sizeof(a); i++) {
					((uint8_t *)a)[i] = (uint8_t)rand();
					((uint8_t *)b)[i] = (uint8_t)rand();
				}
				memcpy(ka, a, sizeof(a));
				memcpy(kb, b, sizeof(b));
				memset(d, 0, sizeof(d));
				reduce_apply(t, (enum coll_redop)op, out, a, b, n);
				for (i = 0; i < n; i++) {
					double x = load(t, ka, i), y = load(t, kb, i);

					if (!holds(t, out, i, model(op, x, y)))
						fail_msg("type %d op %d: %a, %a gives %a", (int)t,
							 op, x, y, load(t, out, i));
				}
			}
		}
		/* scalar and average */
		for (i = 0; i < sizeof(a); i++)
			((uint8_t *)a)[i] = (uint8_t)rand();
		for (i = 0; i < n; i += 7) {
			const uint8_t *s = (const uint8_t *)b + i * (sizes[t] / 8);
			size_t j;

			reduce_scale(t, d, a, s, n);
			for (j = i; j < n; j += 97)
				assert_true(holds(t, d, j, load(t, a, j) * load(t, b, i)));
		}
		reduce_average(t, d, a, 4, n); /* a power of two: 1/4 is exact */
		for (i = 0; i < n; i++)
			assert_true(holds(t, d, i, load(t, a, i) / 4));
	}
}

static uint64_t get(const void *buf, size_t bits, bool is_signed, size_t i)
{
	uint64_t v = 0;

	memcpy(&v, (const uint8_t *)buf + i * bits / 8, bits / 8);
	if (is_signed && bits < 64 && v >> (bits - 1) & 1)
		v |= ~UINT64_C(0) << bits;
	return v;
}

static void integers_are_reduced_as_by_hand(void **state)
{
	static uint64_t a[N], b[N], d[N];
	int t, op;
	size_t i;

	(void)state;
	for (t = COLL_INT8; t <= COLL_UINT64; t++) {
		bool is_signed = t == COLL_INT8 || t == COLL_INT32 || t == COLL_INT64;
		size_t bits = sizes[t];
		uint64_t mask = bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;

		for (i = 0; i < sizeof(a); i++) {
			((uint8_t *)a)[i] = (uint8_t)rand();
			((uint8_t *)b)[i] = (uint8_t)rand();
		}
		for (op = 0; op < 4; op++) {
			reduce_apply((enum coll_dtype)t, (enum coll_redop)op, d, a, b, N);
			for (i = 0; i < N; i++) {
				uint64_t x = get(a, bits, is_signed, i),
					 y = get(b, bits, is_signed, i);
				bool gt = is_signed ? (int64_t)x > (int64_t)y : x > y;
				uint64_t want = op == COLL_SUM    ? x + y
						: op == COLL_PROD ? x * y
						: op == COLL_MAX  ? (gt ? x : y)
								  : (gt ? y : x);

				assert_int_equal(get(d, bits, false, i), want & mask);
			}
		}
		reduce_scale((enum coll_dtype)t, d, a, b, N);
		for (i = 0; i < N; i++)
			assert_int_equal(get(d, bits, false, i),
					 get(a, bits, false, i) * get(b, bits, false, 0) & mask);
		reduce_average((enum coll_dtype)t, d, a, 3, N);
		for (i = 0; i < N; i++) {
			uint64_t x = get(a, bits, is_signed, i);

			x = is_signed ? (uint64_t)((int64_t)x / 3) : x / 3;
			assert_int_equal(get(d, bits, false, i), x & mask);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_floats_are_converted_exactly),
		cmocka_unit_test(floats_are_reduced_as_by_hand),
		cmocka_unit_test(integers_are_reduced_as_by_hand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
