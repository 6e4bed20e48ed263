/* Ops on devices, against two slow models: who could start first of all does; and the rule of
 * dPRO's paper word by word. */
#include "cmocka-all.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "dfg/dfg.h"
#include "rng.h"

#define OPS 40
#define DEVICES 5

struct game {
	struct {
		uint32_t device, priority;
		double ns;
	} op[OPS];
	double lag[OPS][OPS]; /* negative: no edge */
	uint32_t n;
};

struct times {
	double ready, start, end;
	bool is_over;
};

static bool is_ready(const struct game *g, const struct times *t, uint32_t op, double *ret)
{
	*ret = 0;
	for (uint32_t i = 0; i < g->n; i++) {
		if (g->lag[i][op] >= 0 && !t[i].is_over)
			return false;
		if (g->lag[i][op] >= 0)
			*ret = fmax(*ret, t[i].end + g->lag[i][op]);
	}
	return true;
}

/* Of two that could start at the same time on one device. */
static bool goes_first(const struct game *g, uint32_t a, double ready_a, uint32_t b, double ready_b)
{
	if (g->op[a].priority != g->op[b].priority)
		return g->op[a].priority < g->op[b].priority;
	return ready_a != ready_b ? ready_a < ready_b : a < b;
}

/* Plays the op that can start first, again and again. */
static void slow_event(const struct game *g, struct times *t)
{
	double free_at[DEVICES] = {0};

	for (uint32_t k = 0; k < g->n; k++) {
		uint32_t best = DFG_NONE;
		double best_start = INFINITY, best_ready = 0, ready;

		for (uint32_t i = 0; i < g->n; i++) {
			double start;

			if (t[i].is_over || !is_ready(g, t, i, &ready))
				continue;
			start = g->op[i].device == DFG_PARALLEL
					? ready
					: fmax(ready, free_at[g->op[i].device]);
			if (start < best_start ||
			    (start == best_start && g->op[i].device == g->op[best].device &&
			     goes_first(g, i, ready, best, best_ready))) {
				best = i;
				best_start = start;
				best_ready = ready;
			}
		}
		t[best] = (struct times){best_ready, best_start, best_start + g->op[best].ns, true};
		if (g->op[best].device != DFG_PARALLEL)
			free_at[g->op[best].device] = t[best].end;
	}
}

/* Serves the device whose last op ended first. */
static void slow_dpro(const struct game *g, struct times *t)
{
	double free_at[DEVICES] = {0}, ready;

	for (uint32_t left = g->n; left;) {
		uint32_t device = DFG_NONE, best = DFG_NONE;
		double best_ready = 0;
		bool has_parallel = false;

		for (uint32_t i = 0; i < g->n; i++) {
			uint32_t d = g->op[i].device;

			if (t[i].is_over || !is_ready(g, t, i, &ready))
				continue;
			if (d == DFG_PARALLEL) {
				t[i] = (struct times){ready, ready, ready + g->op[i].ns, true};
				has_parallel = true;
				left--;
				break;
			}
			if (best != DFG_NONE &&
			    (d == device ? !goes_first(g, i, ready, best, best_ready)
					 : free_at[d] > free_at[device] ||
						   (free_at[d] == free_at[device] && d > device)))
				continue;
			best = i;
			best_ready = ready;
			device = d;
		}
		if (has_parallel)
			continue;
		t[best] = (struct times){best_ready, fmax(best_ready, free_at[device]), 0, true};
		t[best].end = free_at[device] = t[best].start + g->op[best].ns;
		left--;
	}
}

static struct dfg *make(const struct game *g)
{
	struct dfg *d = dfg_new();
	uint32_t number;

	assert_non_null(d);
	for (uint32_t i = 0; i < DEVICES; i++)
		assert_int_equal(dfg_add_device(d, &number), 0);
	for (uint32_t i = 0; i < g->n; i++) {
		assert_int_equal(dfg_add_op(d, g->op[i].device, g->op[i].ns, g->op[i].priority,
					    &number),
				 0);
		assert_int_equal(number, i);
	}
	for (uint32_t i = 0; i < g->n; i++)
		for (uint32_t j = 0; j < g->n; j++)
			if (g->lag[i][j] >= 0)
				assert_int_equal(dfg_add_edge(d, i, j, g->lag[i][j]), 0);
	return d;
}

