/* See optimize.h. */
#include "nbox/optimize/optimize.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "nbox/optimize/fuse.h"

#define MIB (UINT64_C(1) << 20)
#define MS 1e6
/* The model is asked for so many sizes exactly; single steps have a best plan of their own looked
 * for until so many pairs of gradients were looked at. */
#define SIZES_EXACT 4096
#define STEPS_TRIED 32
#define SEARCH_WORK UINT64_C(10000000)

/* What is looked at. */
struct look {
	const struct optimize_asked *asked;
	struct optimize_cost cost;
	struct buckets_cost of_bucket; /* by @cost */
	struct buckets_cost in_search; /* the same, of many sizes nearly */
	struct optimized *o;
	struct ask *ask;              /* owned */
	struct record before;         /* owned: the run on the cluster that is asked for */
	struct rows_graph rows;       /* owned; of it */
	struct timeline_terms *terms; /* owned; by those rows */
	double *lags;                 /* owned; the same */
	struct buckets_plan p;        /* owned; the one that is looked at */
};

static void look_deinit(struct look *l)
{
	optimize_cost_deinit(&l->cost);
	ask_close(l->ask);
	rows_graph_deinit(&l->rows);
	free(l->terms);
	free(l->lags);
	record_deinit(&l->before);
	buckets_plan_deinit(&l->p);
}

/* --- the record ------------------------------------------------------------------------------- */

/* The last rank's. */
static int keep_lag(void *ctx, const struct replay_lags *told)
{
	double *lag = (double *)ctx + told->row;

	for (uint32_t i = 0; told->ns && !told->is_over && i < told->n; i++)
		*lag = fmax(*lag, told->ns[i]);
	return 0;
}

static int find_buckets(struct look *l, struct err *err)
{
	const struct recorded *run = l->asked->recorded;
	const char *const dirs[] = {run->models, NULL};
	struct replay_told told = {.n_lost = 0};
	int r = retime_check(l->asked->config, err);

	l->terms = calloc((size_t)run->graph.n + 1, sizeof(*l->terms));
	l->lags = calloc((size_t)run->graph.n + 1, sizeof(*l->lags));
	if (!l->terms || !l->lags)
		return err_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = replay_play(&(struct replay){.graph = &run->graph,
						 .config = l->asked->config,
						 .dirs = dirs,
						 .sizes = &run->worlds.sizes,
						 .declared = &run->declared,
						 .terms = l->terms,
						 .sink = {.lags = keep_lag, .ctx = l->lags}},
				&l->before, &told, err);
	if (r == 0 && told.n_lost)
		return err_set(err, EINVAL,
			       "%llu rows of the record have no place in that re-timing: there is "
			       "no step to plan for",
			       (unsigned long long)told.n_lost);
	if (r == 0)
		r = rows_graph_make(&l->before, &l->rows, err);
	if (r == 0)
		r = found_make(&(struct found_rows){&l->rows, l->terms, l->lags}, &l->o->found,
			       err);
	return r;
}

/* The step with the buckets of @p, re-timed; 0: a rank waits for an all-reduce before all of its
 * bucket is ready. */
static int retime_plan(const struct look *l, const struct buckets_plan *p, double *ret_ns,
		       struct err *err)
{
	CLEANUP(recorded_deinit) struct recorded run = {.n_others = 0};
	CLEANUP(retimed_deinit) struct retimed t = {.rec = {.n_ops = 0}};
	CLEANUP(rows_graph_deinit) struct rows_graph rows = {.n = 0};
	int r = recorded_load_all(&l->asked->run, 1, &run, err);

