/* See overlap-bench.h. Ends of ops that share links: as a fluid, and message by message. */
#include <math.h>
#include <stdlib.h>

#include "engine/solve-set.h"
#include "engine/solve.h"
#include "overlap-bench.h"

#define OPS_MAX 8
#define SETS 40  /* of a network and its ranks, ... */
#define SETS_S 4 /* ... or as many as begin in that time */
#define LOADS 4

struct op {
	struct bench_op op;
	double start_ns, fluid_begin_ns, fluid_ns; /* the fluid's begin and end */
	uint32_t after;
};

/* --- how many messages a second ------------------------------------------------------- */

/* All of @n ops at once, and one after the other by sim_run(). */
static void rate_row(struct bench_output *out, const char *what, const struct bench_world *w,
		     const struct bench_op *ops, uint32_t n)
{
	double alone_s = INFINITY, set_s = INFINITY;
	struct sim_set_result result = {0};
	struct set_op set[OPS_MAX + 1];
	struct err err = {""};

	for (int round = 0; round < 3; round++) {
		double begin = bench_now_s();

		for (uint32_t i = 0; i < n; i++) {
			struct timing t = {0};

			if (solve(&ops[i].s, &w->t, &ops[i].m, w->d, NULL, 0, 1, &t, &err))
				bench_fail(err.text);
			set[i] = (struct set_op){.s = &ops[i].s,
						 .m = &ops[i].m,
						 .after = SIM_SET_NONE};
		}
		alone_s = fmin(alone_s, bench_now_s() - begin);
		begin = bench_now_s();
		if (solve_set(set, n, &w->t, w->d, &result, &err))
			bench_fail(err.text);
		set_s = fmin(set_s, bench_now_s() - begin);
	}
	printf("%-52s %9llu %10.2f %10.2f %7.2f %9llu %9llu\n", what,
	       (unsigned long long)result.n_messages, (double)result.n_messages / alone_s / 1e6,
	       (double)result.n_messages / set_s / 1e6, alone_s / set_s,
	       (unsigned long long)result.n_solved, (unsigned long long)result.n_found);
	fflush(stdout);
	bench_row(out,
		  "{\"what\": \"%s\", \"messages\": %llu, \"alone_per_s\": %.0f, \"shared_per_s\": "
		  "%.0f}",
		  what, (unsigned long long)result.n_messages, (double)result.n_messages / alone_s,
		  (double)result.n_messages / set_s);
}

void bench_rates(struct bench_output *out)
{
	struct bench_world w = bench_world("100gbe", 256, FABRIC_SWITCH, 1);
	const struct membership all = {.n_ranks = 256, .stride = 1};
	struct bench_op ops[OPS_MAX + 1];

	printf("\nmessages simulated a second: each op alone, and all at once with links shared\n"
	       "%-52s %9s %10s %10s %7s %9s %9s\n",
	       "", "messages", "alone M/s", "shared M/s", "ratio", "solved", "known");
	bench_op(&w, &ops[0], COLL_ALLREDUCE, 256 << 20, &all);
	bench_op(&w, &ops[1], COLL_ALLREDUCE, 256 << 20, &all);
	rate_row(out, "two equal all-reduces, 256 nodes of one GPU", &w, ops, 2);
	bench_op(&w, &ops[2], COLL_ALLREDUCE, 77 << 20, &all);
	bench_op(&w, &ops[3], COLL_ALLGATHER, 1 << 20, &all);
	rate_row(out, "two, one of 77 MiB, an all-gather, the same nodes", &w, ops, 4);
	for (uint32_t i = 0; i < 4; i++)
		usage_unref(ops[i].usage);
	bench_world_end(&w);
	w = bench_world("dgx-a100", 32, FABRIC_RAIL, 1);
	for (uint32_t i = 0; i < 8; i++)
		bench_op(&w, &ops[i], COLL_ALLREDUCE, 64 << 20,
			 &(struct membership){.n_ranks = 32, .base = i, .stride = 8});
	bench_op(&w, &ops[8], COLL_ALLREDUCE, 64 << 20, &all);
	rate_row(out, "a world of 256, beside 8 of a GPU each node", &w, ops, 9);
	for (uint32_t i = 0; i < 9; i++)
		usage_unref(ops[i].usage);
	bench_world_end(&w);
}

