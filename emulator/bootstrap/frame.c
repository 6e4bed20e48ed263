/* See frame.h. Integers are in the machine's order, as NCCL sends them. */
#include "bootstrap/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t take(uint8_t *to, uint32_t got, uint32_t want, const uint8_t **bytes, size_t *n)
{
	uint32_t part = want - got < *n ? want - got : (uint32_t)*n;

	if (part)
		memcpy(to + got, *bytes, part);
	*bytes += part;
	*n -= part;
	return got + part;
}

int hello_take(struct hello *h, const uint8_t **bytes, size_t *n)
{
	h->got = take(h->bytes, h->got, sizeof(h->bytes), bytes, n);
	return h->got == sizeof(h->bytes);
}

uint64_t hello_magic(const struct hello *h)
{
	uint64_t magic;

	memcpy(&magic, h->bytes, sizeof(magic));
	return magic;
}

int32_t hello_type(const struct hello *h)
{
	int32_t type;

	memcpy(&type, h->bytes + sizeof(uint64_t), sizeof(type));
	return type;
}

int frame_take(struct frame *f, size_t max, const uint8_t **bytes, size_t *n)
{
	if (f->head_got < sizeof(f->head)) {
		f->head_got = take(f->head, f->head_got, sizeof(f->head), bytes, n);
		if (f->head_got < sizeof(f->head))
			return 0;
		memcpy(&f->size, f->head, sizeof(f->size));
	}
	if (f->size < 0 || (size_t)f->size > max)
		return -EMSGSIZE;
	if (f->size > 0 && !f->bytes) {
		f->bytes = malloc((size_t)f->size);
		if (!f->bytes)
			return -ENOMEM;
	}
	f->got = take(f->bytes, f->got, (uint32_t)f->size, bytes, n);
	return f->got == (uint32_t)f->size;
}

void frame_deinit(struct frame *f)
{
	free(f->bytes);
	memset(f, 0, sizeof(*f));
}
