/* Lin et al.: sharders, picks, reuse factors, skewed all-to-alls, curves. */
#include "four-gpus.h"
#include "papers.h"

#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "calibrate/fit.h"
#include "calibrate/sample.h"
#include "calibrate/score.h"
#include "calibrate/skew.h"
#include "config/config.h"
#include "nbox/ask/ask.h"
#include "nbox/shard/verify.h"
#include "rng.h"
#include "schedule/coll.h"
#include "shard/pick.h"
#include "shard/plan.h"
#include "shard/sharder.h"

/* --- sharders --- */

static const struct shard_table tables[] = {
	{.rows = 1e6, .width = 64, .lookups = 30},  {.rows = 5e5, .width = 128, .lookups = 5},
	{.rows = 2000, .width = 32, .lookups = 80}, {.rows = 1e7, .width = 64, .lookups = 1.5},
	{.rows = 100, .width = 256, .lookups = 20}, {.rows = 3e5, .width = 64, .lookups = 50},
	{.rows = 5e4, .width = 128, .lookups = 12}, {.rows = 8e6, .width = 32, .lookups = 25},
};

static void shard(enum sharder sharder, const uint32_t *want, const double *loads, double tolerance)
{
	uint32_t got[8], table, n_right = 0;
	double got_loads[4];
	char item[64];

	if (sharder_assign(sharder, tables, 8, 4, INFINITY, 1, got, got_loads, &table))
		abort();
	for (int i = 0; i < 8; i++)
		n_right += got[i] == want[i];
	snprintf(item, sizeof(item), "T-S1 %s, tables in their place", sharder_names[sharder]);
	papers_row(item, 8, n_right, 0);
	for (int g = 0; loads && g < 4; g++) {
		snprintf(item, sizeof(item), "T-S1 %s, load of GPU %d", sharder_names[sharder], g);
		papers_row(item, loads[g], got_loads[g], tolerance);
	}
}

static void sharders(void)
{
	static const double lookup[] = {5120, 3840, 3456, 3456},
			    size_lookup[] = {17526.788, 15839.341, 15762.472, 15668.255};

	shard(SHARDER_NAIVE, (const uint32_t[]){0, 1, 2, 3, 0, 1, 2, 3}, NULL, 0);
	shard(SHARDER_LOOKUP, (const uint32_t[]){3, 1, 2, 2, 0, 1, 3, 2}, lookup, 0);
	shard(SHARDER_SIZE, (const uint32_t[]){2, 3, 3, 0, 3, 3, 3, 1}, NULL, 0);
	shard(SHARDER_NORM_LOOKUP, (const uint32_t[]){3, 3, 1, 3, 0, 3, 2, 3}, NULL, 0);
	shard(SHARDER_SIZE_LOOKUP, (const uint32_t[]){1, 1, 3, 1, 2, 0, 3, 2}, size_lookup, 1e-5);
}

/* Table IV: what was picked, what was fastest, and the error as it is printed. */
static void picks(void)
{
	CLEANUP(freep) char *text = NULL;
	uint32_t n = 0, n_good = 0, n_exact = 0;
	double off = 0;
	char missed[64] = "";
	struct err err;
	char *rest;
	size_t len;

	if (file_read(PAPERS "/lin-table4.csv", 1 << 16, &text, &len, &err) < 0)
		abort();
	rest = text;
	for (char *line; (line = strsep(&rest, "\n"));) {
		char platform[16];
		double picked, fastest, error;
		unsigned int task;
		struct pick p;

		if (sscanf(line, "%15[^,],%u,%lf,%lf,%lf", platform, &task, &picked, &fastest,
			   &error) != 5)
			continue;
		p = pick_judge(picked, fastest);
		n++;
		n_good += p.is_success;
		n_exact += p.excess == 0;
		off = fmax(off, fabs(100 * p.excess - error));
		if (!p.is_success)
			snprintf(missed + strlen(missed), sizeof(missed) - strlen(missed), "%s%u ",
				 platform, task);
	}
	papers_row("T-S2 Table IV, picks", 20, n, 0);
	papers_row("T-S2 Table IV, good picks", 17, n_good, 0);
	papers_row("T-S2 Table IV, the fastest was picked", 7, n_exact, 0);
	papers_holds("T-S2 Table IV, misses are tasks 1, 4 and 14 of GV100",
		     strcmp(missed, "GV1001 GV1004 GV10014 ") == 0);
	papers_holds("T-S2 Table IV, each error as printed", off <= 0.0051);
}

/* --- reuse --- */

