/* See rng.h. It runs key and seed through the mixer of splitmix64 (G. Steele, D. Lea, C. Flood,
 * OOPSLA 2014). It is no cryptographic hash. */
#include "base/rng.h"

static uint64_t mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t rotl64(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

uint64_t rng_hash(uint64_t seed, uint64_t key)
{
	/* The key is mixed before the seed is added: no simple change of one cancels a change
	 * of the other. The constants make the hash of (0, 0) something else than 0. */
	key = mix64(key + UINT64_C(0x9e3779b97f4a7c15));
	return mix64(seed + UINT64_C(0xd1b54a32d192ed03) + rotl64(key, 23)) ^ key;
}
