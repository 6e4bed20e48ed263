/* Lin et al.: Algorithm 1 on tasks whose times were worked out by hand. */
#include "papers.h"

#include <string.h>

#include "predict/blame.h"
#include "predict/path.h"

#define OPS_MAX 32

/* Ops of two ranks that do the same, but for the first kernel. */
struct made {
	struct predict_rank ranks[2];
	struct predict_op ops[2 * OPS_MAX];
	struct predict_kernel kernels[4 * OPS_MAX];
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
								     : PREDICT_COLLECTIVE};
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

int main(void)
{
	papers_open("000 Lin");
	golden(PREDICT_PAPER, "as printed");
	golden(PREDICT_EVENT, "events");
	orders();
	blames();
	return papers_close();
}
