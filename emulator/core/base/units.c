/* See units.h.
 *
 * A number is digits with at most one point: no sign, no exponent, no blanks. Its digits must fit
 * 64 bits, and at most 19 stand after the point. It is kept as an integer and a power of ten, so
 * that sizes are exact and the locale of the process has no say. */
#include "base/units.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bitmap.h"
#include "base/cleanup.h"
#include "base/suggest.h"

#define SHOWN 64           /* most characters of a bad text that are repeated in a sentence */
#define TIME_MAX_NS 0x1p53 /* about 104 days: above, a double cannot hold each ns */

struct unit {
	const char *name;
	uint64_t num, den; /* one of it is num/den of the base unit */
};

#define KI (UINT64_C(1) << 10)
#define MI (UINT64_C(1) << 20)
#define GI (UINT64_C(1) << 30)
#define TI (UINT64_C(1) << 40)

static const struct unit time_units[] = {
	{"ns", 1, 1},
	{"us", 1000, 1},
	{"\xc2\xb5s", 1000, 1}, /* U+00B5, the micro sign */
	{"\xce\xbcs", 1000, 1}, /* U+03BC, the Greek letter */
	{"ms", 1000000, 1},
	{"s", 1000000000, 1},
	{0},
};

static const struct unit byte_units[] = {
	{"B", 1, 1},
	{"K", KI, 1},
	{"M", MI, 1},
	{"G", GI, 1},
	{"T", TI, 1},
	{"KiB", KI, 1},
	{"MiB", MI, 1},
	{"GiB", GI, 1},
	{"TiB", TI, 1},
	{"kB", 1000, 1},
	{"KB", 1000, 1},
	{"MB", 1000000, 1},
	{"GB", 1000000000, 1},
	{"TB", UINT64_C(1000000000000), 1},
	{0},
};

/* A bandwidth is a prefix and one of the rates: b and bit are bits, B is a byte; case decides. */
static const struct unit prefixes[] = {
	{"", 1, 1},        {"k", 1000, 1},       {"K", 1000, 1},
	{"M", 1000000, 1}, {"G", 1000000000, 1}, {"T", UINT64_C(1000000000000), 1},
	{"Ki", KI, 1},     {"Mi", MI, 1},        {"Gi", GI, 1},
	{"Ti", TI, 1},
};

/* The base unit is a byte a nanosecond, 1e9 bytes a second. */
#define N_BIT_RATES 3
static const struct unit rates[] = {
	{"bps", 1, UINT64_C(8000000000)},
	{"b/s", 1, UINT64_C(8000000000)},
	{"bit/s", 1, UINT64_C(8000000000)},
	{"B/s", 1, 1000000000},
	{"Bps", 1, 1000000000},
};

#define RATE_MAX 8 /* of a name, with the NUL */
#define N_BANDWIDTHS (ARRAY_SIZE(prefixes) * ARRAY_SIZE(rates))

#define TIME_LIST "ns us ms s"
#define BYTE_LIST "B K M G T KiB MiB GiB TiB KB MB GB TB"
#define BANDWIDTH_LIST "bits as Gbps, Gb/s or Gbit/s, bytes as GB/s or GiB/s, with K, M, G or T"

struct decimal {
	uint64_t digits; /* value = digits / 10^scale */
	unsigned scale;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
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
	unsigned n_point = 0,
		 zeros = 0; /* zeros: read after the point; they count when another digit follows */
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
			err_set(err, EINVAL,
				"'%.*s' is no %s: it must begin with a number such as 1.5", SHOWN,
				text, what);
		return NULL;
	}
	*ret = d;
	return p;

too_long:
	err_set(err, EINVAL, "'%.*s' is no %s: the number has too many digits", SHOWN, text, what);
	return NULL;
}

/* @hint: "; did you mean ...?", or "". */
static void refuse_unit(const char *text, const char *name, const char *what, const char *hint,
			const char *list, struct err *err)
{
	if (!name[0])
		err_set(err, EINVAL, "'%.*s' has no unit; units of a %s: %s", SHOWN, text, what,
			list);
	else if (is_blank(name[0]))
		err_set(err, EINVAL,
			"'%.*s' has a blank behind the number: write it without, such as %.*s%.*s",
			SHOWN, text, (int)(name - text), text, SHOWN, name + strspn(name, " \t"));
	else if (name[0] == ',')
		err_set(err, EINVAL, "'%.*s' has a comma in the number: write a point, such as 1.5",
			SHOWN, text);
	else
		err_set(err, EINVAL, "'%.*s' has an unknown unit '%.*s'%s units of a %s: %s", SHOWN,
			text, SHOWN, name, hint[0] ? hint : ";", what, list);
}

