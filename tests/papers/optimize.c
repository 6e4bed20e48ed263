/* dPRO's optimiser: its theorems, its algorithm beside the best there is, its tables of memory, and
 * what coarsening, partial replay and symmetry save of a search. */
#include "papers.h"

#include <string.h>

#include "base/cleanup.h"
#include "buckets/buckets.h"
#include "buckets/memory.h"
#include "dfg/dfg.h"
#include "rng.h"

/* t = alpha + beta * bytes */
struct line {
	double alpha, beta;
};

static double line_sync(void *ctx, uint64_t bytes, uint32_t pieces)
{
	const struct line *l = ctx;

	return pieces * (l->alpha + l->beta * ((double)bytes / pieces));
}

/* --- theorems -----------------------------------------------------------------------------------
 */

enum { CASES = 200000 };

static double uniform(struct rng *rng, double most)
{
	return most * rng_uniform(rng);
}

/* When two gradients are reduced: of ops that take p, the first one ready at p[0], each alone or
 * both together, after @q. */
static double both(const double *ready, double q, double t0, double t1)
{
	return fmax(ready[1], fmax(ready[0], q) + t0) + t1;
}

static void theorems(void)
{
	uint32_t n1 = 0, wrong1 = 0, wrong2 = 0, wrong3 = 0, printed = 0;
	struct rng rng;

	rng_seed(&rng, 5, 1);
	for (uint32_t i = 0; i < CASES; i++) {
		struct line l = {uniform(&rng, 2), uniform(&rng, .5)};
		double s[] = {uniform(&rng, 16), uniform(&rng, 16)};
		double t[] = {l.alpha + l.beta * s[0], l.alpha + l.beta * s[1]};
		double t_both = l.alpha + l.beta * (s[0] + s[1]);
		double p[] = {uniform(&rng, 4), uniform(&rng, 4)};
		double q = uniform(&rng, 8), ready[] = {p[0], p[0] + p[1]};
		double fused = fmax(p[0], p[1]) + uniform(&rng, fmin(p[0], p[1]));
		double q0 = fmax(ready[0], q) + t[0];
		double alone = fmax(ready[1], q0) + t[1], together = fmax(ready[1], q) + t_both;
		double ops = fmax(fused, q) + t_both;

		wrong2 += buckets_fuses_tensors(q0, ready[1], t_both, t[1]) != (together < alone) &&
			  fabs(together - alone) > 1e-9;
		printed +=
			buckets_fuses_tensors(q0, ready[0], t_both, t[0]) != (together < alone) &&
			fabs(together - alone) > 1e-9;
		/* nothing is fused; the ops alone: each gradient is ready with both; the gradients
		 * alone; all */
		wrong3 +=
			ops > fmin(together, both((double[]){fused, fused}, q, t[0], t[1])) + 1e-9;
		/* Theorem 1: no backlog, the first reduction is hidden, the gradients apart */
		q = fmin(q, fmin(fused, ready[0]));
		alone = both(ready, q, t[0], t[1]);
		together = both((double[]){fused, fused}, q, t[0], t[1]);
		n1 += t[0] <= p[1];
		wrong1 += t[0] <= p[1] && fabs(together - alone) > 1e-9 &&
			  buckets_fuses_ops(t[0], p[0], p[1], fused) != (together < alone);
	}
	papers_row("BD5 Theorem 1 decides wrongly, of 200,000 less those with a backlog", 0,
		   wrong1 + (n1 < CASES / 10), 0);
	papers_row("BD5 Theorem 2 as in Algorithm 1 decides wrongly, of 200,000", 0, wrong2, 0);
	papers_row("BD5 Theorem 2 as printed decides wrongly, % of 200,000", 27.0,
		   100. * printed / CASES, 15);
	papers_row("BD5 Theorem 3, both worse than one, of 200,000", 0, wrong3, 0);
}

/* --- Algorithm 1, the exact programme -----------------------------------------------------------
 */

#define LAYERS 12

struct golden {
	struct line line;
	double none, pass, best;
};

