/* Strict numbers with units; see units.h.
 *
 * A number is digits with at most one point: no sign, no exponent, no blanks,
 * at most 19 significant digits. It is kept as an integer and a power of ten, so
 * that sizes are exact and the locale of the process has no say. */
#include "base/units.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/cleanup.h"

#define SHOWN 64 /* most characters of a bad text that are repeated in a sentence */
#define TIME_MAX_NS 0x1p53 /* about 104 days: above, a double cannot hold each ns */

struct unit {
	const char *name;
	uint64_t num, den; /* one of it is num/den of the base unit */
};

static const struct unit time_units[] = {
	{"ns", 1, 1}, {"us", 1000, 1}, {"ms", 1000000, 1}, {"s", 1000000000, 1},
};

static const struct unit byte_units[] = {
	{"B", 1, 1},
	{"K", UINT64_C(1) << 10, 1},
	{"M", UINT64_C(1) << 20, 1},
	{"G", UINT64_C(1) << 30, 1},
	{"T", UINT64_C(1) << 40, 1},
	{"KiB", UINT64_C(1) << 10, 1},
	{"MiB", UINT64_C(1) << 20, 1},
	{"GiB", UINT64_C(1) << 30, 1},
	{"TiB", UINT64_C(1) << 40, 1},
	{"KB", UINT64_C(1000), 1},
	{"MB", UINT64_C(1000000), 1},
	{"GB", UINT64_C(1000000000), 1},
	{"TB", UINT64_C(1000000000000), 1},
};

/* The base unit is a byte a nanosecond, 1e9 bytes a second. */
static const struct unit bandwidth_units[] = {
	{"Kbps", 1, 8000000},
	{"Mbps", 1, 8000},
	{"Gbps", 1, 8},
	{"Tbps", 1000, 8},
	{"KB/s", 1, 1000000},
	{"MB/s", 1, 1000},
	{"GB/s", 1, 1},
	{"TB/s", 1000, 1},
	{"KiB/s", UINT64_C(1) << 10, 1000000000},
	{"MiB/s", UINT64_C(1) << 20, 1000000000},
	{"GiB/s", UINT64_C(1) << 30, 1000000000},
	{"TiB/s", UINT64_C(1) << 40, 1000000000},
};

#define TIME_LIST "ns us ms s"
#define BYTE_LIST "B K M G T KiB MiB GiB TiB KB MB GB TB"
#define BANDWIDTH_LIST "Kbps Mbps Gbps Tbps KB/s MB/s GB/s TB/s KiB/s MiB/s GiB/s TiB/s"

struct decimal {
	uint64_t digits; /* value = digits / 10^scale */
	unsigned scale;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static uint64_t pow10u(unsigned n)
{
	uint64_t p = 1;

	while (n-- > 0)
		p *= 10;
	return p;
}

/* Takes a number off the front. Return: the rest, or NULL with the sentence. */
static const char *take_decimal(const char *text, const char *what, struct decimal *ret,
				struct err *err)
{
	struct decimal d = {0, 0};
	unsigned n_point = 0, zeros = 0; /* zeros: after the point, not yet counted in */
	bool any = false;
	const char *p;

	for (p = text; is_digit(*p) || (*p == '.' && n_point == 0); p++) {
		unsigned digit;

		if (*p == '.') {
			n_point = 1;
			continue;
		}
		any = true;
		digit = (unsigned)(*p - '0');
		if (n_point && digit == 0) {
			zeros++;
			continue;
		}
		for (; n_point && zeros > 0 && d.scale < 19; zeros--, d.scale++)
			if (__builtin_mul_overflow(d.digits, UINT64_C(10), &d.digits))
				goto too_long;
		if (__builtin_mul_overflow(d.digits, UINT64_C(10), &d.digits) ||
		    __builtin_add_overflow(d.digits, digit, &d.digits))
			goto too_long;
		d.scale += n_point;
		if (d.scale > 19)
			goto too_long;
	}
	if (any && p[-1] == '.')
		any = false;
	if (!any) {
		if (*text == '-' && (is_digit(text[1]) || text[1] == '.'))
			err_set(err, EINVAL, "'%.*s' is negative; a %s must not be", SHOWN, text,
				what);
		else
			err_set(err, EINVAL, "'%.*s' is no %s: it must begin with a number such as 1.5", SHOWN,
				text, what);
		return NULL;
	}
	*ret = d;
	return p;

too_long:
	err_set(err, EINVAL, "'%.*s' is no %s: the number has too many digits", SHOWN, text, what);
	return NULL;
}

/* The unit that @name is; NULL with the sentence. */
static const struct unit *find_unit(const char *text, const char *name, const char *what,
				    const struct unit *units, size_t n, const char *list,
				    struct err *err)
{
	const char *names[16], *near;
	size_t i;

