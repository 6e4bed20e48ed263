/* See protobuf.h. */
#include "nbox/export/protobuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, BYTES = 2 }; /* wire types */

static void add(struct protobuf *b, const void *data, size_t n)
{
	if (b->size - b->n < n) {
		size_t size = 2 * (b->size + n) + 64;
		unsigned char *grown = realloc(b->data, size);

		if (!grown) {
			b->error = -ENOMEM;
			return;
		}
		b->data = grown;
		b->size = size;
	}
	if (n)
		memcpy(b->data + b->n, data, n);
	b->n += n;
}

/* Seven bits a byte, the lowest first. Return: how many bytes. */
static size_t varint(uint64_t value, unsigned char ret[10])
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		ret[n++] = (unsigned char)(value | 0x80);
	ret[n++] = (unsigned char)value;
	return n;
}

static void add_varint(struct protobuf *b, uint64_t value)
{
	unsigned char bytes[10];

	add(b, bytes, varint(value, bytes));
}

void protobuf_uint(struct protobuf *b, uint32_t field, uint64_t value)
{
	add_varint(b, field << 3 | VARINT);
	add_varint(b, value);
}

void protobuf_bytes(struct protobuf *b, uint32_t field, const void *data, size_t n)
{
	add_varint(b, field << 3 | BYTES);
	add_varint(b, n);
	add(b, data, n);
}

void protobuf_text(struct protobuf *b, uint32_t field, const char *text)
{
	protobuf_bytes(b, field, text, strlen(text));
}

void protobuf_message(struct protobuf *b, uint32_t field, const struct protobuf *message)
{
	b->error = b->error ? b->error : message->error;
	protobuf_bytes(b, field, message->data, message->n);
}

int protobuf_write(struct protobuf *b, FILE *to)
{
	unsigned char length[10];

	fwrite(length, 1, varint(b->n, length), to);
	fwrite(b->data, 1, b->n, to);
	b->n = 0;
	return b->error;
}

void protobuf_deinit(struct protobuf *b)
{
	free(b->data);
	*b = (struct protobuf){0};
}
