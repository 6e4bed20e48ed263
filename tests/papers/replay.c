/* dPRO's replay: rings by hops, the arithmetic of its tables, and replays beside the emulator. What
 * is "vs emulator" is nbox's own re-timing, never GPUs. */
#include "papers.h"

#include <limits.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "config/config.h"
#include "nbox/diagnose/diagnose.h"
#include "nbox/replay/of-record.h"
#include "nbox/replay/of-trace.h"
#include "nbox/replay/result.h"
#include "schedule/schedule.h"
#include "trace/finish.h"
#include "trace/guess.h"

/* --- BD1: a ring by hops ------------------------------------------------------------------------
 */

static void must(int r, const struct err *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s\n", err->text);
	abort();
}

struct plain {
	double alpha_ns, bytes_per_ns;
	uint32_t device_of[128];
};

static int plain_cost(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		      uint64_t bytes, struct nbox_delay *ret)
{
	const struct plain *p = ctx;

	(void)src;
	(void)dst;
	(void)lane;
	(void)index;
	*ret = (struct nbox_delay){p->alpha_ns, (double)bytes / p->bytes_per_ns};
	return 0;
}

static int plain_device(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint32_t *ret)
{
	(void)dst;
	(void)lane;
	*ret = ((struct plain *)ctx)->device_of[src];
	return 0;
}

/* An all-reduce by @algo, all ranks at once; those below @period stand for all. Seconds. */
static double reduce_s(enum sched_algo algo, uint32_t n, uint32_t period, uint64_t bytes,
		       enum dfg_policy policy)
{
	struct plain p = {.alpha_ns = 5000, .bytes_per_ns = 12.5};
	const struct sim_cost cost = {plain_cost, &p, 0};
	struct sched s = {.kind = COLL_ALLREDUCE,
			  .algo = algo,
			  .n_ranks = n,
			  .ranks_per_node = 1,
			  .n_channels = 1,
			  .elem_bytes = 1,
			  .bytes = bytes,
			  .chunk_bytes = bytes};
	uint32_t in[128], out[128], begin, end;
	struct dfg *g = dfg_new();
	const struct hops h = {.s = &s,
			       .cost = &cost,
			       .factor = 1,
			       .period = period,
			       .in = in,
			       .out = out,
			       .device = plain_device,
			       .ctx = &p};
	struct err err = {""};
	double ns;

	must(sched_init(&s, &err), &err);
	if (!g || dfg_add_op(g, DFG_PARALLEL, 0, 0, &begin) ||
	    dfg_add_op(g, DFG_PARALLEL, 0, 0, &end))
		abort();
	for (uint32_t i = 0; i < period; i++) {
		if (dfg_add_device(g, &p.device_of[i]))
			abort();
		in[i] = begin;
		out[i] = end;
	}
	must(hops_add(g, &h, &err), &err);
	if (dfg_play(g, policy, &begin))
		abort();
	ns = dfg_op(g, end)->end;
	dfg_free(g);
	return ns / 1e9;
}

static double ring_formula_s(uint32_t n, double bytes)
{
	return 2.0 * (n - 1) * (5e-6 + bytes / n / 12.5e9);
}

static void rings(void)
{
	const uint64_t even = UINT64_C(1) << 30;

	papers_row("BD1 ring of 8, 1e9 B (s)", 0.140070,
		   reduce_s(SCHED_RING, 8, 8, 1000000000, DFG_EVENT), 1e-10);
	/* chunks are multiples of 16 B, so that 15,625,000 B become 8 more */
	papers_row("BD1 ring of 64, 1e9 B (s)", 0.158130,
		   reduce_s(SCHED_RING, 64, 64, 1000000000, DFG_EVENT), 1e-4);
	papers_row("BD1 ring of 2, 1e6 B (s)", 90e-6,
		   reduce_s(SCHED_RING, 2, 2, 1000000, DFG_EVENT), 1e-10);
	papers_row("BD1 ring of 64, 1 GiB (s)", ring_formula_s(64, (double)even),
		   reduce_s(SCHED_RING, 64, 64, even, DFG_EVENT), 1e-10);
	papers_row("BD1 the same by dPRO's rule", ring_formula_s(64, (double)even),
		   reduce_s(SCHED_RING, 64, 64, even, DFG_DPRO), 1e-10);
	papers_row("BD1 the same, one rank for all", ring_formula_s(64, (double)even),
		   reduce_s(SCHED_RING, 64, 1, even, DFG_EVENT), 1e-10);
}

/* --- BD7: the tables' arithmetic ----------------------------------------------------------------
 */