/* --- a fluid against messages -------------------------------------------------------- */

static void moved(void *ctx, void *tag, const struct warp *from, const struct warp *to)
{
	struct op *o = tag;

	(void)ctx;
	o->fluid_begin_ns += to->bends[0].at - from->bends[0].at;
	o->fluid_ns = warp_end(to);
}

static void forgotten(void *ctx, void *tag)
{
	(void)ctx;
	(void)tag;
}

static void run_fluid(struct op *ops, uint32_t n)
{
	uint64_t numbers[OPS_MAX];
	struct overlap *o;

	if (overlap_new(&(struct overlap_sink){moved, forgotten, NULL}, &o))
		bench_fail("no memory");
	for (uint32_t i = 0; i < n; i++) {
		bool is_first = ops[i].after == SIM_SET_NONE;
		const struct warp *w;

		if (overlap_add(o,
				&(struct overlap_op){
					.usage = ops[i].op.usage,
					.solo_ns = ops[i].op.solo_ns,
					.start = ops[i].start_ns,
					.begin = is_first ? ops[i].start_ns
							  : fmax(ops[i].start_ns,
								 ops[ops[i].after].fluid_ns),
					.after = is_first ? 0 : numbers[ops[i].after],
					.tag = &ops[i]},
				&numbers[i], &w))
			bench_fail("no memory");
		ops[i].fluid_begin_ns = w->bends[0].at;
		ops[i].fluid_ns = warp_end(w);
	}
	overlap_free(o);
}

static void random_members(struct rng *r, const struct bench_world *w, struct membership *m)
{
	uint32_t gpus = w->t.gpus_per_node, n = w->t.n_nodes * gpus, half = w->t.n_nodes / 2 * gpus;

	*m = (struct membership){.n_ranks = n, .stride = 1};
	switch (below(r, 4)) {
	case 0: /* the world */
		return;
	case 1: /* half of it */
		m->n_ranks = half ? half : gpus / 2;
		m->base = (uint32_t)below(r, 2) * (n - m->n_ranks);
		return;
	case 2: /* a node's ranks */
		m->n_ranks = gpus;
		m->base = (uint32_t)below(r, w->t.n_nodes) * gpus;
		return;
	default: /* one GPU of each node */
		m->n_ranks = w->t.n_nodes;
		m->stride = gpus;
		m->base = (uint32_t)below(r, gpus);
		return;
	}
}

static bool are_same(const struct membership *a, const struct membership *b)
{
	return a->n_ranks == b->n_ranks && a->base == b->base && a->stride == b->stride;
}

static void random_op(struct rng *r, const struct bench_world *w, struct op *ops, uint32_t i)
{
	static const enum coll_kind kinds[] = {COLL_ALLREDUCE, COLL_ALLREDUCE, COLL_ALLGATHER,
					       COLL_REDUCESCATTER, COLL_BROADCAST};
	struct op *o = &ops[i];
	bool has_messages = false;

	*o = (struct op){.after = SIM_SET_NONE};
	while (!has_messages) {
		double doubled = bench_ranks(w) > 64 ? 7 : 12; /* of 64 KiB */
		uint64_t bytes = (uint64_t)(65536 * exp2(doubled * rng_uniform(r)));
		enum coll_kind kind = kinds[below(r, 5)];
		struct membership m;

		random_members(r, w, &m);
		if (m.n_ranks < 2)
			continue;
		if (kind == COLL_ALLGATHER || kind == COLL_REDUCESCATTER)
			bytes /= m.n_ranks;
		has_messages = bench_op(w, &o->op, kind, bytes, &m);
		if (!has_messages)
			usage_unref(o->op.usage);
	}
	for (uint32_t k = 0; k < i; k++)
		if (are_same(&ops[k].op.m, &o->op.m))
			o->after = k;
	o->start_ns = ops[0].op.solo_ns * (i ? rng_uniform(r) : 0);
}

