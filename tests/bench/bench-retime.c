/* What it costs to play records again, on one core, and what comes out where a formula knows it.
 *
 * bench-retime [--json FILE]
 *
 * The records are made up, as a stepper would leave them: data-parallel jobs of 1,024 ranks with
 * one real, and an iteration of tensor x pipeline x data parallelism with the real ranks of one
 * replica. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "config/config.h"
#include "engine/record-rows.h"
#include "replay/replay.h"
#include "schedule/coll.h"

#define NS_MS UINT64_C(1000000)

static FILE *json;
static int n_rows;

static void fail(const char *what)
{
	fprintf(stderr, "bench-retime: %s\n", what);
	exit(1);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The plug-ins of this build: beside tests/ in the build folder. */
static const char *models_dir(void)
{
	static char dir[PATH_MAX];

	if (file_own_folder(dir, sizeof(dir) - 32) < 0)
		fail("cannot find its own folder");
	return strcat(dir, "/../../delaymodels");
}

/* --- records ---------------------------------------------------------------------------------- */

static void *room(void *list, size_t n, size_t bytes)
{
	if (n & (n - 1))
		return list;
	list = reallocarray(list, n ? 2 * n : 1, bytes);
	if (!list)
		fail("no memory");
	return list;
}

static const void *keep(struct record *rec, const void *from, size_t bytes)
{
	void *to = record_keep(rec, bytes);

	if (!to)
		fail("no memory");
	memcpy(to, from, bytes);
	return to;
}

static struct record_comm *add_comm(struct record *rec, uint32_t n_ranks, uint32_t base,
				    uint32_t stride, uint32_t axes)
{
	struct record_comm *c;

	rec->comms = room(rec->comms, rec->n_comms, sizeof(*c));
	c = &rec->comms[rec->n_comms++];
	*c = (struct record_comm){.number = (uint32_t)rec->n_comms,
				  .n_ranks = n_ranks,
				  .base = base,
				  .stride = stride,
				  .axes = axes};
	return c;
}

static void set_real(struct record *rec, struct record_comm *c, uint32_t first, uint32_t n,
		     uint32_t stride)
{
	struct record_member real[16];

	for (uint32_t i = 0; i < n; i++)
		real[i] = (struct record_member){(first + i * stride - c->base) / c->stride,
						 first + i * stride};
	c->real = keep(rec, real, n * sizeof(real[0]));
	c->n_real = n;
}

/* What a rank did last. */
struct at {
	uint32_t rank;
	uint64_t ns, name, last_op, last_point;
	uint64_t seq[3];
};

/* A place in the computation, @computes_ns behind the one before and, where it @waits, behind the
 * last op. */
static void add_point(struct record *rec, struct at *at, uint64_t computes_ns, bool waits)
{
	const struct record_dep deps[] = {{at->last_point, 1, 0}, {at->last_op, 0, 0}};
	struct record_point *p;

	rec->points = room(rec->points, rec->n_points, sizeof(*p));
	p = &rec->points[rec->n_points++];
	at->ns += computes_ns;
	*p = (struct record_point){.name = ++at->name,
				   .time_ns = at->ns,
				   .call_ns = 1,
				   .world_rank = at->rank,
				   .order = rec->n_ops + rec->n_points,
				   .n_deps = at->last_point ? 1 + waits : 0};
	p->deps = p->n_deps ? keep(rec, deps, sizeof(deps)) : NULL;
	at->last_point = p->name;
}

/* It waits for the op before it on its stream, and for the last point, or, @computes_ns later, for
 * the op alone. */
static struct record_op *add_op(struct record *rec, struct at *at, uint32_t comm, uint32_t rank,
				enum coll_kind kind, uint64_t count, uint64_t seq,
				uint64_t computes_ns, bool has_point)
{
	struct record_dep deps[2];
	struct record_op *op;
	uint32_t n = 0;

	if (at->last_op)
		deps[n++] = (struct record_dep){at->last_op, 1, 0};
	if (has_point)
		deps[n++] = (struct record_dep){at->last_point, 0, 0};
	rec->ops = room(rec->ops, rec->n_ops, sizeof(*op));
	op = &rec->ops[rec->n_ops++];
	at->ns += computes_ns;
	*op = (struct record_op){.number = rec->n_ops,
				 .seq = seq,
				 .name = ++at->name,
				 .count = count,
				 .call_ns = 1,
				 .arrive_ns = at->ns,
				 .due_ns = at->ns,
				 .release_ns = at->ns,
				 .order = rec->n_ops + rec->n_points,
				 .done_order = rec->n_ops + rec->n_points,
				 .comm = comm,
				 .rank = rank,
				 .world_rank = at->rank,
				 .kind = kind,
				 .dtype = COLL_FLOAT32,
				 .n_deps = n};
	op->deps = n ? keep(rec, deps, n * sizeof(deps[0])) : NULL;
	at->last_op = op->name;
	return op;
}

