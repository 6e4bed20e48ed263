/* See events.h. */
#include "trace/events.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define VALUE_MAX (1 << 20) /* bytes of an event; those of PyTorch have some hundreds */

struct reader {
	FILE *f;
	const char *file;
	const struct events_sink *sink;
	void *ctx;
	char *buffer; /* owned; VALUE_MAX bytes, which are read from at to end */
	size_t at, end;
	unsigned long long before; /* bytes of the file before the buffer's */
	struct json_values values; /* the last one */
	unsigned long n_events;
};

static void reader_deinit(struct reader *r)
{
	free(r->buffer);
	json_values_deinit(&r->values);
}

/* Return: false: there is no more, or no room. */
static bool read_more(struct reader *r)
{
	size_t n;

	memmove(r->buffer, r->buffer + r->at, r->end - r->at);
	r->before += r->at;
	r->end -= r->at;
	r->at = 0;
	n = fread(r->buffer + r->end, 1, VALUE_MAX - r->end, r->f);
	r->end += n;
	return n > 0;
}

/* To the next byte that is neither a blank nor a comma. Return: it; EOF. */
static int next_mark(struct reader *r)
{
	while (r->at < r->end || read_more(r)) {
		char c = r->buffer[r->at];

		if (c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != ',')
			return (unsigned char)c;
		r->at++;
	}
	return EOF;
}

/* The one at which the reader stands, into values. Return: 0; negative errno with the sentence. */
static int read_value(struct reader *r, struct err *err)
{
	const char *why;
	char event[64] = "";
	size_t n;
	int result;

	do
		result = json_values_parse(&r->values, r->buffer + r->at, r->end - r->at, &n, &why);
	while (result == JSON_VALUES_CUT && read_more(r));
	r->at += n;
	if (result == 0)
		return 0;
	if (r->n_events)
		snprintf(event, sizeof(event), "event %lu: ", r->n_events);
	if (result == -ENOMEM)
		return err_set(err, ENOMEM, "no memory for the events of %s", r->file);
	if (result == -EINVAL)
		return err_set(err, EINVAL, "%s: %sat byte %llu: %s", r->file, event,
			       r->before + r->at, why);
	if (ferror(r->f))
		return err_set(err, EIO, "%s: cannot be read to its end: is it cut, or damaged?",
			       r->file);
	if (r->end == VALUE_MAX)
		return err_set(err, EFBIG, "%s: %sa value has more than %d bytes", r->file, event,
			       VALUE_MAX);
	return err_set(err, EINVAL, "%s: %sthe trace ends in the middle", r->file, event);
}

/* Behind the bracket. */
static int read_events(struct reader *r, struct err *err)
{
	for (;;) {
		int c = next_mark(r), result;

		if (c == ']') {
			r->at++;
			return 0;
		}
		r->n_events++;
		if (c != '{' && !ferror(r->f))
			return err_set(err, EINVAL,
				       "%s: event %lu: the trace ends in the middle, or is none",
				       r->file, r->n_events);
		result = read_value(r, err);
		if (result < 0)
			return result;
		result = r->sink->event(r->ctx, r->values.list, err);
		if (result == -ENOMEM)
			return err_set(err, ENOMEM, "no memory for the events of %s", r->file);
		if (result < 0)
			return err_prefix(err, result, "%s: event %lu", r->file, r->n_events);
	}
}

/* A member's, at which the reader stands. */
static int read_member(struct reader *r, const char *key, struct err *err)
{
	int result = read_value(r, err);

	if (result < 0 || !r->sink->member)
		return result;
	result = r->sink->member(r->ctx, key, &r->values, err);
	if (result == -ENOMEM)
		return err_set(err, ENOMEM, "no memory for %s", r->file);
	return result < 0 ? err_prefix(err, result, "%s: %s", r->file, key) : 0;
}

/* Behind the first brace. */
static int read_members(struct reader *r, struct err *err)
{
	bool has_events = false;
	char key[64]; /* longer ones are nobody's */
	int c, result;

	while ((c = next_mark(r)) == '"') {
		result = read_value(r, err);
		if (result < 0)
			return result;
		snprintf(key, sizeof(key), "%s", r->values.list->text);
		if (next_mark(r) != ':')
			break;
		r->at++;
		if (next_mark(r) == '[' && strcmp(key, "traceEvents") == 0) {
			has_events = true;
			r->at++;
			result = read_events(r, err);
		} else {
			result = read_member(r, key, err);
		}
		if (result < 0)
			return result;
	}
	if (!has_events)
		return err_set(err, EINVAL, "%s: is no trace: it has no list traceEvents", r->file);
	if (c != '}')
		return err_set(err, EINVAL, "%s: ends in the middle, behind event %lu", r->file,
			       r->n_events);
	r->at++;
	return 0;
}

/* What does not begin as JSON does. */
static int refuse(const struct reader *r, struct err *err)
{
	if (ferror(r->f))
		return err_set(err, EIO, "%s: cannot be read", r->file);
	if (r->end && r->buffer[0] == 0x1f)
		return err_set(err, EINVAL, "%s: is compressed: gunzip it first", r->file);
	return err_set(err, EINVAL, "%s: is no trace: it does not begin as JSON does", r->file);
}

/* By its mark, or since letters of ASCII have a byte of zeros there. */
static bool is_utf16(const char *text, size_t n)
{
	return n >= 2 && (!text[0] != !text[1] || memcmp(text, "\xff\xfe", 2) == 0 ||
			  memcmp(text, "\xfe\xff", 2) == 0);
}

int events_read(FILE *f, const char *file, const struct events_sink *sink, void *ctx,
		struct err *err)
{
	CLEANUP(reader_deinit)
	struct reader r = {
		.f = f, .file = file, .sink = sink, .ctx = ctx, .buffer = malloc(VALUE_MAX)};
	int c, result;

	if (!r.buffer)
		return err_set(err, ENOMEM, "no memory to read %s", file);
	c = next_mark(&r);
	if (r.end >= 3 && memcmp(r.buffer, "\xef\xbb\xbf", 3) == 0) { /* UTF-8's mark */
		r.at += 3;
		c = next_mark(&r);
	}
	if (is_utf16(r.buffer, r.end))
		return err_set(err, EINVAL,
			       "%s: is UTF-16: convert it first (iconv -f UTF-16 -t UTF-8)", file);
	if (c != '{' && c != '[')
		return refuse(&r, err);
	r.at++;
	result = c == '{' ? read_members(&r, err) : read_events(&r, err);
	if (result == 0 && next_mark(&r) != EOF)
		return err_set(err, EINVAL,
			       "%s: goes on behind its end and event %lu: is it two traces in one "
			       "file?",
			       file, r.n_events);
	return result;
}
