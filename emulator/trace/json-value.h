/* A value of JSON, of somebody else's text, as a list of all values in it: one pass, and no memory
 * for each. (A tree of jansson's takes 6 us for an event of a trace.) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_VALUES_CUT 1

struct json_value {
	const char *key;   /* of an object's member; NULL */
	const char *text;  /* of a string, without NUL in it, UTF-8; else NULL */
	double number;     /* of a number: infinite where it is too large; else NAN */
	uint32_t n_inside; /* values in it, and in these: behind it, in order */
	char mark;         /* that it begins with: '{', '[', '"', 't', 'f', 'n', '0' */
};

struct json_values {
	struct json_value *list; /* owned; the first one has all others in it */
	char *text;              /* owned; of keys and strings */
	size_t n, size, text_size;
};

/**
 * json_values_parse - makes @v, which may have others, or be zeros, the value that @text begins
 * with
 * @ret_n: how many bytes it has; on -EINVAL, where in @text it is none
 * @ret_why: on -EINVAL
 *
 * Of members of one key all are there. Return: 0; JSON_VALUES_CUT: @text ends in it, or right
 * behind a number; -EINVAL: it is no JSON; -ENOMEM.
 */
int json_values_parse(struct json_values *v, const char *text, size_t n, size_t *ret_n,
		      const char **ret_why);
void json_values_deinit(struct json_values *v);

/* The value behind @last in a list or an object; the first one, for NULL. NULL: there is none, also
 * in what is no list. */
const struct json_value *json_value_next(const struct json_value *in,
					 const struct json_value *last);
/* Of an object; of several of that key, the last one. NULL: it has none, or is none. */
const struct json_value *json_value_get(const struct json_value *object, const char *key);
/* NULL: it is no string; @v may be NULL. */
const char *json_value_text(const struct json_value *v);
/* NAN: it is no number; @v may be NULL. */
double json_value_number(const struct json_value *v);
