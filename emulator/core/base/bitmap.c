/* See bitmap.h. */
#include "base/bitmap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define WORD_BITS 64

static size_t n_words(uint64_t n_bits)
{
	return (size_t)(n_bits / WORD_BITS + (n_bits % WORD_BITS != 0));
}

static uint64_t mask_of(uint64_t bit)
{
	return UINT64_C(1) << (bit % WORD_BITS);
}

int bitmap_init(struct bitmap *b, uint64_t n_bits)
{
	b->words = NULL;
	b->n_bits = 0;
	if (n_bits == 0)
		return 0;
	b->words = calloc(n_words(n_bits), sizeof(b->words[0]));
	if (!b->words)
		return -ENOMEM;
	b->n_bits = n_bits;
	return 0;
}

void bitmap_deinit(struct bitmap *b)
{
	free(b->words);
	b->words = NULL;
	b->n_bits = 0;
}

void bitmap_set(struct bitmap *b, uint64_t bit)
{
	assert(bit < b->n_bits);
	b->words[bit / WORD_BITS] |= mask_of(bit);
}

bool bitmap_test(const struct bitmap *b, uint64_t bit)
{
	assert(bit < b->n_bits);
	return (b->words[bit / WORD_BITS] & mask_of(bit)) != 0;
}

bool bitmap_test_and_set(struct bitmap *b, uint64_t bit)
{
	uint64_t *word, mask;
	bool was_clear;

	assert(bit < b->n_bits);
	word = &b->words[bit / WORD_BITS];
	mask = mask_of(bit);
	was_clear = (*word & mask) == 0;
	*word |= mask;
	return was_clear;
}

void bitmap_set_range(struct bitmap *b, uint64_t first, uint64_t n)
{
	uint64_t last, w, w_first, w_last;

	assert(first <= b->n_bits && n <= b->n_bits - first);
	if (n == 0)
		return;
	last = first + n - 1;
	w_first = first / WORD_BITS;
	w_last = last / WORD_BITS;
	for (w = w_first; w <= w_last; w++) {
		uint64_t mask = UINT64_MAX;

		if (w == w_first)
			mask &= UINT64_MAX << (first % WORD_BITS);
		if (w == w_last)
			mask &= UINT64_MAX >> (WORD_BITS - 1 - last % WORD_BITS);
		b->words[w] |= mask;
	}
}

uint64_t bitmap_next_set(const struct bitmap *b, uint64_t from)
{
	size_t w, n = n_words(b->n_bits);
	uint64_t word;

	if (from >= b->n_bits)
		return BITMAP_NONE;
	w = (size_t)(from / WORD_BITS);
	word = b->words[w] & (UINT64_MAX << (from % WORD_BITS));
	while (word == 0) {
		if (++w == n)
			return BITMAP_NONE;
		word = b->words[w];
	}
	return (uint64_t)w * WORD_BITS + (uint64_t)__builtin_ctzll(word);
}

uint64_t bitmap_count(const struct bitmap *b)
{
	uint64_t count = 0;
	size_t w;

	for (w = 0; w < n_words(b->n_bits); w++)
		count += (uint64_t)__builtin_popcountll(b->words[w]);
	return count;
}
