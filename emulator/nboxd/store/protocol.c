/* See protocol.h. The shape of each operation is data: one letter a field. */
#include "nboxd/store/protocol.h"

#include <errno.h>
#include <string.h>

/* k key, v value, u u32, i i64; '*': a count, and the rest is repeated that often */
static const struct {
	const char *name, *shape;
} ops[STORE_OPS] = {
	[STORE_VALIDATE] = {"VALIDATE", "u"},
	[STORE_SET] = {"SET", "kv"},
	[STORE_COMPARE_SET] = {"COMPARE_SET", "kvv"},
	[STORE_GET] = {"GET", "k"},
	[STORE_ADD] = {"ADD", "ki"},
	[STORE_CHECK] = {"CHECK", "*k"},
	[STORE_WAIT] = {"WAIT", "*k"},
	[STORE_GETNUMKEYS] = {"GETNUMKEYS", ""},
	[STORE_DELETE_KEY] = {"DELETE_KEY", "k"},
	[STORE_APPEND] = {"APPEND", "kv"},
	[STORE_MULTI_GET] = {"MULTI_GET", "*k"},
	[STORE_MULTI_SET] = {"MULTI_SET", "*kv"},
	[STORE_CANCEL_WAIT] = {"CANCEL_WAIT", ""},
	[STORE_PING] = {"PING", "u"},
	[STORE_QUEUE_PUSH] = {"QUEUE_PUSH", "kv"},
	[STORE_QUEUE_POP] = {"QUEUE_POP", "k"},
	[STORE_QUEUE_LEN] = {"QUEUE_LEN", "k"},
	[STORE_LIST_KEYS] = {"LIST_KEYS", ""},
	[STORE_BARRIER] = {"BARRIER", "ki"},
};

const char *store_op_name(uint32_t op)
{
	return op < STORE_OPS ? ops[op].name : "?";
}

char *store_bytes_print(struct store_bytes b, char *buf, size_t size)
{
	size_t n = 0;

	for (; n < b.n && n + 1 < size; n++)
		buf[n] = b.p[n] > ' ' && b.p[n] < 0x7f && b.p[n] != '"' ? (char)b.p[n] : '?';
	buf[n] = '\0';
	return buf;
}

uint32_t cursor_u32(struct store_cursor *c)
{
	uint32_t v;

	memcpy(&v, c->p, sizeof(v));
	c->p += sizeof(v);
	return v;
}

uint64_t cursor_u64(struct store_cursor *c)
{
	uint64_t v;

	memcpy(&v, c->p, sizeof(v));
	c->p += sizeof(v);
	return v;
}

struct store_bytes cursor_bytes(struct store_cursor *c)
{
	size_t n = (size_t)cursor_u64(c);
	struct store_bytes b = {c->p, n};

	c->p += n;
	return b;
}

/* One field at s->pos. Return: as store_scan(). */
static int scan_field(struct store_scan *s, char letter, const uint8_t *bytes, size_t n,
		      struct err *err)
{
	uint64_t max = letter == 'k' ? STORE_KEY_MAX : STORE_VALUE_MAX, length;
	size_t fixed = letter == 'u' ? 4 : 8;

	if (n - s->pos < fixed)
		return 0;
	if (letter == 'u' || letter == 'i') {
		s->pos += fixed;
		return STORE_COMPLETE;
	}
	memcpy(&length, bytes + s->pos, sizeof(length));
	if (letter == '*') {
		if (length > STORE_KEYS_MAX)
			return err_set(err, EPROTO, "%s of %llu keys; %u are allowed",
				       ops[s->op].name, (unsigned long long)length, STORE_KEYS_MAX);
		s->n_left = length;
		s->pos += fixed;
		return STORE_COMPLETE;
	}
	if (length > max)
		return err_set(err, EPROTO, "%s with a %s of %llu bytes; %llu are allowed",
			       ops[s->op].name, letter == 'k' ? "key" : "value",
			       (unsigned long long)length, (unsigned long long)max);
	if (s->pos + fixed + length > STORE_REQUEST_MAX)
		return err_set(err, EPROTO, "%s of more than %u bytes", ops[s->op].name,
			       STORE_REQUEST_MAX);
	if (n - s->pos - fixed < length)
		return 0;
	s->pos += fixed + (size_t)length;
	return STORE_COMPLETE;
}

int store_scan(struct store_scan *s, const uint8_t *bytes, size_t n, struct err *err)
{
	const char *shape;
	int r;

	if (!s->has_op) {
		if (n == 0)
			return 0;
		if (bytes[0] >= STORE_OPS)
			return err_set(err, EPROTO, "byte %u is no operation of a TCPStore",
				       bytes[0]);
		s->op = bytes[0];
		s->has_op = true;
		s->pos = 1;
	}
	shape = ops[s->op].shape;
	for (;;) {
		char letter = shape[s->field];

		if (letter == '\0') {
			if (shape[0] != '*' || --s->n_left == 0)
				return STORE_COMPLETE;
			s->field = 1;
			continue;
		}
		r = scan_field(s, letter, bytes, n, err);
		if (r != STORE_COMPLETE)
			return r;
		s->field++;
		if (letter == '*' && s->n_left == 0)
			return STORE_COMPLETE;
	}
}