static double off_pct(double true_ms, double said_ms)
{
	return 100 * (said_ms / true_ms - 1);
}

static void tables(void)
{
	static const struct {
		const char *item;
		double was, said, pct;
	} times[] = {
		{"BD7 Table 2 ResNet50 dPRO (%)", 138.64, 142.31, 2.65},
		{"BD7 Table 2 ResNet50 Daydream (%)", 138.64, 109.19, -21.24},
		{"BD7 Table 2 BERT dPRO (%)", 459.62, 453.83, -1.26},
		{"BD7 Table 2 BERT Daydream (%)", 459.62, 345.68, -24.79},
		{"BD7 artifact dPRO (%)", 226.956266, 238.481682, 5.08},
		{"BD7 artifact Daydream (%)", 226.956266, 108.799021, -52.06},
	};
	static const struct {
		const char *item;
		double real, estimate, printed, of_real;
	} memory[] = {
		{"BERT", 9.96, 10.25, 2.83, 2.91},
		{"ResNet50", 5.41, 5.71, 5.25, 5.55},
		{"InceptionV3", 3.91, 4.05, 3.46, 3.58},
		{"VGG16", 5.91, 5.83, 1.37, 1.35},
	};
	double fixed_gb = 10.25 - (16.97 - 10.25);
	char item[64];

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		papers_row(times[i].item, times[i].pct, off_pct(times[i].was, times[i].said), 0.5);
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
		double by = fabs(memory[i].estimate - memory[i].real);

		snprintf(item, sizeof(item), "BD7 Table 3 %s over the estimate (%%)",
			 memory[i].item);
		papers_row(item, memory[i].printed, 100 * by / memory[i].estimate, 0.5);
		snprintf(item, sizeof(item), "BD7 Table 3 %s over the truth (%%)", memory[i].item);
		papers_row(item, memory[i].of_real, 100 * by / memory[i].real, 0.5);
	}
	papers_row("BD7 memory line: fixed part (GB)", 3.53, fixed_gb, 0.1);
	papers_row("BD7 the same over 8 x 4 B (M parameters)", 110.3, fixed_gb * 1e3 / 32, 0.1);
}

/* --- jobs, as nbox records them -----------------------------------------------------------------
 */

enum { REAL = 2, PER_NODE = 2, ITERATIONS = 3, BUCKETS_MAX = 24 };

/* A data-parallel job of a model's shape: buckets are reduced as the backward pass makes them. */
struct shape_of_model {
	const char *name;
	double forward_ms, backward_ms; /* of ResNet50 and BERT as in Table 2 */
	uint32_t n_buckets;
	double mb[BUCKETS_MAX]; /* those that differ; 0: as the last one */
};

static const struct shape_of_model models[] = {
	{"ResNet50", 34.78, 71.34, 12, {1, 8.5}},
	{"BERT-Base", 107.49, 185.66, 18, {2.4, 24.5}},
	{"VGG16", 30, 65, 8, {16.4, 67.1, 411, 9.4, 18.9, 9.4, 4.7, 1.2}},
	{"InceptionV3", 40, 80, 20, {8.2, 4.6}},
};

static const void *keep(struct record *rec, const void *from, size_t bytes)
{
	void *to = record_keep(rec, bytes);

	if (!to)
		abort();
	return memcpy(to, from, bytes);
}

struct writer {
	struct record *rec;
	uint32_t rank;
	uint64_t wall, name, point, op;
};

static void add_point(struct writer *w, double ms, uint64_t other)
{
	const struct record_dep deps[] = {{w->point ? w->point : other, w->point != 0, 0},
					  {other, 0, 0}};
	struct record *rec = w->rec;
	struct record_point *p = &rec->points[rec->n_points++];

	w->wall += (uint64_t)(ms * 1e6);
	*p = (struct record_point){.name = ++w->name,
				   .call_ns = 1,
				   .time_ns = w->wall,
				   .world_rank = w->rank,
				   .stream = 1,
				   .order = rec->n_points + rec->n_ops,
				   .n_deps = !w->point ? 0
					     : other   ? 2
						       : 1};
	p->deps = p->n_deps ? keep(rec, deps, p->n_deps * sizeof(deps[0])) : NULL;
	w->point = p->name;
}

