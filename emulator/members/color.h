/* Colors that PyTorch passes to ncclCommSplit. Each version makes a communicator's color
 * from the list of its ranks, so that a list can be checked against a color:
 *
 *   new_group      abs(hash(tuple(ranks))) % 2^31 with CPython's hash of a tuple of ints
 *                  (>= 3.8; xxHash without its final mixing, Objects/tupleobject.c); ranks
 *                  of the world
 *   split_group    2.6 to 2.10: the well-known h ^= x + 0x9e3779b9 + (h << 6) + (h >> 2)
 *                  on 64 bits, abs() % (2^31 - 1); ranks of the parent
 *                  2.11 on: the lowest rank, of the parent; no hash
 *
 * A hash grows rank by rank and can be asked after each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct color_hash {
	uint64_t tuple, fold;
	uint32_t n;
};

#define COLOR_HASH_INIT ((struct color_hash){.tuple = UINT64_C(2870177450012600261)})

static inline void color_hash_add(struct color_hash *h, uint32_t rank)
{
	/* the hash of a small int is the int itself */
	h->tuple += rank * UINT64_C(14029467366897019727);
	h->tuple = h->tuple << 31 | h->tuple >> 33;
	h->tuple *= UINT64_C(11400714785074694791);
	h->fold ^= rank + UINT64_C(0x9e3779b9) + (h->fold << 6) + (h->fold >> 2);
	h->n++;
}

int32_t color_of_tuple(const struct color_hash *h); /* as new_group */
int32_t color_of_fold(const struct color_hash *h);  /* as split_group until 2.10 */

static inline bool color_matches(const struct color_hash *h, int32_t color)
{
	return color_of_tuple(h) == color || color_of_fold(h) == color;
}
