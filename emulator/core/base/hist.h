/* Log-linear histogram of unsigned 64-bit values: 64 buckets a power of two,
 * so a quantile is within 1/64 (1.6 %) of the truth; minimum, maximum, sum
 * and count are exact. Fixed size, no allocation. */
#pragma once

#include <stdint.h>

#define HIST_SUB_BITS 6
#define HIST_BUCKETS ((64 - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	uint64_t counts[HIST_BUCKETS];
	uint64_t n, min, max;
	double sum;
};

void hist_reset(struct hist *h);
void hist_add(struct hist *h, uint64_t value);
void hist_merge(struct hist *to, const struct hist *from);
/* @q in 0..1; 0 when empty. q=0 is the minimum, q=1 the maximum, exactly. */
uint64_t hist_quantile(const struct hist *h, double q);
double hist_mean(const struct hist *h); /* 0 when empty */
