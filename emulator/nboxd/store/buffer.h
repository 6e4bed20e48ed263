/* Bytes in one piece that grow at their end. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buffer {
	uint8_t *data; /* owned; NULL allowed */
	size_t n, capacity;
};

void buffer_deinit(struct buffer *b); /* a zeroed struct is allowed */
/* Return: 0; -ENOMEM, nothing was added. */
int buffer_add(struct buffer *b, const void *bytes, size_t n);
