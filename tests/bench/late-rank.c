/* See late-rank.h. One rank of a world is late by half of the op's time, and the ends of all ranks
 * are found from that, by form and by event simulation of all messages. */
#include "late-rank.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "engine/ends.h"
#include "engine/price.h"
#include "engine/sim.h"
#include "engine/solve.h"

struct late {
	const char *what;
	enum coll_kind kind;
	enum sched_algo algo;
	uint32_t ranks, per_node;
	uint64_t bytes;
	/* results */
	double first_s, seconds; /* of the first call, and the best of later ones */
	double sim_s, differ;    /* NAN: not simulated; of the op's time */
	enum solve_how how;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int simulate(struct late *l, const struct sched *s, struct price *p, const double *arrive,
		    const double *end, double op_ns, struct err *err)
{
	struct sim_cost cost = price_cost(p);
	CLEANUP(freep) double *exact = malloc(s->n_ranks * sizeof(*exact));
	struct sim_ranks ranks = {.start_ns = arrive, .buffered = sim_buffered(s), .end_ns = exact};
	struct sim_result result;
	double begin = now_s();
	int r = exact ? sim_run(s, &cost, &ranks, NULL, &result, err) : -1;

	l->sim_s = now_s() - begin;
	l->differ = 0;
	for (uint32_t i = 0; i < s->n_ranks && !r; i++)
		l->differ = fmax(l->differ, fabs(exact[i] - end[i]) / op_ns);
	return r;
}

static int measure(struct late *l, struct delay_chain *d, unsigned long long most)
{
	struct topology t = {.n_nodes = l->ranks / l->per_node,
			     .gpus_per_node = l->per_node,
			     .intra = {1000, 200},
			     .inter = {1000, 50}};
	struct membership m = {.n_ranks = l->ranks, .stride = 1};
	struct sched s = {.kind = l->kind,
			  .algo = l->algo,
			  .n_ranks = l->ranks,
			  .ranks_per_node = l->per_node,
			  .n_channels = 1,
			  .elem_bytes = 4,
			  .bytes = l->bytes};
	CLEANUP(freep) double *times = calloc(3 * (size_t)l->ranks, sizeof(*times));
	double *arrive = times, *end = times + l->ranks, *port = end + l->ranks;
	struct timing timing = {0};
	struct ends *e = NULL;
	struct err err = {""};
	struct price p;
	int r = times ? sched_init(&s, &err) : -1;

	if (!r)
		r = solve(&s, &t, &m, d, NULL, 0, 0, &timing, &err);
	if (!r)
		r = ends_new(&s, &t, &m, d, 0, &timing, false, &e, &err);
	for (int i = 0; i < 6 && !r; i++) {
		double begin = now_s();

		/* each time another, so that nothing kept helps */
		arrive[l->ranks / 2] = timing.end_ns * (0.5 + i / 100.);
		r = ends_solve(e, arrive, NULL, 0, end, port, &err);
		if (i == 0)
			l->first_s = l->seconds = now_s() - begin;
		l->seconds = fmin(l->seconds, now_s() - begin);
	}
	l->sim_s = l->differ = NAN;
	if (!r) {
		l->how = ends_how(e);
		price_init(&p, &s, &t, &m, d, 0, &err);
	}
	if (!r && sched_total_messages(&s) <= most && (s.kind != COLL_ALLTOALL || l->ranks <= 1024))
		r = simulate(l, &s, &p, arrive, end, timing.end_ns, &err);
	if (r)
		fprintf(stderr, "bench-scale: %s of %u ranks: %s\n", l->what, l->ranks, err.text);
	timing_deinit(&timing);
	ends_unref(e);
	return r;
}

static void print(const struct late *l, FILE *json)
{
	static const char *const hows[] = {"op's time", "form", "simulation"};

	printf("%-14s %6u %8u %7llu M %11s %9.3f ms %9.3f ms ", l->what, l->ranks, l->per_node,
	       (unsigned long long)l->bytes >> 20, hows[l->how], l->first_s * 1e3,
	       l->seconds * 1e3);
	if (isnan(l->sim_s))
		printf("%12s %9s\n", "-", "-");
	else
		printf("%9.1f ms %9.1e\n", l->sim_s * 1e3, l->differ);
	fflush(stdout);
	if (json)
		fprintf(json,
			",\n  {\"what\": \"late-%s\", \"ranks\": %u, \"per_node\": %u, "
			"\"bytes\": %llu, \"how\": \"%s\", \"seconds\": %.9f}",
			l->what, l->ranks, l->per_node, (unsigned long long)l->bytes, hows[l->how],
			l->seconds);
}

int late_rank_rows(struct delay_chain *alphabeta, FILE *json, unsigned long long most)
{
	static const struct late whats[] = {
		{"ring", COLL_ALLREDUCE, SCHED_RING, .bytes = 64 << 20},
		{"ring, uneven", COLL_ALLREDUCE, SCHED_RING, .bytes = (64 << 20) - 20000},
		{"tree", COLL_ALLREDUCE, SCHED_TREE, .bytes = 64 << 20},
		{"broadcast", COLL_BROADCAST, SCHED_CHAIN, .bytes = 64 << 20},
		{"gather", COLL_GATHER, SCHED_DIRECT, .bytes = 1 << 20},
		{"alltoall", COLL_ALLTOALL, SCHED_DIRECT, .bytes = 1 << 20},
	};
	static const uint32_t ranks[] = {128, 1024, 16384}, per_node[] = {1, 8};
	int r = 0;

	printf("\none rank late by half of the op's time: when the op ends for each rank; 50 GB/s "
	       "and 1 us a link, 200 GB/s inside a node\n"
	       "%-14s %6s %8s %9s %11s %12s %12s %12s %9s\n",
	       "what", "ranks", "per node", "bytes", "by", "first call", "each call", "simulated",
	       "differ");
	for (size_t w = 0; w < ARRAY_SIZE(whats); w++) {
		for (size_t n = 0; n < ARRAY_SIZE(ranks) * ARRAY_SIZE(per_node); n++) {
			struct late l = whats[w];

			l.ranks = ranks[n / ARRAY_SIZE(per_node)];
			l.per_node = per_node[n % ARRAY_SIZE(per_node)];
			if (measure(&l, alphabeta, most))
				r = 1;
			else
				print(&l, json);
		}
	}
	return r;
}
