/* Clocks of hosts by collectives alone, as PyTorch's traces have them. (By messages:
 * tests/papers/trace.c.) */
#include "cmocka-all.h"

#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "schedule/coll.h"
#include "trace/align.h"
#include "trace/finish.h"
#include "trace/skew.h"

#define RANKS 8
#define COLLS 50

/* From 0 to 1. */
static double chance(uint64_t seed, uint32_t i)
{
	return (double)(rng_hash(seed, i) >> 11) * 0x1p-53;
}

/* All-reduces of ranks 0 to 7, two a host: each begins up to 100 us after the last was over, rank
 * 0 400 us later than all others; it is over 200 us after that, within 3 us. */
static void make(struct trace *t)
{
	uint32_t host = 0, rank, comm;

	for (uint32_t i = 0; i < RANKS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "host%u", i / 2);
		assert_int_equal(trace_add_host(t, name, &host), 0);
		assert_int_equal(trace_add_rank(t, i, host, &rank), 0);
	}
	assert_int_equal(trace_add_comm(t, "0", RANKS, NULL, &comm), 0);
	for (uint32_t k = 0; k < COLLS; k++)
		for (uint32_t i = 0; i < RANKS; i++) {
			struct trace_op op = {.kind = TRACE_COLLECTIVE,
					      .coll = COLL_ALLREDUCE,
					      .comm = comm,
					      .seq = k,
					      .rank = i,
					      .peer = TRACE_NONE,
					      .step = TRACE_NONE,
					      .launched_by = TRACE_NONE};
			struct err err;

			op.start_ns = k * 1e6 + 1e5 * chance(1, k * RANKS + i) + (i ? 0 : 4e5);
			op.end_ns = k * 1e6 + 7e5 + 3e3 * chance(2, k * RANKS + i);
			assert_int_equal(trace_add_name(t, "ncclKernel", &op.name), 0);
			assert_int_equal(trace_add_op(t, &op, NULL, &err), 0);
		}
	assert_int_equal(trace_finish(t), 0);
}

static void who_is_never_last_has_a_clock_too(void **state)
{
	double ns[] = {0, 13.7e6, -7e6, 1e3}, drift[4] = {0};
	struct trace t = {0};
	struct clocks c;
	struct err err;

	(void)state;
	make(&t);
	assert_int_equal(skew_apply(&t, &(struct skew){ns, drift, 0, 1}), 0);
	assert_int_equal(align_find(&t, false, &c, &err), 0);
	for (uint32_t h = 0; h < 4; h++)
		if (!(fabs(c.hosts[h].theta_ns + ns[h]) < 2e3))
			fail_msg("host %u: %g ns, not %g", h, c.hosts[h].theta_ns, -ns[h]);
	clocks_deinit(&c);
	trace_deinit(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(who_is_never_last_has_a_clock_too)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