struct compared {
	struct bench_score times, ends, sets;
	uint32_t n_sets, n_shared;
	uint64_t n_messages;
	double sim_s, fluid_s;
};

/* By what an op alone takes of its busiest link, in quarters. */
static struct bench_score by_load[LOADS];
static double sum_by_load[LOADS];

static uint32_t load_class(const struct bench_op *o)
{
	double most = 0;

	for (uint32_t i = 0; i < o->usage->n; i++)
		most = fmax(most, o->usage->links[i].own_bytes / o->usage->links[i].capacity);
	return (uint32_t)fmin(LOADS - 1, LOADS * most / o->solo_ns);
}

static void print_set(const struct op *ops, const struct set_op *set, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		double took = set[i].end_ns - set[i].begin_ns;

		printf("    %-13s %9llu B, %3u ranks from %3u by %u: from %9.1f us, alone %9.1f, "
		       "fluid %9.1f, messages %9.1f: %+.1f %%\n",
		       coll_kind_name(ops[i].op.s.kind), (unsigned long long)ops[i].op.s.bytes,
		       ops[i].op.m.n_ranks, ops[i].op.m.base, ops[i].op.m.stride,
		       set[i].begin_ns / 1e3, ops[i].op.solo_ns / 1e3,
		       (ops[i].fluid_ns - ops[i].fluid_begin_ns) / 1e3, took / 1e3,
		       100 * ((ops[i].fluid_ns - ops[i].fluid_begin_ns) / took - 1));
	}
	printf("\n");
}

/* Only ops that share something are counted, by more than a thousandth of their time. */
static void compare_set(struct rng *r, const struct bench_world *w, struct compared *c,
			bool is_verbose)
{
	struct op ops[OPS_MAX];
	struct set_op set[OPS_MAX];
	struct sim_set_result result;
	struct err err = {""};
	uint32_t n = 2 + (uint32_t)below(r, OPS_MAX - 1);
	double fluid_end = 0, begin, worst = 0;
	bool is_shared = false;

	for (uint32_t i = 0; i < n; i++) {
		random_op(r, w, ops, i);
		set[i] = (struct set_op){
			&ops[i].op.s, &ops[i].op.m, ops[i].start_ns, ops[i].after, 0, 0};
	}
	begin = bench_now_s();
	run_fluid(ops, n);
	c->fluid_s += bench_now_s() - begin;
	begin = bench_now_s();
	if (solve_set(set, n, &w->t, w->d, &result, &err))
		bench_fail(err.text);
	c->sim_s += bench_now_s() - begin;
	for (uint32_t i = 0; i < n; i++) {
		double took = set[i].end_ns - set[i].begin_ns,
		       fluid = ops[i].fluid_ns - ops[i].fluid_begin_ns;

		fluid_end = fmax(fluid_end, ops[i].fluid_ns);
		if (took > ops[i].op.solo_ns * 1.001 || fluid > ops[i].op.solo_ns * 1.001) {
			uint32_t load = load_class(&ops[i].op);

			is_shared = true;
			bench_note(&c->times, 100 * (fluid / took - 1));
			bench_note(&by_load[load], 100 * (fluid / took - 1));
			sum_by_load[load] += 100 * (fluid / took - 1);
			bench_note(&c->ends, 100 * (ops[i].fluid_ns / set[i].end_ns - 1));
			worst = fmax(worst, fabs(fluid / took - 1));
		}
		usage_unref(ops[i].op.usage);
	}
	c->n_sets++;
	c->n_shared += is_shared;
	c->n_messages += result.n_messages;
	if (is_shared)
		bench_note(&c->sets, 100 * (fluid_end / result.end_ns - 1));
	if (is_verbose && worst > 0.2)
		print_set(ops, set, n);
}

