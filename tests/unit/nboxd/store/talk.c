/* See talk.h. */
#include "talk.h"

#include <stdlib.h>

static void put(struct buffer *b, const void *p, size_t n)
{
	if (buffer_add(b, p, n) < 0)
		abort();
}

struct buffer request(enum store_op op, const char *shape, ...)
{
	struct buffer b = {0};
	uint8_t byte = (uint8_t)op;
	va_list ap;

	put(&b, &byte, 1);
	va_start(ap, shape);
	for (; *shape; shape++) {
		if (*shape == 'k' || *shape == 'v') {
			const char *text = va_arg(ap, const char *);
			uint64_t n = strlen(text);

			put(&b, &n, sizeof(n));
			put(&b, text, n);
		} else if (*shape == 'u') {
			uint32_t v = va_arg(ap, uint32_t);

			put(&b, &v, sizeof(v));
		} else {
			uint64_t v = va_arg(ap, uint64_t);

			put(&b, &v, sizeof(v));
		}
	}
	va_end(ap);
	return b;
}

static void on_output(void *owner, const void *bytes, size_t n)
{
	put(&((struct talker *)owner)->out, bytes, n);
}

static void on_wait(void *owner, bool begins)
{
	struct talker *t = owner;

	if (t->is_waiting == begins)
		abort();
	t->is_waiting = begins;
}

static void on_ping(void *owner, uint32_t number)
{
	((struct talker *)owner)->pid = number;
}

const struct store_events talk_events = {.on_output = on_output,
					 .on_wait = on_wait,
					 .on_ping = on_ping};

void talker_open(struct talker *t, struct store *s, bool is_valid)
{
	*t = (struct talker){0};
	if (store_client_new(s, t, &t->client) < 0)
		abort();
	if (is_valid && talk(t, request(STORE_VALIDATE, "u", STORE_MAGIC)) < 0)
		abort();
}

void talker_close(struct talker *t)
{
	t->client = store_client_free(t->client);
	buffer_deinit(&t->in);
	buffer_deinit(&t->out);
}

int talk_bytes(struct talker *t, const void *bytes, size_t n)
{
	size_t n_taken = 0;
	int r;

	t->err.text[0] = '\0';
	put(&t->in, bytes, n);
	r = store_client_feed(t->client, t->in.data, t->in.n, &n_taken, &t->err);
	if (!r != !t->err.text[0])
		abort();
	t->in.n -= n_taken;
	if (n_taken)
		memmove(t->in.data, t->in.data + n_taken, t->in.n);
	return r;
}

int talk(struct talker *t, struct buffer request)
{
	int r = talk_bytes(t, request.data, request.n);

	buffer_deinit(&request);
	return r;
}

bool heard(struct talker *t, const void *bytes, size_t n)
{
	bool is_equal = t->out.n == n && (n == 0 || memcmp(t->out.data, bytes, n) == 0);

	t->out.n = 0;
	store_client_set_unread(t->client, 0);
	return is_equal;
}

bool heard_nothing(struct talker *t)
{
	return heard(t, NULL, 0);
}

bool heard_u8(struct talker *t, uint8_t v)
{
	return heard(t, &v, 1);
}

bool heard_i64(struct talker *t, int64_t v)
{
	return heard(t, &v, 8);
}

bool heard_value(struct talker *t, const char *text)
{
	struct buffer b = {0};
	uint64_t n = strlen(text);
	bool is_equal;

	put(&b, &n, sizeof(n));
	put(&b, text, n);
	is_equal = heard(t, b.data, b.n);
	buffer_deinit(&b);
	return is_equal;
}
