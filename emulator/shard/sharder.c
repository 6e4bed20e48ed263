#include "shard/sharder.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/rng.h"

const char *const sharder_names[SHARDERS] = {"naive",  "random",      "size",
					     "lookup", "norm-lookup", "size-lookup"};

struct item {
	double cost, bytes;
	uint32_t table;
};

struct gpu {
	double load, used;
};

static double cost_of(enum sharder sharder, const struct shard_table *t)
{
	switch (sharder) {
	case SHARDER_SIZE:
		return t->rows;
	case SHARDER_LOOKUP:
		return t->lookups * t->width;
	case SHARDER_NORM_LOOKUP:
		return t->lookups / t->rows;
	case SHARDER_SIZE_LOOKUP:
		return t->lookups * t->width * log10(t->rows);
	case SHARDER_NAIVE:
	case SHARDER_RANDOM:
	case SHARDERS:
		break;
	}
	return 1;
}

/* The dearest first; of equals the largest, then the last one. */
static int by_cost(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->table > y->table ? -1 : 1;
}

/* Return: @n_gpus: none has room. */
static uint32_t least(const struct gpu *gpus, uint32_t n_gpus, double bytes, double memory)
{
	uint32_t best = n_gpus;

	for (uint32_t g = 0; g < n_gpus; g++) {
		if (gpus[g].used + bytes > memory)
			continue;
		if (best == n_gpus || gpus[g].load < gpus[best].load ||
		    (gpus[g].load == gpus[best].load && gpus[g].used < gpus[best].used))
			best = g;
	}
	return best;
}

int sharder_assign(enum sharder sharder, const struct shard_table *tables, uint32_t n,
		   uint32_t n_gpus, double memory, uint64_t seed, uint32_t *ret, double *ret_loads,
		   uint32_t *ret_table)
{
	CLEANUP(freep) struct item *items = calloc(n + 1, sizeof(*items));
	CLEANUP(freep) struct gpu *gpus = calloc(n_gpus, sizeof(*gpus));
	bool is_greedy = sharder != SHARDER_NAIVE && sharder != SHARDER_RANDOM;

	if (!items || !gpus)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		items[i] = (struct item){cost_of(sharder, &tables[i]), table_bytes(&tables[i]), i};
	if (is_greedy)
		qsort(items, n, sizeof(*items), by_cost);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t g = sharder == SHARDER_NAIVE ? i % n_gpus
			     : sharder == SHARDER_RANDOM
				     ? (uint32_t)(rng_hash(seed, i) % n_gpus)
				     : least(gpus, n_gpus, items[i].bytes, memory);

		if (g == n_gpus || gpus[g].used + items[i].bytes > memory) {
			*ret_table = items[i].table;
			return -ENOSPC;
		}
		gpus[g].load += items[i].cost;
		gpus[g].used += items[i].bytes;
		ret[items[i].table] = g;
	}
	for (uint32_t g = 0; g < n_gpus && ret_loads; g++)
		ret_loads[g] = gpus[g].load;
	return 0;
}
