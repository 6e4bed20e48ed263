/* Which GPU keeps which tables: the six ways that Lin et al. compare. */
#pragma once

#include "shard/tables.h"

enum sharder {
	SHARDER_NAIVE,  /* the next one each */
	SHARDER_RANDOM, /* any */
	/* From the dearest table down, to the GPU with the least so far that has room; of equals
	 * to the one with more memory left, then the lower one. What a table costs: */
	SHARDER_SIZE,        /* rows */
	SHARDER_LOOKUP,      /* look-ups x width */
	SHARDER_NORM_LOOKUP, /* look-ups / rows */
	SHARDER_SIZE_LOOKUP, /* look-ups x width x log10 of rows */
	SHARDERS
};
extern const char *const sharder_names[SHARDERS];

#define SHARDER_GPUS_MAX 4096

/* @memory: bytes of a GPU; INFINITY: enough. @ret: the GPU of each table. @ret_loads: by GPU, what
 * its tables cost, of the first two ways those cost 1; NULL: not wanted. Return: 0; -ENOSPC:
 * *ret_table has no room; -ENOMEM. */
int sharder_assign(enum sharder sharder, const struct shard_table *tables, uint32_t n,
		   uint32_t n_gpus, double memory, uint64_t seed, uint32_t *ret, double *ret_loads,
		   uint32_t *ret_table);