static void add_reduce(struct writer *w, uint64_t seq, double mb)
{
	const struct record_dep deps[] = {{w->point, 0, 0}, {w->op, 1, 0}};
	struct record *rec = w->rec;
	struct record_op *o = &rec->ops[rec->n_ops++];
	uint64_t count = (uint64_t)(mb * 1e6) / 4;

	*o = (struct record_op){.number = seq + 1,
				.seq = seq,
				.name = ++w->name,
				.bytes = 4 * count,
				.count = count,
				.call_ns = 1,
				.arrive_ns = w->wall,
				.due_ns = w->wall,
				.release_ns = w->wall,
				.order = rec->n_points + rec->n_ops,
				.comm = 1,
				.rank = w->rank,
				.world_rank = w->rank,
				.stream = 2,
				.kind = COLL_ALLREDUCE,
				.dtype = COLL_FLOAT32,
				.n_deps = w->op ? 2 : 1,
				.of = rec->comms};
	o->done_order = o->order;
	o->deps = keep(rec, deps, o->n_deps * sizeof(deps[0]));
	w->op = o->name;
}

/* Rank 1 takes a little longer here, a little shorter there. */
static void write_record(struct record *rec, const struct shape_of_model *m, uint32_t world)
{
	struct record_member real[REAL] = {{0, 0}, {1, 1}};
	uint32_t rows = REAL * (1 + ITERATIONS * (m->n_buckets + 2));

	*rec = (struct record){.header = {.n_real = REAL,
					  .world_size = world,
					  .n_nodes = world / PER_NODE,
					  .gpus_per_node = PER_NODE}};
	rec->comms = calloc(1, sizeof(*rec->comms));
	rec->ops = calloc(rows, sizeof(*rec->ops));
	rec->points = calloc(rows, sizeof(*rec->points));
	if (!rec->comms || !rec->ops || !rec->points)
		abort();
	rec->n_comms = 1;
	rec->comms[0] = (struct record_comm){.number = 1,
					     .n_ranks = world,
					     .stride = 1,
					     .n_real = REAL,
					     .real = keep(rec, real, sizeof(real))};
	for (uint32_t rank = 0; rank < REAL; rank++) {
		struct writer w = {.rec = rec,
				   .rank = rank,
				   .wall = 1000000,
				   .name = (uint64_t)rank << 32};
		uint64_t seq = 0;

		add_point(&w, 0, 0);
		for (int i = 0; i < ITERATIONS; i++) {
			add_point(&w, m->forward_ms, 0);
			for (uint32_t k = 0; k < m->n_buckets; k++) {
				double mb = m->mb[k], ms = m->backward_ms / m->n_buckets;

				for (uint32_t j = k; !(mb > 0); j--)
					mb = m->mb[j];
				add_point(&w, rank ? ms * (k % 2 ? 1.1 : 0.93) : ms, 0);
				add_reduce(&w, seq++, mb);
			}
			add_point(&w, 0, w.op);
		}
	}
}

static void set(struct config *c, const char *name, const char *value)
{
	for (int id = 0; id < CONFIG_OPTIONS; id++)
		if (strcmp(options[id].name, name) == 0 &&
		    config_set(c, (enum option_id)id, SOURCE_FLAG, value) < 0)
			abort();
}

struct world_of {
	uint32_t ranks;
	const char *algo, *nic;
};

struct measured {
	double emulator_ns, replay_ns, dpro_ns, daydream_ns;
	struct diagnosis diagnosis;
};

static double iteration_ns(const struct job *j, const struct played *p, uint32_t n_buckets)
{
	uint32_t first = JOB_NONE, last = JOB_NONE, n = 0;

	/* at the first rank: the first op of the second iteration, and of the last one */
	for (uint32_t i = 0; i < j->n_rows; i++) {
		if (j->rows[i].rank || j->rows[i].op == JOB_NONE)
			continue;
		if (n == n_buckets)
			first = i;
		if (n == (ITERATIONS - 1) * n_buckets)
			last = i;
		n++;
	}
	if (p)
		return (played_ns(j, p, last) - played_ns(j, p, first)) / (ITERATIONS - 2);
	return (j->rows[last].at - j->rows[first].at) / (ITERATIONS - 2);
}

static double play_as(const struct job *j, struct costs *costs, enum play_policy policy,
		      const struct config *c, uint32_t n_buckets)
{
	const struct play p = {.job = j,
			       .costs = costs,
			       .policy = policy,
			       .daydream_bytes_per_ns = c->topology.inter.bytes_per_ns,
			       .most_hops = UINT64_C(1) << 24};
	struct played played;
	struct err err = {""};
	double ns;

	must(play(&p, &played, &err), &err);
	ns = iteration_ns(j, &played, n_buckets);
	played_deinit(&played);
	return ns;
}