static void connect(struct record *rec)
{
	for (uint64_t i = 0; i < rec->n_ops; i++)
		rec->ops[i].of = &rec->comms[rec->ops[i].comm - 1];
}

/* --- playing ---------------------------------------------------------------------------------- */

static struct config *configure(const char *const *words)
{
	struct config *c;
	struct err err = {""};

	if (config_new(&c) < 0)
		fail("no memory");
	for (; *words; words += 2)
		for (int id = 0; id < CONFIG_OPTIONS; id++)
			if (strcmp(options[id].name, words[0] + 2) == 0 &&
			    config_set(c, (enum option_id)id, SOURCE_FLAG, words[1]) < 0)
				fail("no memory");
	if (config_finish(c, &err) < 0)
		fail(err.text);
	return c;
}

/* Return: CPU seconds; @out: what was played, the caller's. */
static double play_to(struct record *rec, const char *const *words, struct record *out)
{
	const char *const dirs[] = {models_dir(), NULL};
	struct config *c = configure(words);
	struct rows_graph graph;
	struct replay in = {.config = c, .dirs = dirs};
	struct replay_told told;
	struct err err = {""};
	double before = now_s(), took;

	rec->header.world_size = c->world;
	rec->header.n_nodes = c->topology.n_nodes;
	rec->header.gpus_per_node = c->topology.gpus_per_node;
	if (rows_graph_make(rec, &graph, &err) < 0)
		fail(err.text);
	in.graph = &graph;
	if (replay_play(&in, out, &told, &err) < 0)
		fail(err.text);
	took = now_s() - before;
	if (told.n_lost)
		fail("rows were lost");
	rows_graph_deinit(&graph);
	config_free(c);
	return took;
}

/* The same; *ret_ns: from the first op's arrival to the last one's end, at the first real rank. */
static double play(struct record *rec, const char *const *words, double *ret_ns)
{
	struct record out = {.n_ops = 0};
	double took = play_to(rec, words, &out);
	uint64_t first = UINT64_MAX, last = 0;

	for (uint64_t i = 0; i < out.n_ops; i++) {
		const struct record_op *op = &out.ops[i];

		first = op->virtual_arrive_ns < first ? op->virtual_arrive_ns : first;
		last = op->virtual_end_ns > last ? op->virtual_end_ns : last;
	}
	*ret_ns = (double)(last - first);
	record_deinit(&out);
	return took;
}

static void row(const char *what, double value, const char *unit, double target, bool is_at_most)
{
	bool ok = is_at_most ? value <= target : value >= target;

	printf("%-86s %10.3f %-4s %s %8.3f  %s\n", what, value, unit,
	       is_at_most ? "<=" : ">=", target, ok ? "ok" : "MISSED");
	fflush(stdout);
	if (json)
		fprintf(json,
			"%s\n {\"what\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"target\": %.6g, "
			"\"ok\": %s}",
			n_rows++ ? "," : "", what, value, unit, target, ok ? "true" : "false");
}

/* --- data-parallel ---------------------------------------------------------------------------- */

enum { DDP_RANKS = 1024, DDP_OPS = 200 };

static void make_ddp(struct record *rec, uint32_t iterations, uint32_t ops, uint64_t segment_ns)
{
	struct at at = {.ns = NS_MS};

	*rec = (struct record){.header = {.n_real = 1}};
	set_real(rec, add_comm(rec, DDP_RANKS, 0, 1, 0), 0, 1, 1);
	for (uint32_t i = 0; i < iterations; i++)
		for (uint32_t k = 0; k < ops; k++) {
			add_point(rec, &at, segment_ns, k == 0 && i > 0);
			add_op(rec, &at, 1, 0, COLL_ALLREDUCE, 1 << 18, at.seq[0]++, 0, true);
		}
	connect(rec);
}

