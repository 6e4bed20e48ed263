/* How often the rows of a table are looked up in one batch: the reuse factors of Lin et al. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define REUSE_BINS 17 /* up to 1, 2, 4, ..., 2^15 times, and more often */

struct reuse {
	double shares[REUSE_BINS]; /* of the rows that are touched; all 0: none is */
	uint64_t n_rows, n_lookups;
};

/* @rows: the row of each look-up; is sorted. */
struct reuse reuse_of(uint64_t *rows, size_t n);
/* Look-ups for each row that is touched. Where only shares are known: each bin's mean. 0: none is
 * touched. */
double reuse_mean(const struct reuse *r);
