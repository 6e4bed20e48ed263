/* Bytes of a connection, as NCCL frames them: first 8 bytes of magic and 4 of type, then frames,
 * each an int32 of how many bytes follow, and these. Collects what comes in any pieces. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HELLO_BYTES 12 /* the magic and the type */
#define FRAME_HEAD_BYTES 4

struct hello {
	uint8_t bytes[HELLO_BYTES];
	uint32_t got;
};

/* Takes from *@bytes what the hello still needs. Return: 1 when it is whole; 0. */
int hello_take(struct hello *h, const uint8_t **bytes, size_t *n);
uint64_t hello_magic(const struct hello *h);
int32_t hello_type(const struct hello *h);

struct frame {
	uint8_t head[FRAME_HEAD_BYTES];
	uint32_t head_got;
	int32_t size;
	uint8_t *bytes; /* owned; [size] */
	uint32_t got;
};

/**
 * frame_take - takes from *@bytes what the frame still needs
 * @max: the largest size that is allowed
 *
 * Return: 1 when it is whole (frame_deinit() before the next); 0; -EMSGSIZE (@f->size says which
 * was asked for); -ENOMEM.
 */
int frame_take(struct frame *f, size_t max, const uint8_t **bytes, size_t *n);
void frame_deinit(struct frame *f); /* and ready for the next */
