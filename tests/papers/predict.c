/* Lin et al.: Algorithm 1 on tasks whose times were worked out by hand. */
#include "four-gpus.h"
#include "papers.h"

#include <limits.h>
#include <string.h>

#include "base/file.h"
#include "config/config.h"
#include "engine/record-rows.h"
#include "nbox/ask/ask.h"
#include "predict/blame.h"
#include "predict/path.h"
#include "replay/replay.h"
#include "rng.h"
#include "schedule/coll.h"
#include "shard/plan.h"
#include "shard/sharder.h"

#define OPS_MAX 32
#define RANKS_MAX 4

struct made {
	struct predict_rank ranks[RANKS_MAX];
	struct predict_op ops[RANKS_MAX * OPS_MAX];
	struct predict_kernel kernels[2 * RANKS_MAX * OPS_MAX];
	struct predict_task t;
};

static const struct predict_host paper = {5000, 3000, 2000, 4000, 1000, 1000}, nothing;

/* @us: of up to two kernels; 0: none. */
static void add(struct made *m, uint32_t rank, double us, double us2, uint32_t join, uint32_t after,
		const struct predict_host *host)
{
	uint32_t n = us2 > 0 ? 2 : us > 0;

	m->ops[m->t.n_ops] =
		(struct predict_op){.first = m->t.n_kernels,
				    .n = n,
				    .join = join,
				    .after = after == PREDICT_NONE ? after
								   : m->ranks[rank].first + after,
				    .host = host};
	for (uint32_t k = 0; k < n; k++)
		m->kernels[m->t.n_kernels++] =
			(struct predict_kernel){1000 * (k ? us2 : us), 0,
						join == PREDICT_NONE ? PREDICT_COMPUTE
								     : PREDICT_COLLECTIVE,
						false};
	m->t.n_ops++;
	m->ranks[rank].n++;
	if (join != PREDICT_NONE && join >= m->t.n_joins)
		m->t.n_joins = join + 1;
}

static void make(struct made *m, uint32_t n_ranks)
{
	memset(m, 0, sizeof(*m));
	m->t = (struct predict_task){.ranks = m->ranks,
				     .ops = m->ops,
				     .kernels = m->kernels,
				     .n_ranks = n_ranks};
}

/* The digest's task A: a lookup, an all-to-all, layers beside it and behind it, an all-reduce. */
static void make_a(struct made *m, double lookup0, double lookup1, double mlp, double all)
{
	const uint32_t none = PREDICT_NONE;

	make(m, 2);
	for (uint32_t r = 0; r < 2; r++) {
		m->ranks[r].first = m->t.n_ops;
		add(m, r, all > 0 ? all : r ? lookup1 : lookup0, 0, none, none, &paper);
		add(m, r, all > 0 ? all : 50, 0, 0, none, &paper);
		add(m, r, all > 0 ? all : mlp, 0, none, none, &paper);
		add(m, r, all > 0 ? all : 30, all > 0 ? all : 10, none, 1, &paper);
		add(m, r, 0, 0, none, none, &paper);
		add(m, r, all > 0 ? all : 40, 0, 1, none, &paper);
		add(m, r, all > 0 ? all : 25, 0, none, none, &paper);
		add(m, r, all > 0 ? all : 20, 0, none, 5, &paper);
	}
}

static struct predict play(const struct made *m, enum predict_sync sync)
{
	struct predict p;
	uint32_t op;

	if (predict_play(&m->t, sync, &p, &op))
		abort();
	return p;
}

static double play_us(const struct made *m, enum predict_sync sync, double *ret_baseline)
{
	struct predict p = play(m, sync);
	double us = p.ns / 1000;

	if (ret_baseline)
		*ret_baseline = p.baseline / 1000;
	predict_deinit(&p);
	return us;
}

/* When the collective number @join is over. */
static double front_us(const struct made *m, enum predict_sync sync, uint32_t join)
{
	struct predict p = play(m, sync);
	double us = 0;

	for (uint32_t i = 0; i < m->t.n_ops; i++)
		if (m->ops[i].join == join)
			us = p.kernels[m->ops[i].first].end / 1000;
	predict_deinit(&p);
	return us;
}

