/* Plans of buckets against all that there are; theorems against both ways played; memory by hand;
 * the reader of layers. */
#include "cmocka-all.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "buckets/buckets.h"
#include "buckets/layers.h"
#include "buckets/memory.h"
#include "rng.h"

#define MOST 12

/* t = alpha + beta * bytes, each piece; from bytes of @step on another alpha, too. */
struct line {
	double alpha, beta, more;
	uint64_t step;
};

static double line_sync(void *ctx, uint64_t bytes, uint32_t pieces)
{
	const struct line *l = ctx;
	double each = (double)bytes / pieces;

	return pieces *
	       (l->alpha + l->beta * each + (l->step && each >= (double)l->step ? l->more : 0));
}

struct game {
	struct line line;
	struct buckets_cost cost;
	double ready[MOST];
	uint64_t bytes[MOST];
	double after[MOST], lead[MOST];
	struct buckets_job job;
};

static void fill(struct game *g, struct rng *rng, bool has_step, bool has_after)
{
	double t = 0;

	g->line = (struct line){.alpha = 2 * rng_uniform(rng), .beta = rng_uniform(rng) / 4};
	if (has_step) {
		g->line.step = 1 + below(rng, 40);
		g->line.more = 4 * rng_uniform(rng);
	}
	g->cost = (struct buckets_cost){line_sync, &g->line, has_step ? 4 : 1};
	g->job = (struct buckets_job){.n = 1 + (uint32_t)below(rng, MOST),
				      .ready = g->ready,
				      .bytes = g->bytes};
	for (uint32_t i = 0; i < g->job.n; i++) {
		g->ready[i] = t += 2 * rng_uniform(rng);
		g->bytes[i] = 1 + below(rng, 16);
		g->after[i] = below(rng, 2) ? 2 * rng_uniform(rng) : 0;
		g->lead[i] = below(rng, 2) ? rng_uniform(rng) : 0;
	}
	g->job.after = has_after ? g->after : NULL;
	g->job.lead = has_after ? g->lead : NULL;
	g->job.end = t + rng_uniform(rng);
}

/* Of all 2^(n - 1) plans. */
static double brute_force(const struct game *g, struct buckets_plan *p)
{
	double best = INFINITY;

	for (uint32_t cuts = 0; cuts < UINT32_C(1) << (g->job.n - 1); cuts++) {
		p->n = 0;
		for (uint32_t i = 0, first = 0; i < g->job.n; i++) {
			uint64_t bytes = 0;

			if (i + 1 < g->job.n && !(cuts >> i & 1))
				continue;
			p->list[p->n] = (struct bucket){first, i + 1, 1, 0};
			for (uint32_t k = first; k <= i; k++)
				bytes += g->bytes[k];
			buckets_sync(&g->cost, bytes, &p->list[p->n++].pieces);
			first = i + 1;
		}
		best = fmin(best, buckets_play(&g->job, &g->cost, p, NULL));
	}
	return best;
}

static void test_the_exact_programme_is_as_good_as_any_plan(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 400; seed++) {
		CLEANUP(buckets_plan_deinit) struct buckets_plan p = {.n = 0};
		struct rng rng;
		struct game g;
		double best, any;

		rng_seed(&rng, seed, 1);
		fill(&g, &rng, seed % 2, seed % 4 > 1);
		assert_int_equal(buckets_plan_init(&p, g.job.n), 0);
		any = brute_force(&g, &p);
		memset(p.is_fused, 1, g.job.n); /* what a plan held before does not matter */
		best = buckets_best(&g.job, &g.cost, &p);
		assert_true(fabs(best - any) < 1e-9);
		assert_true(best == buckets_play(&g.job, &g.cost, &p, NULL));
		assert_int_equal(p.list[0].first, 0);
		assert_int_equal(p.list[p.n - 1].end, g.job.n);
		if (seed % 4 == 0) { /* what Algorithm 1 takes for granted */
			double none, pass = buckets_dpro(&g.job, &g.cost, &p, NULL);

			assert_true(pass >= best - 1e-9);
			buckets_none(&g.job, &p);
			none = buckets_play(&g.job, &g.cost, &p, NULL);
			assert_true(pass <= none + 1e-9);
		}
	}
}

