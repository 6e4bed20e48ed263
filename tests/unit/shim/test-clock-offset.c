/* The offset between two hosts' clocks from pings: right within half of the shortest round trip
 * however long the two ways take, exact where they take equally long. */
#include <stdint.h>

#include "cmocka-all.h"
#include "shim/progress/clock-offset.h"

#define N_PINGS 8

static uint64_t state;

static uint64_t below(uint64_t limit)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (state >> 20) % limit;
}

static void a_symmetric_round_trip_gives_the_exact_offset(void **unused)
{
	struct clock_offset o = {0};

	(void)unused;
	clock_offset_add(&o, 1000, 500000 + 1000 + 40, 1080);
	assert_int_equal(o.offset_ns, 500000);
	assert_int_equal(o.rtt_ns, 80);
	/* nboxd's clock may be behind: both sides of zero and far apart */
	o = (struct clock_offset){0};
	clock_offset_add(&o, UINT64_C(1) << 62, 40, (UINT64_C(1) << 62) + 80);
	assert_int_equal(o.offset_ns, -(INT64_C(1) << 62));
}

static void the_shortest_round_trip_wins(void **unused)
{
	struct clock_offset o = {0};

	(void)unused;
	clock_offset_add(&o, 0, 900 + 10, 1000); /* asymmetric and slow */
	clock_offset_add(&o, 2000, 2000 + 7 + 5, 2010);
	assert_int_equal(o.offset_ns, 7);
	clock_offset_add(&o, 4000, 99999, 4500); /* slower again: not taken */
	assert_int_equal(o.offset_ns, 7);
	clock_offset_add(&o, 5000, 77777, 5010); /* as fast: the first stays */
	assert_int_equal(o.offset_ns, 7);
	assert_int_equal(o.n_pings, 4);
}

static void the_error_is_half_a_round_trip_at_most(void **unused)
{
	(void)unused;
	for (int i = 0; i < 10000; i++) {
		uint64_t now = below(UINT64_C(1) << 50), best = UINT64_MAX;
		int64_t truth = (int64_t)below(UINT64_C(1) << 50) - (INT64_C(1) << 49);
		struct clock_offset o = {0};
		int64_t wrong;

		for (int p = 0; p < N_PINGS; p++) {
			uint64_t there = below(1 << 20), back = below(1 << 20);

			clock_offset_add(&o, now, now + there + (uint64_t)truth,
					 now + there + back);
			best = there + back < best ? there + back : best;
			now += there + back;
		}
		assert_int_equal(o.rtt_ns, best);
		wrong = o.offset_ns - truth;
		assert_true((uint64_t)(wrong < 0 ? -wrong : wrong) <= best / 2 + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_symmetric_round_trip_gives_the_exact_offset),
		cmocka_unit_test(the_shortest_round_trip_wins),
		cmocka_unit_test(the_error_is_half_a_round_trip_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
