/* Log-linear histogram; see hist.h. Values below 64 have a bucket each; above,
 * a bucket is named by the position of the highest bit and the 6 bits after it. */
#include "base/hist.h"

#include <string.h>

#define SUB (UINT64_C(1) << HIST_SUB_BITS)

static unsigned bucket_of(uint64_t value)
{
	unsigned top;

	if (value < SUB)
		return (unsigned)value;
	top = 63 - (unsigned)__builtin_clzll(value);
	return ((top - HIST_SUB_BITS + 1) << HIST_SUB_BITS) +
	       (unsigned)((value >> (top - HIST_SUB_BITS)) & (SUB - 1));
}

/* The middle of a bucket. */
static uint64_t bucket_value(unsigned bucket)
{
	unsigned shift;
	uint64_t low;

	if (bucket < 2 * SUB)
		return bucket;
	shift = (bucket >> HIST_SUB_BITS) - 1;
	low = (SUB + (bucket & (SUB - 1))) << shift;
	return low + ((UINT64_C(1) << shift) - 1) / 2;
}

void hist_reset(struct hist *h)
{
	memset(h, 0, sizeof(*h));
}

void hist_add(struct hist *h, uint64_t value)
{
	h->counts[bucket_of(value)]++;
	if (h->n == 0 || value < h->min)
		h->min = value;
	if (h->n == 0 || value > h->max)
		h->max = value;
	h->n++;
	h->sum += (double)value;
}

void hist_merge(struct hist *to, const struct hist *from)
{
	unsigned i;

	if (from->n == 0)
		return;
	for (i = 0; i < HIST_BUCKETS; i++)
		to->counts[i] += from->counts[i];
	if (to->n == 0 || from->min < to->min)
		to->min = from->min;
	if (to->n == 0 || from->max > to->max)
		to->max = from->max;
	to->n += from->n;
	to->sum += from->sum;
}

uint64_t hist_quantile(const struct hist *h, double q)
{
	uint64_t rank, seen = 0, value;
	unsigned i;

	if (h->n == 0)
		return 0;
	if (!(q > 0))
		return h->min;
	if (q >= 1)
		return h->max;
	/* nearest rank: the smallest value that at least q*n values do not exceed */
	rank = (uint64_t)(q * (double)h->n);
	if ((double)rank < q * (double)h->n)
		rank++;
	if (rank < 1)
		rank = 1;
	if (rank >= h->n)
		return h->max;
	for (i = 0; i < HIST_BUCKETS; i++) {
		seen += h->counts[i];
		if (seen >= rank)
			break;
	}
	value = bucket_value(i);
	if (value < h->min)
		return h->min;
	return value > h->max ? h->max : value;
}

double hist_mean(const struct hist *h)
{
	return h->n ? h->sum / (double)h->n : 0;
}
