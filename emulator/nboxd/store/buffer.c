/* See buffer.h. */
#include "nboxd/store/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void buffer_deinit(struct buffer *b)
{
	free(b->data);
	*b = (struct buffer){0};
}

int buffer_add(struct buffer *b, const void *bytes, size_t n)
{
	size_t wanted = b->n + n, twice = 2 * b->capacity;

	if (n == 0)
		return 0;
	if (wanted > b->capacity) {
		size_t capacity = wanted > twice ? wanted : twice;
		uint8_t *data = realloc(b->data, capacity);

		if (!data)
			return -ENOMEM;
		b->data = data;
		b->capacity = capacity;
	}
	memcpy(b->data + b->n, bytes, n);
	b->n = wanted;
	return 0;
}
