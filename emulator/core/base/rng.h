/* A hash of a key under a seed, for numbers that must look random and be the same in each run. */
#pragma once

#include <stdint.h>

/* For several keys, pass the result as the next seed. A change of one bit of either changes about
 * half of the result's bits. */
uint64_t rng_hash(uint64_t seed, uint64_t key);