static void golden(enum predict_sync sync, const char *name)
{
	static const double mlps[] = {10, 50, 60, 80}, ends[] = {325, 325, 335, 355};
	struct made m;
	double baseline;
	char item[96];

	make_a(&m, 100, 160, 80, 0);
	snprintf(item, sizeof(item), "T-A1 golden A, %s, us", name);
	papers_row(item, 355, play_us(&m, sync, &baseline), 0);
	papers_row("T-A1 baseline, us", 325, baseline, 0);
	papers_row("T-A1 the all-to-all is over, us", 221, front_us(&m, sync, 0), 0);
	papers_row("T-A1 the all-reduce is over, us", 334, front_us(&m, sync, 1), 0);
	make_a(&m, 130, 130, 80, 0);
	snprintf(item, sizeof(item), "T-A2 balanced lookups, %s, us", name);
	papers_row(item, 325, play_us(&m, sync, &baseline), 0);
	papers_row("T-A2 baseline, us", 295, baseline, 0);
	make_a(&m, 0, 0, 0, 1);
	snprintf(item, sizeof(item), "T-A3 kernels of 1 us: the host, %s, us", name);
	papers_row(item, 109, play_us(&m, sync, &baseline), 0);
	papers_row("T-A3 baseline, us", 6, baseline, 0);
	for (int i = 0; i < 4; i++) {
		make_a(&m, 100, 160, mlps[i], 0);
		snprintf(item, sizeof(item), "T-A4 mlp of %g us, %s, us", mlps[i], name);
		papers_row(item, ends[i], play_us(&m, sync, NULL), 0);
	}
}

/* Buckets of DDP: computation, then an all-reduce that nothing here reads. */
static double buckets(const double *compute, const double *reduce, uint32_t n,
		      enum predict_sync sync)
{
	struct made m;

	make(&m, 1);
	for (uint32_t i = 0; i < n; i++) {
		add(&m, 0, compute[i], 0, PREDICT_NONE, PREDICT_NONE, &nothing);
		add(&m, 0, reduce[i], 0, i, PREDICT_NONE, &nothing);
	}
	return play_us(&m, sync, NULL);
}

static void orders(void)
{
	const double compute[] = {50, 50, 300}, reduce[] = {200, 10, 10};
	const double same[] = {100, 100, 100, 100, 100}, half[] = {50, 50, 50, 50, 50};

	papers_row("T-A5 unequal buckets, as printed, us", 560,
		   buckets(compute, reduce, 3, PREDICT_PAPER), 0);
	papers_row("T-A5 unequal buckets, events, us", 410,
		   buckets(compute, reduce, 3, PREDICT_EVENT), 0);
	papers_row("T-A5 equal buckets, as printed, us", 550, buckets(same, half, 5, PREDICT_PAPER),
		   0);
	papers_row("T-A5 equal buckets, events, us", 550, buckets(same, half, 5, PREDICT_EVENT), 0);
}

static void blames(void)
{
	struct blame *found;
	struct predict p;
	struct made m;
	uint32_t n;

	make_a(&m, 100, 160, 80, 0);
	p = play(&m, PREDICT_EVENT);
	if (blame_find(&m.t, PREDICT_EVENT, &p, 8, &found, &n) || n != 2)
		abort();
	papers_row("T-A6 won if rank 1 looked up as the median, us", 60, found[0].won / 1000, 0);
	papers_row("T-A6 culprit, rank", 1, found[0].rank, 0);
	papers_row("T-A6 collective, 0: the all-to-all", 0, found[0].join, 0);
	papers_row("T-A6 sum of waits for it, us", 60, found[0].wait_sum / 1000, 0);
	free(found);
	predict_deinit(&p);
}

/* --- against the emulator --- */

/* An iteration of DLRM on four ranks: what each computes is its own. */
struct dlrm {
	double lookup[RANKS_MAX], back[RANKS_MAX]; /* of the embeddings, and their gradients */
	double bottom, top, top_back, optimizer;   /* dense layers, alike at all */
	uint64_t pair_bytes, dense_bytes; /* of the all-to-all, of the busiest rank to each other
					     one; of the all-reduce */
};

#define BEGIN_NS UINT64_C(1000000)

/* One rank's rows as they would be recorded where ops take no time. */
struct writer {
	struct record *rec;
	uint32_t rank, n_names;
};

static const struct record_dep *keep_deps(struct writer *w, const struct record_dep *deps,
					  uint32_t n)
{
	struct record_dep *kept = record_keep(w->rec, n * sizeof(*kept) + 1);

	if (!kept)
		abort();
	return n ? memcpy(kept, deps, n * sizeof(*kept)) : kept;
}

static uint64_t add_point(struct writer *w, double at_ns, const struct record_dep *deps, uint32_t n)
{
	uint64_t name = (uint64_t)(w->rank + 1) << 32 | ++w->n_names;

	w->rec->points[w->rec->n_points++] =
		(struct record_point){.name = name,
				      .call_ns = 1,
				      .time_ns = BEGIN_NS + (uint64_t)at_ns,
				      .world_rank = w->rank,
				      .order = w->rec->n_ops + w->rec->n_points + 1,
				      .n_deps = n,
				      .deps = keep_deps(w, deps, n)};
	return name;
}

