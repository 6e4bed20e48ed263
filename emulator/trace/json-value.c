/* See json-value.h. */
#include "trace/json-value.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 19   /* that 64 bits have */
#define NUMBER_MAX 1024 /* letters: more than any double needs to be told from the next one */

void json_values_deinit(struct json_values *v)
{
	free(v->list);
	free(v->text);
	*v = (struct json_values){0};
}

/* Of two doubles without an error the quotient is the nearest one, too. Return: false: strtod()
 * knows. */
static bool is_short(const char *text, size_t n, double *ret)
{
	static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
				      1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
	bool is_negative = text[0] == '-', has_point = false;
	uint64_t value = 0;
	size_t behind = 0;

	if (n > DIGITS_MAX)
		return false;
	for (size_t i = is_negative; i < n; i++) {
		if (text[i] == '.') {
			has_point = true;
			continue;
		}
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(text[i] - '0');
		behind += has_point;
	}
	*ret = (is_negative ? -1 : 1) * ((double)value / tens[behind]);
	return value <= UINT64_C(1) << 53;
}

double json_number(const char *text, size_t n)
{
	char copy[NUMBER_MAX];
	double d;

	if (is_short(text, n, &d))
		return d;
	n = n < sizeof(copy) ? n : sizeof(copy) - 1;
	memcpy(copy, text, n);
	copy[n] = '\0';
	return strtod(copy, NULL);
}

const struct json_value *json_value_next(const struct json_value *in, const struct json_value *last)
{
	const struct json_value *next = !in ? NULL : last ? last + 1 + last->n_inside : in + 1;

	return next && next <= in + in->n_inside ? next : NULL;
}

const struct json_value *json_value_get(const struct json_value *object, const char *key)
{
	const struct json_value *found = NULL;

	if (object && object->mark == '{')
		for (const struct json_value *v = NULL; (v = json_value_next(object, v)) != NULL;)
			if (v->key[0] == key[0] && strcmp(v->key, key) == 0)
				found = v;
	return found;
}

const char *json_value_text(const struct json_value *v)
{
	return v ? v->text : NULL;
}

double json_value_number(const struct json_value *v)
{
	return v ? v->number : NAN;
}