static void fill(struct game *g, struct rng *rng)
{
	g->n = 1 + (uint32_t)below(rng, OPS);
	for (uint32_t i = 0; i < g->n; i++) {
		g->op[i].device = (uint32_t)below(rng, DEVICES + 1);
		if (g->op[i].device == DEVICES)
			g->op[i].device = DFG_PARALLEL;
		g->op[i].priority = (uint32_t)below(rng, 2);
		g->op[i].ns = 1 + (double)below(rng, 9);
		for (uint32_t j = 0; j < g->n; j++)
			g->lag[i][j] = j > i && below(rng, 8) == 0 ? (double)below(rng, 3) : -1;
	}
}

static void compare(const struct game *g, const struct dfg *d, const struct times *t)
{
	for (uint32_t i = 0; i < g->n; i++) {
		const struct dfg_op *o = dfg_op(d, i);

		assert_true(o->ready == t[i].ready && o->start == t[i].start && o->end == t[i].end);
		/* the way back is without gaps, but for lags */
		if (o->by == DFG_NONE)
			assert_true(o->start == 0);
		else
			assert_true(o->start == dfg_op(d, o->by)->end + fmax(g->lag[o->by][i], 0) ||
				    o->start == dfg_op(d, o->by)->end);
	}
}

static void test_random_graphs_are_played_as_by_the_slow_models(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 400; seed++) {
		struct times t[OPS] = {{0}};
		struct game g;
		struct rng rng;
		struct dfg *d;
		uint32_t op;

		rng_seed(&rng, seed, 1);
		fill(&g, &rng);
		d = make(&g);
		assert_int_equal(dfg_play(d, DFG_EVENT, &op), 0);
		slow_event(&g, t);
		compare(&g, d, t);
		memset(t, 0, sizeof(t));
		assert_int_equal(dfg_play(d, DFG_DPRO, &op), 0);
		slow_dpro(&g, t);
		compare(&g, d, t);
		dfg_free(d);
	}
}

static void test_a_circle_is_named(void **state)
{
	struct game g = {.n = 5};
	struct dfg *d;
	uint32_t op = DFG_NONE;

	(void)state;
	for (uint32_t i = 0; i < g.n; i++)
		for (uint32_t j = 0; j < g.n; j++)
			g.lag[i][j] = -1;
	g.lag[1][2] = g.lag[2][3] = g.lag[3][2] = g.lag[3][4] = 0;
	d = make(&g);
	assert_int_equal(dfg_play(d, DFG_EVENT, &op), -ELOOP);
	assert_true(op == 2 || op == 3);
	assert_int_equal(dfg_play(d, DFG_DPRO, &op), -ELOOP);
	assert_true(op == 2 || op == 3);
	dfg_free(d);
}

static void test_another_duration_and_more_ops_are_played_anew(void **state)
{
	struct game g = {.n = 2, .op = {{0, 0, 5}, {1, 0, 7}}, .lag = {{-1, 1}, {-1, -1}}};
	struct dfg *d = make(&g);
	uint32_t op;

	(void)state;
	assert_int_equal(dfg_play(d, DFG_EVENT, &op), 0);
	assert_true(dfg_end(d, &op) == 13 && op == 1);
	dfg_set_ns(d, 0, 1);
	assert_int_equal(dfg_add_op(d, 0, 20, 0, &op), 0);
	assert_int_equal(dfg_play(d, DFG_EVENT, &op), 0);
	assert_true(dfg_end(d, &op) == 21 && op == 2);
	assert_true(dfg_busy(d, 0) == 21 && dfg_busy(d, 1) == 7);
	assert_int_equal(dfg_add_edge(d, 1, 2, 0), 0);
	assert_int_equal(dfg_play(d, DFG_EVENT, &op), 0);
	assert_true(dfg_end(d, NULL) == 29);
	dfg_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_graphs_are_played_as_by_the_slow_models),
		cmocka_unit_test(test_a_circle_is_named),
		cmocka_unit_test(test_another_duration_and_more_ops_are_played_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
