/* What repeats: against a search that tries everything. */
#include <stdint.h>

#include "cmocka-all.h"
#include "rng.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "nbox/report/repeats.h"

#define MAX 400

static double weights[MAX + 1];

static bool is_in(uint64_t period, const uint64_t *periods, int n)
{
	for (int i = 0; i < n; i++)
		if (periods[i] == period)
			return true;
	return false;
}

/* In how many numbers from @at on does each equal the one @period before it? 0: less than two
 * units. */
static uint64_t slow_stretch(const uint64_t *s, uint64_t n, uint64_t at, uint64_t period)
{
	uint64_t end = at + period;

	while (end < n && s[end] == s[end - period])
		end++;
	return end <= n && end - at >= 2 * period ? end - at : 0;
}

static bool is_same_unit(const uint64_t *a, const uint64_t *b, uint64_t period)
{
	for (uint64_t shift = 0; shift < period; shift++) {
		bool is_same = true;

		for (uint64_t i = 0; is_same && i < period; i++)
			is_same = a[i] == b[(i + shift) % period];
		if (is_same)
			return true;
	}
	return false;
}

static uint64_t random_sequence(struct rng *rng, uint64_t *s, uint64_t *ret_period)
{
	uint64_t unit[12], n = 0, len = 1 + rng_u64(rng) % 12;

	for (uint64_t i = 0; i < len; i++)
		unit[i] = rng_u64(rng) % 4;
	for (uint64_t i = rng_u64(rng) % 9; i > 0; i--)
		s[n++] = 10 + rng_u64(rng) % 3;
	for (uint64_t part = 1 + rng_u64(rng) % 4; part > 0; part--) {
		for (uint64_t i = (3 + rng_u64(rng) % 4) * len; i > 0; i--, n++)
			s[n] = unit[n % len];
		for (uint64_t i = rng_u64(rng) % 3; i > 0; i--)
			s[n++] = 20 + rng_u64(rng) % 2;
	}
	/* the shortest one: a unit may repeat itself */
	for (*ret_period = 1; *ret_period < len; ++*ret_period) {
		bool is_period = len % *ret_period == 0;

		for (uint64_t i = *ret_period; is_period && i < len; i++)
			is_period = unit[i] == unit[i - *ret_period];
		if (is_period)
			break;
	}
	return n;
}

static void the_units_length_is_among_the_periods(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7, 0);
	for (int round = 0; round < 2000; round++) {
		uint64_t s[MAX], periods[REPEATS_PERIODS_MAX], period,
			n = random_sequence(&rng, s, &period);
		int n_periods = repeats_periods(s, n, periods);

		assert_true(n_periods > 0 && is_in(period, periods, n_periods));
		for (int i = 1; i < n_periods; i++)
			assert_true(periods[i] > periods[i - 1]);
	}
}

static void stretches_are_those_of_the_slow_search(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 8, 0);
	for (int round = 0; round < 2000; round++) {
		uint64_t s[MAX], period, n = random_sequence(&rng, s, &period), end = 0;
		struct repeats_stretch *list = NULL;
		int64_t n_list;
		double weight = 0, most = 0;

		for (uint64_t i = 0; i < n; i++)
			weights[i + 1] = weights[i] + (double)(s[i] + 1);
		period += rng_u64(&rng) % 2; /* and what is none */
		n_list = repeats_stretches(s, n, period, weights, &list);
		assert_true(n_list >= 0);
		for (int64_t i = 0; i < n_list; i++) {
			uint64_t at = list[i].first;

			assert_true(at >= end);
			assert_int_equal(list[i].n, slow_stretch(s, n, at, period));
			assert_true(at == end || slow_stretch(s, n, at - 1, period) == 0);
			assert_true(is_same_unit(s + list[0].first, s + at, period));
			weight += weights[at + list[i].n] - weights[at];
			end = at + list[i].n;
		}
		/* no other unit weighs more */
		for (uint64_t i = 0; i < n; i++) {
			double sum = 0;

			for (uint64_t k = 0, len; k < n; k += len ? len : 1) {
				len = slow_stretch(s, n, k, period);
				if (len && slow_stretch(s, n, i, period) &&
				    is_same_unit(s + i, s + k, period))
					sum += weights[k + len] - weights[k];
			}
			most = sum > most ? sum : most;
		}
		assert_true(weight == most);
		free(list);
	}
}

static void chance_has_no_periods(void **state)
{
	uint64_t s[50], periods[REPEATS_PERIODS_MAX];
	struct repeats_stretch *list = NULL;

	(void)state;
	for (uint64_t i = 0; i < 50; i++)
		s[i] = i * i;
	for (uint64_t n = 0; n <= 50; n++)
		assert_int_equal(repeats_periods(s, n, periods), 0);
	assert_int_equal(repeats_stretches(s, 50, 3, weights, &list), 0);
	free(list);
	assert_int_equal(repeats_stretches(s, 0, 1, weights, &list), 0);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_units_length_is_among_the_periods),
		cmocka_unit_test(stretches_are_those_of_the_slow_search),
		cmocka_unit_test(chance_has_no_periods),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