/* 12 layers of 1 ms and 4 MB; @ms: how long 1 ms is. */
static void golden(const struct golden *g, double ms)
{
	static const char *const names[] = {"none", "one bucket", "Algorithm 1", "best"};
	CLEANUP(buckets_plan_deinit) struct buckets_plan p = {.n = 0};
	struct line line = {g->line.alpha * ms, g->line.beta * ms};
	struct buckets_cost cost = {line_sync, &line, 1};
	double ready[LAYERS], got[4], expected[] = {g->none, g->none, g->pass, g->best};
	uint64_t bytes[LAYERS];
	struct buckets_job job = {LAYERS, ready, bytes, NULL, LAYERS * ms, 0, NULL, NULL};
	char item[128];

	for (int i = 0; i < LAYERS; i++) {
		ready[i] = (i + 1) * ms;
		bytes[i] = 4;
	}
	if (buckets_plan_init(&p, LAYERS))
		abort();
	buckets_none(&job, &p);
	got[0] = buckets_play(&job, &cost, &p, NULL);
	buckets_one(&job, &p);
	got[1] = buckets_play(&job, &cost, &p, NULL);
	got[2] = buckets_dpro(&job, &cost, &p, NULL);
	got[3] = buckets_best(&job, &cost, &p);
	if (g->line.alpha == 2)
		expected[1] = 12 + 2 + 4.8;
	for (int i = 0; i < 4; i++) {
		snprintf(item, sizeof(item), "BD6 alpha %g ms, beta %g ms/MB%s: %s, ms",
			 g->line.alpha, g->line.beta, ms > 1 ? ", counted in ns" : "", names[i]);
		papers_row(item, expected[i], got[i] / ms, 1e-9);
	}
}

/* Of random jobs of 12 layers, beside the best of all plans. */
static void random_jobs(void)
{
	double sum_pass = 0, worst = 0, sum_none = 0, sum_one = 0;
	uint32_t optimal = 0, is_off = 0, is_worse = 0;

	for (uint64_t seed = 0; seed < 400; seed++) {
		CLEANUP(buckets_plan_deinit) struct buckets_plan p = {.n = 0};
		double ready[LAYERS], t = 0, none, one, pass, best, any = INFINITY;
		uint64_t bytes[LAYERS];
		struct buckets_job job = {LAYERS, ready, bytes, NULL, 0, 0, NULL, NULL};
		struct line line;
		struct buckets_cost cost = {line_sync, &line, 1};
		struct rng rng;

		rng_seed(&rng, seed, 6);
		line = (struct line){.1 + uniform(&rng, 2), uniform(&rng, .3)};
		for (int i = 0; i < LAYERS; i++) {
			ready[i] = t += .2 + uniform(&rng, 2);
			bytes[i] = 1 + below(&rng, 12);
		}
		job.end = t;
		if (buckets_plan_init(&p, LAYERS))
			abort();
		for (uint32_t cuts = 0; cuts < 1 << (LAYERS - 1); cuts++) {
			p.n = 0;
			for (uint32_t i = 0, first = 0; i < LAYERS; i++)
				if (i + 1 == LAYERS || cuts >> i & 1) {
					p.list[p.n++] = (struct bucket){first, i + 1, 1, 0};
					first = i + 1;
				}
			any = fmin(any, buckets_play(&job, &cost, &p, NULL));
		}
		buckets_none(&job, &p);
		none = buckets_play(&job, &cost, &p, NULL);
		buckets_one(&job, &p);
		one = buckets_play(&job, &cost, &p, NULL);
		pass = buckets_dpro(&job, &cost, &p, NULL);
		best = buckets_best(&job, &cost, &p);
		is_off += fabs(best - any) > 1e-9;
		is_worse += pass > none + 1e-9;
		optimal += pass < best * (1 + 1e-9);
		worst = fmax(worst, pass / best - 1);
		sum_pass += pass / best - 1;
		sum_none += none / best - 1;
		sum_one += one / best - 1;
	}
	papers_row("BD6 exact programme off brute force, of 400", 0, is_off, 0);
	papers_row("BD6 Algorithm 1 worse than no fusion, of 400", 0, is_worse, 0);
	/* other random jobs than the digest's, which has +5.9, +40.1, 55, +25.9, +28.0 % */
	papers_row("BD6 Algorithm 1 over the best, mean, %", NAN, sum_pass / 4, 0);
	papers_row("BD6 Algorithm 1 over the best, worst, %", NAN, 100 * worst, 0);
	papers_row("BD6 Algorithm 1 is the best, %", NAN, optimal / 4., 0);
	papers_row("BD6 no fusion over the best, mean, %", NAN, sum_none / 4, 0);
	papers_row("BD6 one bucket over the best, mean, %", NAN, sum_one / 4, 0);
}

