/* Ops that are alive together against a slow, obvious model that knows all of them from the
 * beginning; what was told moves with them. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "contention/overlap.h"
#include "rng.h"

#define OPS_MAX 24
#define LINKS_MAX 12

struct op {
	double start, solo_ns;
	struct usage *usage;
	int after; /* -1: none */
	double after_done;
	double end;   /* by the slow model */
	double told;  /* by the overlap, moved as it says */
	double half;  /* when half of it is done, the same */
	double speed; /* slow model */
	double done;
	bool is_forgotten;
};

static struct usage *new_usage(struct rng *r, uint32_t n_links)
{
	struct usage *u = calloc(1, sizeof(*u) + n_links * sizeof(u->links[0]));

	assert_non_null(u);
	u->n_refs = 1;
	u->number = rng_u64(r);
	for (uint32_t l = 0; l < n_links; l++) {
		double own = (double)(1 + below(r, 3)) * 1000;

		if (below(r, 2))
			continue;
		u->links[u->n++] = (struct usage_link){.link = l + 1,
						       .capacity = 1 + l % 3,
						       .own_bytes = own,
						       .bytes = own + (below(r, 4) ? 0 : 500),
						       .connections = (double)(1 + below(r, 4))};
	}
	return u;
}

static double per_connection(const struct op *o)
{
	double most = 0;

	for (uint32_t i = 0; i < o->usage->n; i++)
		most = fmax(most, o->usage->links[i].bytes / o->usage->links[i].connections);
	return most / o->solo_ns;
}

static double load_on(const struct op *o, uint64_t link)
{
	for (uint32_t i = 0; i < o->usage->n; i++) {
		const struct usage_link *l = &o->usage->links[i];

		if (l->link == link)
			return fmin(1, l->own_bytes / l->capacity / o->solo_ns) +
			       (l->bytes - l->own_bytes) / l->capacity / o->solo_ns;
	}
	return 0;
}

/* Each connection gets more and more, until one of its links is full or its op as fast as alone. */
static void slow_speeds(struct op *ops, uint32_t n, const bool *is_live)
{
	bool stays[OPS_MAX] = {0};

	for (uint32_t i = 0; i < n; i++)
		ops[i].speed = 0;
	for (uint32_t round = 0; round < n; round++) {
		double level = INFINITY;
		int who = -1;

		for (uint32_t i = 0; i < n; i++) {
			double own;

			if (!is_live[i] || stays[i])
				continue;
			own = ops[i].usage->n ? per_connection(&ops[i]) : 1;
			for (uint64_t l = 1; l <= LINKS_MAX; l++) {
				double taken = 0, rising = 0;

				if (!load_on(&ops[i], l))
					continue;
				for (uint32_t k = 0; k < n; k++) {
					if (!is_live[k] || !load_on(&ops[k], l))
						continue;
					if (stays[k])
						taken += ops[k].speed * load_on(&ops[k], l);
					else
						rising += load_on(&ops[k], l) /
							  per_connection(&ops[k]);
				}
				own = fmin(own, (1 - taken) / rising);
			}
			if (own < level) {
				level = own;
				who = (int)i;
			}
		}
		if (who < 0)
			return;
		stays[who] = true;
		ops[who].speed = ops[who].usage->n ? level / per_connection(&ops[who]) : 1;
	}
}

static void slow_ends(struct op *ops, uint32_t n)
{
	double t = INFINITY;
	bool is_live[OPS_MAX];

	for (uint32_t i = 0; i < n; i++) {
		ops[i].done = 0;
		t = fmin(t, ops[i].start);
	}
	for (;;) {
		double next = INFINITY;
		bool has_live = false;

		for (uint32_t i = 0; i < n; i++) {
			const struct op *before = ops[i].after < 0 ? NULL : &ops[ops[i].after];

			is_live[i] = ops[i].start <= t && ops[i].done < ops[i].solo_ns &&
				     (!before || before->done >= ops[i].after_done - 1e-6);
			has_live |= is_live[i];
			if (ops[i].start > t)
				next = fmin(next, ops[i].start);
		}
		if (!has_live && isinf(next))
			return;
		slow_speeds(ops, n, is_live);
		for (uint32_t i = 0; i < n; i++)
			if (is_live[i])
				next = fmin(next,
					    t + (ops[i].solo_ns - ops[i].done) / ops[i].speed);
		for (uint32_t i = 0; i < n; i++) {
			const struct op *before = ops[i].after < 0 ? NULL : &ops[ops[i].after];

			if (before && is_live[ops[i].after] &&
			    before->done < ops[i].after_done - 1e-6)
				next = fmin(next,
					    t + (ops[i].after_done - before->done) / before->speed);
		}
		for (uint32_t i = 0; i < n; i++) {
			double end = t + (ops[i].solo_ns - ops[i].done) / ops[i].speed;

			if (!is_live[i])
				continue;
			ops[i].done += ops[i].speed * (next - t);
			if (end <= next * (1 + 1e-15)) {
				ops[i].done = ops[i].solo_ns;
				ops[i].end = end;
			}
		}
		t = next;
	}
}

