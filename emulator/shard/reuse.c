#include "shard/reuse.h"

#include <math.h>
#include <stdlib.h>

static int by_row(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint32_t bin_of(uint64_t times)
{
	uint32_t bin = 0;

	while (bin + 1 < REUSE_BINS && times > UINT64_C(1) << bin)
		bin++;
	return bin;
}

struct reuse reuse_of(uint64_t *rows, size_t n)
{
	struct reuse r = {.n_lookups = n};
	size_t from = 0;

	if (n)
		qsort(rows, n, sizeof(*rows), by_row);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && rows[i] == rows[from])
			continue;
		r.shares[bin_of(i - from)]++;
		r.n_rows++;
		from = i;
	}
	for (uint32_t b = 0; b < REUSE_BINS && r.n_rows; b++)
		r.shares[b] /= (double)r.n_rows;
	return r;
}

double reuse_mean(const struct reuse *r)
{
	double mean = 0;

	if (r->n_lookups)
		return (double)r->n_lookups / (double)r->n_rows;
	for (uint32_t b = 0; b < REUSE_BINS; b++)
		mean += r->shares[b] * (b ? (ldexp(1, (int)b - 1) + 1 + ldexp(1, (int)b)) / 2 : 1);
	return mean;
}