	run.declared = l->asked->recorded->declared;
	if (r == 0 && fuse_buckets(&run.run.rec, &run.graph, &l->o->found, p) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = retime(&run, l->asked->config, &t, err);
	if (r == 0 && t.told.n_lost) {
		*ret_ns = 0;
		return 0;
	}
	if (r == 0)
		r = rows_graph_make(&t.rec, &rows, err);
	if (r == 0)
		*ret_ns = found_step_ns(&l->o->found, &rows);
	return r;
}

/* --- what an op takes ------------------------------------------------------------------------- */

static const struct record_comm *find_comm(const struct look *l)
{
	return record_find_comm(&l->before, l->o->found.comms->comm);
}

static int open_cost(struct look *l, struct err *err)
{
	const struct optimize_asked *a = l->asked;
	uint32_t most_pieces = a->passes & PASS_PIECES ? OPTIMIZE_PIECES : 1;
	uint64_t n = l->o->gradients.job.n;
	int r = 0;

	l->cost = (struct optimize_cost){.elem_bytes = 1,
					 .alpha_ns = a->alpha_ns,
					 .bytes_per_ns = a->bytes_per_ns};
	if (a->bytes_per_ns == 0) {
		r = ask_open(a->config, a->models, &l->ask, err);
		l->cost.ask = l->ask;
		l->cost.elem_bytes = 4;
		l->cost.of = (struct membership){.n_ranks = a->config->world, .stride = 1};
	}
	if (r == 0 && a->run && a->bytes_per_ns == 0) {
		const struct record_comm *c = find_comm(l);

		l->cost.elem_bytes = l->o->found.elem_bytes;
		l->cost.of = (struct membership){c->n_ranks, c->base, c->stride,
						 c->n_members ? c->members : NULL};
	}
	l->of_bucket = optimize_cost(&l->cost, most_pieces, false);
	l->in_search = optimize_cost(&l->cost, most_pieces, n * (n + 1) / 2 > SIZES_EXACT);
	return r;
}

/* --- plans ------------------------------------------------------------------------------------ */

/* By the recurrence; NAN: the model has no answer, or no memory. */
static double step_ns(const struct look *l, const struct buckets_plan *p)
{
	const struct found *f = &l->o->found;
	CLEANUP(freep) double *times = calloc((size_t)f->n_timed + 1, sizeof(*times));

	if (!l->asked->run)
		return buckets_play(&l->o->gradients.job, &l->of_bucket, p, NULL);
	for (uint32_t i = 0; times && i < f->n_timed; i++) {
		CLEANUP(gradients_deinit) struct gradients g = {.ready = NULL};

		if (gradients_of_record(f, &f->times[i], l->asked->layers, &g, NULL) < 0)
			return NAN;
		times[i] = buckets_play(&g.job, &l->of_bucket, p, NULL);
		if (isnan(times[i]))
			return NAN;
	}
	return times ? found_median(times, f->n_timed) : NAN;
}

/* A row of the plan l->p, which begins anew. Return: 0; negative errno with the sentence: the model
 * has no answer. */
static int add_row(struct look *l, const char *name, struct err *err)
{
	struct optimize_row *row = &l->o->rows[l->o->n_rows++];

	*row = (struct optimize_row){.plan = l->p};
	row->ns = step_ns(l, &row->plan);
	snprintf(row->name, sizeof(row->name), "%s", name);
	if (buckets_plan_init(&l->p, l->o->gradients.job.n) == 0 && !isnan(row->ns))
		return 0;
	return l->cost.err.text[0] ? err_set(err, EINVAL, "%s", l->cost.err.text)
				   : err_set(err, ENOMEM, "out of memory");
}

static void plan_as_recorded(const struct look *l, struct buckets_plan *p)
{
	const struct gradients *g = &l->o->gradients;

	buckets_none(&g->job, p);
	p->n = 0;
	for (uint32_t i = 0; i < g->job.n; i++) {
		if (i == 0 || g->recorded[i] != g->recorded[i - 1])
			p->list[p->n++] = (struct bucket){i, i, 1, 0};
		p->list[p->n - 1].end = i + 1;
	}
}

/* What frameworks do. */
static int add_frameworks(struct look *l, struct err *err)
{
	const struct buckets_job *job = &l->o->gradients.job;
	struct optimized *o = l->o;
	char name[96], size[32];
	double cycle = 0;
	uint64_t most = 0;
	int r;

	if (o->gradients.recorded) {
		plan_as_recorded(l, &l->p);
		r = add_row(l, "as recorded", err);
		if (r < 0)
			return r;
	}
	if (!o->gradients.recorded || job->n != o->found.n) {
		buckets_none(job, &l->p);
		r = add_row(l, "no fusion", err);
		if (r < 0)
			return r;
	}
	buckets_one(job, &l->p);
	r = add_row(l, "one bucket", err);
	if (r < 0)
		return r;
	buckets_ddp(job, MIB, 25 * MIB, &l->p);
	o->fixed = o->n_rows;
	r = add_row(l, "DDP: 25 MiB, the first 1 MiB", err);
	buckets_horovod(job, 5 * MS, 64 * MIB, &l->p);
	r = r < 0 ? r : add_row(l, "Horovod: 5 ms, 64 MiB", err);
	buckets_horovod_best(job, &l->in_search, MS, &l->p, &cycle, &most);
	snprintf(name, sizeof(name), "Horovod, tuned: %g ms, %s", cycle / MS,
		 units_print_bytes(most, size, sizeof(size)));
	r = r < 0 ? r : add_row(l, name, err);
	buckets_byteps(job, 4096000, &l->p);
	r = r < 0 ? r : add_row(l, "BytePS: pieces of 4096000 B", err);
	buckets_ddp_best(job, &l->in_search, true, &l->p, &o->first_cap);
	snprintf(name, sizeof(name), "DDP, tuned: 25 MiB, the first %s",
		 units_print_bytes(o->first_cap, size, sizeof(size)));
	o->first = o->n_rows;
	r = r < 0 ? r : add_row(l, name, err);
	buckets_ddp_best(job, &l->in_search, false, &l->p, &o->cap);
	snprintf(name, sizeof(name), "DDP, tuned: bucket_cap_mb=%g", (double)o->cap / MIB);
	o->ddp = o->n_rows;
	return r < 0 ? r : add_row(l, name, err);
}

/* Fills l->p: the best plan of the medians, or of one of the steps, whichever all steps together
 * are best with. */
static void find_best(struct look *l, const struct buckets_job *job)
{
	const struct found *f = &l->o->found;
	uint64_t work = (uint64_t)job->n * job->n;
	uint32_t n = (uint32_t)(SEARCH_WORK / (work + 1));
	double best;

	buckets_best(job, &l->in_search, &l->p);
	best = step_ns(l, &l->p);
	n = n < STEPS_TRIED ? n : STEPS_TRIED;
	n = n < f->n_timed ? n : f->n_timed;
	for (uint32_t i = 0; i < n; i++) {
		const struct found_times *t = &f->times[(uint64_t)i * f->n_timed / n];
		CLEANUP(gradients_deinit) struct gradients g = {.ready = NULL};
		CLEANUP(buckets_plan_deinit) struct buckets_plan p = {.n = 0};
		double ns;

		if (gradients_of_record(f, t, l->asked->layers, &g, NULL) < 0 ||
		    buckets_plan_init(&p, job->n) < 0)
			return;
		buckets_best(&g.job, &l->in_search, &p);
		ns = step_ns(l, &p);
		if (ns < best) {
			struct buckets_plan was = l->p;

			l->p = p;
			p = was;
			best = ns;
		}
	}
}

static int add_plans(struct look *l, struct err *err)
{
	struct buckets_job job = l->o->gradients.job;
	int r;

	if (!(l->asked->passes & PASS_OPS))
		l->o->gradients.job.fused = job.fused = NULL;
	l->o->log = calloc((size_t)job.n + 1, sizeof(*l->o->log));
	if (!l->o->log)
		return err_set(err, ENOMEM, "out of memory");
	buckets_dpro(&job, &l->of_bucket, &l->p, l->o->log);
	l->o->planned = l->o->n_rows;
	r = add_row(l, "Algorithm 1 (dPRO)", err);
	if (r < 0)
		return r;
	find_best(l, &job);
	if (!l->asked->is_dpro)
		l->o->planned = l->o->n_rows;
	return add_row(l, "best", err);
}

/* Why a record cannot be played with those buckets; NULL: it can. */
static const char *why_not(const struct buckets_plan *p)
{
	for (uint32_t k = 0; k < p->n; k++)
		if (p->list[k].from > 0 || p->list[k].pieces > 1)
			return p->list[k].from > 0 ? "it waits for cycles" : "its ops are pieces";
	return NULL;
}

static bool is_same(const struct buckets_plan *a, const struct buckets_plan *b)
{
	for (uint32_t k = 0; k < a->n && a->n == b->n; k++)
		if (a->list[k].end != b->list[k].end)
			return false;
	return a->n == b->n;
}

static bool can_retime(const struct look *l)
{
	return l->asked->run && !l->asked->layers && l->asked->bytes_per_ns == 0;
}

/* The plan is the row of the least step; one in pieces, or of Algorithm 1, was asked for. */
static int choose(struct optimized *o, bool is_dpro, struct err *err)
{
	const struct optimize_row *plan = &o->rows[o->planned];

	if (why_not(&plan->plan) || (is_dpro && !plan->why_not))
		return 0;
	if (is_dpro)
		return err_set(err, EINVAL,
			       "a rank waits for an all-reduce before all of its bucket is ready: "
			       "these gradients cannot be reduced together");
	for (const struct optimize_row *row = o->rows; row < o->rows + o->n_rows; row++)
		if (!why_not(&row->plan) && !row->why_not &&
		    (plan->why_not || optimize_step_ns(row) < optimize_step_ns(plan)))
			plan = row;
	o->planned = (uint32_t)(plan - o->rows);
	return 0;
}

/* Each row that can be, where gradients are whole recorded buckets, and ops take what they take
 * there. */
static int retime_rows(struct look *l, struct err *err)
{
	struct optimized *o = l->o;
	int r = 0;

	for (uint32_t i = 0; can_retime(l) && i < o->n_rows && r == 0; i++) {
		struct optimize_row *row = &o->rows[i], *same = o->rows;

		row->why_not = why_not(&row->plan);
		if (row->why_not)
			continue;
		while (same < row && !(same->retimed_ns > 0 && is_same(&same->plan, &row->plan)))
			same++;
		if (same < row)
			row->retimed_ns = same->retimed_ns;
		else
			r = retime_plan(l, &row->plan, &row->retimed_ns, err);
		if (row->retimed_ns == 0)
			row->why_not = "a rank needs an op earlier";
	}
	return r < 0 ? r : choose(o, l->asked->is_dpro, err);
}

/* --- memory ----------------------------------------------------------------------------------- */

static int take_layers(struct look *l, struct err *err)
{
	const struct layers *layers = l->asked->layers;
	struct memory_asked asked = {1, MEMORY_STATE, l->asked->budget};
	struct memory_way *w = &l->o->way;
	double plain = 0, part = 1, recomputed;
	int r;

	if (!(l->asked->passes & PASS_MEMORY) || isinf(l->asked->budget))
		return gradients_of_layers(layers, 1, 1, 0, &l->o->gradients, err);
	r = memory_fit(layers, &asked, w);
	if (r == -ENOSPC)
		return err_set(err, ENOSPC,
			       "no way fits: recomputed, in %u parts, it still needs %.2f GB",
			       w->parts, w->bytes / 1e9);
	if (r < 0)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < layers->n; i++)
		plain += layers->list[i].forward_ns + layers->list[i].backward_ns;
	for (uint32_t n = 1; n < w->parts; n *= 2)
		part *= MEMORY_HALF_NS;
	recomputed = w->ns / (part * w->parts) - plain;
	return gradients_of_layers(layers, w->parts, part, recomputed, &l->o->gradients, err);
}