static void compare(struct bench_output *out, const char *name, const struct bench_world *w,
		    uint64_t seed)
{
	double begin = bench_now_s();
	struct compared c = {0};
	struct rng r;

	rng_seed(&r, 14, seed);
	for (int i = 0; i < SETS && bench_now_s() - begin < SETS_S; i++)
		compare_set(&r, w, &c, out->is_verbose);
	printf("%-15s %5u %5u %6.2f %6.1f %6.1f %7.2f %6.1f %6.1f %7.2f %6.1f %9llu %8.2f %8.1f\n",
	       name, bench_ranks(w), c.n_shared, bench_at(&c.times, 0.5), bench_at(&c.times, 0.9),
	       bench_at(&c.times, 1), bench_at(&c.ends, 0.5), bench_at(&c.ends, 0.9),
	       bench_at(&c.ends, 1), bench_at(&c.sets, 0.5), bench_at(&c.sets, 1),
	       (unsigned long long)c.n_messages, (double)c.n_messages / c.sim_s / 1e6,
	       c.fluid_s / c.n_sets * 1e6);
	fflush(stdout);
	bench_row(out,
		  "{\"what\": \"fluid\", \"network\": \"%s\", \"ranks\": %u, \"sets\": %u, "
		  "\"time_median_pct\": %.3f, \"time_worst_pct\": %.3f, \"end_median_pct\": %.3f, "
		  "\"end_worst_pct\": %.3f, \"set_median_pct\": %.3f, \"set_worst_pct\": %.3f}",
		  name, bench_ranks(w), c.n_shared, bench_at(&c.times, 0.5), bench_at(&c.times, 1),
		  bench_at(&c.ends, 0.5), bench_at(&c.ends, 1), bench_at(&c.sets, 0.5),
		  bench_at(&c.sets, 1));
	bench_free(&c.times);
	bench_free(&c.ends);
	bench_free(&c.sets);
}

static void print_loads(struct bench_output *out)
{
	printf("\nthe same by what an op alone takes of its busiest link\n%-15s %5s %7s %7s %6s %7s\n",
	       "load", "ops", "mean %", "median", "p90", "worst");
	for (uint32_t i = 0; i < LOADS; i++) {
		struct bench_score *s = &by_load[i];
		double mean = sum_by_load[i] / s->n;

		printf("%4.2f to %4.2f    %5u %7.2f %7.2f %6.1f %7.1f\n", (double)i / LOADS,
		       (i + 1.) / LOADS, s->n, mean, bench_at(s, 0.5), bench_at(s, 0.9),
		       bench_at(s, 1));
		bench_row(
			out,
			"{\"what\": \"fluid by load\", \"from\": %.2f, \"ops\": %u, \"mean_pct\": "
			"%.3f, \"median_pct\": %.3f, \"worst_pct\": %.3f}",
			(double)i / LOADS, s->n, mean, bench_at(s, 0.5), bench_at(s, 1));
		bench_free(s);
	}
}

void bench_messages(struct bench_output *out)
{
	static const struct {
		const char *name;
		enum fabric_network_kind kind;
		double oversubscription;
	} nets[] = {{"switch", FABRIC_SWITCH, 1},
		    {"rail", FABRIC_RAIL, 1},
		    {"leaf-spine 2:1", FABRIC_LEAF_SPINE, 2},
		    {"leaf-spine 4:1", FABRIC_LEAF_SPINE, 4}};
	static const uint32_t nodes[] = {1, 4, 16, 32};

	printf("\na fluid against messages: %% of an op's time, of its end, of the set's end; sets of 2 to "
	       "%u ops of which some share\n"
	       "%-15s %5s %5s %6s %6s %6s %7s %6s %6s %7s %6s %9s %8s %8s\n",
	       OPS_MAX, "network", "ranks", "sets", "time", "p90", "worst", "end", "p90", "worst",
	       "set", "worst", "messages", "M/s", "fluid us");
	for (size_t k = 0; k < ARRAY_SIZE(nets); k++)
		for (size_t n = k ? 1 : 0; n < ARRAY_SIZE(nodes); n++) {
			struct bench_world w = bench_world("dgx-a100", nodes[n], nets[k].kind,
							   nets[k].oversubscription);

			compare(out, nets[k].name, &w, 16 * k + n);
			bench_world_end(&w);
		}
	print_loads(out);
}
