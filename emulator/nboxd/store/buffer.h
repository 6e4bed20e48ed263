/* A queue of bytes in one piece: added at the end, taken from the front. Gives its
 * memory back when it runs empty after having been large. Not thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buffer {
	uint8_t *data; /* owned; NULL allowed */
	size_t first, n, capacity;
};

void buffer_deinit(struct buffer *b); /* a zeroed struct is allowed */
/* Return: 0; -ENOMEM, nothing was added. */
int buffer_add(struct buffer *b, const void *bytes, size_t n);
/* By how much the capacity would grow for @n more bytes. */
size_t buffer_growth(const struct buffer *b, size_t n);
/* Room for @n more bytes without another allocation. Return: 0; -ENOMEM. */
int buffer_reserve(struct buffer *b, size_t n);
void buffer_take(struct buffer *b, size_t n); /* @n must not be more than b->n */
static inline const uint8_t *buffer_front(const struct buffer *b)
{
	return b->data ? b->data + b->first : NULL;
}
