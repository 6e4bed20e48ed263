/* What one op takes by a scheduler over a fabric, and how long nbox takes to say so: by the short
 * cuts, by simulation of each message, and from what the solver remembers. ./scripts/bench models
 * makes a table of these lines.
 *
 * usage: bench-models MODEL-DIRS PRESET NODES GPUS MODEL KIND BYTES closed|sim
 *
 * MODEL-DIRS: one or two, with a colon between. PRESET "-": no fabric but two kinds of hop;
 * "switch": nodes of an H100 whose NICs are all at one switch. BYTES: of the larger buffer of a
 * rank, as nccl-tests counts. Prints one JSON object. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/solve.h"
#include "engine/solver.h"
#include "fabric/fabric.h"

#define BUSY_S 0.2 /* what takes less is done again, and the quickest counts */

struct question {
	struct topology t;
	struct membership m;
	struct sched s;
	struct delay_chain *d;
	bool is_sim;
};

struct reply {
	struct timing timing;
	double seconds, again_seconds;
	uint64_t messages;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int open_models(struct question *q, char *dirs_text, const char *model, struct err *err)
{
	const char *dirs[3] = {dirs_text};
	char *colon = strchr(dirs_text, ':');

	if (colon) {
		*colon = '\0';
		dirs[1] = colon + 1;
	}
	return delay_open(model, NULL, NULL, 0, &q->t, dirs, 0, &q->d, err);
}

static int open_fabric(const struct question *q, const char *preset, struct fabric **ret,
		       struct err *err)
{
	bool is_switch = strcmp(preset, "switch") == 0;
	int r = strcmp(preset, "-") == 0
			? 0
			: fabric_preset(is_switch ? "dgx-h100" : preset, q->t.n_nodes,
					q->t.gpus_per_node, ret, err);

	if (!r && is_switch)
		(*ret)->network.kind = FABRIC_SWITCH;
	return r;
}

static int make_op(struct question *q, const char *kind, uint64_t bytes, struct err *err)
{
	bool is_tree = strcmp(kind, "tree") == 0;
	int k = is_tree || strcmp(kind, "ring") == 0 ? COLL_ALLREDUCE : coll_kind_parse(kind);
	uint32_t n = topology_world(&q->t);

	if (k < 0)
		return err_set(err, 22, "unknown collective '%s'", kind);
	if (k != COLL_ALLREDUCE && k != COLL_BROADCAST && k != COLL_REDUCE)
		bytes /= n;
	q->m = (struct membership){.n_ranks = n, .stride = 1};
	q->s = (struct sched){.kind = (enum coll_kind)k,
			      .algo = is_tree ? SCHED_TREE : sched_default_algo((enum coll_kind)k),
			      .n_ranks = n,
			      .ranks_per_node = q->t.gpus_per_node,
			      .n_channels = 1,
			      .elem_bytes = 4,
			      .bytes = bytes / 4 * 4};
	return sched_init(&q->s, err);
}

/* As often as it takes to be busy for a while. */
static int decide(const struct question *q, struct reply *ret, struct err *err)
{
	double begin = now_s(), each;
	int r = 0;

	ret->seconds = 1e30;
	do {
		each = now_s();
		timing_deinit(&ret->timing);
		r = solve(&q->s, &q->t, &q->m, q->d, NULL, 0, q->is_sim, &ret->timing, err);
		each = now_s() - each;
		ret->seconds = each < ret->seconds ? each : ret->seconds;
	} while (!r && now_s() - begin < BUSY_S);
	return r;
}

/* From what the solver remembers. */
static int decide_again(const struct question *q, struct reply *ret, struct err *err)
{
	enum { TIMES = 10000 };
	struct solver *solver;
	struct timing t;
	double begin = 0;
	int r = solver_new(&q->t, q->d, &solver);

	for (int i = 0; i <= TIMES && !r; i++) {
		if (i == 1)
			begin = now_s();
		r = solver_solve(solver, 0, &q->s, &q->m, NULL, 0, &t, err);
		if (!r)
			timing_deinit(&t);
	}
	ret->again_seconds = (now_s() - begin) / TIMES;
	solver_free(solver);
	return r;
}

static uint64_t count_messages(const struct question *q, const struct nbox_plan *plan)
{
	struct sched s = q->s;

	if (plan->n_lanes) {
		s.algo = (enum sched_algo)plan->algo;
		s.n_channels = plan->algo == NBOX_TREE ? (plan->n_lanes + 1) / 2 : plan->n_lanes;
		s.chunk_bytes = plan->chunk_bytes * (plan->algo == NBOX_TREE ? 2 : 1);
		s.slices = plan->n_slices;
	}
	return plan->algo < NBOX_NVLS && sched_init(&s, NULL) == 0 ? sched_total_messages(&s) : 0;
}

int main(int argc, char **argv)
{
	static const char *const hows[] = {"op", "symmetry", "simulation"};
	struct question q = {.t = {0, 0, {500, 300}, {5000, 50}, 0, 0}};
	struct reply reply = {0};
	struct fabric *f = NULL;
	struct err err = {""};
	int r;

	if (argc != 9) {
		fprintf(stderr, "usage: bench-models MODEL-DIRS PRESET NODES GPUS MODEL KIND BYTES "
				"closed|sim\n");
		return 2;
	}
	q.t.n_nodes = (uint32_t)atoi(argv[3]);
	q.t.gpus_per_node = (uint32_t)atoi(argv[4]);
	q.is_sim = strcmp(argv[8], "sim") == 0;
	r = open_fabric(&q, argv[2], &f, &err);
	if (!r)
		r = open_models(&q, argv[1], argv[5], &err);
	if (!r)
		r = make_op(&q, argv[6], strtoull(argv[7], NULL, 10), &err);
	if (!r) {
		delay_set_fabric(q.d, f);
		r = decide(&q, &reply, &err);
	}
	if (!r && !q.is_sim)
		r = decide_again(&q, &reply, &err);
	if (r)
		fprintf(stderr, "bench-models: %s\n", err.text);
	else
		printf("{\"predicted_us\": %.12g, \"bound_us\": %.12g, \"seconds\": %.4g, "
		       "\"again_seconds\": %.4g, \"messages\": %llu, \"how\": \"%s\"}\n",
		       reply.timing.end_ns / 1e3, reply.timing.bound_ns / 1e3, reply.seconds,
		       reply.again_seconds,
		       (unsigned long long)count_messages(&q, &reply.timing.plan),
		       hows[reply.timing.how]);
	timing_deinit(&reply.timing);
	delay_free(q.d);
	fabric_free(f);
	return r != 0;
}