static uint64_t add_op(struct writer *w, uint32_t number, enum coll_kind kind, uint64_t bytes,
		       double at_ns, const struct record_dep *deps, uint32_t n)
{
	uint64_t name = (uint64_t)(w->rank + 1) << 32 | ++w->n_names;
	uint64_t wall = BEGIN_NS + (uint64_t)at_ns, order = w->rec->n_ops + w->rec->n_points + 1;

	w->rec->ops[w->rec->n_ops++] = (struct record_op){.number = number + 1,
							  .seq = number,
							  .name = name,
							  .bytes = bytes,
							  .count = bytes / 4,
							  .call_ns = 1,
							  .arrive_ns = wall,
							  .due_ns = wall,
							  .release_ns = wall,
							  .order = order,
							  .done_order = order,
							  .comm = 1,
							  .rank = w->rank,
							  .world_rank = w->rank,
							  .stream = 1,
							  .kind = kind,
							  .dtype = 7, /* float */
							  .n_deps = n,
							  .deps = keep_deps(w, deps, n),
							  .of = w->rec->comms};
	return name;
}

static void write_rank(struct writer *w, const struct dlrm *d)
{
	double at = 0;
	uint64_t begin = add_point(w, 0, NULL, 0), forward, beside, back, reduce, mid, end;

	forward = add_op(w, 0, COLL_ALLTOALL, d->pair_bytes, at + d->lookup[w->rank],
			 (struct record_dep[]){{begin, 0, 0}}, 1);
	at += d->lookup[w->rank] + d->bottom;
	beside = add_point(w, at, (struct record_dep[]){{begin, 1, 0}}, 1);
	at += d->top;
	back = add_op(w, 1, COLL_ALLTOALL, d->pair_bytes, at,
		      (struct record_dep[]){{beside, 0, 0}, {forward, 1, 0}}, 2);
	reduce = add_op(w, 2, COLL_ALLREDUCE, d->dense_bytes, at,
			(struct record_dep[]){{back, 1, 0}}, 1);
	at += d->top_back;
	mid = add_point(w, at, (struct record_dep[]){{beside, 1, 0}, {forward, 0, 0}}, 2);
	at += d->back[w->rank];
	end = add_point(w, at, (struct record_dep[]){{mid, 1, 0}, {back, 0, 0}}, 2);
	at += d->optimizer;
	add_point(w, at, (struct record_dep[]){{end, 1, 0}, {reduce, 0, 0}}, 2);
}

static void make_record(struct record *rec, const struct dlrm *d)
{
	struct record_member *real;

	*rec = (struct record){.header = {.n_real = RANKS_MAX,
					  .world_size = RANKS_MAX,
					  .n_nodes = 1,
					  .gpus_per_node = RANKS_MAX}};
	rec->comms = calloc(1, sizeof(*rec->comms));
	rec->ops = calloc(3 * RANKS_MAX, sizeof(*rec->ops));
	rec->points = calloc(5 * RANKS_MAX, sizeof(*rec->points));
	real = record_keep(rec, RANKS_MAX * sizeof(*real));
	if (!rec->comms || !rec->ops || !rec->points || !real)
		abort();
	for (uint32_t r = 0; r < RANKS_MAX; r++)
		real[r] = (struct record_member){r, r};
	rec->n_comms = 1;
	rec->comms[0] = (struct record_comm){
		.number = 1, .n_ranks = RANKS_MAX, .stride = 1, .n_real = RANKS_MAX, .real = real};
	for (uint32_t r = 0; r < RANKS_MAX; r++)
		write_rank(&(struct writer){rec, r, 0}, d);
}

