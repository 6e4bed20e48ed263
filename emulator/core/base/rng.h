/* Seeded random numbers (xoshiro256**, seeded through splitmix64). A generator
 * is a value; split() makes an independent one from a seed and a stream number,
 * so that the draws of one op or rank never depend on those of another. */
#pragma once

#include <stdint.h>

struct rng {
	uint64_t s[4];
};

void rng_seed(struct rng *r, uint64_t seed, uint64_t stream);
uint64_t rng_u64(struct rng *r);
/* One number for a key under a seed, without a generator: chain it for several
 * keys. A change of one bit changes half of the result's. */
uint64_t rng_hash(uint64_t seed, uint64_t key);
double rng_uniform(struct rng *r); /* in [0, 1) */
double rng_normal(struct rng *r);  /* mean 0, variance 1 */
