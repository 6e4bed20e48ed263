/* See overlap-bench.h. What rates and ends of ops cost that share the network. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "overlap-bench.h"

#define POOL 24
#define SET 8
#define ROUNDS 2000

/* Ops of 128 nodes with 8 GPUs and 8 NICs: tensor, data, pipeline and expert parallelism. */
static void make_pool(const struct bench_world *w, struct bench_op *pool, struct rng *r,
		      double *ret_usage_us)
{
	uint32_t n = bench_ranks(w);
	double begin;

	for (uint32_t i = 0; i < POOL; i++) {
		uint64_t bytes = (uint64_t)(1 << 20) << below(r, 7);

		switch (i % 4) {
		case 0: /* tp: a node */
			bench_op(w, &pool[i], COLL_ALLREDUCE, bytes,
				 &(struct membership){.n_ranks = 8, .base = i * 8, .stride = 1});
			break;
		case 1: /* dp: one GPU of each node */
			bench_op(w, &pool[i], i % 8 == 1 ? COLL_ALLGATHER : COLL_REDUCESCATTER,
				 bytes / 128,
				 &(struct membership){.n_ranks = 128, .base = i / 4, .stride = 8});
			break;
		case 2: /* pp: a stage to the next one */
			bench_op(w, &pool[i], COLL_BROADCAST, bytes,
				 &(struct membership){.n_ranks = 2, .base = i, .stride = n / 8});
			break;
		default: /* ep: 8 nodes */
			bench_op(w, &pool[i], COLL_ALLTOALL, bytes / 64,
				 &(struct membership){.n_ranks = 64,
						      .base = i / 4 * 64,
						      .stride = 1});
			break;
		}
	}
	begin = bench_now_s();
	for (uint32_t i = 0; i < POOL; i++) {
		usage_unref(pool[i].usage);
		bench_usage(w, &pool[i], NULL);
	}
	*ret_usage_us = (bench_now_s() - begin) / POOL * 1e6;
}

static void draw(struct rng *r, const struct bench_op *pool, struct rate_op *set)
{
	uint32_t first = (uint32_t)below(r, POOL);

	/* other places each time: each is another set */
	for (uint32_t i = 0; i < SET; i++) {
		const struct bench_op *o =
			&pool[(first + i * (1 + 2 * (first % 4)) + below(r, 3)) % POOL];

		set[i] = (struct rate_op){o->usage, o->solo_ns, RATE_OP};
	}
}

static void rates_costs(struct bench_output *out)
{
	struct bench_world w = bench_world("dgx-h100", 128, FABRIC_RAIL, 1);
	struct bench_op pool[POOL] = {0};
	struct bench_score first = {0}, new = {0}, seen = {0};
	struct rate_op set[SET];
	double speed[SET], usage_us, begin;
	struct rates rates = {0};
	uint64_t n_links = 0;
	struct rng r;

	rng_seed(&r, 14, 3);
	make_pool(&w, pool, &r, &usage_us);
	for (uint32_t i = 0; i < POOL; i++)
		n_links += pool[i].usage->n;
	begin = bench_now_s();
	for (uint32_t i = 0; i < POOL; i++) {
		struct rate_op one = {pool[i].usage, pool[i].solo_ns, RATE_OP};

		if (rates_find(&rates, &one, 1, speed))
			bench_fail("no memory");
	}
	bench_note(&first, (bench_now_s() - begin) / POOL * 1e6);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t n_solved = rates.n_solved;

		draw(&r, pool, set);
		begin = bench_now_s();
		if (rates_find(&rates, set, SET, speed))
			bench_fail("no memory");
		bench_note(rates.n_solved > n_solved ? &new : &seen, (bench_now_s() - begin) * 1e6);
		begin = bench_now_s();
		for (int k = 0; k < 10; k++)
			rates_find(&rates, set, SET, speed);
		bench_note(&seen, (bench_now_s() - begin) / 10 * 1e6);
	}
	printf("\nspeeds of %u ops, of %u known, on %u ranks with 8 NICs a node; %llu links an op, %u "
	       "classes\n",
	       SET, POOL, bench_ranks(&w), (unsigned long long)(n_links / POOL), rates.classes.n);
	printf("%-44s %10s %10s %10s\n", "", "median us", "p99 us", "worst us");
	bench_cost_row(out, "a new set", &new);
	bench_cost_row(out, "a set seen before", &seen);
	bench_cost_row(out, "an op seen first (its links' classes)", &first);
	printf("%-44s %10.1f\n", "usage_of_op()", usage_us);
	rates_deinit(&rates);
	bench_free(&first);
	bench_free(&new);
	bench_free(&seen);
	for (uint32_t i = 0; i < POOL; i++)
		usage_unref(pool[i].usage);
	bench_world_end(&w);
}

static void nothing(void *ctx, void *tag, const struct warp *from, const struct warp *to)
{
	(void)ctx;
	(void)tag;
	(void)from;
	(void)to;
}

static void forgotten(void *ctx, void *tag)
{
	(void)ctx;
	(void)tag;
}

static double tell(struct overlap *o, struct bench_op *op, double start, double solo_ns)
{
	const struct warp *warp;
	uint64_t number;

	if (overlap_add(o,
			&(struct overlap_op){.usage = op->usage,
					     .solo_ns = solo_ns,
					     .start = start,
					     .begin = start,
					     .tag = op},
			&number, &warp))
		bench_fail("no memory");
	return warp_end(warp);
}

/* Beside ops that last short ones are told again and again. */
static void overlap_costs(struct bench_output *out)
{
	static const struct overlap_sink sink = {nothing, forgotten, NULL};
	static const uint32_t alive[] = {0, 2, 8, 32};
	struct bench_world w = bench_world("dgx-h100", 128, FABRIC_RAIL, 1);
	struct bench_op pool[POOL] = {0};
	double usage_us;
	struct rng r;

	rng_seed(&r, 14, 4);
	make_pool(&w, pool, &r, &usage_us);
	printf("\nan op told to an overlap, the same ones again and again\n%-44s %10s %10s %10s\n",
	       "", "median us", "p99 us", "worst us");
	for (size_t a = 0; a < ARRAY_SIZE(alive); a++) {
		struct bench_score score = {0};
		struct overlap *o;
		double t = 0;
		char what[64];

		if (overlap_new(&sink, &o))
			bench_fail("no memory");
		for (uint32_t i = 0; i < alive[a]; i++)
			tell(o, &pool[i % POOL], 0, 1e15);
		for (int i = 0; i < ROUNDS; i++) {
			struct bench_op *p = &pool[i % POOL];
			double begin = bench_now_s(), end = tell(o, p, t, p->solo_ns);

			if (i >= ROUNDS / 2)
				bench_note(&score, (bench_now_s() - begin) * 1e6);
			t = end + 1000;
		}
		snprintf(what, sizeof(what), alive[a] ? "%u others alive" : "nobody alive",
			 alive[a]);
		bench_cost_row(out, what, &score);
		bench_free(&score);
		overlap_free(o);
	}
	for (uint32_t i = 0; i < POOL; i++)
		usage_unref(pool[i].usage);
	bench_world_end(&w);
}

void bench_costs(struct bench_output *out)
{
	rates_costs(out);
	overlap_costs(out);
}