static void reuse(void)
{
	uint64_t rows[] = {0, 1, 4, 6, 1, 2, 3, 5, 7, 0, 5, 7, 1, 6};
	struct reuse r = reuse_of(rows, ARRAY_SIZE(rows)), nothing = reuse_of(rows, 0);
	double sum = 0, none = 0;

	for (int b = 0; b < REUSE_BINS; b++) {
		sum += r.shares[b];
		none += nothing.shares[b];
	}
	papers_row("T-E1 Fig. 6, rows that are used once", .375, r.shares[0], 0);
	papers_row("T-E1 Fig. 6, twice", .5, r.shares[1], 0);
	papers_row("T-E1 Fig. 6, three or four times", .125, r.shares[2], 0);
	papers_row("T-E1 the shares' sum", 1, sum, 0);
	papers_row("T-E1 bins", 17, REUSE_BINS, 0);
	papers_row("T-E1 a table that nobody asks, sum", 0, none, 0);
}

/* --- collectives: what calibrate/ makes of the goldens --- */

/* In wire bytes, of 4 ranks. */
static const struct curve worked = {.form = CURVE_SIGMOID,
				    .latency_ns = 25e3,
				    .bytes_per_ns = 40 / .75,
				    .m1 = 65536,
				    .m2 = 67108864,
				    .L = 2,
				    .x0 = 18,
				    .k = .5,
				    .b = -.4 + .12493873660829993}; /* -log10(3/4) */

static void curves(void)
{
	static const struct {
		int log2_bytes;
		double us;
	} rows[] = {{16, 25},         {17, 43.400012},   {18, 49.385697},   {20, 68.162266},
		    {24, 393.217562}, {26, 1373.452267}, {27, 2541.582400}, {30, 20157.6592}};
	char item[64];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(item, sizeof(item), "T-C1 t(2^%d), us", rows[i].log2_bytes);
		papers_row(item, rows[i].us, curve_ns(&worked, pow(2, rows[i].log2_bytes)) / 1e3,
			   1e-4);
	}
}

static double line_ns(double bytes)
{
	return 20e3 + bytes * .75 / 50;
}

static struct curve measure_line(void)
{
	struct samples s = {.list = NULL};
	struct curve c;
	size_t from = 0;

	for (int i = 0; i <= 28; i++)
		samples_add(&s, &(struct sample){.kind = COLL_BROADCAST,
						 .n_ranks = 4,
						 .n_nodes = 1,
						 .bytes = 4 * pow(2, i),
						 .ns = line_ns(4 * pow(2, i))});
	samples_merge(&s);
	if (samples_next(&s, &from, &c) != 1)
		abort();
	samples_deinit(&s);
	return c;
}

static void fits(void)
{
	struct curve c = measure_line();
	struct fit_scores scores;
	struct score_sum off = {.n = 0};
	struct score on;
	struct err err;

	if (fit_form(&c, CURVE_SIGMOID, c.points, c.n_points))
		abort();
	papers_row("T-C2 log2 of m1", 17, log2(c.m1), 0);
	papers_row("T-C2 log2 of m2", 26, log2(c.m2), 0);
	papers_row("T-C2 latency, us", 20.98, c.latency_ns / 1e3, .025);
	papers_row("T-C2 bandwidth, GB/s", 49.94, c.bytes_per_ns * .75, .01);
	on = score_curve(&c, c.points, c.n_points);
	for (size_t i = 0; i + 1 < c.n_points; i++) {
		double bytes = sqrt(c.points[i].bytes * c.points[i + 1].bytes);

		score_add(&off, curve_ns(&c, bytes), line_ns(bytes));
	}
	papers_holds("T-C2 on the grid: GMAE < 2 %, MAPE < 3.5 %, most < 7 %",
		     on.gmae < .02 && on.mape < .035 && on.max < .07);
	on = score_of(&off);
	papers_holds("T-C2 off the grid", on.gmae < .02 && on.mape < .035 && on.max < .07);
	papers_holds("T-C2 bounds of the fit hold", c.L > 0 && c.L <= 10 && c.k >= .05 && c.k <= 3);
	if (fit_curve(&c, FIT_AUTO, &scores, &err) < 0)
		abort();
	papers_holds("T-C2 the form is chosen: alpha-beta, error below 0.1 %",
		     c.form == CURVE_ALPHABETA && c.gmae < .001);
	curve_deinit(&c);
}

static void skews(void)
{
	/* 2, 3, 3 and 5 tables of 64 floats; 512 samples of 4 GPUs each. */
	static const uint64_t received[] = {0, 4, 1, 1, 2, 0, 2, 2, 1, 1, 0, 7, 3, 3, 3, 0};
	static const uint64_t pairs[] = {262144, 393216, 393216, 655360};
	const uint32_t gpu_of[] = {0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3};
	struct shard_table alike[13];
	struct shard_job job = {
		.tables = alike, .n_tables = 13, .n_gpus = 4, .batch = 2048, .card = lookup_a100};
	struct shard_plan plan;
	struct skew s;
	char item[64];

	for (int i = 0; i < 13; i++)
		alike[i] = (struct shard_table){.rows = 1000, .width = 64, .lookups = 1};
	if (shard_plan_make(&job, gpu_of, &plan))
		abort();
	for (int g = 0; g < 4; g++) {
		snprintf(item, sizeof(item), "T-C5 bytes from GPU %d to each other one", g);
		papers_row(item, (double)pairs[g], (double)plan.gpus[g].pair_bytes, 0);
	}
	papers_row("T-C5 bytes that count", 1966080, (double)plan.skew.bytes, 0);
	papers_row("T-C5 bytes if all sent alike", 1277952, plan.skew.even, 0);
	papers_row("T-C5 skew", 1.53846, (double)plan.skew.bytes / plan.skew.even, 5e-4);
	papers_holds("T-C5 GPU 3 sends them", plan.skew.rank == 3 && !plan.skew.is_receive);
	shard_plan_deinit(&plan);
	s = skew_of(received, 4);
	papers_row("T-C5 the other matrix, bytes that count", 10, (double)s.bytes, 0);
	papers_holds("T-C5 rank 3 receives them", s.rank == 3 && s.is_receive);
}