static void measure(const struct shape_of_model *m, const struct world_of *w, bool is_diagnosed,
		    struct measured *ret)
{
	char path[PATH_MAX], text[32];
	const char *const dirs[] = {path, NULL};
	struct rows_graph graph;
	struct record rec, now = {.n_ops = 0};
	struct timeline_terms *terms;
	struct replay_told told;
	struct config *c;
	struct costs costs;
	struct job job;
	struct err err = {""};

	if (file_own_folder(path, sizeof(path) - 32) < 0 || config_new(&c) < 0)
		abort();
	strcat(path, "/../../delaymodels");
	snprintf(text, sizeof(text), "%u", w->ranks / PER_NODE);
	set(c, "nodes", text);
	set(c, "gpus-per-node", "2");
	set(c, "real", "0-1");
	set(c, "model", "alphabeta");
	set(c, "inter-bandwidth", w->nic);
	snprintf(text, sizeof(text), "allreduce=%s", w->algo);
	set(c, "algo", text);
	must(config_finish(c, &err), &err);
	write_record(&rec, m, w->ranks);
	must(rows_graph_make(&rec, &graph, &err), &err);
	terms = calloc(graph.n + 1, sizeof(*terms));
	must(replay_play(
		     &(struct replay){.graph = &graph, .config = c, .dirs = dirs, .terms = terms},
		     &now, &told, &err),
	     &err);
	must(job_of_record(&(struct job_record){&graph, c, &now, terms, NULL}, &job, &err), &err);
	must(costs_open(&job, c, path, &costs, &err), &err);
	ret->emulator_ns = iteration_ns(&job, NULL, m->n_buckets);
	ret->replay_ns = play_as(&job, &costs, PLAY_EVENT, c, m->n_buckets);
	ret->dpro_ns = play_as(&job, &costs, PLAY_DPRO, c, m->n_buckets);
	ret->daydream_ns = play_as(&job, &costs, PLAY_DAYDREAM, c, m->n_buckets);
	if (is_diagnosed)
		must(diagnose(&job, &costs, &ret->diagnosis, &err), &err);
	costs_close(&costs);
	job_deinit(&job);
	record_deinit(&now);
	record_deinit(&rec);
	rows_graph_deinit(&graph);
	config_free(c);
	free(terms);
}

/* --- BD4, BD10
 * ------------------------------------------------------------------------------------ */

static void suite(void)
{
	static const struct world_of worlds[] = {{128, "ring", "25Gbps"},
						 {64, "ring", "100Gbps"},
						 {32, "tree", "25Gbps"},
						 {16, "tree", "100Gbps"}};
	double worst = 0, worst_dpro = 0, mildest = INFINITY;
	char item[96];

	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		for (size_t k = 0; k < sizeof(worlds) / sizeof(worlds[0]); k++) {
			const struct world_of *w = &worlds[k];
			struct measured m = {0};
			double off, off_daydream, alone_ms;

			measure(&models[i], w, false, &m);
			off = fabs(off_pct(m.emulator_ns, m.replay_ns));
			off_daydream = fabs(off_pct(m.emulator_ns, m.daydream_ns));
			alone_ms = models[i].forward_ms + models[i].backward_ms;
			worst = fmax(worst, off);
			worst_dpro = fmax(worst_dpro, fabs(off_pct(m.emulator_ns, m.dpro_ns)));
			snprintf(item, sizeof(item), "BD4 vs emulator: %s, %s of %u, %s (ms)",
				 models[i].name, w->algo, w->ranks, w->nic);
			papers_row(item, m.emulator_ns / 1e6, m.replay_ns / 1e6, 5);
			if (m.emulator_ns / 1e6 < 1.1 * alone_ms) /* bound by computation */
				continue;
			mildest = fmin(mildest, off_daydream);
			papers_holds("BD4 vs emulator: the same, daydream is worse",
				     off_daydream > off);
		}
	papers_row("BD4 vs emulator: the worst (%)", 0, worst / 100, 5);
	papers_row("BD4 the same by dPRO's rule (%)", NAN, worst_dpro, 0);
	papers_row("BD4 daydream where communication binds, its best (%)", NAN, mildest, 0);
}

/* Recorded with one NIC, said of twice that, beside the emulator there. */
static void twice(void)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		struct measured at_1, at_2;
		char item[96];

		measure(&models[i], &(struct world_of){64, "ring", "25Gbps"}, false, &at_1);
		measure(&models[i], &(struct world_of){64, "ring", "50Gbps"}, false, &at_2);
		snprintf(item, sizeof(item), "BD10 vs emulator: %s, 25 to 50 Gbps (ms won)",
			 models[i].name);
		papers_row(item, (at_1.emulator_ns - at_2.emulator_ns) / 1e6,
			   (at_1.emulator_ns - at_2.replay_ns) / 1e6, 5);
	}
}

