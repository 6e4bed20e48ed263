/* Half, bfloat16 and 8-bit floats to and from float, by integer arithmetic without
 * branches where it matters, so that the compiler can vectorise the loops. */
#pragma once

#include <stdint.h>

static inline float bits_float(uint32_t u)
{
	union {
		uint32_t u;
		float f;
	} x = {.u = u};

	return x.f;
}

static inline uint32_t float_bits(float f)
{
	union {
		float f;
		uint32_t u;
	} x = {.f = f};

	return x.u;
}

/* The exponent is moved by a multiplication, which also makes subnormals right;
 * infinities and NaNs get the largest exponent afterwards. */
static inline float half_float(uint16_t h)
{
	uint32_t em = (uint32_t)(h & 0x7fff) << 13;
	uint32_t u = float_bits(bits_float(em) * bits_float(UINT32_C(0x77800000))); /* 2^112 */

	u |= em >= UINT32_C(0x0f800000) ? UINT32_C(0x7f800000) : 0;
	return bits_float(u | (uint32_t)(h & 0x8000) << 16);
}

static inline uint16_t float_half(float f)
{
	uint32_t u = float_bits(f), sign = u & UINT32_C(0x80000000), a = u ^ sign;
	/* normal: round at bit 13; the carry may reach the exponent, which is right */
	uint32_t normal = (a - UINT32_C(0x38000000) + 0xfff + (a >> 13 & 1)) >> 13;
	/* subnormal: adding 0.5 aligns the fraction and rounds in the FPU */
	uint32_t small = float_bits(bits_float(a) + 0.5f) - UINT32_C(0x3f000000);
	uint32_t huge = a > UINT32_C(0x7f800000) ? 0x7e00 : 0x7c00;
	uint32_t r = a < UINT32_C(0x38800000) ? small : normal;

	r = a >= UINT32_C(0x477ff000) ? huge : r; /* 65520 and up rounds to infinity */
	return (uint16_t)(r | sign >> 16);
}

static inline float bfloat_float(uint16_t h)
{
	return bits_float((uint32_t)h << 16);
}

static inline uint16_t float_bfloat(float f)
{
	uint32_t u = float_bits(f);
	uint32_t r = (u + 0x7fff + (u >> 16 & 1)) >> 16;

	return (uint16_t)((u & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000) ? 0x7fff : r);
}

/* e5m2 is the upper half of a half. */
static inline float e5m2_float(uint8_t v)
{
	return half_float((uint16_t)(v << 8));
}

/* Rounds a finite positive float, as bits, to @man mantissa bits at exponents down
 * to 2^@emin, and returns it in the small format: exponent and mantissa. */
static inline uint32_t round_small(uint32_t a, int man, int emin)
{
	int shift = 23 - man;
	uint32_t least = (uint32_t)(emin + 127) << 23;
	/* the sum has its last bit where the subnormals have theirs */
	uint32_t magic = (uint32_t)(emin + 127 + shift) << 23;
	uint32_t small = float_bits(bits_float(a) + bits_float(magic)) - magic;
	uint32_t half = (UINT32_C(1) << (shift - 1)) - 1;
	uint32_t normal = (a - least + (UINT32_C(1) << 23) + half + (a >> shift & 1)) >> shift;

	return a < least ? small : normal;
}

static inline uint8_t float_e5m2(float f)
{
	uint32_t u = float_bits(f), sign = u >> 24 & 0x80, a = u & UINT32_C(0x7fffffff);
	uint32_t r = round_small(a, 2, -14);

	r = a >= UINT32_C(0x47600000) ? 0x7b : r; /* 57344 and up saturates */
	r = a > UINT32_C(0x7f800000) ? 0x7f : r;
	return (uint8_t)(r | sign);
}

/* e4m3: bias 7, no infinity, 0x7f is NaN, largest 448. */
static inline float e4m3_float(uint8_t v)
{
	uint32_t em = (uint32_t)(v & 0x7f) << 20;
	uint32_t u = float_bits(bits_float(em) * bits_float(UINT32_C(0x7b800000))); /* 2^120 */

	u = (v & 0x7f) == 0x7f ? UINT32_C(0x7fc00000) : u;
	return bits_float(u | (uint32_t)(v & 0x80) << 24);
}

static inline uint8_t float_e4m3(float f)
{
	uint32_t u = float_bits(f), sign = u >> 24 & 0x80, a = u & UINT32_C(0x7fffffff);
	uint32_t r = round_small(a, 3, -6);

	r = a >= UINT32_C(0x43e00000) ? 0x7e : r; /* 448 and up saturates */
	r = a > UINT32_C(0x7f800000) ? 0x7f : r;
	return (uint8_t)(r | sign);
}