static void moved(void *ctx, void *tag, const struct warp *from, const struct warp *to)
{
	struct op *o = tag;
	double end = from->bends[from->n - 1].at;

	assert_ptr_equal(ctx, &moved);
	assert_true(fabs(o->told - end) < 1e-6);
	o->told = warp_move(from, to, o->told);
	o->half = warp_move(from, to, o->half);
	assert_true(fabs(o->told - to->bends[to->n - 1].at) < 1e-6);
	assert_true(to->bends[0].at == from->bends[0].at || o->after >= 0);
}

static void forgotten(void *ctx, void *tag)
{
	assert_ptr_equal(ctx, &moved);
	((struct op *)tag)->is_forgotten = true;
}

/* Behind the op before it, or when that is half done. */
static double begin_of(struct op *o, const struct op *ops, bool at_half)
{
	const struct op *before = o->after < 0 ? NULL : &ops[o->after];

	if (!before)
		return o->start;
	at_half &= before->half >= o->start;
	o->after_done = at_half ? before->solo_ns / 2 : before->solo_ns;
	return at_half ? before->half : fmax(o->start, before->told);
}

/* Told in any order, ops end when they would if all had been known. */
static void ends_are_those_of_the_slow_model(void **state)
{
	const struct overlap_sink sink = {moved, forgotten, &moved};

	(void)state;
	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct op ops[OPS_MAX] = {0};
		uint64_t numbers[OPS_MAX];
		struct usage *shapes[4];
		struct overlap *o;
		struct rng r;
		uint32_t n, n_links;

		rng_seed(&r, seed, 0);
		n = 1 + (uint32_t)below(&r, OPS_MAX);
		n_links = 1 + (uint32_t)below(&r, LINKS_MAX);
		for (int i = 0; i < 4; i++)
			shapes[i] = new_usage(&r, n_links);
		for (uint32_t i = 0; i < n; i++)
			ops[i] =
				(struct op){.start = (double)below(&r, 20) * 1000,
					    .solo_ns = 500 + (double)below(&r, 20) * 250,
					    .usage = shapes[below(&r, 4)],
					    .after = below(&r, 3) ? -1 : (int)below(&r, i + 1) - 1};
		assert_int_equal(overlap_new(&sink, &o), 0);
		for (uint32_t i = 0; i < n; i++) {
			double begin = begin_of(&ops[i], ops, below(&r, 2));
			const struct overlap_op op = {
				.usage = ops[i].usage,
				.start = ops[i].start,
				.begin = begin,
				.solo_ns = ops[i].solo_ns,
				.after = ops[i].after < 0 ? 0 : numbers[ops[i].after],
				.tag = &ops[i],
			};
			const struct warp *w;

			assert_int_equal(overlap_add(o, &op, &numbers[i], &w), 0);
			ops[i].told = warp_at(w, ops[i].solo_ns);
			ops[i].half = warp_at(w, ops[i].solo_ns / 2);
			assert_true(ops[i].told >= ops[i].start + ops[i].solo_ns - 1e-6);
		}
		slow_ends(ops, n);
		for (uint32_t i = 0; i < n; i++) {
			if (fabs(ops[i].told - ops[i].end) > 1e-6)
				fail_msg("seed %lu: op %u of %u ends at %.9g, not %.9g",
					 (unsigned long)seed, i, n, ops[i].told, ops[i].end);
			assert_true(ops[i].half > ops[i].start && ops[i].half < ops[i].told);
		}
		overlap_free(o);
		for (uint32_t i = 0; i < n; i++)
			assert_true(ops[i].is_forgotten);
		for (int i = 0; i < 4; i++)
			usage_unref(shapes[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_those_of_the_slow_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
