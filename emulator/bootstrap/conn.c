/* See conn.h. The functions of bootstrap.h for connections are here; what a connection is for, its
 * kind knows. */
#include "bootstrap/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct bootstrap_conn *conn_new(struct bootstrap *all, const struct bootstrap_sink *sink, void *ctx,
				const struct conn_kind *kind, struct bootstrap_conn **list)
{
	struct bootstrap_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->all = all;
	c->sink = sink;
	c->ctx = ctx;
	c->kind = kind;
	c->list = list;
	DL_APPEND(*list, c);
	return c;
}

void conn_free(struct bootstrap_conn *c)
{
	if (!c)
		return;
	DL_DELETE(*c->list, c);
	frame_deinit(&c->frame);
	free(c->out);
	free(c);
}

void conn_move(struct bootstrap_conn *c, struct bootstrap_conn **list)
{
	DL_DELETE(*c->list, c);
	c->list = list;
	DL_APPEND(*list, c);
}

uint8_t *conn_put_room(struct bootstrap_conn *c, size_t n)
{
	size_t size = c->out_size ? c->out_size : 256;
	uint8_t *out;

	if (c->out_at == c->out_end)
		c->out_at = c->out_end = 0;
	if (c->out_end + n > c->out_size && c->out_at) {
		memmove(c->out, c->out + c->out_at, c->out_end - c->out_at);
		c->out_end -= c->out_at;
		c->out_at = 0;
	}
	while (size < c->out_end + n)
		size *= 2;
	if (size > c->out_size) {
		out = realloc(c->out, size);
		if (!out)
			return NULL;
		c->out = out;
		c->out_size = size;
	}
	c->out_end += n;
	return c->out + c->out_end - n;
}

int conn_put(struct bootstrap_conn *c, const void *bytes, size_t n)
{
	uint8_t *to = conn_put_room(c, n);

	if (!to)
		return -ENOMEM;
	if (n)
		memcpy(to, bytes, n);
	return 0;
}

int conn_put_frame(struct bootstrap_conn *c, const void *bytes, int32_t n)
{
	int r = conn_put(c, &n, sizeof(n));

	return r < 0 ? r : conn_put(c, bytes, (size_t)n);
}

int conn_put_hello(struct bootstrap_conn *c, uint64_t magic)
{
	int32_t type = NCCL_SOCKET_BOOTSTRAP;
	int r = conn_put(c, &magic, sizeof(magic));

	return r < 0 ? r : conn_put(c, &type, sizeof(type));
}

size_t conn_queued(const struct bootstrap_conn *c)
{
	return c->out_end - c->out_at;
}

void conn_wake(struct bootstrap_conn *c)
{
	if (!c->is_hung_up)
		c->sink->wake(c->ctx, c);
}

void conn_hang_up(struct bootstrap_conn *c, bool is_now)
{
	if (c->is_hung_up)
		return;
	c->is_hung_up = true;
	if (c->is_known)
		c->sink->hang_up(c->ctx, c, is_now);
}

void conn_end_when_sent(struct bootstrap_conn *c)
{
	c->ends_when_sent = true;
	if (conn_queued(c) == 0)
		conn_hang_up(c, false);
}

const char *conn_error_text(int error, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s", error ? ": " : "", error ? strerror(error) : "");
	return buf;
}

/* --- for the room above ------------------------------------------------------------ */

size_t bootstrap_conn_room(const struct bootstrap_conn *c)
{
	if (c->is_hung_up)
		return 0;
	return c->kind->room ? c->kind->room(c) : CONN_ROOM_BYTES;
}

void bootstrap_conn_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n)
{
	c->was_open = true;
	if (!c->is_hung_up && n)
		c->kind->in(c, bytes, n);
}

size_t bootstrap_conn_out(struct bootstrap_conn *c, uint8_t *buf, size_t size)
{
	size_t n = 0, part;

	c->was_open = true;
	while (n < size) {
		if (conn_queued(c) == 0 && !c->is_hung_up && c->kind->more)
			c->kind->more(c);
		part = conn_queued(c) < size - n ? conn_queued(c) : size - n;
		if (!part)
			break;
		memcpy(buf + n, c->out + c->out_at, part);
		c->out_at += part;
		n += part;
	}
	if (c->is_hung_up)
		return n;
	if (n && c->kind->sent)
		c->kind->sent(c);
	if (c->ends_when_sent && conn_queued(c) == 0)
		conn_hang_up(c, false);
	return n;
}

void bootstrap_conn_ended(struct bootstrap_conn *c, int error)
{
	if (!c->is_hung_up)
		c->kind->ended(c, error);
}

void bootstrap_conn_set_sink(struct bootstrap_conn *c, void *data)
{
	c->sink_data = data;
}

void *bootstrap_conn_sink(const struct bootstrap_conn *c)
{
	return c->sink_data;
}
