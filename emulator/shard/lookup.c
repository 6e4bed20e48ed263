#include "shard/lookup.h"

#include <math.h>

const struct lookup_card lookup_a100 = {1555, 7219, 40.0 * (1 << 20)};

static double sectors(double bytes)
{
	return 32 * ceil(bytes / 32);
}

static double row_bytes(const struct shard_table *t)
{
	return sectors(4 * t->width);
}

double lookup_hits(const struct shard_table *t, double n_bags, const struct lookup_card *card)
{
	double n = n_bags * t->lookups, mean = reuse_mean(&t->reuse);
	/* Rows that are touched: known, or each look-up takes any row. */
	double unique = mean > 0 ? n / mean : -t->rows * expm1(n * log1p(-1 / t->rows));

	if (t->rows <= 1)
		unique = 1;
	if (!(n > unique))
		return 0;
	return (1 - unique / n) * fmin(1, card->l2_bytes / (unique * row_bytes(t)));
}

struct lookup_bytes lookup_bytes(const struct shard_table *t, double n_bags,
				 const struct lookup_card *card, int is_backward)
{
	double row = row_bytes(t), n = n_bags * t->lookups;
	/* the table's offset, the bag's, its indices, and what comes out */
	double bags = n_bags * (32 + 64 + sectors(4 * t->lookups) + row);
	double rows = n * row * (is_backward ? 2 : 1);

	return (struct lookup_bytes){bags + rows * (1 - lookup_hits(t, n_bags, card)), bags + rows};
}

double lookup_ns(const struct lookup_bytes *sum, const struct lookup_card *card)
{
	return fmax(sum->memory / card->memory, sum->l2 / card->l2);
}
