/* See events.h. */
#include "trace/events.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "base/cleanup.h"

#define VALUE_MAX (1 << 20) /* bytes of an event; those of PyTorch have some hundreds */
#define CHUNK (1 << 16)     /* bytes that are read at once */
#define TEXT_MAX (VALUE_MAX + 2 * CHUNK) /* of what may lie between two checks */
#define DEPTH_MAX 200                    /* lists in lists */

struct reader {
	const char *file;
	const struct events_sink *sink;
	void *ctx;
	struct err *err;
	yajl_handle parser; /* owned */
	int result;         /* negative errno with the sentence: why a callback has stopped */
	unsigned int outer; /* open lists and objects around the values: 2 at most */
	bool is_list;       /* they are events */
	bool has_events;
	bool is_over;
	char member[64]; /* beside the list of events; longer names are nobody's */
	const char *key;
	struct json_values values; /* the event, or member, that is being read */
	size_t open[DEPTH_MAX];    /* in values */
	unsigned int depth;
	unsigned long n_events; /* begun */
	size_t value_bytes;     /* read since a value was over */
};

static void reader_deinit(struct reader *r)
{
	if (r->parser)
		yajl_free(r->parser);
	json_values_deinit(&r->values);
}

/* Of yajl's callbacks: 1 goes on. */
static int stop(struct reader *r, int errnum, const char *why)
{
	r->result = r->n_events ? err_set(r->err, errnum, "%s: event %lu: %s", r->file, r->n_events,
					  why)
				: err_set(r->err, errnum, "%s: %s", r->file, why);
	return 0;
}

static int finish_value(struct reader *r)
{
	int result = 0;

	if (r->is_list)
		result = r->sink->event(r->ctx, r->values.list, r->err);
	else if (r->sink->member)
		result = r->sink->member(r->ctx, r->member, &r->values, r->err);
	r->values.n = r->values.text_n = 0;
	r->value_bytes = 0;
	if (result == -ENOMEM)
		return stop(r, ENOMEM, "no memory for what it has");
	if (result == 0)
		return 1;
	r->result = r->is_list ? err_prefix(r->err, result, "%s: event %lu", r->file, r->n_events)
			       : err_prefix(r->err, result, "%s: %s", r->file, r->member);
	return 0;
}

static int take_value(struct reader *r, struct json_value new)
{
	struct json_values *v = &r->values;

	if (r->depth == 0 && r->is_list) {
		r->n_events++;
		if (new.mark != '{')
			return stop(r, EINVAL, "is no object");
	}
	if (v->n == v->size) {
		size_t size = 2 * v->size + 64;
		struct json_value *moved = realloc(v->list, size * sizeof(*moved));

		if (!moved)
			return stop(r, ENOMEM, "no memory");
		v->list = moved;
		v->size = size;
	}
	new.key = r->depth ? r->key : NULL;
	r->key = NULL;
	v->list[v->n++] = new;
	if (new.mark != '{' && new.mark != '[')
		return r->depth ? 1 : finish_value(r);
	if (r->depth == DEPTH_MAX)
		return stop(r, EINVAL, "has lists in lists, more than 200 deep");
	r->open[r->depth++] = v->n - 1;
	return 1;
}

static int take_open(struct reader *r, char mark)
{
	bool is_events = r->outer == 0
				 ? mark == '['
				 : r->outer == 1 && !r->is_list && r->depth == 0 && mark == '[' &&
					   strcmp(r->member, "traceEvents") == 0;

	if (r->outer && !is_events)
		return take_value(r, (struct json_value){.number = NAN, .mark = mark});
	r->has_events |= is_events;
	r->is_list = is_events;
	r->outer++;
	return 1;
}

static int take_close(void *ctx)
{
	struct reader *r = ctx;
	size_t first;

	if (r->depth == 0) {
		r->is_list = false;
		r->is_over = --r->outer == 0;
		return 1;
	}
	first = r->open[--r->depth];
	r->values.list[first].n_inside = (uint32_t)(r->values.n - first - 1);
	return r->depth ? 1 : finish_value(r);
}

/* A copy that stays where it is. Return: NULL: stopped. */
static const char *take_text(struct reader *r, const unsigned char *text, size_t n)
{
	struct json_values *v = &r->values;
	char *to;

	if (!v->text)
		v->text = malloc(TEXT_MAX);
	if (!v->text)
		stop(r, ENOMEM, "no memory");
	else if (n >= TEXT_MAX - v->text_n)
		stop(r, EFBIG, "has too much text");
	else if (memchr(text, '\0', n))
		stop(r, EINVAL, "has a zero byte in a string");
	if (r->result < 0)
		return NULL;
	to = v->text + v->text_n;
	memcpy(to, text, n);
	to[n] = '\0';
	v->text_n += n + 1;
	return to;
}

static int take_key(void *ctx, const unsigned char *text, size_t n)
{
	struct reader *r = ctx;

	if (r->depth == 0) {
		snprintf(r->member, sizeof(r->member), "%.*s",
			 (int)(n < sizeof(r->member) ? n : sizeof(r->member)), (const char *)text);
		return 1;
	}
	r->key = take_text(r, text, n);
	return r->key != NULL;
}

static int take_string(void *ctx, const unsigned char *text, size_t n)
{
	struct json_value new = {.number = NAN, .mark = '"', .text = take_text(ctx, text, n)};

	return new.text ? take_value(ctx, new) : 0;
}

