/* nboxd's clock as pings tell it, against clocks whose truth is known: the error is below the
 * bound whatever the network does, small where a few pings were quick, and time goes forward. */
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "cmocka-all.h"
#include "shim/progress/clock-offset.h"

static uint64_t state;

static uint64_t below(uint64_t limit)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (state >> 20) % limit;
}

/* A pair of hosts: their clocks, and the network between them. */
static struct {
	uint64_t start_ns;        /* own clock */
	int64_t offset_ns;        /* then */
	double drift, drift_rate; /* per second */
	uint64_t now_ns, said_ns; /* said: nboxd's clock when it was asked for last */
	struct clock_offset o;
} g;

static uint64_t truth(uint64_t own_ns)
{
	double since = (double)(own_ns - g.start_ns);

	return own_ns + (uint64_t)g.offset_ns +
	       (uint64_t)(int64_t)(g.drift * since + g.drift_rate * since * since / 2e9);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void begin(double drift, double drift_rate)
{
	memset(&g, 0, sizeof(g));
	g.start_ns = g.now_ns = NS_PER_S + below(UINT64_C(1) << 50);
	g.offset_ns = (int64_t)below(UINT64_C(1) << 50) - (INT64_C(1) << 49);
	g.offset_ns = g.offset_ns < 0 && (uint64_t)-g.offset_ns > g.start_ns ? 0 : g.offset_ns;
	g.drift = drift;
	g.drift_rate = drift_rate;
}

/* Return: how wrong it is now. Its clock has not gone back; both directions agree. */
static uint64_t look(void)
{
	uint64_t said = clock_offset_to_daemon(&g.o, g.now_ns);
	uint64_t wrong = distance(said, truth(g.now_ns));

	assert_true(said + 1 >= g.said_ns);
	g.said_ns = said;
	assert_in_range(distance(clock_offset_from_daemon(&g.o, said), g.now_ns), 0, 2);
	if (wrong > clock_offset_error_ns(&g.o, g.now_ns))
		fail_msg("wrong by %llu ns, said to be %llu at most, after %llu pings",
			 (unsigned long long)wrong,
			 (unsigned long long)clock_offset_error_ns(&g.o, g.now_ns),
			 (unsigned long long)g.o.n_pings);
	return wrong;
}

static void look_until(uint64_t until_ns)
{
	uint64_t from_ns = g.now_ns;

	for (uint64_t i = 1; until_ns > from_ns && i <= 4; i++) {
		g.now_ns = from_ns + (until_ns - from_ns) / 4 * i;
		look();
	}
}

/* A ping when it is due, that takes @there_ns and @back_ns. */
static void ping(uint64_t there_ns, uint64_t back_ns)
{
	uint64_t sent_ns;

	if (g.o.n_pings >= CLOCK_FIRST_PINGS)
		look_until(clock_offset_next_ns(&g.o));
	sent_ns = g.now_ns;
	if (g.o.n_pings >= CLOCK_FIRST_PINGS)
		look_until(sent_ns + there_ns + back_ns);
	g.now_ns = sent_ns + there_ns + back_ns;
	clock_offset_add(&g.o, sent_ns, truth(sent_ns + there_ns), g.now_ns);
	if (g.o.n_pings >= CLOCK_FIRST_PINGS)
		look();
}

static void one_clock_needs_no_ping(void **unused)
{
	(void)unused;
	begin(0, 0);
	assert_int_equal(clock_offset_to_daemon(&g.o, 4711), 4711);
	assert_int_equal(clock_offset_from_daemon(&g.o, 4711), 4711);
	assert_int_equal(clock_offset_error_ns(&g.o, 4711), 0);
}

static void a_symmetric_round_trip_gives_the_exact_offset(void **unused)
{
	struct clock_offset o = {0};

	(void)unused;
	clock_offset_add(&o, 1000, 500000 + 1000 + 40, 1080);
	assert_int_equal(clock_offset_to_daemon(&o, 1080), 501080);
	/* nboxd's clock may be behind: both sides of zero and far apart */
	o = (struct clock_offset){0};
	clock_offset_add(&o, UINT64_C(1) << 62, 40, (UINT64_C(1) << 62) + 80);
	assert_int_equal(clock_offset_to_daemon(&o, UINT64_C(1) << 62), 0);
}

/* All that a network may do, for three minutes, at any drift that quartzes have. */
static void the_error_is_never_above_the_bound(void **unused)
{
	(void)unused;
	for (int run = 0; run < 60; run++) {
		const double drift = ((double)below(200001) - 100000) / 1e9;
		const uint64_t floor_ns = 1000 + below(1 << (run % 3 * 10)),
			       noise_ns = 1 + below(1 << (run % 5 * 5));

		begin(drift, run % 2 ? ((double)below(161) - 80) / 1e9 : 0);
		while (g.now_ns < g.start_ns + 180 * NS_PER_S) {
			uint64_t there = floor_ns / 2 + below(noise_ns),
				 back = floor_ns / 2 + below(noise_ns);

			if (run % 4 == 1 && g.now_ns / NS_PER_S % 16 < 8) /* bursts, seconds long */
				there += below(50 * NS_PER_MS);
			if (run % 4 == 2 && below(3) == 0) /* a ping was lost, or came late */
				back += below(3 * NS_PER_S);
			if (run % 4 == 3)
				back += below(20 * floor_ns);
			ping(there, back);
		}
	}
}

/* A network of 40 us there and back; 20 us is what a way that takes all of it would hide. */
static void quick_pings_make_it_good_whatever_the_others_do(void **unused)
{
	(void)unused;
	for (int run = 0; run < 40; run++) {
		begin(run % 2 ? 100e-6 : -100e-6, 0);
		for (int i = 0; i < 100; i++) {
			uint64_t there = 20000 + below(2000), back = 20000 + below(2000);

			if (i >= CLOCK_FIRST_PINGS && i % 3) /* two of three are queued */
				*(below(2) ? &there : &back) += below(50 * NS_PER_MS);
			ping(there, back);
			if (i > 30)
				assert_in_range(look(), 0, 20000);
		}
	}
}

/* Nobody is heard for a minute: the line goes on. */
static void without_pings_the_drift_is_known(void **unused)
{
	(void)unused;
	begin(60e-6, 0);
	for (int i = 0; i < 50; i++)
		ping(20000, 20000);
	g.now_ns += 60 * NS_PER_S; /* 3.6 ms */
	assert_in_range(look(), 0, 20000);
	assert_in_range(clock_offset_error_ns(&g.o, g.now_ns), 20000, NS_PER_MS);
}

/* A host is stopped for a second, or its clock is given another rate: what was known is wrong
 * until the next ping, and no longer; its clock still does not go back. */
static void what_pings_contradict_is_forgotten(void **unused)
{
	(void)unused;
	for (int run = 0; run < 4; run++) {
		begin(50e-6, 0);
		for (int i = 0; i < 60; i++)
			ping(20000, 20000);
		g.offset_ns += run == 0 ? (int64_t)NS_PER_S : run == 1 ? -(int64_t)NS_PER_MS : 0;
		g.drift += run == 2 ? 300e-6 : run == 3 ? -300e-6 : 0;
		g.now_ns = clock_offset_next_ns(&g.o);
		clock_offset_add(&g.o, g.now_ns, truth(g.now_ns + 20000), g.now_ns + 40000);
		g.now_ns += 40000;
		for (int i = 0; i < 60; i++)
			ping(20000, 20000);
		assert_in_range(look(), 0, 20000);
	}
}

static void pings_become_rarer(void **unused)
{
	uint64_t n[3];

	(void)unused;
	begin(0, 0);
	for (int i = 0; i < 3; i++) {
		while (g.now_ns < g.start_ns + (UINT64_C(1) + 10 * (uint64_t)i) * NS_PER_S)
			ping(20000, 20000);
		n[i] = g.o.n_pings;
	}
	assert_in_range(n[0], CLOCK_FIRST_PINGS + 5, CLOCK_FIRST_PINGS + 10);
	assert_in_range(n[1] - n[0], 9, 11);
	assert_in_range(n[2] - n[1], 9, 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_clock_needs_no_ping),
		cmocka_unit_test(a_symmetric_round_trip_gives_the_exact_offset),
		cmocka_unit_test(the_error_is_never_above_the_bound),
		cmocka_unit_test(quick_pings_make_it_good_whatever_the_others_do),
		cmocka_unit_test(without_pings_the_drift_is_known),
		cmocka_unit_test(what_pings_contradict_is_forgotten),
		cmocka_unit_test(pings_become_rarer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
