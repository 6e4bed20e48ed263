/* Random numbers for tests: one sequence a seed and stream. xoshiro256** 1.0 (D. Blackman, S.
 * Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47, 2021), seeded through
 * splitmix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014) as its authors advise. */
#pragma once

#include <stdint.h>

struct rng {
	uint64_t s[4];
};

static inline uint64_t rng_mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline uint64_t rng_splitmix64(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return rng_mix64(*state);
}

static inline uint64_t rng_rotl64(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static inline void rng_seed(struct rng *r, uint64_t seed, uint64_t stream)
{
	uint64_t state = seed, key;
	int i;

	/* Both numbers go through the mixer on their own, so that (seed, stream)
	 * and (seed + 1, stream - 1) have nothing in common. */
	key = rng_splitmix64(&state);
	state = key ^ rng_mix64(stream + UINT64_C(0x632be59bd9b4e019));
	for (i = 0; i < 4; i++)
		r->s[i] = rng_splitmix64(&state);
}

static inline uint64_t rng_u64(struct rng *r)
{
	uint64_t result = rng_rotl64(r->s[1] * 5, 7) * 9, t = r->s[1] << 17;

	r->s[2] ^= r->s[0];
	r->s[3] ^= r->s[1];
	r->s[1] ^= r->s[2];
	r->s[0] ^= r->s[3];
	r->s[2] ^= t;
	r->s[3] = rng_rotl64(r->s[3], 45);
	return result;
}

static inline double rng_uniform(struct rng *r)
{
	return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

static inline uint64_t below(struct rng *r, uint64_t n)
{
	return rng_u64(r) % n;
}
