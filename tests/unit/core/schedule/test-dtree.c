/* The double binary tree, for all numbers of nodes up to N: both trees span, are low, agree at both
 * ends of each edge, and share the work. */
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "schedule/dtree.h"
#include "schedule/schedule.h"

#define N 600

static int n_children(const int32_t child[2])
{
	return (child[0] >= 0) + (child[1] >= 0);
}

/* Edges by the definition of an in-order binary tree, built top down: the subtree
 * of the largest power of two below hi; for comparison with the closed form. */
static void expect_tree0(uint32_t n)
{
	int32_t parent, child[2];

	for (uint32_t x = 1; x < n; x++) {
		uint32_t b = 1, up;

		while (!(x & b))
			b <<= 1;
		/* the parent has the next higher bit as its lowest, or, if that is beyond the
		 * end, x without its lowest bit */
		up = x - b;
		if (!(up & (b << 1)))
			up += b << 1;
		if (up >= n)
			up = x - b;
		sched_dtree(n, x, 0, &parent, child);
		assert_int_equal(parent, up);
	}
}

static void check_tree(uint32_t n, int tree)
{
	uint32_t n_roots = 0, n_edges = 0, limit = 2;

	for (uint32_t x = n; x > 1; x = (x + 1) / 2)
		limit++; /* ceil(log2 n) + 2 */
	for (uint32_t x = 0; x < n; x++) {
		int32_t parent, child[2], up, down[2];
		uint32_t height = 0;

		sched_dtree(n, x, tree, &parent, child);
		assert_in_range(parent + 1, 0, n);
		n_roots += parent < 0;
		for (int i = 0; i < 2; i++) {
			if (child[i] < 0)
				continue;
			assert_in_range(child[i], 0, n - 1);
			sched_dtree(n, (uint32_t)child[i], tree, &up, down);
			assert_int_equal(up, x);
			n_edges++;
		}
		assert_true(child[0] < 0 || child[0] != child[1]);
		if (parent >= 0) {
			sched_dtree(n, (uint32_t)parent, tree, &up, down);
			assert_true(down[0] == (int32_t)x || down[1] == (int32_t)x);
		}
		/* spans without a loop: everyone reaches the root */
		for (up = (int32_t)x; up >= 0; height++) {
			assert_true(height <= limit);
			sched_dtree(n, (uint32_t)up, tree, &parent, child);
			up = parent;
		}
	}
	assert_int_equal(n_roots, 1);
	assert_int_equal(n_edges, n - 1);
}

static void both_trees_span(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= N; n++) {
		expect_tree0(n);
		check_tree(n, 0);
		check_tree(n, 1);
	}
	check_tree(65536, 0);
	check_tree(65535, 1);
}

/* All nodes send and receive equally much in sum: over both trees no node has more than two
 * children. With an odd number of nodes, node 0 is inner in both (the root's one child, and the
 * last place of the shifted tree). */
static void no_node_is_inner_twice(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= N; n++)
		for (uint32_t x = 0; x < n; x++) {
			int32_t parent, child[2][2];
			int n_inner, sum;

			sched_dtree(n, x, 0, &parent, child[0]);
			sched_dtree(n, x, 1, &parent, child[1]);
			sum = n_children(child[0]) + n_children(child[1]);
			n_inner = (n_children(child[0]) > 0) + (n_children(child[1]) > 0);
			assert_true(sum <= 2);
			assert_int_equal(n_inner == 2, n % 2 == 1 && n > 1 && x == 0);
		}
}

/* Worked by hand from the definition. */
static void known_trees_match(void **state)
{
	static const int32_t up8[2][8] = {{-1, 2, 4, 2, 0, 6, 4, 6}, {1, 3, 1, 7, 5, 3, 5, -1}};
	static const int32_t up5[2][5] = {{-1, 2, 4, 2, 0}, {1, -1, 3, 0, 3}};
	int32_t parent, child[2];

	(void)state;
	sched_dtree(6, 0, 0, &parent, child); /* a root's child is the second */
	assert_int_equal(child[0], -1);
	assert_int_equal(child[1], 4);
	sched_dtree(6, 4, 0, &parent, child);
	assert_int_equal(child[0], 2);
	assert_int_equal(child[1], 5);
	for (int tree = 0; tree < 2; tree++) {
		for (uint32_t x = 0; x < 8; x++) {
			sched_dtree(8, x, tree, &parent, child);
			assert_int_equal(parent, up8[tree][x]);
		}
		for (uint32_t x = 0; x < 5; x++) {
			sched_dtree(5, x, tree, &parent, child);
			assert_int_equal(parent, up5[tree][x]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_trees_span),
		cmocka_unit_test(no_node_is_inner_twice),
		cmocka_unit_test(known_trees_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