/* The unit named @name; NULL with the sentence. The sentence suggests only a unit that differs by
 * case: "m" may be a minute, and a wrong suggestion is worse than the list. */
static const struct unit *find_unit(const char *text, const char *name, const char *what,
				    const struct unit *units, const char *list, struct err *err)
{
	char hint[64] = "";

	for (const struct unit *u = units; u->name; u++)
		if (strcmp(name, u->name) == 0)
			return u;
	for (const struct unit *u = units; u->name && !hint[0]; u++)
		if (strcasecmp(name, u->name) == 0)
			snprintf(hint, sizeof(hint), "; did you mean '%s'?", u->name);
	refuse_unit(text, name, what, hint, list, err);
	return NULL;
}

static char *bandwidth_name(size_t i, char *buf)
{
	snprintf(buf, RATE_MAX, "%s%s", prefixes[i / ARRAY_SIZE(rates)].name,
		 rates[i % ARRAY_SIZE(rates)].name);
	return buf;
}

static bool is_bit_rate(size_t i)
{
	return i % ARRAY_SIZE(rates) < N_BIT_RATES;
}

/* Puts into @hint what @name may have meant. A name that is right but for case may mean bits or
 * bytes: the hint names both. Another name gets the nearest unit of its own kind, so that no hint
 * is eight times off. */
static void suggest_bandwidth(const char *name, char *hint, size_t size)
{
	char names[N_BANDWIDTHS][RATE_MAX];
	const char *list[N_BANDWIDTHS], *bits = NULL, *bytes = NULL, *near;
	bool has_b = strchr(name, 'b'), has_B = strchr(name, 'B');
	size_t n = 0;

	for (size_t i = 0; i < N_BANDWIDTHS; i++) {
		bandwidth_name(i, names[i]);
		if (strcasecmp(name, names[i]) == 0 && is_bit_rate(i))
			bits = names[i];
		else if (strcasecmp(name, names[i]) == 0)
			bytes = names[i];
		if (has_b != has_B && has_b == is_bit_rate(i))
			list[n++] = names[i];
	}
	near = bits ? bits : bytes ? bytes : suggest(name, list, n);
	/* The widths keep gcc from -Wformat-truncation, which overestimates names on aarch64. */
	if (bits && bytes)
		snprintf(hint, size, "; did you mean '%.*s' (bits) or '%.*s' (bytes)?", RATE_MAX,
			 bits, RATE_MAX, bytes);
	else if (near)
		snprintf(hint, size, "; did you mean '%.*s'?", RATE_MAX, near);
}

/* *ret: the unit that @name is. Return: 0; -EINVAL with the sentence. */
static int find_bandwidth(const char *text, const char *name, struct unit *ret, struct err *err)
{
	char one[RATE_MAX], hint[96] = "";

	for (size_t i = 0; i < N_BANDWIDTHS; i++) {
		const struct unit *prefix = &prefixes[i / ARRAY_SIZE(rates)],
				  *rate = &rates[i % ARRAY_SIZE(rates)];

		if (strcmp(name, bandwidth_name(i, one)) != 0)
			continue;
		*ret = (struct unit){rate->name, prefix->num, rate->den};
		while (ret->num % 10 == 0 && ret->den % 10 == 0) { /* so that few digits are lost */
			ret->num /= 10;
			ret->den /= 10;
		}
		return 0;
	}
	suggest_bandwidth(name, hint, sizeof(hint));
	refuse_unit(text, name, "bandwidth", hint, BANDWIDTH_LIST, err);
	return -EINVAL;
}

/* The nearest double. A long double has 64 bits: numerator and denominator are exact below 2^64. */
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
	unit = find_unit(text, rest, "time", time_units, TIME_LIST, err);
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
	unit = find_unit(text, rest, "size", byte_units, BYTE_LIST, err);
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
	struct unit unit;
	struct decimal d;
	const char *rest = take_decimal(text, "bandwidth", &d, err);

	if (!rest || find_bandwidth(text, rest, &unit, err) < 0)
		return -EINVAL;
	if (d.digits == 0)
		return err_set(err, EINVAL, "'%.*s' is zero; a bandwidth must be more", SHOWN,
			       text);
	*ret_bytes_per_ns = decimal_value(d, unit.num, unit.den);
	return 0;
}

