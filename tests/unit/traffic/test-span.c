/* When messages are due, also when the end moves, and the order in which they go. */
#include "cmocka-all.h"

#include <math.h>
#include <stdlib.h>

#include "../../rng.h"
#include "traffic/pace.h"
#include "traffic/span.h"

static void messages_are_spread_from_start_to_end(void **state)
{
	struct span s;

	(void)state;
	span_init(&s, 1000, 2000);
	assert_int_equal(span_due(&s, 0, 4), 1250);
	assert_int_equal(span_due(&s, 3, 4), 2000);
	assert_int_equal(span_due(&s, 0, 3), 1334); /* never early */
	span_init(&s, 1000, 900);
	assert_int_equal(span_due(&s, 5, 6), 1000);
	span_init(&s, UINT64_MAX / 2, UINT64_MAX - 7);
	assert_int_equal(span_due(&s, (UINT64_C(1) << 32) - 1, UINT64_C(1) << 32), UINT64_MAX - 7);
}

static void what_is_ahead_moves_in_proportion(void **state)
{
	struct span s;

	(void)state;
	span_init(&s, 1000, 2000);
	span_move(&s, 1500, 2500);
	assert_int_equal(span_due(&s, 0, 4), 1500); /* has been */
	assert_int_equal(span_due(&s, 2, 4), 2000);
	assert_int_equal(span_due(&s, 3, 4), 2500);
	span_move(&s, 2000, 2100);
	assert_int_equal(span_due(&s, 2, 4), 2000);
	assert_int_equal(span_due(&s, 3, 4), 2100);
	span_move(&s, 3000, 9000); /* when it was over */
	assert_int_equal(span_due(&s, 3, 4), 3000);
	span_init(&s, 1000, 2000);
	span_move(&s, 500, 3000); /* before it has begun */
	assert_int_equal(span_due(&s, 0, 2), 2000);
}

/* The same with real numbers. */
static void no_move_makes_a_message_early(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3, 0);
	for (int i = 0; i < 20000; i++) {
		uint64_t start = rng_u64(&rng) >> 20, now = start, end,
			 n = 1 + rng_u64(&rng) % 5000;
		long double position = 0, at, until; /* 0 to 1: how much of the op is over */
		struct span s;

		end = start + 1 + rng_u64(&rng) % 1000000;
		span_init(&s, start, end);
		at = start;
		until = end;
		for (int k = 0; k < 4 && now < end; k++) {
			now += rng_u64(&rng) % (end - now);
			if (now <= at)
				continue;
			position += (1 - position) * (now - at) / (until - at);
			end = now + 1 + rng_u64(&rng) % 1000000;
			at = now;
			until = end;
			span_move(&s, now, end);
		}
		for (int k = 0; k < 20; k++) {
			uint64_t index = rng_u64(&rng) % n, due = span_due(&s, index, n);
			long double want = (long double)(index + 1) / n;

			want = want <= position
				       ? at
				       : at + (want - position) / (1 - position) * (until - at);
			assert_true((long double)due >= want - 1e-3L);
			/* what each move rounds off may be stretched by the next */
			assert_true((long double)due <= want + 2e6L);
		}
		assert_int_equal(span_due(&s, n - 1, n), end);
	}
}

#define ITEMS 500

static void the_first_that_is_due_comes_first(void **state)
{
	static struct pace_item item[ITEMS];
	struct pace p = {0};
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7, 0);
	assert_int_equal(pace_reserve(&p, ITEMS), 0);
	for (int i = 0; i < ITEMS; i++)
		item[i].number = (uint64_t)i;
	for (int i = 0; i < 20000; i++) {
		uint32_t k = (uint32_t)(rng_u64(&rng) % ITEMS);
		const struct pace_item *first = NULL;

		if (rng_u64(&rng) % 3)
			pace_put(&p, &item[k], rng_u64(&rng) % 1000);
		else
			pace_remove(&p, &item[k]);
		for (int j = 0; j < ITEMS && i % 16 == 0; j++)
			if (item[j].place && (!first || item[j].due_ns < first->due_ns))
				first = &item[j];
		if (i % 16 == 0)
			assert_ptr_equal(pace_first(&p), first);
	}
	pace_deinit(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_spread_from_start_to_end),
		cmocka_unit_test(what_is_ahead_moves_in_proportion),
		cmocka_unit_test(no_move_makes_a_message_early),
		cmocka_unit_test(the_first_that_is_due_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
