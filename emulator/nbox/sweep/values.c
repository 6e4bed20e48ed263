/* See values.h. */
#include "nbox/sweep/values.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"

#define WORD_MAX 4096

int values_add(struct values *v, const char *text)
{
	char **grown = reallocarray(v->list, v->n + 1, sizeof(*grown));

	if (grown)
		v->list = grown;
	if (!grown || !(grown[v->n] = strdup(text)))
		return -ENOMEM;
	v->n++;
	return 0;
}

void values_deinit(struct values *v)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->list[i]);
	free(v->list);
}

/* A number and its unit: "10ms", "5", "2.5%". */
struct number {
	double value;
	char unit[16];
};

static size_t digits(const char *text)
{
	return strspn(text, "0123456789");
}

/* The number at the beginning of @text; "8..9" begins with 8. Return: its bytes; 0: there is none.
 */
static size_t read_number(const char *text, struct number *ret)
{
	size_t n = digits(text), unit = 0;

	if (n == 0)
		return 0;
	if (text[n] == '.' && digits(text + n + 1))
		n += 1 + digits(text + n + 1);
	while (unit + 1 < sizeof(ret->unit) && (isalpha((unsigned char)text[n + unit]) ||
						text[n + unit] == '%' || text[n + unit] == '/'))
		unit++;
	ret->value = strtod(text, NULL);
	snprintf(ret->unit, sizeof(ret->unit), "%.*s", (int)unit, text + n);
	return n + unit;
}

static int add_number(struct values *v, double value, const char *unit)
{
	char text[64];

	snprintf(text, sizeof(text), "%.12g%s", value, unit);
	return values_add(v, text);
}

/* The step behind the ':' of a range. Return: 0; -EINVAL. */
static int read_step(const char *text, struct number *ret, bool *ret_times)
{
	size_t n;

	*ret_times = *text == 'x';
	text += *text == 'x' || *text == '+';
	n = read_number(text, ret);
	return n && !text[n] ? 0 : -EINVAL;
}

/* The one unit of three numbers; NULL: they have several. */
static const char *common_unit(const struct number *a, const struct number *b,
			       const struct number *c)
{
	const struct number *all[] = {b, a, c};
	const char *unit = "";

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i]->unit[0]) {
			if (unit[0] && strcmp(unit, all[i]->unit) != 0)
				return NULL;
			unit = all[i]->unit;
		}
	return unit;
}

/* Return: 0; 1: it is no range; -EINVAL with the sentence; -ENOMEM. */
static int add_range(struct values *v, const char *text, struct err *err)
{
	struct number from, to, step = {.value = 1};
	bool is_times = false;
	const char *unit;
	size_t n = read_number(text, &from), m;
	double x;
	int r = 0;

	if (n == 0 || strncmp(text + n, "..", 2) != 0)
		return 1;
	m = read_number(text + n + 2, &to);
	text += n + 2 + m;
	if (m == 0 || (*text && (*text != ':' || read_step(text + 1, &step, &is_times) < 0)))
		return err_set(
			err, EINVAL,
			"a range is FROM..TO, FROM..TO:xFACTOR or FROM..TO:+STEP, such as 8..1024:x2 or 0..10ms:+2ms");
	unit = common_unit(&from, &to, is_times ? &to : &step);
	if (!unit || (is_times && step.unit[0]))
		return err_set(err, EINVAL, "a range has one unit, and a factor has none");
	if (!*text && unit[0])
		return err_set(
			err, EINVAL,
			"in which steps? FROM..TO:+STEP or FROM..TO:xFACTOR, such as %g..%g%s:+%g%s",
			from.value, to.value, unit, (to.value - from.value) / 4, unit);
	if (from.value > to.value ||
	    (is_times ? step.value <= 1 || from.value <= 0 : step.value <= 0))
		return err_set(
			err, EINVAL,
			"a range goes up: from less to more, by a step above 0 or a factor above 1%s",
			is_times && from.value <= 0 ? " (and no factor leads away from 0)" : "");
	if (!is_times && (to.value - from.value) / step.value > VALUES_MAX)
		return err_set(err, EINVAL, "more than %d values", VALUES_MAX);
	x = from.value;
	for (size_t i = 1; r == 0 && x <= to.value * (1 + 1e-9); i++) {
		r = add_number(v, x, unit);
		x = is_times ? x * step.value : from.value + (double)i * step.value;
		if (i > VALUES_MAX)
			return err_set(err, EINVAL, "more than %d values", VALUES_MAX);
	}
	return r;
}

