/* Ops that are alive together, over links that others load and links that lose a part, against a
 * slow, obvious model that knows all of them from the beginning; what was told moves with them. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "contention/overlap.h"
#include "rng.h"

#define LATE_NS 1e14 /* in a run of 28 hours, where doubles are 0.016 apart */
#define OPS_MAX 24
#define LINKS_MAX 12
#define LOADS_MAX (2 * LINKS_MAX) /* each on one link: to the slow model ops that never end */
#define ALL_MAX (OPS_MAX + LOADS_MAX)
#define LOSSES_MAX 2

struct loss {
	const struct usage *usage;
	double from, until;
};

struct op {
	double start, solo_ns;
	struct usage *usage;
	int after; /* -1: none */
	double after_done;
	double end;       /* by the slow model */
	double told;      /* by the overlap, moved as it says */
	double half;      /* when half of it is done, the same */
	double speed;     /* slow model */
	double part, cap; /* slow model: as if so much faster; no faster than */
	double done;
	bool is_forgotten;
	double until; /* of a load */
};

/* Moves of less than 1e-3 are not told, nor what doubles are wrong by; there may be several. */
static double untold_ns;

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
		u->links[u->n++] = (struct usage_link){.link = l,
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
	return most / o->solo_ns / o->part;
}

static double load_on(const struct op *o, uint64_t link)
{
	for (uint32_t i = 0; i < o->usage->n; i++) {
		const struct usage_link *l = &o->usage->links[i];

		if (l->link == link)
			return (fmin(1, l->own_bytes / l->capacity / o->solo_ns) +
				(l->bytes - l->own_bytes) / l->capacity / o->solo_ns) /
			       o->part;
	}
	return 0;
}

static double left_of(const struct loss *losses, uint64_t link, double t)
{
	double left = 1;

	for (int k = 0; k < LOSSES_MAX; k++)
		for (uint32_t i = 0; losses[k].usage && i < losses[k].usage->n; i++)
			if (losses[k].usage->links[i].link == link && losses[k].from <= t &&
			    t < losses[k].until)
				left *= 1 - losses[k].usage->links[i].bytes /
						    losses[k].usage->links[i].capacity;
	return left;
}

