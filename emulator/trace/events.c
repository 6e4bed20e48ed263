/* See events.h. */
#include "trace/events.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

#define VALUE_MAX (1 << 20) /* bytes of an event; those of PyTorch have some hundreds */

struct reader {
	FILE *f;
	const char *file;
	size_t left; /* bytes that the value may still have */
	char last;   /* that was taken of it, or behind it */
	const struct events_sink *sink;
	void *ctx;
	unsigned long n_events;
};

/* One byte, so that nothing behind the value is taken. */
static size_t next_byte(void *buffer, size_t size, void *ctx)
{
	struct reader *r = ctx;
	int c = r->left ? getc_unlocked(r->f) : EOF;

	if (c == EOF || !size)
		return 0;
	r->left--;
	*(char *)buffer = r->last = (char)c;
	return 1;
}

/* A number's end is known by the byte behind it, which is taken. */
static int read_value(struct reader *r, json_t **ret, struct err *err)
{
	json_error_t why;

	r->left = VALUE_MAX;
	*ret = json_load_callback(next_byte, r,
				  JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY |
					  JSON_DECODE_INT_AS_REAL,
				  &why);
	if (*ret)
		return 0;
	if (ferror(r->f))
		return err_set(err, EIO, "%s: cannot be read", r->file);
	if (!r->left)
		return err_set(err, EFBIG, "%s: a value has more than %d bytes", r->file,
			       VALUE_MAX);
	if (r->n_events)
		return err_set(err, EINVAL, "%s: event %lu: %s", r->file, r->n_events, why.text);
	return err_set(err, EINVAL, "%s: %s", r->file, why.text);
}

/* The next byte that is neither a blank nor a comma; EOF. */
static int next_mark(struct reader *r)
{
	int c;

	do
		c = getc_unlocked(r->f);
	while (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',');
	return c;
}

/* Behind the bracket. */
static int read_events(struct reader *r, struct err *err)
{
	for (;;) {
		json_auto_t *event = NULL;
		int c = next_mark(r), result = 0;

		if (c == ']')
			return 0;
		r->n_events++;
		if (c != '{')
			return err_set(err, EINVAL,
				       "%s: event %lu: the trace ends in the middle, or is none",
				       r->file, r->n_events);
		ungetc(c, r->f);
		result = read_value(r, &event, err);
		if (result < 0)
			return result;
		result = r->sink->event(r->ctx, event, err);
		if (result == -ENOMEM)
			return err_set(err, ENOMEM, "no memory for the events of %s", r->file);
		if (result < 0)
			return err_prefix(err, result, "%s: event %lu", r->file, r->n_events);
	}
}

/* Behind the first brace. */
static int read_members(struct reader *r, struct err *err)
{
	bool has_events = false;
	int c, result;

	while ((c = next_mark(r)) == '"') {
		json_auto_t *key = NULL, *value = NULL;

		ungetc(c, r->f);
		result = read_value(r, &key, err);
		if (result < 0)
			return result;
		if (next_mark(r) != ':')
			break;
		c = next_mark(r);
		if (c == '[' && strcmp(json_string_value(key), "traceEvents") == 0) {
			has_events = true;
			result = read_events(r, err);
		} else {
			ungetc(c, r->f);
			result = read_value(r, &value, err);
			if (result == 0 && r->sink->member)
				result =
					r->sink->member(r->ctx, json_string_value(key), value, err);
			if (result == -ENOMEM)
				return err_set(err, ENOMEM, "no memory for %s", r->file);
			if (result < 0 && value)
				return err_prefix(err, result, "%s: %s", r->file,
						  json_string_value(key));
		}
		if (result < 0)
			return result;
		if (json_is_number(value) && r->last == '}') {
			c = '}';
			break;
		}
	}
	if (!has_events)
		return err_set(err, EINVAL, "%s: is no trace: it has no list traceEvents", r->file);
	if (c != '}')
		return err_set(err, EINVAL, "%s: ends in the middle, behind event %lu", r->file,
			       r->n_events);
	return 0;
}

int events_read(FILE *f, const char *file, const struct events_sink *sink, void *ctx,
		struct err *err)
{
	struct reader r = {.f = f, .file = file, .sink = sink, .ctx = ctx};
	int c = next_mark(&r), result;

	if (c == '{' || c == '[') {
		result = c == '{' ? read_members(&r, err) : read_events(&r, err);
		if (result == 0 && next_mark(&r) != EOF)
			return err_set(err, EINVAL,
				       "%s: goes on behind its end and event %lu: is it two traces "
				       "in one file?",
				       file, r.n_events);
		return result;
	}
	if (c == 0x1f)
		return err_set(err, EINVAL, "%s: is compressed: gunzip it first", file);
	return err_set(err, EINVAL, "%s: is no trace: it does not begin as JSON does", file);
}