int optimize(const struct optimize_asked *asked, struct optimized *ret, struct err *err)
{
	CLEANUP(optimized_deinit) struct optimized o = {.n_rows = 0};
	CLEANUP(look_deinit) struct look l = {.asked = asked, .o = &o};
	int r;

	if (asked->run) {
		r = find_buckets(&l, err);
		r = r < 0 ? r
			  : gradients_of_record(&o.found, &o.found.times[o.found.n_timed],
						asked->layers, &o.gradients, err);
	} else {
		r = take_layers(&l, err);
	}
	if (r == 0)
		r = open_cost(&l, err);
	if (r == 0 && buckets_plan_init(&l.p, o.gradients.job.n) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	if (r == 0)
		r = add_frameworks(&l, err);
	if (r == 0)
		r = add_plans(&l, err);
	if (r == 0)
		r = retime_rows(&l, err);
	if (r < 0)
		return r;
	o.n_asked = l.cost.n_asked;
	*ret = o;
	o = (struct optimized){.n_rows = 0};
	return 0;
}

void optimized_deinit(struct optimized *o)
{
	found_deinit(&o->found);
	gradients_deinit(&o->gradients);
	for (uint32_t i = 0; i < o->n_rows; i++)
		buckets_plan_deinit(&o->rows[i].plan);
	free(o->log);
	o->log = NULL;
}