/* Pieces that go through two stages, one after the other. */
static double two_stages(void *ctx, uint64_t bytes, uint32_t pieces)
{
	const struct line *stages = ctx;
	double x = stages[0].alpha + stages[0].beta * (double)bytes / pieces;
	double y = stages[1].alpha + stages[1].beta * (double)bytes / pieces;

	return x + y + (pieces - 1) * fmax(x, y);
}

static void partition(void)
{
	struct line stages[] = {{5e-5, 1e-10}, {5e-5, 8e-11}};
	struct buckets_cost cost = {two_stages, stages, 64};
	uint32_t pieces;

	buckets_sync(&cost, 64000000, &pieces);
	papers_row("k* of 64 MB through two stages, by grid", 10, pieces, 0);
	papers_row("k* by sqrt(s b_fast / a_slow)", 10.12, sqrt(64e6 * 8e-11 / 5e-5), .05);
}

/* --- memory -------------------------------------------------------------------------------------
 */

static void memory(void)
{
	static const struct {
		const char *item;
		double real, estimated, error;
	} table4[] = {{"none, time", 622.12, 613.87, -1.33},
		      {"recomputation, time", 696.13, 672.60, -3.38},
		      {"accumulation, time", 714.22, 708.57, -.79},
		      {"none, memory", 16.42, 16.97, 3.35},
		      {"recomputation, memory", 7.43, 7.20, -3.10},
		      {"accumulation, memory", 9.96, 10.25, 2.91}};
	CLEANUP(layers_deinit) struct layers l = {.n = 0};
	struct memory_asked asked = {.batch = 1, .state = MEMORY_STATE, .budget = 10.3e9};
	struct memory_way w;
	struct err err;
	char item[128];

	for (size_t i = 0; i < ARRAY_SIZE(table4); i++) {
		snprintf(item, sizeof(item), "BD7 Table 4 %s, %%", table4[i].item);
		papers_row(item, table4[i].error, 100 * (table4[i].estimated / table4[i].real - 1),
			   .4);
	}
	/* such a network here: 110.3 M parameters of 4 bytes, 6.72 GB of outputs at 32 samples */
	if (layers_parse("BERT", "bert forward=1ms backward=2ms params=441.2MB out=6.72GB grad=0B",
			 &l, &err))
		abort();
	if (memory_way(&l, &asked, 1, false, &w))
		abort();
	papers_row("BD7 BERT at 32 samples, GB", 10.25, w.bytes / 1e9, .01);
	asked.batch = 2;
	if (memory_way(&l, &asked, 1, false, &w))
		abort();
	papers_row("BD7 BERT at 64 samples, GB", 16.97, w.bytes / 1e9, .01);
	if (memory_way(&l, &asked, 2, false, &w))
		abort();
	papers_row("BD7 BERT at 64 samples, accumulated, GB", 10.25, w.bytes / 1e9, .01);
	if (memory_fit(&l, &asked, &w))
		abort();
	papers_row("BD7 BERT at 64 samples fits 10.3 GB in parts", 2, w.parts, 0);
}

/* --- the search ---------------------------------------------------------------------------------
 */

#define BLOCKS 24
#define OPS 24     /* of a block's backward pass */
#define TENSORS 12 /* as many of them have gradients: each second one */
#define RANKS 2
#define GRADIENTS (BLOCKS * TENSORS)

/* A transformer: its blocks are alike. */
struct model {
	double op_ns[BLOCKS * OPS];
	uint64_t bytes[GRADIENTS];
	struct line hop; /* of one SEND */
};

static uint64_t op_evaluations;

/* The ring: 2(N - 1) steps, a SEND of each rank on its link, which a RECV ends. @before: NULL, or
 * the ops that each rank comes from. Fills @last: each rank's last RECV. */