/* Each connection gets more and more, until one of its links is full or its op as fast as alone. */
static void slow_fill(struct op *ops, uint32_t n, const bool *is_live, const struct loss *losses,
		      double t)
{
	bool stays[ALL_MAX] = {0};

	for (uint32_t i = 0; i < n; i++)
		ops[i].speed = 0;
	for (uint32_t round = 0; round < n; round++) {
		double level = INFINITY;
		int who = -1;

		for (uint32_t i = 0; i < n; i++) {
			double own;

			if (!is_live[i] || stays[i])
				continue;
			own = ops[i].usage->n ? ops[i].cap * per_connection(&ops[i]) : 1;
			for (uint64_t l = 0; l < LINKS_MAX; l++) {
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
				own = fmin(own, (left_of(losses, l, t) - taken) / rising);
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

/* The part of its time in which an op's messages cross its busiest link. */
static double duty_of(const struct op *o)
{
	double most = 0;

	for (uint32_t i = 0; i < o->usage->n; i++)
		most = fmax(most, o->usage->links[i].own_bytes / o->usage->links[i].capacity /
					  o->solo_ns);
	return most > 0 ? fmin(1, most) : 1;
}

/* How often one of the others is on a link of op @i. */
static double met_by(const struct op *ops, uint32_t n, const bool *is_live, uint32_t i)
{
	double met = 0;

	for (uint64_t l = 0; l < LINKS_MAX; l++) {
		double none = 1;

		for (uint32_t k = 0; k < n; k++)
			if (k != i && is_live[k])
				none *= fmax(1 - load_on(&ops[k], l), 1e-30);
		if (load_on(&ops[i], l) > 0)
			met = fmax(met, 1 - none);
	}
	return met;
}

/* An op's messages have their fair share while others are there, the whole link otherwise; the rest
 * of its time is as if alone. Of the first @n_ops; then there are loads. */
static void slow_speeds(struct op *ops, uint32_t n_ops, uint32_t n, const bool *is_live,
			const struct loss *losses, double t)
{
	uint32_t n_live = 0;

	for (uint32_t i = 0; i < n; i++) {
		n_live += i < n_ops && is_live[i];
		ops[i].part = ops[i].cap = 1;
	}
	for (uint32_t i = 0; i < n_ops && n_live > 1; i++)
		ops[i].part = duty_of(&ops[i]);
	if (n_live > 1)
		slow_fill(ops, n, is_live, losses, t);
	for (uint32_t i = 0; i < n_ops; i++)
		ops[i].part = 1;
	for (uint32_t i = 0; i < n_ops && n_live > 1; i++) {
		double duty = duty_of(&ops[i]);
		double share = 1 - met_by(ops, n, is_live, i) * (1 - ops[i].speed);

		ops[i].cap = is_live[i] && share > 0 ? 1 / (1 - duty + duty / share) : 1;
	}
	slow_fill(ops, n, is_live, losses, t);
}

/* @n ops, and then loads. */
static void slow_ends(struct op *ops, uint32_t n, uint32_t n_loads, const struct loss *losses)
{
	double t = INFINITY;
	bool is_live[ALL_MAX];

	for (uint32_t i = 0; i < n; i++) {
		ops[i].done = 0;
		t = fmin(t, ops[i].start);
	}
	for (;;) {
		double next = INFINITY;
		bool is_over = true;

		for (uint32_t i = n; i < n + n_loads; i++) {
			is_live[i] = ops[i].start <= t && t < ops[i].until;
			next = fmin(next, ops[i].start > t ? ops[i].start
					  : is_live[i]     ? ops[i].until
							   : INFINITY);
		}
		for (int k = 0; k < LOSSES_MAX; k++)
			next = fmin(next, losses[k].from > t    ? losses[k].from
					  : losses[k].until > t ? losses[k].until
								: INFINITY);
		for (uint32_t i = 0; i < n; i++) {
			const struct op *before = ops[i].after < 0 ? NULL : &ops[ops[i].after];

			is_live[i] = ops[i].start <= t && ops[i].done < ops[i].solo_ns &&
				     (!before || before->done >= ops[i].after_done - 1e-6);
			is_over &= ops[i].done >= ops[i].solo_ns;
			if (ops[i].start > t)
				next = fmin(next, ops[i].start);
		}
		if (is_over)
			return;
		slow_speeds(ops, n, n + n_loads, is_live, losses, t);
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
	assert_true(fabs(o->told - end) < untold_ns);
	o->told = warp_move(from, to, o->told);
	o->half = warp_move(from, to, o->half);
	assert_true(fabs(o->told - to->bends[to->n - 1].at) < untold_ns);
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

/* A usage of its own for each link of @shape: the slow model's loads. */
static uint32_t add_loads(struct op *ops, uint32_t n, const struct usage *shape, double from,
			  double until)
{
	for (uint32_t i = 0; i < shape->n; i++) {
		struct usage *u = calloc(1, sizeof(*u) + sizeof(u->links[0]));

		assert_non_null(u);
		*u = (struct usage){.n = 1, .n_refs = 1};
		u->links[0] = shape->links[i];
		ops[n++] = (struct op){.start = from, .until = until, .solo_ns = 1, .usage = u};
	}
	return shape->n;
}

/* As bytes/ns: loads of 0.1 to 0.6 by 1 to 3 connections, or losses of a part, or of all. */
static struct usage *new_condition(struct rng *r, uint32_t n_links, bool is_loss)
{
	struct usage *u = new_usage(r, n_links);
	double part = is_loss && below(r, 2) ? 1 : 0.1 * (double)(1 + below(r, 6));
	double connections = (double)(1 + below(r, 3));

	for (uint32_t i = 0; i < u->n; i++) {
		struct usage_link *l = &u->links[i];

		l->bytes = part * (is_loss ? l->capacity : 1);
		l->own_bytes = 0;
		l->connections = connections;
	}
	return u;
}

/* Told in any order, ops end when they would if all had been known. */
static void ends_are_those_of_the_slow_model(void **state)
{
	const struct overlap_sink sink = {moved, forgotten, &moved};

	(void)state;
	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct op ops[ALL_MAX] = {0};
		struct loss losses[LOSSES_MAX] = {0};
		uint64_t numbers[OPS_MAX];
		struct usage *shapes[4], *conditions[4];
		struct overlap *o;
		struct rng r;
		uint32_t n, n_links, n_loads = 0;
		double epoch = seed % 3 ? 0 : LATE_NS, froms[4], untils[4];
		bool is_late = seed % 8 == 1; /* conditions are told when half of the ops are */
		int places[4], n_told = 0;

		untold_ns = epoch > 0 ? 3 : 1e-2;
		rng_seed(&r, seed, 0);
		n = 1 + (uint32_t)below(&r, OPS_MAX);
		n_links = 1 + (uint32_t)below(&r, LINKS_MAX);
		for (int i = 0; i < 4; i++)
			shapes[i] = new_usage(&r, n_links);
		for (uint32_t i = 0; i < n; i++)
			ops[i] =
				(struct op){.start = epoch + (double)below(&r, 20) * 1000,
					    .solo_ns = 500 + (double)below(&r, 20) * 250,
					    .usage = shapes[below(&r, 4)],
					    .after = below(&r, 3) ? -1 : (int)below(&r, i + 1) - 1};
		assert_int_equal(overlap_new(&sink, &o), 0);
		for (uint32_t i = 0; i < 4; i++) {
			bool is_loss = i < LOSSES_MAX;
			double from = (double)below(&r, 10) * 1500,
			       until = from + (double)below(&r, 10) * 700;

			conditions[i] = new_condition(&r, n_links, is_loss);
			froms[i] = epoch + from;
			untils[i] = epoch + until;
			places[i] = -1;
			if (seed % 4 == 0 || until <= from)
				continue;
			places[i] = n_told++;
			assert_int_equal(overlap_condition(o, conditions[i],
							   is_loss ? RATE_LOSS : RATE_LOAD,
							   is_late ? INFINITY : froms[i],
							   is_late ? INFINITY : untils[i]),
					 0);
			if (is_loss)
				losses[i] = (struct loss){conditions[i], from, until};
			else
				n_loads += add_loads(ops, n + n_loads, conditions[i], from, until);
		}
		for (uint32_t i = 0; i < n; i++) {
			for (uint32_t k = 0; is_late && i == n / 2 && k < 4; k++)
				if (places[k] >= 0)
					assert_int_equal(overlap_change(o, (uint32_t)places[k],
									froms[k], froms[k],
									untils[k]),
							 0);
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
			assert_true(ops[i].told >= ops[i].start + ops[i].solo_ns - untold_ns);
		}
		for (uint32_t i = 0; i < n; i++) {
			ops[i].start -= epoch;
			ops[i].told -= epoch;
			ops[i].half -= epoch;
		}
		slow_ends(ops, n, n_loads, losses);
		for (uint32_t i = 0; i < n; i++) {
			if (fabs(ops[i].told - ops[i].end) > untold_ns)
				fail_msg("seed %lu: op %u of %u ends at %.9g, not %.9g",
					 (unsigned long)seed, i, n, ops[i].told, ops[i].end);
			assert_true(ops[i].half > ops[i].start && ops[i].half < ops[i].told);
		}
		overlap_free(o);
		for (uint32_t i = 0; i < n; i++)
			assert_true(ops[i].is_forgotten);
		for (uint32_t i = n; i < n + n_loads; i++)
			usage_unref(ops[i].usage);
		for (int i = 0; i < 4; i++) {
			usage_unref(shapes[i]);
			usage_unref(conditions[i]);
		}
	}
}

/* One op at a time, that needs all of its link. */
static double alone(enum rate_kind kind, double bytes_per_ns, double connections, double from,
		    double until)
{
	struct usage *u = calloc(1, sizeof(*u) + sizeof(u->links[0])),
		     *c = calloc(1, sizeof(*c) + sizeof(c->links[0]));
	struct overlap *o;
	const struct overlap_sink sink = {0};
	double later;

	assert_true(u && c);
	assert_int_equal(overlap_new(&sink, &o), 0);
	*u = (struct usage){.n = 1, .n_refs = 1, .number = 1};
	u->links[0] = (struct usage_link){
		.link = 1, .capacity = 2, .own_bytes = 2000, .bytes = 2000, .connections = 1};
	*c = (struct usage){.n = 1, .n_refs = 1, .number = 2};
	c->links[0] = (struct usage_link){.link = 1,
					  .capacity = 2,
					  .bytes = bytes_per_ns,
					  .connections = connections};
	assert_int_equal(overlap_condition(o, c, kind, from, until), 0);
	assert_int_equal(overlap_alone(o, u, 500, 1000, &later), 0);
	assert_false(overlap_is_met(o, 0));
	overlap_free(o);
	usage_unref(u);
	usage_unref(c);
	return 1000 + later;
}

/* By arithmetic: an op of 1000 ns from 500 on, on a link of 2 B/ns. */
static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-9 * b)
		fail_msg("%.12g is not %.12g", a, b);
}

static void what_a_condition_does_to_one_op(void **state)
{
	(void)state;
	assert_near(alone(RATE_LOSS, 1.5, 1, 0, INFINITY), 4000); /* a quarter is left */
	assert_near(alone(RATE_LOSS, 1, 1, 0, 1000), 1250);       /* half, for half of it */
	assert_near(alone(RATE_LOSS, 2, 1, 700, 1000), 1300);     /* down for 300 */
	assert_near(alone(RATE_LOSS, 2, 1, 0, 600), 1100);        /* and when it begins */
	assert_near(alone(RATE_LOSS, 2, 1, 1500, 9000), 1000);    /* behind it */
	assert_near(alone(RATE_LOAD, 0.5, 1, 0, INFINITY), 1000 / 0.75);
	assert_near(alone(RATE_LOAD, 1.8, 1, 0, INFINITY), 2000); /* no more than its fair share */
	assert_near(alone(RATE_LOAD, 9, 3, 0, INFINITY), 4000);   /* three of four shares */
}

/* Each 400 ns the link is down for 100: an op of 1000 ns from 500 on. */
static void a_condition_comes_again(void **state)
{
	struct usage *u = calloc(1, sizeof(*u) + sizeof(u->links[0]));
	struct usage *op = calloc(1, sizeof(*op) + sizeof(op->links[0]));
	const struct overlap_sink sink = {0};
	struct overlap *o;
	double later;

	(void)state;
	assert_true(u && op);
	*u = (struct usage){.n = 1, .n_refs = 1, .number = 1};
	u->links[0] = (struct usage_link){.link = 1, .capacity = 2, .bytes = 2, .connections = 1};
	assert_int_equal(overlap_new(&sink, &o), 0);
	assert_int_equal(overlap_condition(o, u, RATE_LOSS, 200, 300), 0);
	overlap_repeat(o, 0, 400);
	*op = (struct usage){.n = 1, .n_refs = 1, .number = 2};
	op->links[0] = (struct usage_link){
		.link = 1, .capacity = 2, .own_bytes = 2000, .bytes = 2000, .connections = 1};
	assert_int_equal(overlap_alone(o, op, 500, 1000, &later), 0);
	assert_near(later, 300); /* at 600, 1000 and 1400 */
	overlap_free(o);
	usage_unref(u);
	usage_unref(op);
}

/* By itself an op may know of links that its usage does not; beside another that is too much for
 * the link of both. */
static void a_set_above_its_link_is_found(void **state)
{
	const struct overlap_sink sink = {moved, forgotten, &moved};
	const double bytes[] = {1000, 900, 1200};
	struct op tags[2] = {{.after = -1}, {.after = -1}};
	struct usage *u;
	struct overlap *o;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(overlap_new(&sink, &o), 0);
		u = calloc(1, sizeof(*u) + sizeof(u->links[0]));
		assert_non_null(u);
		u->n = u->n_refs = 1;
		u->number = 1;
		u->links[0] = (struct usage_link){7, 1, bytes[i], bytes[i], 1};
		for (int k = 0; k < 2; k++) {
			const struct overlap_op op = {.usage = u, .solo_ns = 1000, .tag = &tags[k]};
			const struct warp *w;
			uint64_t number;

			assert_int_equal(overlap_add(o, &op, &number, &w), 0);
			tags[k].told = tags[k].half = warp_end(w);
			assert_true(k == 1 || overlap_peak(o).load == 0);
		}
		assert_float_equal(overlap_peak(o).load, bytes[i] > 1000 ? 1.2 : 1, 1e-9);
		assert_int_equal(overlap_peak(o).link, 7);
		overlap_free(o);
		usage_unref(u);
	}
}

static void unmoved(void *ctx, void *tag, const struct warp *from, const struct warp *to)
{
	(void)ctx;
	(void)tag;
	fail_msg("from %u bends, the last %.17g, to %u, %.17g", from->n, warp_end(from), to->n,
		 warp_end(to));
}

static void ignored_move(void *ctx, void *tag, const struct warp *from, const struct warp *to)
{
	(void)ctx;
	(void)tag;
	(void)from;
	(void)to;
}

static void ignored(void *ctx, void *tag)
{
	(void)ctx;
	(void)tag;
}

/* What rounding does to it late in a run is no move, nor a bend that stays. */
static void who_shares_nothing_does_not_move(void **state)
{
	const struct overlap_sink sink = {unmoved, ignored, NULL};
	struct overlap *o;

	(void)state;
	assert_int_equal(overlap_new(&sink, &o), 0);
	for (int i = 0; i < 1000; i++) {
		double begin = LATE_NS + 300.1 * i;
		const struct overlap_op op = {.solo_ns = i ? 100 : 1e6 / 3,
					      .start = begin,
					      .begin = begin};
		const struct warp *w;
		uint64_t number;

		assert_int_equal(overlap_add(o, &op, &number, &w), 0);
		assert_int_equal(w->n, 2);
	}
	overlap_free(o);
}

/* An op begins behind the one before it, when nobody remembers that any more, too. */
static void who_has_waited_does_not_begin_earlier(void **state)
{
	const struct overlap_sink sink = {unmoved, ignored, NULL};
	struct overlap_op op = {.solo_ns = 1000};
	const struct warp *w;
	struct overlap *o;
	uint64_t number;

	(void)state;
	assert_int_equal(overlap_new(&sink, &o), 0);
	assert_int_equal(overlap_add(o, &op, &op.after, &w), 0);
	op.begin = 1000;
	assert_int_equal(overlap_add(o, &op, &number, &w), 0);
	op.after = 0;
	for (int i = 0; i < OVERLAP_KEPT - 1; i++) {
		op.start = op.begin = 3000 + i;
		assert_int_equal(overlap_add(o, &op, &number, &w), 0);
	}
	op.start = op.begin = 500;
	assert_int_equal(overlap_add(o, &op, &number, &w), 0);
	overlap_free(o);
}

/* All of a long queue is there for an op that is told later and begins beside its first ones. */
static void a_long_queue_is_remembered(void **state)
{
	const struct overlap_sink sink = {ignored_move, ignored, NULL};
	struct usage *u = calloc(1, sizeof(*u) + sizeof(u->links[0]));
	struct overlap_op op = {.usage = u, .solo_ns = 1000};
	const struct warp *w;
	struct overlap *o;
	uint64_t number;

	(void)state;
	assert_non_null(u);
	u->n = u->n_refs = 1;
	u->number = 1;
	u->links[0] = (struct usage_link){7, 1, 1000, 1000, 1};
	assert_int_equal(overlap_new(&sink, &o), 0);
	for (int i = 0; i < 4 * OVERLAP_KEPT; i++) {
		assert_int_equal(overlap_add(o, &op, &op.after, &w), 0);
		op.begin = warp_end(w);
	}
	op.after = 0;
	op.start = op.begin = 500;
	assert_int_equal(overlap_add(o, &op, &number, &w), 0);
	assert_float_equal(warp_end(w), 2500, 1e-3);
	op.start = op.begin = 1e6;
	assert_int_equal(overlap_add(o, &op, &number, &w), 0);
	op.start = op.begin = 500; /* the queue is over, and forgotten but for the last */
	assert_int_equal(overlap_add(o, &op, &number, &w), 0);
	assert_float_equal(warp_end(w), 1500, 1e-3);
	overlap_free(o);
	usage_unref(u);
}

/* Who begins when half of the op before is done, and starts then, is not waited for before it
 * starts, however doubles round what is done by then. */
static void who_starts_where_it_has_waited_for_is_reached(void **state)
{
	const struct overlap_sink sink = {ignored_move, ignored, NULL};
	struct rng r;
	const struct warp *w;

	(void)state;
	rng_seed(&r, 7, 0);
	for (int i = 0; i < 3000; i++) {
		struct overlap_op first = {.solo_ns = 1000 + (double)below(&r, 1000000) / 7,
					   .start = (double)below(&r, 1000000) / 3};
		struct overlap_op next = first, other = first;
		struct overlap *o;
		uint64_t number;

		first.begin = first.start;
		assert_int_equal(overlap_new(&sink, &o), 0);
		assert_int_equal(overlap_add(o, &first, &next.after, &w), 0);
		next.start = next.begin = first.begin + first.solo_ns / 2;
		assert_int_equal(overlap_add(o, &next, &number, &w), 0);
		other.start = other.begin = first.begin + (double)below(&r, 1000) / 11;
		other.solo_ns = (double)(1 + below(&r, 1000)) / 13;
		assert_int_equal(overlap_add(o, &other, &number, &w), 0);
		assert_true(overlap_end(o, number) < INFINITY);
		overlap_free(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_those_of_the_slow_model),
		cmocka_unit_test(a_condition_comes_again),
		cmocka_unit_test(a_set_above_its_link_is_found),
		cmocka_unit_test(what_a_condition_does_to_one_op),
		cmocka_unit_test(who_shares_nothing_does_not_move),
		cmocka_unit_test(who_has_waited_does_not_begin_earlier),
		cmocka_unit_test(a_long_queue_is_remembered),
		cmocka_unit_test(who_starts_where_it_has_waited_for_is_reached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