/* By the virtual clock: when the last rank is through. */
static double emulate(const struct config *c, const char *models, const struct dlrm *d)
{
	const char *const dirs[] = {models, NULL};
	struct record rec, played;
	struct replay in = {.config = c, .dirs = dirs};
	struct rows_graph graph;
	struct replay_told told;
	struct err err;
	double ns = 0;

	make_record(&rec, d);
	if (rows_graph_make(&rec, &graph, &err) < 0)
		abort();
	in.graph = &graph;
	if (replay_play(&in, &played, &told, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	for (uint64_t i = 0; i < played.n_points; i++)
		ns = fmax(ns, (double)played.points[i].virtual_ns - BEGIN_NS);
	record_deinit(&played);
	rows_graph_deinit(&graph);
	record_deinit(&rec);
	return ns;
}

static double ask_ns(struct ask *ask, enum coll_kind kind, uint64_t bytes)
{
	struct answer answer;
	struct err err;

	if (ask_op(ask, kind, bytes, 4, 0, &answer, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	return answer.ns;
}

static struct predict predict_dlrm(struct ask *ask, const struct dlrm *d)
{
	const uint32_t none = PREDICT_NONE;
	double exchange = ask_ns(ask, COLL_ALLTOALL, d->pair_bytes) / 1e3,
	       reduce = ask_ns(ask, COLL_ALLREDUCE, d->dense_bytes) / 1e3;
	struct made m;

	make(&m, RANKS_MAX);
	for (uint32_t r = 0; r < RANKS_MAX; r++) {
		m.ranks[r].first = m.t.n_ops;
		add(&m, r, d->lookup[r] / 1e3, 0, none, none, &nothing);
		add(&m, r, exchange, 0, 0, none, &nothing);
		add(&m, r, d->bottom / 1e3, 0, none, none, &nothing);
		add(&m, r, d->top / 1e3, 0, none, 1, &nothing);
		add(&m, r, exchange, 0, 1, none, &nothing);
		add(&m, r, reduce, 0, 2, none, &nothing);
		add(&m, r, d->top_back / 1e3, 0, none, none, &nothing);
		add(&m, r, d->back[r] / 1e3, 0, none, 4, &nothing);
		add(&m, r, d->optimizer / 1e3, 0, none, 5, &nothing);
	}
	return play(&m, PREDICT_EVENT);
}

#define TASKS 20

/* 0.7 to 1.3 times 13 tables a GPU, as Fig. 10 has them, by the sharder that it has. */
static struct dlrm make_task(struct rng *r, double batch)
{
	struct shard_table list[80];
	struct shard_job job = {.tables = list,
				.n_gpus = RANKS_MAX,
				.batch = batch,
				.card = lookup_a100};
	struct dlrm d = {.bottom = floor(2e4 * (1 + rng_uniform(r))),
			 .top = floor(2e5 * (1 + rng_uniform(r))),
			 .top_back = floor(2e4 * (1 + rng_uniform(r))),
			 .optimizer = floor(5e4 * (1 + rng_uniform(r))),
			 .dense_bytes = 4 * (100000 + rng_u64(r) % 1000000)};
	uint32_t gpu_of[80], full;
	struct shard_plan plan;

	job.n_tables = (uint32_t)(RANKS_MAX * 13 * (.7 + .6 * rng_uniform(r)));
	for (uint32_t i = 0; i < job.n_tables; i++)
		list[i] = (struct shard_table){.rows = floor(pow(10, 3 + 4 * rng_uniform(r))),
					       .width = 32 << rng_u64(r) % 4,
					       .lookups = ceil(30 * rng_uniform(r))};
	if (sharder_assign(rng_u64(r) % 2 ? SHARDER_SIZE_LOOKUP : SHARDER_SIZE, list, job.n_tables,
			   RANKS_MAX, INFINITY, 1, gpu_of, NULL, &full) ||
	    shard_plan_make(&job, gpu_of, &plan))
		abort();
	for (uint32_t g = 0; g < RANKS_MAX; g++) {
		d.lookup[g] = floor(plan.gpus[g].forward_ns);
		d.back[g] = floor(plan.gpus[g].backward_ns);
	}
	d.pair_bytes = plan.skew.bytes / (RANKS_MAX - 1) / 4 * 4;
	shard_plan_deinit(&plan);
	return d;
}

static void closed_loop(void)
{
	char models[PATH_MAX + 32];
	struct config *c = four_gpus(CONFIG_MODEL, "fitted:file=" PAPERS "/lin.model");
	double most = 0, baseline_least = INFINITY, ratio_least = INFINITY;
	struct ask *ask;
	struct err err;

	if (file_own_folder(models, PATH_MAX) < 0)
		abort();
	strcat(models, "/../../delaymodels");
	if (ask_open(c, models, &ask, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	for (uint64_t i = 0; i < 4 * TASKS; i++) {
		double batch = 512 << i % 4, truth, error, baseline;
		struct predict p;
		struct dlrm d;
		struct rng r;

		rng_seed(&r, 8, i / 4);
		d = make_task(&r, batch);
		p = predict_dlrm(ask, &d);
		truth = emulate(c, models, &d);
		error = 100 * fabs(p.ns / truth - 1);
		baseline = 100 * fabs(p.baseline / truth - 1);
		most = fmax(most, error);
		baseline_least = fmin(baseline_least, baseline);
		ratio_least = fmin(ratio_least, baseline / fmax(error, 1e-9));
		predict_deinit(&p);
	}
	papers_row("T-A8 vs emulator, 20 tasks x 4 batches: largest error, %", 0, most, .1 * 100);
	papers_row("T-A8 vs emulator: the baseline's smallest error, %", NAN, baseline_least, 0);
	papers_holds("T-A8 vs emulator: the baseline is 4 times worse in each", ratio_least >= 4);
	ask_close(ask);
	config_free(c);
}

int main(void)
{
	papers_open("000 Lin");
	golden(PREDICT_PAPER, "as printed");
	golden(PREDICT_EVENT, "events");
	orders();
	blames();
	closed_loop();
	return papers_close();
}
