/* Messages in the wire format of Protocol Buffers: the four kinds of fields that are needed here.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct protobuf {
	unsigned char *data; /* owned */
	size_t n, size;
	int error; /* 0; -ENOMEM: a field is missing */
};

void protobuf_uint(struct protobuf *b, uint32_t field, uint64_t value);
void protobuf_bytes(struct protobuf *b, uint32_t field, const void *data, size_t n);
void protobuf_text(struct protobuf *b, uint32_t field, const char *text);
void protobuf_message(struct protobuf *b, uint32_t field, const struct protobuf *message);
/* Behind its length. Empties @b. Return: 0; -ENOMEM. */
int protobuf_write(struct protobuf *b, FILE *to);
void protobuf_deinit(struct protobuf *b);