static void causes(void)
{
	struct measured slow, quick;

	measure(&models[2], &(struct world_of){64, "ring", "25Gbps"}, true, &slow);
	measure(&models[1], &(struct world_of){16, "ring", "400Gbps"}, true, &quick);
	papers_holds("diagnose: VGG16's shape on 25 Gbps is communication-bound",
		     slow.diagnosis.of[DIAGNOSE_COMMUNICATION].is_found &&
			     !slow.diagnosis.of[DIAGNOSE_COMPUTATION].is_found);
	papers_holds("diagnose: BERT's shape on 400 Gbps is computation-bound",
		     quick.diagnosis.of[DIAGNOSE_COMPUTATION].is_found &&
			     !quick.diagnosis.of[DIAGNOSE_COMMUNICATION].is_found);
}

/* --- a large trace
 * -------------------------------------------------------------------------------- */

enum { TRACED = 8, OPS_OF_RANK = 125000, KERNELS_BETWEEN = 99 };

static void add_traced(struct trace *t, struct trace_op *op, double ns)
{
	struct err err = {""};
	uint32_t number;

	op->end_ns = op->start_ns + ns;
	must(trace_add_op(t, op, &number, &err), &err);
}

/* Of data-parallel ranks: kernels, and an all-reduce of 1 MB after some. */
static void write_trace(struct trace *t)
{
	uint32_t comm, name, host, rank;

	*t = (struct trace){.world = TRACED};
	if (trace_add_comm(t, "world", TRACED, NULL, &comm) || trace_add_name(t, "gemm", &name))
		abort();
	for (uint32_t r = 0; r < TRACED; r++) {
		struct trace_op o = {.launched_by = TRACE_NONE,
				     .parent = TRACE_NONE,
				     .peer = TRACE_NONE,
				     .step = TRACE_NONE,
				     .join = TRACE_NONE,
				     .name = name};
		double at = 0;
		char text[16];

		snprintf(text, sizeof(text), "host%u", r);
		if (trace_add_host(t, text, &host) || trace_add_rank(t, r, host, &rank))
			abort();
		o.rank = rank;
		for (uint32_t i = 0; i < OPS_OF_RANK; i++) {
			bool is_op = i % (KERNELS_BETWEEN + 1) == KERNELS_BETWEEN;

			o.kind = is_op ? TRACE_COLLECTIVE : TRACE_COMPUTE;
			o.coll = is_op ? (uint32_t)COLL_ALLREDUCE : TRACE_NONE;
			o.comm = is_op ? comm : TRACE_NONE;
			o.stream = is_op ? 20 : 7;
			o.bytes = is_op ? 1000000 : 0;
			o.seq = is_op ? i : UINT64_MAX;
			o.start_ns = at;
			add_traced(t, &o, is_op ? 300e3 : 9e3);
			at += is_op ? 0 : 10e3;
		}
	}
	if (trace_finish(t) < 0 || trace_guess_waits(t) < 0)
		abort();
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void large(void)
{
	const struct hop_cost hop = {5000, 12.5};
	struct costs costs;
	struct played played;
	struct trace t;
	struct job job;
	struct err err = {""};
	double begin, took;

	write_trace(&t);
	begin = now_s();
	must(job_of_trace(&t, 0, &hop, &hop, &job, &err), &err);
	must(costs_open(&job, NULL, NULL, &costs, &err), &err);
	costs.is_measured = true;
	must(play(&(struct play){.job = &job, .costs = &costs}, &played, &err), &err);
	took = now_s() - begin;
	papers_row("a trace of 10^6 ops: graph and replay (s, below 1)", NAN, took, 0);
	papers_row("the same: vertices", NAN, dfg_ops(played.g), 0);
	/* of the last stretch the op is not hidden, and ops of 0.3 ms never queue */
	papers_row("the same, as recorded (ms)",
		   (OPS_OF_RANK / (KERNELS_BETWEEN + 1) * KERNELS_BETWEEN * 10e3 + 300e3) / 1e6,
		   played.end_ns / 1e6, 1e-6);
	played_deinit(&played);
	costs_close(&costs);
	job_deinit(&job);
	trace_deinit(&t);
}

int main(void)
{
	papers_open("003 dPRO");
	rings();
	tables();
	suite();
	twice();
	causes();
	large();
	return papers_close();
}
