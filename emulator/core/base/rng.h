/* Numbers that look random and are a function of what they stand for. */
#pragma once

#include <stdint.h>

/* One number for a key under a seed, without a generator: chain it for several
 * keys. A change of one bit changes half of the result's. */
uint64_t rng_hash(uint64_t seed, uint64_t key);