static void test_ops_are_fused_where_that_helps(void **state)
{
	double ready[] = {2, 5, 6}, fused[] = {NAN, 3.5, 1}, ends[3];
	uint64_t bytes[] = {1, 1, 1};
	struct line line = {.alpha = 1};
	struct buckets_cost cost = {line_sync, &line, 1};
	struct buckets_job job = {3, ready, bytes, fused, 6, 0, NULL, NULL};
	CLEANUP(buckets_plan_deinit) struct buckets_plan p = {.n = 0};

	(void)state;
	assert_int_equal(buckets_plan_init(&p, 3), 0);
	/* 5 - 3.5 is more than the reduction that is not hidden any more; of three ops as one
	 * nobody knows the time */
	assert_true(buckets_dpro(&job, &cost, &p, NULL) == 5.5);
	assert_int_equal(p.n, 2);
	assert_true(p.is_fused[1] && !p.is_fused[2] && p.n_fused == 1);
	assert_true(buckets_play(&job, &cost, &p, ends) == 5.5 && ends[0] == 4.5 && ends[1] == 5.5);
	fused[1] = 4.5; /* wins less than it costs */
	buckets_dpro(&job, &cost, &p, NULL);
	assert_false(p.is_fused[1]);
}

static void expect(const struct buckets_plan *p, const char *sizes)
{
	char text[64] = "";

	for (uint32_t i = 0; i < p->n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", i ? " " : "",
			 p->list[i].end - p->list[i].first);
	assert_string_equal(text, sizes);
}

static void test_frameworks_fill_buckets_as_they_do(void **state)
{
	double ready[] = {1, 2, 3, 4, 5, 6}, cycle;
	uint64_t bytes[] = {1, 1, 2, 9, 1, 1}, first, most;
	struct line line = {.alpha = 1, .beta = .001};
	struct buckets_cost cost = {line_sync, &line, 1};
	struct buckets_job job = {6, ready, bytes, NULL, 6, 0, NULL, NULL};
	CLEANUP(buckets_plan_deinit) struct buckets_plan p = {.n = 0};
	double end;

	(void)state;
	assert_int_equal(buckets_plan_init(&p, 6), 0);
	buckets_ddp(&job, 1, 3, &p);
	expect(&p, "1 2 1 2");
	buckets_ddp(&job, 100, 100, &p);
	expect(&p, "6");
	buckets_horovod(&job, 2.5, 8, &p); /* what is ready at 2.5, at 5, at 7.5 */
	expect(&p, "2 1 1 1 1");
	assert_true(p.list[0].from == 2.5 && p.list[2].from == 5 && p.list[4].from == 7.5);
	buckets_byteps(&job, 2, &p);
	expect(&p, "1 1 1 1 1 1");
	assert_int_equal(p.list[3].pieces, 5);
	assert_int_equal(p.list[2].pieces, 1);
	/* of grids, the best: nothing is better than all at once here, but what is as good */
	end = buckets_ddp_best(&job, &cost, true, &p, &first);
	assert_true(end == buckets_play(&job, &cost, &p, NULL) && first == 1 << 20);
	end = buckets_ddp_best(&job, &cost, false, &p, &first);
	assert_true(end == buckets_play(&job, &cost, &p, NULL) && first == 25 << 20);
	for (int i = 0; i < 6; i++)
		bytes[i] <<= 20; /* a first bucket of one gradient: 1 + 1, 3, the rest at 6 */
	line = (struct line){.alpha = .1, .beta = .1 / (1 << 20)};
	end = buckets_ddp_best(&job, &cost, true, &p, &first);
	assert_true(end == buckets_play(&job, &cost, &p, NULL) && p.n == 2);
	end = buckets_horovod_best(&job, &cost, 1, &p, &cycle, &most);
	assert_true(end == buckets_play(&job, &cost, &p, NULL) && cycle >= 1);
}