static void bench_ddp(void)
{
	const char *plain[] = {"--nodes", "1024", "--gpus-per-node", "1", "--model", "ring", NULL};
	const char *jitter[] = {
		"--nodes", "1024", "--gpus-per-node", "1",
		"--model", "ring", "--what-if",       "jitter:on=compute,stddev=10%",
		NULL};
	struct record rec;
	double ns;

	make_ddp(&rec, 1000, DDP_OPS, 5 * NS_MS);
	row("1,000 iterations of 200 all-reduces at 1,024 ranks", play(&rec, plain, &ns), "s", 5,
	    true);
	row("the same, each stretch of computation of each rank jitters", play(&rec, jitter, &ns),
	    "s", 60, true);
	record_deinit(&rec);
}

/* --- tensor x pipeline x data ----------------------------------------------------------------- */

enum { TP = 8, PP = 16, DP = 128, BATCHES = 64, LAYERS = 38, BUCKETS = 8 };

struct stage {
	struct at at[TP];
};

static void send_recv(struct record *rec, struct at *at, uint32_t stage, uint32_t tp, uint32_t from,
		      uint32_t to)
{
	struct record_call calls[2];
	struct record_op *op;
	uint32_t n = 0;

	if (from != stage)
		calls[n++] = (struct record_call){from, 0, 8 << 20};
	if (to != stage)
		calls[n++] = (struct record_call){to, 1, 8 << 20};
	if (n == 0)
		return;
	op = add_op(rec, at, PP + 1 + tp, stage, COLL_SENDRECV, 0, at->seq[1]++, 0, false);
	op->n_calls = n;
	op->calls = keep(rec, calls, n * sizeof(calls[0]));
}

/* A micro-batch at a rank: comes from @from, goes to @to. */
static void micro_batch(struct record *rec, struct at *at, uint32_t stage, uint32_t tp,
			uint32_t from, uint32_t to, uint64_t layer_ns)
{
	send_recv(rec, at, stage, tp, from, stage);
	for (uint32_t l = 0; l < 2 * LAYERS; l++)
		add_op(rec, at, 1 + stage, tp, COLL_ALLREDUCE, 4 << 20, at->seq[0]++, layer_ns,
		       false);
	send_recv(rec, at, stage, tp, stage, to);
}

static void make_3d(struct record *rec)
{
	*rec = (struct record){.header = {.n_real = TP * PP, .layout = "tp=8,pp=16,dp=128"}};
	for (uint32_t s = 0; s < PP; s++)
		set_real(rec, add_comm(rec, TP, s * TP, 1, 1), s * TP, TP, 1);
	for (uint32_t t = 0; t < TP; t++)
		set_real(rec, add_comm(rec, PP, t, TP, 2), t, PP, TP);
	for (uint32_t r = 0; r < TP * PP; r++)
		set_real(rec, add_comm(rec, DP, r, TP * PP, 4), r, 1, 1);
	for (uint32_t s = 0; s < PP; s++)
		for (uint32_t t = 0; t < TP; t++) {
			struct at at = {.rank = s * TP + t, .ns = NS_MS};

			for (uint32_t b = 0; b < BATCHES; b++)
				micro_batch(rec, &at, s, t, s ? s - 1 : s, s + 1 < PP ? s + 1 : s,
					    250000);
			for (uint32_t b = 0; b < BATCHES; b++)
				micro_batch(rec, &at, s, t, s + 1 < PP ? s + 1 : s, s ? s - 1 : s,
					    500000);
			for (uint32_t k = 0; k < BUCKETS; k++)
				add_op(rec, &at, PP + TP + 1 + at.rank, 0, COLL_REDUCESCATTER,
				       1 << 18, at.seq[2]++, 0, false);
		}
	connect(rec);
}

static void bench_3d(void)
{
	const char *words[] = {"--nodes",           "2048",   "--preset", "dgx-h100", "--layout",
			       "tp=8,pp=16,dp=128", "--real", "0-127",    NULL};
	struct record rec;
	double ns, s;
	char what[128];

	make_3d(&rec);
	s = play(&rec, words, &ns);
	snprintf(what, sizeof(what),
		 "an iteration of tp 8 x pp 16 x dp 128, 16,384 ranks, %u ops a rank, shared links",
		 (unsigned int)(rec.n_ops / (TP * PP)));
	row(what, s, "s", 10, true);
	record_deinit(&rec);
}

/* --- formulas --------------------------------------------------------------------------------- */