int units_nic(const char *text, double *ret_bytes_per_ns, double *ret_latency_ns, struct err *err)
{
	const char *comma = strchr(text, ',');
	char rate[64];
	double latency_ns;
	int r = comma ? units_time(comma + 1, &latency_ns, err) : 0;

	if (comma && (size_t)(comma - text) >= sizeof(rate))
		return err_set(err, EINVAL, "'%.*s' is no rate", SHOWN, text);
	snprintf(rate, sizeof(rate), "%.*s", comma ? (int)(comma - text) : 0, text);
	if (r == 0)
		r = units_bandwidth(comma ? rate : text, ret_bytes_per_ns, err);
	if (r == 0 && comma)
		*ret_latency_ns = latency_ns;
	return r;
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
		return err_set(
			err, EINVAL,
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

#define LIST_FORM "0, 0-7 or 0+5+9-12"

/* Takes one rank off the front. Return: the rest, or NULL. */
static const char *take_rank(const char *p, uint64_t *ret)
{
	uint64_t value = 0;
	const char *start = p;

	for (; is_digit(*p); p++)
		if (value <= UINT32_MAX) /* a larger number is no rank; stop before it overflows */
			value = value * 10 + (uint64_t)(*p - '0');
	*ret = value;
	return p == start ? NULL : p;
}

/* Marks the ranks of "first[-last]"; Return: the rest of the text; or NULL, with the sentence in
 * @err and the negative errno in @ret_code. */
static const char *take_range(const char *text, const char *p, const char *what, uint32_t world,
			      struct bitmap *set, int *ret_code, struct err *err)
{
	uint64_t first, last, twice;

	p = take_rank(p, &first);
	last = first;
	if (p && *p == '-')
		p = take_rank(p + 1, &last);
	if (!p) {
		*ret_code = err_set(err, EINVAL, "'%.*s' is no list of %ss: write " LIST_FORM,
				    SHOWN, text, what);
		return NULL;
	}
	if (last < first) {
		*ret_code =
			err_set(err, EINVAL, "'%.*s' has a range that runs backwards", SHOWN, text);
		return NULL;
	}
	if (last >= world) {
		*ret_code = err_set(err, ERANGE, "'%.*s' names a %s beyond the last one, %lld",
				    SHOWN, text, what, (long long)world - 1);
		return NULL;
	}
	twice = bitmap_next_set(set, first);
	if (twice <= last) {
		*ret_code = err_set(err, EINVAL, "'%.*s' names %s %llu twice", SHOWN, text, what,
				    (unsigned long long)twice);
		return NULL;
	}
	bitmap_set_range(set, first, last - first + 1);
	return p;
}

static int take_list(const char *text, const char *what, uint32_t world, uint32_t **ret_ranks,
		     size_t *ret_n, struct err *err)
{
	CLEANUP(bitmap_deinit) struct bitmap set = {0};
	uint32_t *ranks;
	uint64_t bit;
	const char *p = text;
	size_t n = 0;
	int r;

	r = bitmap_init(&set, world);
	if (r < 0)
		return err_set(err, ENOMEM, "out of memory for a list of %ss", what);
	for (;;) {
		p = take_range(text, p, what, world, &set, &r, err);
		if (!p)
			return r;
		if (*p == '\0')
			break;
		if (*p != ',' && *p != '+')
			return err_set(err, EINVAL, "'%.*s' is no list of %ss: write " LIST_FORM,
				       SHOWN, text, what);
		p++;
	}
	ranks = calloc((size_t)bitmap_count(&set), sizeof(*ranks));
	if (!ranks)
		return err_set(err, ENOMEM, "out of memory for a list of %ss", what);
	for (bit = bitmap_next_set(&set, 0); bit != BITMAP_NONE;
	     bit = bitmap_next_set(&set, bit + 1))
		ranks[n++] = (uint32_t)bit;
	*ret_ranks = ranks;
	*ret_n = n;
	return 0;
}

int units_ranks(const char *text, uint32_t world, uint32_t **ret_ranks, size_t *ret_n,
		struct err *err)
{
	return take_list(text, "rank", world, ret_ranks, ret_n, err);
}

int units_numbers(const char *text, const char *what, uint32_t n, uint32_t **ret, size_t *ret_n,
		  struct err *err)
{
	return take_list(text, what, n, ret, ret_n, err);
}
