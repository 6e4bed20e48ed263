/* See buffer.h. */
#include "nboxd/store/buffer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_BYTES (64u << 10) /* an empty buffer of up to this size is kept */

void buffer_deinit(struct buffer *b)
{
	free(b->data);
	*b = (struct buffer){0};
}

size_t buffer_growth(const struct buffer *b, size_t n)
{
	size_t wanted = b->n + n, capacity = b->capacity ? b->capacity : 256;

	if (b->capacity - b->first - b->n >= n)
		return 0;
	while (capacity < wanted)
		capacity *= 2;
	return capacity - b->capacity;
}

int buffer_reserve(struct buffer *b, size_t n)
{
	size_t capacity = b->capacity + buffer_growth(b, n);
	uint8_t *data;

	if (b->capacity - b->first - b->n >= n)
		return 0;
	if (b->capacity >= b->n + n && b->first >= b->n) { /* moves each byte at most once more */
		memcpy(b->data, b->data + b->first, b->n);
		b->first = 0;
		return 0;
	}
	data = malloc(capacity);
	if (!data)
		return -ENOMEM;
	if (b->n)
		memcpy(data, b->data + b->first, b->n);
	free(b->data);
	b->data = data;
	b->first = 0;
	b->capacity = capacity;
	return 0;
}

int buffer_add(struct buffer *b, const void *bytes, size_t n)
{
	if (n == 0)
		return 0;
	if (buffer_reserve(b, n) < 0)
		return -ENOMEM;
	memcpy(b->data + b->first + b->n, bytes, n);
	b->n += n;
	return 0;
}

void buffer_take(struct buffer *b, size_t n)
{
	assert(n <= b->n);
	b->first += n;
	b->n -= n;
	if (b->n)
		return;
	b->first = 0;
	if (b->capacity > KEPT_BYTES)
		buffer_deinit(b);
}
