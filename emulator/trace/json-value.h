/* A value of JSON as a list of all values in it, so that an event of a trace takes no memory of its
 * own. (A tree of jansson's takes 6 us for one.) */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct json_value {
	const char *key;   /* of an object's member; NULL */
	const char *text;  /* of a string, without NUL in it, UTF-8; else NULL */
	double number;     /* of a number: infinite where it is too large; else NAN */
	uint32_t n_inside; /* values in it, and in these: behind it, in order */
	char mark;         /* that it begins with: '{', '[', '"', 't', 'n', '0' */
};

struct json_values {
	struct json_value *list; /* owned; the first one has all others in it */
	char *text;              /* owned; of keys and strings */
	size_t n, size, text_n;
};

void json_values_deinit(struct json_values *v);

/* Of @n letters that are a number of JSON. */
double json_number(const char *text, size_t n);

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