static int take_number(void *ctx, const char *text, size_t n)
{
	return take_value(ctx, (struct json_value){.number = json_number(text, n), .mark = '0'});
}

static int take_null(void *ctx)
{
	return take_value(ctx, (struct json_value){.number = NAN, .mark = 'n'});
}

static int take_bool(void *ctx, int value __attribute__((unused)))
{
	return take_value(ctx, (struct json_value){.number = NAN, .mark = 't'});
}

static int take_object(void *ctx)
{
	return take_open(ctx, '{');
}

static int take_list(void *ctx)
{
	return take_open(ctx, '[');
}

/* What yajl says of the bytes, which begin at @before in the file. */
static int refuse(const struct reader *r, const unsigned char *bytes, size_t n,
		  unsigned long long before)
{
	char event[64] = "";
	unsigned char *why;

	if (r->is_over)
		return err_set(r->err, EINVAL,
			       "%s: goes on behind its end and event %lu: is it two traces in one "
			       "file?",
			       r->file, r->n_events);
	if (r->n_events)
		snprintf(event, sizeof(event), "%sevent %lu: ", r->depth ? "" : "behind ",
			 r->n_events);
	why = yajl_get_error(r->parser, 0, bytes, n);
	err_set(r->err, EINVAL, "%s: %sat byte %llu: %.*s", r->file, event,
		before + yajl_get_bytes_consumed(r->parser),
		why ? (int)strcspn((char *)why, "\n") : 0, why ? (char *)why : "");
	yajl_free_error(r->parser, why);
	return -EINVAL;
}

static int take_bytes(struct reader *r, const unsigned char *bytes, size_t n,
		      unsigned long long before)
{
	yajl_status status;

	if (r->value_bytes > VALUE_MAX) {
		stop(r, EFBIG, "a value has more than 1048576 bytes");
		return r->result;
	}
	r->value_bytes += n;
	status = yajl_parse(r->parser, bytes, n);
	if (status == yajl_status_client_canceled)
		return r->result;
	return status == yajl_status_ok ? 0 : refuse(r, bytes, n, before);
}

/* Behind the last byte. */
static int finish(struct reader *r)
{
	yajl_status status = yajl_complete_parse(r->parser);

	if (r->result < 0)
		return r->result;
	if (status != yajl_status_ok || !r->is_over)
		return r->n_events ? err_set(r->err, EINVAL,
					     "%s: ends in the middle: in event %lu, or behind it",
					     r->file, r->n_events)
				   : err_set(r->err, EINVAL, "%s: ends in the middle", r->file);
	return r->has_events ? 0
			     : err_set(r->err, EINVAL,
				       "%s: is no trace: it has no list traceEvents", r->file);
}

/* By its mark, or since letters of ASCII have a byte of zeros there. */
static bool is_utf16(const char *text, size_t n)
{
	return n >= 2 && (!text[0] != !text[1] || memcmp(text, "\xff\xfe", 2) == 0 ||
			  memcmp(text, "\xfe\xff", 2) == 0);
}

/* What does not begin as a trace does. */
static int check_begin(const char *file, const char *text, size_t n, struct err *err)
{
	size_t at = 0;

	while (at < n && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	if (is_utf16(text, n))
		return err_set(err, EINVAL,
			       "%s: is UTF-16: convert it first (iconv -f UTF-16 -t UTF-8)", file);
	if (n && text[0] == 0x1f)
		return err_set(err, EINVAL, "%s: is compressed: gunzip it first", file);
	if (at == n || (text[at] != '{' && text[at] != '['))
		return err_set(err, EINVAL, "%s: is no trace: it does not begin as JSON does",
			       file);
	return 0;
}

int events_read(FILE *f, const char *file, const struct events_sink *sink, void *ctx,
		struct err *err)
{
	static const yajl_callbacks callbacks = {
		.yajl_null = take_null,
		.yajl_boolean = take_bool,
		.yajl_number = take_number,
		.yajl_string = take_string,
		.yajl_start_map = take_object,
		.yajl_map_key = take_key,
		.yajl_end_map = take_close,
		.yajl_start_array = take_list,
		.yajl_end_array = take_close,
	};
	CLEANUP(reader_deinit)
	struct reader r = {.file = file, .sink = sink, .ctx = ctx, .err = err};
	CLEANUP(freep) char *bytes = malloc(CHUNK);
	unsigned long long before = 0;
	size_t n, mark; /* mark: of UTF-8, at the beginning */
	int result = 0;

	r.parser = yajl_alloc(&callbacks, NULL, &r);
	if (!bytes || !r.parser)
		return err_set(err, ENOMEM, "no memory to read %s", file);
	do {
		n = fread(bytes, 1, CHUNK, f);
		mark = before == 0 && n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
		if (before == 0 && !ferror(f))
			result = check_begin(file, bytes + mark, n - mark, err);
		if (result == 0)
			result = take_bytes(&r, (unsigned char *)bytes + mark, n - mark,
					    before + mark);
		before += n;
	} while (result == 0 && n == CHUNK);
	if (result == 0 && ferror(f))
		return err_set(err, EIO, "%s: cannot be read to its end: is it cut, or damaged?",
			       file);
	return result == 0 ? finish(&r) : result;
}