/* Synchronous data parallelism: all wait for the slowest. */
static void bench_formulas(void)
{
	const char *plain[] = {"--nodes", "128", "--gpus-per-node", "1", "--model", "ring", NULL};
	const char *slow[] = {"--nodes", "128",       "--gpus-per-node",          "1", "--model",
			      "ring",    "--what-if", "slow:rank=17,compute=1.3", NULL};
	const char *jitter[] = {
		"--nodes", "128",  "--gpus-per-node", "1",
		"--model", "ring", "--what-if",       "jitter:on=compute,mean=0%,stddev=10%",
		NULL};
	const uint32_t n = 400;
	struct record rec;
	double base, ns, sum = 0, most, u;

	make_ddp(&rec, n, 1, 10 * NS_MS);
	rec.comms[0].n_ranks = 128;
	play(&rec, plain, &base);
	play(&rec, slow, &ns);
	/* each iteration is 3 ms of computation longer */
	row("rank 17 of 128 computes 1.3 times as long: off from the closed form",
	    fabs((ns - base) / (n - 1) / (3e6) - 1) * 100, "%", 1, true);
	play(&rec, jitter, &ns);
	/* E(max of 128 normal values), by numerical integration of 1 - F(x)^128 */
	for (double x = -8; x < 8; x += 1e-4) {
		u = pow(0.5 * erfc(-x * M_SQRT1_2), 128);
		sum += (x < 0 ? -u : 1 - u) * 1e-4;
	}
	most = sum * 0.1 * 10e6;
	row("jitter of 10 % at 128 ranks: off from the mean of the maximum, standard errors",
	    fabs((ns - base) / (n - 1) - most) / (0.43 * 0.1 * 10e6 / sqrt(n - 1)), "", 3, true);
	record_deinit(&rec);
}

/* Two leaf switches with four nodes each; of each node's rank, an all-reduce with those of its leaf
 * and one with its partner at the other leaf. What the two take with @ratio times less bandwidth up
 * than down. */
static void cross_leaves(const char *fabric, const char *ratio, double *ret_within,
			 double *ret_across)
{
	const char *words[] = {"--nodes",  "8",         "--gpus-per-node",
			       "1",        "--fabric",  fabric,
			       "--layout", "tp=4,dp=2", "--oversubscription",
			       ratio,      NULL};
	struct record rec = {.header = {.n_real = 1, .layout = "tp=4,dp=2"}}, out = {.n_ops = 0};
	struct at at = {.ns = NS_MS};

	set_real(&rec, add_comm(&rec, 4, 0, 1, 1), 0, 1, 1);
	set_real(&rec, add_comm(&rec, 2, 0, 4, 2), 0, 1, 4);
	for (uint32_t comm = 1; comm <= 2; comm++) {
		add_point(&rec, &at, 10 * NS_MS, comm > 1);
		add_op(&rec, &at, comm, 0, COLL_ALLREDUCE, 64 << 20, 0, 0, true);
	}
	connect(&rec);
	play_to(&rec, words, &out);
	*ret_within = (double)(out.ops[0].virtual_end_ns - out.ops[0].virtual_arrive_ns);
	*ret_across = (double)(out.ops[1].virtual_end_ns - out.ops[1].virtual_arrive_ns);
	record_deinit(&out);
	record_deinit(&rec);
}

static void bench_oversubscription(void)
{
	char path[] = "/tmp/bench-retime-XXXXXX";
	int fd = mkstemp(path);
	double within, across, within_4, across_4;

	if (fd < 0 || dprintf(fd, "preset: 100gbe\nnetwork: {kind: leaf-spine, latency: 2us, "
				  "nodes_per_leaf: 4}\n") < 0)
		fail("no file of a fabric");
	cross_leaves(path, "1", &within, &across);
	cross_leaves(path, "4", &within_4, &across_4);
	close(fd);
	unlink(path);
	row("leaf switches of 4:1 instead of 1:1: ops across take 4 times as long, off by",
	    fabs(across_4 / across / 4 - 1) * 100, "%", 1, true);
	row("the same: ops within a leaf take as long as before, off by",
	    fabs(within_4 / within - 1) * 100, "%", 0, true);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--json") == 0)
		json = fopen(argv[2], "w");
	if (json)
		fputs("{\"rows\": [", json);
	bench_formulas();
	bench_oversubscription();
	bench_3d();
	bench_ddp();
	if (json) {
		fprintf(json, "\n]}\n");
		fclose(json);
	}
	return 0;
}
