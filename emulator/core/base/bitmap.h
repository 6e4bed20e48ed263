/* A dense bitmap in 64-bit words. Bits at and above n_bits are always zero, so that counts and
 * searches need no special case for the last word. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bitmap {
	uint64_t *words; /* owned; NULL when n_bits is 0 */
	uint64_t n_bits;
};

#define BITMAP_NONE UINT64_MAX /* "no such bit" */

/* Return: 0 or -ENOMEM. All bits are clear. */
int bitmap_init(struct bitmap *b, uint64_t n_bits);
void bitmap_deinit(struct bitmap *b); /* a zeroed struct is allowed */

/* The index must be below n_bits (asserted). */
void bitmap_set(struct bitmap *b, uint64_t bit);
bool bitmap_test(const struct bitmap *b, uint64_t bit);
/* Sets the bit; Return: whether it was clear before. */
bool bitmap_test_and_set(struct bitmap *b, uint64_t bit);

void bitmap_set_range(struct bitmap *b, uint64_t first, uint64_t n);

/* First set bit at or after @from, or BITMAP_NONE. @from may be >= n_bits. */
uint64_t bitmap_next_set(const struct bitmap *b, uint64_t from);
uint64_t bitmap_count(const struct bitmap *b);