	for (i = 0; i < n; i++) {
		if (strcmp(name, units[i].name) == 0)
			return &units[i];
		names[i] = units[i].name;
	}
	if (!name[0]) {
		err_set(err, EINVAL, "'%.*s' has no unit; units of a %s: %s", SHOWN, text, what,
			list);
		return NULL;
	}
	near = units_suggest(name, names, n);
	if (near)
		err_set(err, EINVAL,
			"'%.*s' has an unknown unit '%.*s'; did you mean '%s'? units of a %s: %s",
			SHOWN, text, SHOWN, name, near, what, list);
	else
		err_set(err, EINVAL, "'%.*s' has an unknown unit '%.*s'; units of a %s: %s", SHOWN,
			text, SHOWN, name, what, list);
	return NULL;
}

/* The nearest double: numerator and denominator are exact in a long double's 64
 * bits wherever they are below 2^64, which is everywhere but in absurd inputs. */
static double decimal_value(struct decimal d, uint64_t num, uint64_t den)
{
	return (double)((long double)d.digits * (long double)num /
			((long double)pow10u(d.scale) * (long double)den));
}

int units_time(const char *text, double *ret_ns, struct err *err)
{
	const struct unit *unit;
	struct decimal d;
	const char *rest = take_decimal(text, "time", &d, err);
	double ns;

	if (!rest)
		return -EINVAL;
	unit = find_unit(text, rest, "time", time_units, ARRAY_SIZE(time_units), TIME_LIST, err);
	if (!unit)
		return -EINVAL;
	ns = decimal_value(d, unit->num, unit->den);
	if (ns > TIME_MAX_NS)
		return err_set(err, EINVAL, "'%.*s' is too long: a time is at most 104 days", SHOWN,
			       text);
	*ret_ns = ns;
	return 0;
}

int units_bytes(const char *text, uint64_t *ret_bytes, struct err *err)
{
	const struct unit *unit;
	struct decimal d;
	const char *rest = take_decimal(text, "size", &d, err);
	unsigned __int128 product;

	if (!rest)
		return -EINVAL;
	unit = find_unit(text, rest, "size", byte_units, ARRAY_SIZE(byte_units), BYTE_LIST, err);
	if (!unit)
		return -EINVAL;
	product = (unsigned __int128)d.digits * unit->num;
	if (product % pow10u(d.scale) != 0)
		return err_set(err, EINVAL, "'%.*s' is not a whole number of bytes", SHOWN, text);
	product /= pow10u(d.scale);
	if (product > UINT64_MAX)
		return err_set(err, EINVAL, "'%.*s' is too large: a size is below 2^64 bytes",
			       SHOWN, text);
	*ret_bytes = (uint64_t)product;
	return 0;
}

int units_bandwidth(const char *text, double *ret_bytes_per_ns, struct err *err)
{
	const struct unit *unit;
	struct decimal d;
	const char *rest = take_decimal(text, "bandwidth", &d, err);

	if (!rest)
		return -EINVAL;
	unit = find_unit(text, rest, "bandwidth", bandwidth_units, ARRAY_SIZE(bandwidth_units),
			 BANDWIDTH_LIST, err);
	if (!unit)
		return -EINVAL;
	if (d.digits == 0)
		return err_set(err, EINVAL, "'%.*s' is zero; a bandwidth must be more", SHOWN,
			       text);
	*ret_bytes_per_ns = decimal_value(d, unit->num, unit->den);
	return 0;
}

int units_ratio(const char *text, double *ret, struct err *err)
{
	struct decimal d;
	const char *rest = take_decimal(text, "ratio", &d, err);

	if (!rest)
		return -EINVAL;
	if (strcmp(rest, "%") == 0)
		*ret = decimal_value(d, 1, 100);
	else if (!rest[0])
		*ret = decimal_value(d, 1, 1);
	else
		return err_set(err, EINVAL,
			       "'%.*s' is no ratio: write a bare number (1.5) or a percentage (150%%)",
			       SHOWN, text);
	return 0;
}

int units_count(const char *text, uint64_t *ret, struct err *err)
{
	uint64_t value = 0;
	const char *p;

	for (p = text; is_digit(*p); p++)
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return err_set(err, EINVAL, "'%.*s' is too large: a count is below 2^64",
				       SHOWN, text);
	if (p == text || *p)
		return err_set(err, EINVAL, "'%.*s' is no count: write decimal digits only", SHOWN,
			       text);
	*ret = value;
	return 0;
}

/* Takes one rank off the front. Return: the rest, or NULL. */
static const char *take_rank(const char *p, uint64_t *ret)
{
	uint64_t value = 0;
	const char *start = p;

	for (; is_digit(*p); p++)
		if (value <= UINT32_MAX) /* more cannot be a rank; keep it larger than all */
			value = value * 10 + (uint64_t)(*p - '0');
	*ret = value;
	return p == start ? NULL : p;
}

/* Marks the ranks of "first[-last]"; Return: the rest, or NULL with the sentence
 * and *ret_code. */
static const char *take_range(const char *text, const char *p, uint32_t world, struct bitmap *set,
			      int *ret_code, struct err *err)
{
	uint64_t first, last, twice;

	p = take_rank(p, &first);
	last = first;
	if (p && *p == '-')
		p = take_rank(p + 1, &last);
	if (!p) {
		*ret_code = err_set(err, EINVAL,
				    "'%.*s' is no list of ranks: write 0, 0-7 or 0,5,9-12", SHOWN,
				    text);
		return NULL;
	}
	if (last < first) {
		*ret_code = err_set(err, EINVAL, "'%.*s' has a range that runs backwards", SHOWN,
				    text);
		return NULL;
	}
	if (last >= world) {
		*ret_code = err_set(err, ERANGE, "'%.*s' names a rank beyond the last one, %lld",
				    SHOWN, text, (long long)world - 1);
		return NULL;
	}
	twice = bitmap_next_set(set, first);
	if (twice <= last) {
		*ret_code = err_set(err, EINVAL, "'%.*s' names rank %llu twice", SHOWN, text,
				    (unsigned long long)twice);
		return NULL;
	}
	bitmap_set_range(set, first, last - first + 1);
	return p;
}

int units_ranks(const char *text, uint32_t world, uint32_t **ret_ranks, size_t *ret_n,
		struct err *err)
{
	CLEANUP(bitmap_deinit) struct bitmap set = {0};
	uint32_t *ranks;
	uint64_t bit;
	const char *p = text;
	size_t n = 0;
	int r;

	r = bitmap_init(&set, world);
	if (r < 0)
		return err_set(err, ENOMEM, "out of memory for a list of ranks");
	for (;;) {
		p = take_range(text, p, world, &set, &r, err);
		if (!p)
			return r;
		if (*p == '\0')
			break;
		if (*p++ != ',')
			return err_set(err, EINVAL,
				       "'%.*s' is no list of ranks: write 0, 0-7 or 0,5,9-12",
				       SHOWN, text);
	}
	ranks = calloc((size_t)bitmap_count(&set), sizeof(*ranks));
	if (!ranks)
		return err_set(err, ENOMEM, "out of memory for a list of ranks");
	for (bit = bitmap_next_set(&set, 0); bit != BITMAP_NONE; bit = bitmap_next_set(&set, bit + 1))
		ranks[n++] = (uint32_t)bit;
	*ret_ranks = ranks;
	*ret_n = n;
	return 0;
}
