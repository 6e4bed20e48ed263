/* Whom calls go to in a communicator of another size. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"

#include "replay/calls.h"

#define CALLS_MAX 64

/* "0>3:10 0<3:10": rank 0 sends 10 bytes to 3, and receives as many. */
static struct calls parse(const char *text, struct record_call *list, const struct membership *map)
{
	struct calls c = {.list = list, .map = map};
	unsigned rank, peer, bytes;
	char way;
	int used;

	for (; sscanf(text, " %u%c%u:%u%n", &rank, &way, &peer, &bytes, &used) == 4; text += used) {
		list[c.n++] = (struct record_call){peer, way == '>', bytes};
		c.rank = rank;
	}
	assert_true(c.n <= CALLS_MAX);
	return c;
}

static struct membership all(uint32_t n)
{
	return (struct membership){n, 0, 1, NULL};
}

static void expect_reach(const char *text, uint32_t n, enum calls_reach reach, bool is_sure)
{
	struct record_call list[CALLS_MAX];
	struct membership map = all(n);
	struct calls c = parse(text, list, &map);
	enum calls_reach got;
	bool sure;

	assert_int_equal(calls_find_reach(&c, &got, &sure), 0);
	assert_int_equal(got, reach);
	assert_int_equal(sure, is_sure);
}

static void test_reach(void **state)
{
	(void)state;
	expect_reach("0>0:1 0<0:1 0>1:1 0<1:1", 2, CALLS_TO_ALL, true);
	expect_reach("0>1:1 0<1:1", 2, CALLS_TO_ALL, false); /* or the next one */
	expect_reach("0>1:1 0>2:1", 3, CALLS_TO_ALL, false); /* or both neighbours */
	expect_reach("0>1:1 0>2:1 0>3:1", 4, CALLS_TO_ALL, true);
	expect_reach("0>1:1 0>2:1 0>2:1", 4, CALLS_TO_SOME, false);
	expect_reach("0>1:1 0>2:1 0>3:1 0<1:1", 4, CALLS_TO_SOME, false);
	expect_reach("0>1:1 0>2:1", 4, CALLS_TO_SOME, false);
	expect_reach("0>0:1 0>1:1 0>2:1 0<0:1 0<1:1 0<2:1 0<3:1", 4, CALLS_TO_MOST, false);
	expect_reach("0>0:1 0>1:1 0>2:1 0<0:1 0<1:1", 4, CALLS_TO_SOME, false);
}

struct where {
	uint32_t n, rank;
	struct world world;
};

static struct where where(uint32_t n, uint32_t rank, const char *layout)
{
	struct where w = {n, rank, {.size = n, .n_nodes = n}};
	struct err err = {""};

	if (layout) {
		assert_int_equal(layout_parse(layout, n, &w.world.layouts[0], &err), 0);
		w.world.n_layouts = 1;
	}
	return w;
}

/* @want NULL: it has no place there. */
static void expect(enum calls_shape shape, const char *text, const struct where *from,
		   const struct where *to, const char *want)
{
	struct record_call list[CALLS_MAX], want_list[CALLS_MAX];
	struct membership was = all(from->n), is = all(to->n);
	struct calls a = parse(text, list, &was),
		     b = {.rank = to->rank, .map = &is, .world = &to->world},
		     c = parse(want ? want : "", want_list, &is);
	const uint32_t same[][2] = {{from->rank, to->rank}, {3, 1}};

	a.world = &from->world;
	assert_int_equal(calls_make(shape, &a, same, shape == CALLS_ALL && from->n > 3 ? 2 : 1, &b),
			 want ? 0 : -EINVAL);
	if (!want)
		return;
	assert_int_equal(b.n, c.n);
	for (uint32_t i = 0; i < c.n; i++) {
		assert_int_equal(b.list[i].peer, c.list[i].peer);
		assert_int_equal(b.list[i].is_send, c.list[i].is_send);
		assert_int_equal(b.list[i].bytes, c.list[i].bytes);
	}
	assert_true(calls_have_same_peers(shape, &b, &c));
	free((void *)(uintptr_t)b.list);
}

