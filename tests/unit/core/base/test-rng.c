/* rng_hash(): a function of both numbers, without neighbours that resemble each other. */
#include "cmocka-all.h"

#include "base/rng.h"

static void neighbouring_seeds_and_keys_share_no_number(void **state)
{
	uint64_t seen[64];
	int n = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++)
		for (uint64_t key = 0; key < 8; key++) {
			seen[n] = rng_hash(seed, key);
			assert_true(seen[n] == rng_hash(seed, key));
			for (int i = 0; i < n; i++)
				assert_true(seen[i] != seen[n]);
			n++;
		}
}

/* One bit more in either number changes about half of the result's bits. */
static void each_bit_of_the_input_changes_half_of_the_output(void **state)
{
	(void)state;
	for (int bit = 0; bit < 64; bit++) {
		uint64_t one = UINT64_C(1) << bit, at = rng_hash(7, 11);

		assert_in_range(__builtin_popcountll(at ^ rng_hash(7 ^ one, 11)), 12, 52);
		assert_in_range(__builtin_popcountll(at ^ rng_hash(7, 11 ^ one)), 12, 52);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbouring_seeds_and_keys_share_no_number),
		cmocka_unit_test(each_bit_of_the_input_changes_half_of_the_output),
	};

	return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