static void add_ring(struct dfg *g, const struct model *m, uint64_t bytes, const uint32_t *link,
		     const uint32_t *before, const uint32_t *ready, uint32_t *last)
{
	uint32_t recv[RANKS], next[RANKS], send;

	for (int step = 0; step < 2 * (RANKS - 1); step++) {
		for (int r = 0; r < RANKS; r++) {
			if (dfg_add_op(g, link[r],
				       m->hop.alpha + m->hop.beta * ((double)bytes / RANKS), 0,
				       &send) ||
			    dfg_add_op(g, DFG_PARALLEL, 0, 0, &next[(r + 1) % RANKS]) ||
			    dfg_add_edge(g, send, next[(r + 1) % RANKS], 0))
				abort();
			if (step && dfg_add_edge(g, recv[r], send, 0))
				abort();
			for (int k = 0; step == 0 && k < RANKS; k++)
				if ((before && dfg_add_edge(g, before[k], send, 0)) ||
				    (ready && dfg_add_edge(g, ready[k], send, 0)))
					abort();
		}
		memcpy(recv, next, sizeof(recv));
	}
	memcpy(last, recv, sizeof(recv));
}

static void play(struct dfg *g)
{
	uint32_t op;

	if (dfg_play(g, DFG_EVENT, &op))
		abort();
	op_evaluations += dfg_ops(g);
}

/* All ranks, all ops, all hops. Return: when the bucket that ends with gradient @until is done. */
static double full_replay(const struct model *m, const struct buckets_plan *p, uint32_t until)
{
	struct dfg *g = dfg_new();
	uint32_t gpu[RANKS], link[RANKS], last[RANKS], ready[GRADIENTS][RANKS], op = 0;
	double end = 0;

	for (int r = 0; r < RANKS; r++)
		if (dfg_add_device(g, &gpu[r]) || dfg_add_device(g, &link[r]))
			abort();
	for (int r = 0; r < RANKS; r++)
		for (uint32_t i = 0, before = DFG_NONE; i < BLOCKS * OPS; i++, before = op) {
			if (dfg_add_op(g, gpu[r], m->op_ns[i], 0, &op) ||
			    (before != DFG_NONE && dfg_add_edge(g, before, op, 0)))
				abort();
			if (i % 2)
				ready[i / 2][r] = op;
		}
	for (uint32_t k = 0; k < p->n; k++) {
		uint64_t bytes = 0;

		for (uint32_t i = p->list[k].first; i < p->list[k].end; i++)
			bytes += m->bytes[i];
		add_ring(g, m, bytes, link, k ? last : NULL, ready[p->list[k].end - 1], last);
		if (p->list[k].end == until + 1)
			op = last[0];
	}
	play(g);
	end = dfg_op(g, op)->end;
	dfg_free(g);
	return end;
}

/* Each decision by two replays of all. */
static void full_search(const struct model *m, struct buckets_plan *p)
{
	CLEANUP(buckets_plan_deinit) struct buckets_plan other = {.n = 0};

	if (buckets_plan_init(&other, GRADIENTS))
		abort();
	for (uint32_t i = 0; i < GRADIENTS; i++)
		p->list[i] = (struct bucket){i, i + 1, 1, 0};
	p->n = GRADIENTS;
	for (uint32_t i = 1, k = 0; i < GRADIENTS; i++) { /* bucket k ends before gradient i */
		double alone, together;

		other.n = 0;
		for (uint32_t j = 0; j < p->n; j++)
			if (j == k + 1)
				other.list[other.n - 1].end = i + 1;
			else
				other.list[other.n++] = p->list[j];
		alone = full_replay(m, p, i);
		together = full_replay(m, &other, i);
		if (together < alone) {
			memcpy(p->list, other.list, other.n * sizeof(*p->list));
			p->n = other.n;
		} else {
			k++;
		}
	}
}

/* Sizes that were asked for. */
struct asked {
	const struct model *model;
	uint64_t bytes[4096];
	double ns[4096];
	uint32_t n;
};

/* Partial replay: the ring alone, once a size, whichever block asks. */
static double partial_replay(void *ctx, uint64_t bytes, uint32_t pieces)
{
	struct asked *a = ctx;
	uint32_t link[RANKS], last[RANKS];
	struct dfg *g;

	(void)pieces;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->bytes[i] == bytes)
			return a->ns[i];
	g = dfg_new();
	for (int r = 0; r < RANKS; r++)
		if (dfg_add_device(g, &link[r]))
			abort();
	add_ring(g, a->model, bytes, link, NULL, NULL, last);
	play(g);
	a->bytes[a->n] = bytes;
	a->ns[a->n] = dfg_end(g, NULL);
	dfg_free(g);
	return a->ns[a->n++];
}