/* Numbers without a unit get the last one's. Return: 0; -ENOMEM. */
static int inherit_unit(struct values *v)
{
	struct number last, own;
	const char *text = v->list[v->n - 1];
	size_t n = read_number(text, &last);

	if (n == 0 || text[n] || !last.unit[0])
		return 0;
	for (size_t i = 0; i + 1 < v->n; i++) {
		char *with = NULL;

		n = read_number(v->list[i], &own);
		if (n == 0 || v->list[i][n] || own.unit[0])
			continue;
		if (asprintf(&with, "%s%s", v->list[i], last.unit) < 0)
			return -ENOMEM;
		free(v->list[i]);
		v->list[i] = with;
	}
	return 0;
}

static int check_different(const struct values *v, struct err *err)
{
	for (size_t i = 0; i < v->n; i++)
		for (size_t k = 0; k < i; k++)
			if (values_equal(v->list[i], v->list[k]))
				return err_set(err, EINVAL, "'%s' is there twice%s%s", v->list[i],
					       strcmp(v->list[i], v->list[k]) ? ", as " : "",
					       strcmp(v->list[i], v->list[k]) ? v->list[k] : "");
	return 0;
}

int values_parse(const char *text, size_t len, struct values *ret, struct err *err)
{
	CLEANUP(values_deinit) struct values v = {.list = NULL};
	const char separator = memchr(text, '|', len) ? '|' : ',';
	const char *const end = text + len;
	int r = 0;

	for (const char *at = text; r == 0 && at <= end;) {
		const char *next = memchr(at, separator, (size_t)(end - at));
		char word[WORD_MAX];

		next = next ? next : end;
		if (next == at || next - at >= WORD_MAX)
			return err_set(err, EINVAL, "a value in '%.*s' is %s", (int)len, text,
				       next == at ? "empty" : "too long");
		snprintf(word, sizeof(word), "%.*s", (int)(next - at), at);
		r = add_range(&v, word, err);
		if (r < 0 && r != -ENOMEM)
			return err_prefix(err, r, "%s", word);
		r = r == 1 ? values_add(&v, word) : r;
		at = next + 1;
	}
	r = r == 0 ? inherit_unit(&v) : r;
	r = r == 0 ? check_different(&v, err) : r;
	if (r == 0) {
		*ret = v;
		v = (struct values){.list = NULL};
	}
	return r;
}

int value_number(const char *text, double *ret, const char **ret_unit)
{
	uint64_t bytes;
	double x;

	if (units_ratio(text, &x, NULL) == 0) {
		*ret = x;
		*ret_unit = "";
	} else if (units_time(text, &x, NULL) == 0) {
		*ret = x / 1e6;
		*ret_unit = "ms";
	} else if (units_bandwidth(text, &x, NULL) == 0) {
		*ret = x * 8;
		*ret_unit = "Gbit/s";
	} else if (units_bytes(text, &bytes, NULL) == 0) {
		*ret = (double)bytes;
		*ret_unit = "bytes";
	} else {
		return -EINVAL;
	}
	return 0;
}

bool values_equal(const char *a, const char *b)
{
	const char *unit_a, *unit_b;
	double x, y;

	if (value_number(a, &x, &unit_a) < 0 || value_number(b, &y, &unit_b) < 0)
		return strcmp(a, b) == 0;
	return x == y && strcmp(unit_a, unit_b) == 0;
}
