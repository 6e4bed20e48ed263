/* See scalar.h. */
#include "shim/data/scalar.h"

#include <string.h>

/* The small floating-point formats: sign, exponent, mantissa. */
struct format {
	unsigned int e_bits, m_bits;
	bool has_inf; /* e4m3 has none: all exponents but one pattern (NaN) are numbers */
};

static const struct format *format_of(ncclDataType_t dtype)
{
	static const struct format f16 = {5, 10, true}, bf16 = {8, 7, true};
	static const struct format e4m3 = {4, 3, false}, e5m2 = {5, 2, true};

	if (dtype == ncclFloat16)
		return &f16;
	if (dtype == ncclBfloat16)
		return &bf16;
	if (dtype == ncclFloat8e4m3)
		return &e4m3;
	return dtype == ncclFloat8e5m2 ? &e5m2 : NULL;
}

static uint64_t bits_of(double d)
{
	uint64_t b;

	memcpy(&b, &d, sizeof(b));
	return b;
}

static double of_bits(uint64_t b)
{
	double d;

	memcpy(&d, &b, sizeof(d));
	return d;
}

static double power_of_2(int e) /* normal doubles only */
{
	return of_bits((uint64_t)(e + 1023) << 52);
}

static double decode(const struct format *f, uint32_t v)
{
	uint32_t mantissa = v & ((1u << f->m_bits) - 1);
	uint32_t exponent = v >> f->m_bits & ((1u << f->e_bits) - 1);
	int bias = (1 << (f->e_bits - 1)) - 1;
	double sign = v >> (f->m_bits + f->e_bits) & 1 ? -1 : 1;
	bool is_top = exponent == (1u << f->e_bits) - 1;

	if (is_top && (f->has_inf || mantissa == (1u << f->m_bits) - 1))
		return f->has_inf && !mantissa ? sign * of_bits(UINT64_C(0x7ff) << 52)
					       : of_bits(UINT64_C(0x7ff8) << 48);
	if (!exponent)
		return sign * mantissa * power_of_2(1 - bias - (int)f->m_bits);
	return sign * (mantissa + (1u << f->m_bits)) *
	       power_of_2((int)exponent - bias - (int)f->m_bits);
}

static uint32_t encode(const struct format *f, double d)
{
	uint32_t sign = (uint32_t)(bits_of(d) >> 63) << (f->m_bits + f->e_bits);
	uint32_t top = ((1u << f->e_bits) - 1) << f->m_bits;
	uint32_t largest = f->has_inf ? top - 1 : (top | ((1u << f->m_bits) - 2));
	int bias = (1 << (f->e_bits - 1)) - 1, e;
	double a = of_bits(bits_of(d) & ~(UINT64_C(1) << 63)), scaled;
	uint64_t whole;

	if (a != a)
		return sign | top | ((1u << f->m_bits) - 1);
	if (a == 0)
		return sign;
	e = (int)(bits_of(a) >> 52) - 1023;
	if (e == 1024)
		return sign | (f->has_inf ? top : largest);
	if (e < 1 - bias)
		e = 1 - bias; /* subnormal in the target */
	/* in units of the last place: exact, then to nearest even */
	scaled = e - (int)f->m_bits < -1000 ? 0 : a * power_of_2((int)f->m_bits - e);
	whole = (uint64_t)scaled;
	if (scaled - (double)whole > 0.5 || (scaled - (double)whole == 0.5 && whole & 1))
		whole++;
	/* a carry runs into the exponent, as it should */
	whole += (uint64_t)(e + bias - 1) << f->m_bits;
	if (whole > largest)
		return sign | (f->has_inf ? top : largest);
	return sign | (uint32_t)whole;
}

static size_t int_bytes(ncclDataType_t dtype)
{
	if (dtype == ncclInt8 || dtype == ncclUint8)
		return 1;
	return dtype == ncclInt32 || dtype == ncclUint32 ? 4 : 8;
}

bool scalar_is_int(ncclDataType_t dtype)
{
	return dtype <= ncclUint64;
}

int scalar_fill_byte(ncclDataType_t dtype)
{
	return scalar_is_int(dtype) ? 0 : 0x38;
}

static double load_float(ncclDataType_t dtype, const void *p)
{
	const struct format *f = format_of(dtype);
	uint16_t half;
	uint8_t byte;
	float single;
	double d;

	if (f && f->e_bits + f->m_bits == 7) {
		memcpy(&byte, p, 1);
		return decode(f, byte);
	}
	if (f) {
		memcpy(&half, p, 2);
		return decode(f, half);
	}
	if (dtype == ncclFloat32) {
		memcpy(&single, p, 4);
		return single;
	}
	memcpy(&d, p, 8);
	return d;
}

static size_t store_float(ncclDataType_t dtype, double d, void *p)
{
	const struct format *f = format_of(dtype);
	float single = (float)d;
	uint32_t v;

	if (f) {
		v = encode(f, d); /* little endian: the low bytes come first */
		memcpy(p, &v, f->e_bits + f->m_bits == 7 ? 1 : 2);
		return f->e_bits + f->m_bits == 7 ? 1 : 2;
	}
	if (dtype == ncclFloat32) {
		memcpy(p, &single, 4);
		return 4;
	}
	memcpy(p, &d, 8);
	return 8;
}

void scalar_store(ncclDataType_t dtype, double value, void *ret)
{
	uint64_t n;

	if (!scalar_is_int(dtype)) {
		store_float(dtype, value, ret);
		return;
	}
	n = (uint64_t)(int64_t)value;
	memcpy(ret, &n, int_bytes(dtype));
}

void scalar_times(ncclDataType_t dtype, const void *value, uint32_t n, void *ret)
{
	uint64_t v = 0;

	if (!scalar_is_int(dtype)) {
		store_float(dtype, load_float(dtype, value) * n, ret);
		return;
	}
	memcpy(&v, value, int_bytes(dtype));
	v *= n;
	memcpy(ret, &v, int_bytes(dtype));
}

void scalar_power(ncclDataType_t dtype, void *buf, size_t count, uint32_t n)
{
	char *p = buf;

	for (size_t i = 0; i < count; i++) {
		if (scalar_is_int(dtype)) {
			uint64_t base = 0, result = 1;

			memcpy(&base, p, int_bytes(dtype));
			for (uint32_t e = n; e; e >>= 1, base *= base)
				if (e & 1)
					result *= base;
			memcpy(p, &result, int_bytes(dtype));
			p += int_bytes(dtype);
		} else {
			double base = load_float(dtype, p), result = 1;

			for (uint32_t e = n; e; e >>= 1, base *= base)
				if (e & 1)
					result *= base;
			p += store_float(dtype, result, p);
		}
	}
}