static void search(void)
{
	static struct asked asked;
	static struct model m;
	static const struct {
		const char *name;
		double kib_ns; /* of a KiB on a link */
	} nets[] = {{"slow network", 330}, {"fast network", 20}};
	CLEANUP(buckets_plan_deinit) struct buckets_plan full = {.n = 0};
	CLEANUP(buckets_plan_deinit) struct buckets_plan quick = {.n = 0};
	double ready[GRADIENTS];
	struct buckets_job job = {GRADIENTS, ready, m.bytes, NULL, 0, 0, NULL, NULL};
	struct rng rng;
	char item[128];

	rng_seed(&rng, 24, 1);
	for (uint32_t i = 0; i < BLOCKS * OPS; i++)
		m.op_ns[i] = i < OPS ? 20e3 + uniform(&rng, 100e3) : m.op_ns[i - OPS];
	for (uint32_t i = 0; i < GRADIENTS; i++)
		m.bytes[i] = i < TENSORS
				     ? (i % 2 ? 1 + below(&rng, 16) : 512 + below(&rng, 4096)) << 10
				     : m.bytes[i - TENSORS];
	if (buckets_plan_init(&full, GRADIENTS) || buckets_plan_init(&quick, GRADIENTS))
		abort();
	/* coarsened: the ops without a gradient belong to the next one that has one; of the
	 * workers, which are alike, one */
	for (uint32_t i = 0; i < GRADIENTS; i++)
		job.end = ready[i] = job.end + m.op_ns[2 * i] + m.op_ns[2 * i + 1];
	for (size_t i = 0; i < ARRAY_SIZE(nets); i++) {
		struct buckets_cost cost = {partial_replay, &asked, 1};
		uint64_t of_full, of_quick;
		double end, best;

		m.hop = (struct line){30e3, nets[i].kib_ns / 1024};
		op_evaluations = 0;
		full_search(&m, &full);
		of_full = op_evaluations;
		asked = (struct asked){.model = &m};
		op_evaluations = 0;
		end = buckets_dpro(&job, &cost, &quick, NULL);
		of_quick = op_evaluations + GRADIENTS;
		snprintf(item, sizeof(item), "BD9 the same plan of a 24-block transformer, %s",
			 nets[i].name);
		papers_holds(item, full.n == quick.n && memcmp(full.list, quick.list,
							       full.n * sizeof(*full.list)) == 0);
		snprintf(item, sizeof(item), "BD9 op evaluations, full over quick, >= 10, %s",
			 nets[i].name);
		papers_row(item, NAN, (double)of_full / (double)of_quick, 0);
		papers_holds(item, of_full >= 10 * of_quick);
		/* one block decided alone, the others like it */
		job.n = TENSORS;
		buckets_dpro(&job, &cost, &quick, NULL);
		job.n = GRADIENTS;
		for (uint32_t k = quick.n; k < quick.n * BLOCKS; k++) {
			quick.list[k] = quick.list[k - quick.n];
			quick.list[k].first += TENSORS;
			quick.list[k].end += TENSORS;
		}
		quick.n *= BLOCKS;
		snprintf(item, sizeof(item), "BD9 a block decided alone for all: longer by, %%, %s",
			 nets[i].name);
		papers_row(item, NAN, 100 * (buckets_play(&job, &cost, &quick, NULL) / end - 1), 0);
		best = buckets_best(&job, &cost, &quick);
		snprintf(item, sizeof(item), "BD9 Algorithm 1 over the best there, %%, %s",
			 nets[i].name);
		papers_row(item, NAN, 100 * (end / best - 1), 0);
	}
}

int main(void)
{
	/* The digest's 17.0 ms compares equal numbers, and rounding decides: counted in whole ns it
	 * is 16.8. */
	static const struct golden goldens[] = {{{1, .2}, 22.6, 17.0, 16.2},
						{{1, .3}, 27.4, 20.6, 19.8},
						{{2, .1}, 29.8, 18.8, 15.6}};
	static const struct golden whole = {{1, .2}, 22.6, 16.8, 16.2};

	papers_open("003 dPRO");
	theorems();
	for (size_t i = 0; i < ARRAY_SIZE(goldens); i++)
		golden(&goldens[i], 1);
	golden(&whole, 1e6);
	random_jobs();
	partition();
	memory();
	search();
	return papers_close();
}
