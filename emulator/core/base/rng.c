/* xoshiro256** 1.0 (D. Blackman, S. Vigna, "Scrambled linear pseudorandom number
 * generators", ACM TOMS 47, 2021), seeded through splitmix64 (G. Steele, D. Lea,
 * C. Flood, OOPSLA 2014) as its authors advise. */
#include "base/rng.h"

#include <math.h>

static uint64_t mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t splitmix64(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return mix64(*state);
}

static uint64_t rotl64(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

uint64_t rng_hash(uint64_t seed, uint64_t key)
{
	/* The key is mixed before it meets the seed, so that neither can undo the
	 * other; the constants keep 0 from being a fixed point. */
	key = mix64(key + UINT64_C(0x9e3779b97f4a7c15));
	return mix64(seed + UINT64_C(0xd1b54a32d192ed03) + rotl64(key, 23)) ^ key;
}

void rng_seed(struct rng *r, uint64_t seed, uint64_t stream)
{
	uint64_t state = seed, key;
	int i;

	/* Both numbers go through the mixer on their own, so that (seed, stream)
	 * and (seed + 1, stream - 1) have nothing in common. */
	key = splitmix64(&state);
	state = key ^ mix64(stream + UINT64_C(0x632be59bd9b4e019));
	for (i = 0; i < 4; i++)
		r->s[i] = splitmix64(&state);
}

uint64_t rng_u64(struct rng *r)
{
	uint64_t result = rotl64(r->s[1] * 5, 7) * 9, t = r->s[1] << 17;

	r->s[2] ^= r->s[0];
	r->s[3] ^= r->s[1];
	r->s[1] ^= r->s[2];
	r->s[0] ^= r->s[3];
	r->s[2] ^= t;
	r->s[3] = rotl64(r->s[3], 45);
	return result;
}

double rng_uniform(struct rng *r)
{
	return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

double rng_normal(struct rng *r)
{
	/* Box-Muller; one of its two numbers is dropped so that the state is the
	 * four words alone. */
	double u = 1.0 - rng_uniform(r), v = rng_uniform(r);

	return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}
