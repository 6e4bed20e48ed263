/* How a count follows from a size, such as the ranks of a communicator. Pure arithmetic on whole
 * numbers: a law explains what was seen exactly, or it is none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum law_kind {
	LAW_NONE,
	LAW_KEEP,  /* always the same */
	LAW_TOTAL, /* a share of what all have together, filled up to whole ones */
	LAW_GROW,  /* in proportion to the size */
	LAW_FALL,  /* a + b / size */
	LAW_RISE,  /* a + b x size */
	LAW_KINDS
};

struct law_sample {
	uint32_t size; /* 1 to RECORD_WORLD_MAX */
	uint64_t count;
};

struct law {
	enum law_kind kind;
	struct law_sample few, many; /* of the smallest size, of the largest */
	unsigned __int128 total;
};

/* "keep", "total", "grow", and how it is said of a fitted one. */
const char *law_name(enum law_kind kind);
/* The law of that kind through @n >= 1 samples. Return: it explains all of them. */
bool law_make(enum law_kind kind, const struct law_sample *samples, size_t n, struct law *ret);
/* The first kind that explains all samples: those of one free number before those of two. A count
 * that falls with the size is taken for a + b / size, which stays above zero where a line would
 * not; one that rises, for a + b x size, which goes on as it did. Return: there is one. */
bool law_fit(const struct law_sample *samples, size_t n, struct law *ret);
/* Where no law explains all: that of the two samples whose sizes are nearest to @size. Return:
 * there are two of different sizes. */
bool law_fit_nearest(const struct law_sample *samples, size_t n, uint32_t size, struct law *ret);
/* Return: false: there is none, below zero or above 2^64. */
bool law_count(const struct law *law, uint32_t size, uint64_t *ret);
/* It has two free numbers, and @size lies outside what was seen. */
bool law_is_beyond(const struct law *law, uint32_t size);
