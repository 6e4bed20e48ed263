/* See json-value.h. */
#include "trace/json-value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 200 /* lists in lists */
#define DIGITS_MAX 19 /* that 64 bits have */

struct parser {
	const char *at, *end;
	struct json_values *values;
	char *to; /* in values->text, where there is room for all that @at may have */
	const char *why;
};

static int refuse(struct parser *p, const char *why)
{
	p->why = why;
	return -EINVAL;
}

/* To the next byte that is no blank. Return: 0; JSON_VALUES_CUT. */
static int skip(struct parser *p)
{
	while (p->at < p->end &&
	       (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r'))
		p->at++;
	return p->at < p->end ? 0 : JSON_VALUES_CUT;
}

/* --- strings -----------------------------------------------------------------------------------
 */

/* As RFC 3629 has it: no surrogates, nothing longer than needed. */
static bool is_utf8(const char *text)
{
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};

	for (const unsigned char *c = (const unsigned char *)text; *c;) {
		int more = *c < 0x80   ? 0
			   : *c < 0xc0 ? 4
			   : *c < 0xe0 ? 1
			   : *c < 0xf0 ? 2
			   : *c < 0xf8 ? 3
				       : 4;
		uint32_t code = more ? *c & (0x3fu >> more) : *c;

		c++;
		for (int i = 0; i < more && more < 4; i++, c++) {
			if ((*c & 0xc0) != 0x80)
				return false;
			code = code << 6 | (*c & 0x3f);
		}
		if (more == 4 || code < least[more] || code > 0x10ffff ||
		    (code >= 0xd800 && code < 0xe000))
			return false;
	}
	return true;
}

static void put_utf8(struct parser *p, uint32_t code)
{
	int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;

	*p->to++ = (char)(more ? (0xff00u >> (more + 1) & 0xff) | code >> 6 * more : code);
	while (more--)
		*p->to++ = (char)(0x80 | (code >> 6 * more & 0x3f));
}

/* The four digits behind "\u". Return: 0; JSON_VALUES_CUT; -EINVAL. */
static int parse_hex(struct parser *p, uint32_t *ret)
{
	*ret = 0;
	for (int i = 0; i < 4; i++, p->at++) {
		char c;

		if (p->at == p->end)
			return JSON_VALUES_CUT;
		c = *p->at;
		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
			return refuse(p, "no four digits behind \\u");
		*ret = *ret * 16 + (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return 0;
}

/* Behind the backslash. Return: 0; JSON_VALUES_CUT; -EINVAL. */
static int parse_escape(struct parser *p)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *known;
	uint32_t code, low;
	int r;

	if (p->at == p->end)
		return JSON_VALUES_CUT;
	known = *p->at ? strchr(from, *p->at) : NULL;
	if (known) {
		*p->to++ = to[known - from];
		p->at++;
		return 0;
	}
	if (*p->at++ != 'u')
		return refuse(p, "a backslash before what needs none");
	r = parse_hex(p, &code);
	if (r == 0 && code >= 0xd800 && code < 0xdc00) { /* one half of a pair */
		if (p->end - p->at < 2)
			return JSON_VALUES_CUT;
		if (p->at[0] != '\\' || p->at[1] != 'u')
			return refuse(p, "one half of a surrogate pair");
		p->at += 2;
		r = parse_hex(p, &low);
		if (r == 0 && (low < 0xdc00 || low > 0xdfff))
			return refuse(p, "one half of a surrogate pair");
		code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
	}
	if (r)
		return r;
	if (code == 0 || (code >= 0xdc00 && code < 0xe000))
		return refuse(p, "no letter behind \\u");
	put_utf8(p, code);
	return 0;
}

/* From its quote on. Return: 0; JSON_VALUES_CUT; -EINVAL. */
static int parse_string(struct parser *p, const char **ret)
{
	const char *at = p->at + 1, *end = p->end;
	unsigned char all = 0;
	char *to = p->to; /* a char may be part of *p: without copies all is read again for each */
	int r;

	*ret = to;
	for (;;) {
		char c;

		if (at == end)
			return JSON_VALUES_CUT;
		c = *at++;
		if (c == '"')
			break;
		all |= (unsigned char)c;
		if (c == '\\') {
			p->at = at;
			p->to = to;
			r = parse_escape(p);
			if (r)
				return r;
			at = p->at;
			to = p->to;
		} else if ((unsigned char)c < 0x20) {
			p->at = at - 1;
			return refuse(p, "a line's end, or another control byte, in a string");
		} else {
			*to++ = c;
		}
	}
	*to++ = '\0';
	p->at = at;
	p->to = to;
	return all >= 0x80 && !is_utf8(*ret) ? refuse(p, "a string that is not UTF-8") : 0;
}

/* --- numbers -----------------------------------------------------------------------------------
 */

/* Digits, at least one, behind those of @value. *r: JSON_VALUES_CUT; -EINVAL. Return: how many. */
static size_t parse_digits(struct parser *p, uint64_t *value, int *r)
{
	const char *from = p->at, *at = from;
	uint64_t sum = *value;

	for (; at < p->end && *at >= '0' && *at <= '9'; at++)
		sum = sum * 10 + (uint64_t)(*at - '0');
	p->at = at;
	*value = sum;
	if (at == p->end)
		*r = JSON_VALUES_CUT;
	else if (at == from)
		*r = refuse(p, "no number");
	return (size_t)(at - from);
}

/* Return: 0; JSON_VALUES_CUT; -EINVAL. */
static int parse_number(struct parser *p, double *ret)
{
	static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
				      1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
	const char *from = p->at;
	uint64_t value = 0, ignored = 0;
	size_t whole, behind = 0;
	bool has_power = false;
	int r = 0;

	p->at += *from == '-';
	whole = parse_digits(p, &value, &r);
	if (r == 0 && whole > 1 && p->at[-(ptrdiff_t)whole] == '0')
		r = refuse(p, "no number: a zero before it");
	if (r == 0 && *p->at == '.') {
		p->at++;
		behind = parse_digits(p, &value, &r);
	}
	if (r == 0 && (*p->at | 0x20) == 'e') {
		has_power = true;
		p->at++;
		p->at += p->at < p->end && (*p->at == '-' || *p->at == '+');
		parse_digits(p, &ignored, &r);
	}
	if (r)
		return r;
	if (has_power || whole + behind > DIGITS_MAX || value > UINT64_C(1) << 53)
		*ret = strtod(from, NULL);
	else /* of two doubles without an error the quotient is the nearest one, too */
		*ret = (*from == '-' ? -1 : 1) * ((double)value / tens[behind]);
	return 0;
}

/* --- values ------------------------------------------------------------------------------------
 */

static int parse_value(struct parser *p, const char *key, int depth);

/* Return: 0; JSON_VALUES_CUT; -EINVAL. */
static int parse_key(struct parser *p, const char **ret)
{
	int r = 0;

	if (*p->at != '"')
		return refuse(p, "a member without a name in quotes");
	r = parse_string(p, ret);
	if (r == 0)
		r = skip(p);
	if (r == 0 && *p->at != ':')
		return refuse(p, "no colon behind a member's name");
	p->at += r == 0;
	return r;
}

/* From the bracket on. Return: 0; JSON_VALUES_CUT; -EINVAL; -ENOMEM. */
static int parse_inside(struct parser *p, int depth)
{
	const char close = *p->at == '{' ? '}' : ']', *key = NULL;
	int r;

	if (depth == DEPTH_MAX)
		return refuse(p, "lists in lists, more than 200 deep");
	p->at++;
	r = skip(p);
	if (r == 0 && *p->at == close) {
		p->at++;
		return 0;
	}
	while (r == 0) {
		if (close == '}')
			r = parse_key(p, &key);
		if (r == 0)
			r = skip(p);
		if (r == 0)
			r = parse_value(p, key, depth + 1);
		if (r == 0)
			r = skip(p);
		if (r == 0 && *p->at == close) {
			p->at++;
			return 0;
		}
		if (r == 0 && *p->at != ',')
			return refuse(p, "no comma behind a value");
		p->at += r == 0;
		r = r == 0 ? skip(p) : r;
	}
	return r;
}

/* true, false, null. Return: 0; JSON_VALUES_CUT; -EINVAL. */
static int parse_word(struct parser *p)
{
	static const char *const words[] = {"true", "false", "null"};

	for (size_t i = 0; i < 3; i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(p->end - p->at) < n && words[i][0] == *p->at)
			return JSON_VALUES_CUT;
		if (strncmp(p->at, words[i], n) == 0) {
			p->at += n;
			return 0;
		}
	}
	return refuse(p, "no value");
}

/* Not at a blank. Return: 0; JSON_VALUES_CUT; -EINVAL; -ENOMEM. */
static int parse_value(struct parser *p, const char *key, int depth)
{
	struct json_values *v = p->values;
	struct json_value new = {.key = key, .number = NAN, .mark = *p->at};
	size_t at = v->n++;
	int r;

	if (at == v->size) {
		size_t size = 2 * v->size + 64;
		struct json_value *moved = realloc(v->list, size * sizeof(*moved));

		if (!moved)
			return -ENOMEM;
		v->list = moved;
		v->size = size;
	}
	if (*p->at == '"') {
		r = parse_string(p, &new.text);
	} else if (*p->at == '{' || *p->at == '[') {
		r = parse_inside(p, depth);
	} else if (*p->at == '-' || (*p->at >= '0' && *p->at <= '9')) {
		new.mark = '0';
		r = parse_number(p, &new.number);
	} else {
		r = parse_word(p);
	}
	new.n_inside = (uint32_t)(v->n - at - 1);
	v->list[at] = new;
	return r;
}

int json_values_parse(struct json_values *v, const char *text, size_t n, size_t *ret_n,
		      const char **ret_why)
{
	struct parser p = {.at = text, .end = text + n, .values = v};
	int r;

	if (v->text_size < n) {
		free(v->text);
		v->text = malloc(n);
		v->text_size = v->text ? n : 0;
		if (!v->text)
			return -ENOMEM;
	}
	p.to = v->text;
	v->n = 0;
	r = skip(&p);
	if (r == 0)
		r = parse_value(&p, NULL, 0);
	*ret_n = (size_t)(p.at - text);
	*ret_why = p.why;
	return r;
}

void json_values_deinit(struct json_values *v)
{
	free(v->list);
	free(v->text);
	*v = (struct json_values){0};
}

/* --- what is in it -----------------------------------------------------------------------------
 */

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