static void test_make(void **state)
{
	struct where two = where(2, 0, NULL), four = where(4, 0, NULL), five = where(5, 0, NULL),
		     few = where(4, 1, "dp=2,pp=2"), many = where(8, 1, "dp=4,pp=2");

	(void)state;
	expect(CALLS_ALL, "0>0:9 0<0:9 0>1:9 0<1:9", &two, &four,
	       "0>0:9 0<0:9 0>1:9 0<1:9 0>2:9 0<2:9 0>3:9 0<3:9");
	expect(CALLS_ALL, "0>1:9 0<1:9", &two, &four, "0>1:9 0<1:9 0>2:9 0<2:9 0>3:9 0<3:9");
	/* uneven: real rank 3 becomes rank 1 and keeps its bytes, the others are as by turns */
	expect(CALLS_ALL, "0>0:1 0>1:2 0>2:3 0>3:4 0<0:5 0<1:6 0<2:7 0<3:8", &four, &five,
	       "0>0:1 0>1:4 0>2:3 0>3:4 0>4:2 0<0:5 0<1:8 0<2:7 0<3:8 0<4:6");
	/* the same data-parallel rank of the next stage */
	expect(CALLS_LAYOUT, "1>3:5 1<3:5", &few, &many, "1>5:5 1<5:5");
	expect(CALLS_LAYOUT, "1>0:5", &few, &many, NULL);
	expect(CALLS_LAYOUT, "0>1:5", &two, &four, NULL);
	/* around the end */
	expect(CALLS_DISTANCE, "0>1:5 0<3:6", &four, &five, "0>1:5 0<4:6");
	expect(CALLS_DISTANCE, "0>2:5", &four, &two, NULL);
}

/* Beside counting ranks one by one: the neighbour along tp or pp of each rank of tp x dp x pp, in
 * the world of all ranks, where dp grows. */
static void check_neighbour(const uint32_t n[3], uint32_t dp, bool is_pp)
{
	char few_text[64], many_text[64];
	struct where few, many;

	snprintf(few_text, sizeof(few_text), "tp=%u,dp=%u,pp=%u", n[0], n[1], n[2]);
	snprintf(many_text, sizeof(many_text), "tp=%u,dp=%u,pp=%u", n[0], dp, n[2]);
	few = where(n[0] * n[1] * n[2], 0, few_text);
	many = where(n[0] * dp * n[2], 0, many_text);
	for (uint32_t p = 0, rank = 0; p < n[2]; p++)
		for (uint32_t d = 0; d < n[1]; d++)
			for (uint32_t t = 0; t < n[0]; t++, rank++) {
				uint32_t t2 = is_pp ? t : (t + 1) % n[0],
					 p2 = is_pp ? (p + 1) % n[2] : p;
				char from[64], want[64];

				few.rank = rank;
				many.rank = t + n[0] * (d + dp * p);
				snprintf(from, sizeof(from), "%u>%u:8", rank,
					 t2 + n[0] * (d + n[1] * p2));
				snprintf(want, sizeof(want), "%u>%u:8", many.rank,
					 t2 + n[0] * (d + dp * p2));
				expect(CALLS_LAYOUT, from, &few, &many, want);
				assert_int_equal(world_rank(&few.world, &many.world, rank),
						 many.rank);
			}
}

static void test_neighbours(void **state)
{
	(void)state;
	for (uint32_t tp = 1; tp <= 3; tp++)
		for (uint32_t dp = 1; dp <= 3; dp++)
			for (uint32_t pp = 1; pp <= 3; pp++)
				for (uint32_t more = dp; more <= 4; more++) {
					const uint32_t n[] = {tp, dp, pp};

					check_neighbour(n, more, true);
					check_neighbour(n, more, false);
				}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reach),
		cmocka_unit_test(test_make),
		cmocka_unit_test(test_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