/* --- a pick against the emulator --- */

#define TASKS 20
#define GPUS 4
#define TABLES_MOST 80
#define NOISE .05

static double gauss(struct rng *r)
{
	double u = rng_uniform(r), v = rng_uniform(r);

	return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

/* As the paper's heavy tasks: 0.7 to 1.3 times 13 tables a GPU, of 20 look-ups and more in the
 * mean.
 */
static uint32_t make_task(struct rng *r, struct shard_table *list)
{
	uint32_t n = (uint32_t)(GPUS * 13 * (.7 + .6 * rng_uniform(r)));

	for (uint32_t i = 0; i < n; i++)
		list[i] = (struct shard_table){.rows = floor(pow(10, 3 + 4 * rng_uniform(r))),
					       .width = 32 << rng_u64(r) % 3,
					       .lookups = ceil(exp(3.2 + .8 * gauss(r)))};
	return n;
}

/* What the emulator says of a plan whose look-ups take longer or shorter than the model knows. */
static double truth(const struct config *c, const char *models, const struct shard_job *job,
		    struct shard_plan *plan, struct rng *r)
{
	struct err err;
	double ns;

	for (uint32_t g = 0; g < job->n_gpus; g++) {
		plan->gpus[g].forward_ns *= exp(NOISE * gauss(r));
		plan->gpus[g].backward_ns *= exp(NOISE * gauss(r));
	}
	if (verify_plan(c, models, job, plan, &ns, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	return ns;
}

static void selection(void)
{
	static struct shard_table list[TABLES_MOST];
	char models[PATH_MAX + 32];
	struct config *c = four_gpus(CONFIG_PRESET, "dgx-a100");
	uint32_t n_good = 0, n_exact = 0, gpu_of[TABLES_MOST], table;
	double off = 0, off_most = 0;
	struct ask *ask;
	struct err err;

	if (file_own_folder(models, PATH_MAX) < 0)
		abort();
	strcat(models, "/../../delaymodels");
	if (ask_open(c, models, &ask, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	for (uint64_t task = 0; task < TASKS; task++) {
		double predicted[SHARDERS], actual[SHARDERS];
		struct shard_job job = {.tables = list,
					.n_gpus = GPUS,
					.batch = 4096,
					.dense_ns = 1e6,
					.card = lookup_a100};
		struct rng r;
		struct pick p;

		rng_seed(&r, 16, task);
		job.n_tables = make_task(&r, list);
		for (enum sharder s = 0; s < SHARDERS; s++) {
			struct answer answer;
			struct shard_plan plan;

			if (sharder_assign(s, list, job.n_tables, GPUS, .8 * 40e9, task, gpu_of,
					   NULL, &table) ||
			    shard_plan_make(&job, gpu_of, &plan) ||
			    ask_op(ask, COLL_ALLTOALL, plan.skew.bytes / (GPUS - 1), 1, 0, &answer,
				   &err) ||
			    shard_plan_ns(&job, &plan, answer.ns, &predicted[s]))
				abort();
			actual[s] = truth(c, models, &job, &plan, &r);
			off += 100 * (predicted[s] / actual[s] - 1) / (TASKS * SHARDERS);
			off_most = fmax(off_most, fabs(100 * (predicted[s] / actual[s] - 1)));
			shard_plan_deinit(&plan);
		}
		p = pick_of(predicted, actual, SHARDERS);
		n_good += p.is_success;
		n_exact += p.excess == 0;
	}
	papers_holds("T-S3 vs emulator with hidden noise of 5 %: 85 % of 20 picks are good",
		     n_good >= .85 * TASKS);
	papers_row("T-S3 vs emulator, good picks, %", NAN, 100. * n_good / TASKS, 0);
	papers_row("T-S3 vs emulator, the fastest was picked, %", NAN, 100. * n_exact / TASKS, 0);
	papers_row("T-S3 vs emulator, mean signed error of 120 predictions, %", NAN, off, 0);
	papers_row("T-S3 vs emulator, largest error, %", NAN, off_most, 0);
	ask_close(ask);
	config_free(c);
}

int main(void)
{
	papers_open("000 Lin");
	curves();
	fits();
	skews();
	sharders();
	picks();
	reuse();
	selection();
	return papers_close();
}