static void parse(const char *text, struct layers *ret)
{
	struct err err = {""};

	if (layers_parse("file", text, ret, &err) < 0)
		fail_msg("%s", err.text);
}

static void test_memory_is_as_by_hand(void **state)
{
	CLEANUP(layers_deinit) struct layers l = {.n = 0};
	struct memory_asked asked = {.batch = 1, .state = 8, .budget = INFINITY};
	struct memory_way w;

	(void)state;
	/* forward: 10, 10 + 20 kept + 7; backward of c: 30 + 40 of c's gradient */
	parse("a forward=3ms backward=1ms out=10B params=1B\n"
	      "b forward=2ms backward=1ms out=5B kept=no\n"
	      "c forward=1ms backward=1ms out=20B temp=7B grad=40B\n",
	      &l);
	assert_true(memory_peak(&l, false) == 70);
	/* a is the longest tenth: c is made anew from b on */
	assert_true(memory_peak(&l, true) == 75);
	assert_int_equal(memory_way(&l, &asked, 1, false, &w), 0);
	assert_true(w.bytes == 78 && w.ns == 11e6); /* b is computed again */
	assert_int_equal(memory_way(&l, &asked, 1, true, &w), 0);
	assert_true(w.ns == 12e6);
	assert_int_equal(memory_way(&l, &asked, 4, false, &w), 0);
	assert_true(w.bytes == 70. / 4 + 8 && fabs(w.ns - 11e6 * 2.56) < 1e-3);
	asked.budget = 50;
	assert_int_equal(memory_fit(&l, &asked, &w), 0);
	assert_true(w.parts == 2 && !w.recomputes);
	asked.budget = 8;
	assert_int_equal(memory_fit(&l, &asked, &w), -ENOSPC);
	assert_int_equal(w.parts, 1024);
	asked = (struct memory_asked){.batch = 2, .state = 0, .budget = INFINITY};
	assert_int_equal(memory_fit(&l, &asked, &w), 0);
	assert_true(w.parts == 1 && w.bytes == 140);
}

static void test_layers_are_read_or_refused_with_the_line(void **state)
{
	static const struct {
		const char *text, *sentence;
	} wrong[] = {
		{"", "file: it has no layer"},
		{"a forward=1ms", "file:1: a needs how long its backward pass takes"},
		{"\na backward=2", "file:2: backward:"},
		{"a backwrd=2ms", "did you mean 'backward'?"},
		{"a backward=1ms backward=1ms", "file:1: backward is given twice"},
		{"a backward=1ms x3", "'x3': key=value is wanted"},
		{"a x0 backward=1ms", "'x0': so many layers"},
		{"a x65537 backward=1ms", "'x65537': so many layers"},
		{"a x65536 backward=1ms\nb backward=1ms", "file:2: there are more than 65536"},
		{"a backward=1ms kept=maybe", "kept: 'maybe' is neither yes nor no"},
		{"a backward=1ms out=20T", "out: '20T' is more than 16 TiB"},
	};
	CLEANUP(layers_deinit) struct layers l = {.n = 0};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(layers_parse("file", wrong[i].text, &l, &err), -EINVAL);
		if (!strstr(err.text, wrong[i].sentence))
			fail_msg("%s: %s", wrong[i].text, err.text);
	}
	parse("# comment\na x2 backward=2ms params=3KiB # more\n\nb backward=1us fused=3us", &l);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.list[1].name, "a");
	assert_true(l.list[1].params_bytes == 3072 && l.list[1].backward_ns == 2e6 &&
		    isnan(l.list[1].fused_ns) && l.list[2].fused_ns == 3e3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_exact_programme_is_as_good_as_any_plan),
		cmocka_unit_test(test_ops_are_fused_where_that_helps),
		cmocka_unit_test(test_frameworks_fill_buckets_as_they_do),
		cmocka_unit_test(test_memory_is_as_by_hand),
		cmocka_unit_test(test_layers_are_read_or_refused_with_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
