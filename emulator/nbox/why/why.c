/* See why.h. */
#include "nbox/why/why.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "nbox/report/steps.h"
#include "nbox/why/path.h"
#include "nbox/why/slack.h"
#include "nbox/why/stages.h"
#include "nbox/why/won.h"

/* What is looked at. */
struct look {
	const struct recorded *r;
	struct config *config;        /* owned */
	struct record rec;            /* owned: re-timed */
	struct timeline_terms *terms; /* owned */
	struct replay played;         /* made @rec and @terms */
	const char *dirs[2];
	bool *is_near; /* owned; rows of the iteration; NULL: lags are not known */
	struct lags lags;
	struct chains chains;
};

static void look_deinit(struct look *l)
{
	config_free(l->config);
	record_deinit(&l->rec);
	chains_deinit(&l->chains);
	lags_deinit(&l->lags);
	free(l->is_near);
	free(l->terms);
}

/* --- communicators ---------------------------------------------------------------------------- */

static void name_group(struct why_group *g, const struct config *c)
{
	char axes[64];

	members_axes_name(c->layouts, c->n_layouts, g->axes, axes, sizeof(axes));
	if (g->n_ranks == c->world)
		snprintf(g->name, sizeof(g->name), axes[0] ? "%s (world)" : "world%s", axes);
	else if (axes[0])
		snprintf(g->name, sizeof(g->name), "%s (%u ranks)", axes, g->n_ranks);
	else
		snprintf(g->name, sizeof(g->name), "communicators of %u rank%s", g->n_ranks,
			 g->n_ranks == 1 ? "" : "s");
	plain_text(g->name);
}

static int find_groups(const struct look *l, struct why *w)
{
	uint32_t n_has = 0;

	for (uint64_t i = 0; i < l->rec.n_comms; i++)
		n_has = l->rec.comms[i].number >= n_has ? l->rec.comms[i].number + 1 : n_has;
	w->groups = calloc(l->rec.n_comms + 1, sizeof(*w->groups));
	for (uint64_t i = 0; w->groups && i < l->rec.n_comms; i++) {
		const struct record_comm *c = &l->rec.comms[i];
		struct why_group *g = w->groups;

		while (g < w->groups + w->n_groups &&
		       (g->n_ranks != c->n_ranks || g->axes != c->axes))
			g++;
		if (g == w->groups + w->n_groups) {
			*g = (struct why_group){.n_ranks = c->n_ranks,
						.axes = c->axes,
						.has = calloc(n_has, sizeof(*g->has)),
						.n_has = n_has};
			if (!g->has)
				return -ENOMEM;
			w->n_groups++;
			name_group(g, l->config);
		}
		g->has[c->number] = true;
	}
	return w->groups ? 0 : -ENOMEM;
}

/* --- iterations ------------------------------------------------------------------------------- */

static int by_order(const void *pa, const void *pb)
{
	const struct record_op *const *a = pa, *const *b = pb;

	return steps_order(*a, *b);
}

/* The ops of the rank, by virtual arrival. Return: how many. */
static uint64_t take_ops(const struct look *l, uint32_t rank, const struct record_op **ops)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < l->rec.n_ops; i++)
		if (l->rec.ops[i].world_rank == rank)
			ops[n++] = &l->rec.ops[i];
	qsort(ops, n, sizeof(*ops), by_order);
	return n;
}

/* Timed iterations of a rank, or, where it has none, from its first op to its last. */
struct timed {
	struct won_step *of_ops;     /* owned; by rows of @rec */
	struct slack_step *of_chain; /* owned; the same, by rows of the rank's chain */
	uint64_t n;
	bool has_steps;
	char how[256];
};

static void timed_deinit(struct timed *t)
{
	free(t->of_ops);
	free(t->of_chain);
}

static void add_step(struct timed *t, const struct look *l, const struct record_op *from,
		     const struct record_op *to)
{
	t->of_ops[t->n++] =
		(struct won_step){(uint64_t)(from - l->rec.ops), (uint64_t)(to - l->rec.ops)};
}

static int find_steps(const struct look *l, uint32_t rank, struct timed *ret)
{
	CLEANUP(freep) const struct record_op **ops = calloc(l->rec.n_ops + 1, sizeof(*ops));
	CLEANUP(freep) struct record_op *rows = calloc(l->rec.n_ops + 1, sizeof(*rows));
	CLEANUP(steps_deinit) struct steps s = {0};
	uint64_t n;
	int r;

	ret->of_ops = calloc(l->rec.n_ops + 1, sizeof(*ret->of_ops));
	if (!ops || !rows || !ret->of_ops)
		return -ENOMEM;
	n = take_ops(l, rank, ops);
	for (uint64_t i = 0; i < n; i++)
		rows[i] = *ops[i];
	r = steps_find(&l->rec, rows, n, &s);
	for (uint64_t i = s.n_warm_up; r == 0 && i < s.n; i++)
		if (s.list[i].is_timed)
			add_step(ret, l, ops[s.list[i].first], ops[s.list[i].end]);
	ret->has_steps = ret->n > 0;
	if (r == 0 && !ret->has_steps && n > 1)
		add_step(ret, l, ops[0], ops[n - 1]);
	snprintf(ret->how, sizeof(ret->how), "%s", s.how);
	return r;
}

/* The same by rows of the rank's chain. */
static int find_rows(const struct look *l, const struct chain *c, struct timed *t)
{
	CLEANUP(freep) uint32_t *row_of = calloc(l->rec.n_ops + 1, sizeof(*row_of));

	t->of_chain = calloc(t->n + 1, sizeof(*t->of_chain));
	if (!row_of || !t->of_chain)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++)
		if (c->rows[i].op)
			row_of[c->rows[i].op - l->rec.ops] = i;
	for (uint64_t i = 0; i < t->n; i++)
		t->of_chain[i] =
			(struct slack_step){row_of[t->of_ops[i].from], row_of[t->of_ops[i].to]};
	return 0;
}

/* From when all had come to its first op until all have come to the next one's. */
static double step_ns(const struct chain *c, const struct slack_step *step)
{
	return path_begin(c, step->to) - path_begin(c, step->from);
}

/* The iteration that is nearest to the median. */
static const struct slack_step *typical(const struct chain *c, const struct timed *t, double median)
{
	const struct slack_step *best = t->of_chain;

	for (uint64_t i = 1; i < t->n; i++)
		if (fabs(step_ns(c, &t->of_chain[i]) - median) < fabs(step_ns(c, best) - median))
			best = &t->of_chain[i];
	return best;
}

/* --- whom ranks waited for -------------------------------------------------------------------- */

static int by_late(const void *pa, const void *pb)
{
	const struct why_late *a = pa, *b = pb;

	return (a->ns < b->ns) - (a->ns > b->ns);
}

static int find_late(const struct look *l, const struct timed *t, struct why *w)
{
	uint64_t from = l->rec.ops[t->of_ops[0].from].virtual_arrive_ns;
	uint64_t to = l->rec.ops[t->of_ops[t->n - 1].to].virtual_arrive_ns;
	CLEANUP(freep)
	struct why_late *all = calloc((size_t)l->rec.header.world_size + 1, sizeof(*all));
	uint32_t world = l->rec.header.world_size;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < world; i++)
		all[i].rank = i;
	for (uint64_t i = 0; i < l->rec.n_ops; i++) {
		const struct record_op *op = &l->rec.ops[i];

		if (op->waited_ns <= 0 || op->waited_for >= world || op->virtual_arrive_ns < from ||
		    op->virtual_arrive_ns >= to)
			continue;
		all[op->waited_for].ns += op->waited_ns / (double)t->n / (double)l->config->n_real;
		all[op->waited_for].n++;
	}
	qsort(all, world, sizeof(*all), by_late);
	while (w->n_late < world && all[w->n_late].n > 0)
		w->n_late++;
	w->late = steal_ptr(all);
	return 0;
}

/* --- virtual ranks that ops waited for -------------------------------------------------------- */

static bool is_real(const struct config *c, uint32_t rank)
{
	for (size_t i = 0; i < c->n_real; i++)
		if (c->real[i] == rank)
			return true;
	return false;
}

/* Rows of @c that any rank may have come to in from_ns to to_ns, and what they wait for. */
static void mark_rows(const struct chain *c, double from_ns, double to_ns, bool *is_near)
{
	const struct rows_graph *g = c->graph;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct rows_row *row = c->rows[i].row;
		uint32_t before = c->rows[i].before;

		if (c->rows[i].end < from_ns || c->rows[i].at > to_ns)
			continue;
		is_near[row - g->rows] = true;
		for (uint32_t k = 0; k < row->n_deps; k++)
			if (g->deps[row->first_dep + k].row != ROWS_NONE)
				is_near[g->deps[row->first_dep + k].row] = true;
		if (row->host != ROWS_NONE)
			is_near[row->host] = true;
		if (row->latest.row != ROWS_NONE)
			is_near[row->latest.row] = true;
		if (before != CHAIN_NONE)
			is_near[c->rows[before].row - g->rows] = true;
	}
}

/* Fills the lags where an op waited for a virtual rank in from_ns to to_ns. A rank may be an
 * iteration behind its template. Return: 0; negative errno with the sentence. */
static int find_lags(struct look *l, double from_ns, double to_ns, struct err *err)
{
	bool is_needed = false;

	for (uint64_t i = 0; i < l->rec.n_ops && !is_needed; i++)
		is_needed = l->rec.ops[i].waited_ns > 0 &&
			    !is_real(l->config, l->rec.ops[i].waited_for);
	if (!is_needed)
		return 0;
	l->is_near = calloc((size_t)l->r->graph.n + 1, sizeof(*l->is_near));
	if (!l->is_near)
		return -ENOMEM;
	for (size_t i = 0; i < l->config->n_real; i++) {
		const struct chains_rank *of = chains_of(&l->chains, l->config->real[i]);

		if (!of)
			return -ENOMEM;
		mark_rows(&of->chain, 2 * from_ns - to_ns, 2 * to_ns - from_ns, l->is_near);
	}
	l->chains.from.lags = &l->lags;
	return lags_play(&l->played, l->is_near, &l->lags, err);
}

/* --- all -------------------------------------------------------------------------------------- */

static int play(struct look *l, const struct why_config *from, struct why *w, struct err *err)
{
	int r = from->make(from->ctx, &l->config, err);

	if (r == 0)
		r = recorded_finish(l->r, l->config, err);
	if (r < 0)
		return r;
	l->terms = calloc((size_t)l->r->graph.n + 1, sizeof(*l->terms));
	if (!l->terms)
		return err_set(err, ENOMEM, "out of memory");
	l->dirs[0] = l->r->models;
	l->played = (struct replay){.graph = &l->r->graph,
				    .config = l->config,
				    .dirs = l->dirs,
				    .sizes = &l->r->worlds.sizes,
				    .declared = &l->r->declared,
				    .terms = l->terms};
	r = replay_play(&l->played, &l->rec, &w->told, err);
	if (r == 0 && l->rec.n_ops == 0)
		r = err_set(err, ENODATA, "%s: no op is left to look at",
			    w->told.ended[0] ? w->told.ended
					     : "the record's rows wait for each other");
	l->chains = (struct chains){.from = {&l->r->graph, &l->rec, l->terms, NULL},
				    .config = l->config};
	w->rank = UINT32_MAX;
	for (uint64_t i = 0; i < l->rec.n_ops; i++)
		w->rank = l->rec.ops[i].world_rank < w->rank ? l->rec.ops[i].world_rank : w->rank;
	return r;
}

/* Of all real ranks. */
static int find_slacks(struct look *l, struct why *w)
{
	int r = 0;

	for (size_t i = 0; i < l->config->n_real && r == 0; i++) {
		const struct chains_rank *of = chains_of(&l->chains, l->config->real[i]);
		CLEANUP(timed_deinit) struct timed t = {.n = 0};

		r = of ? find_steps(l, of->rank, &t) : -ENOMEM;
		if (r == 0)
			r = find_rows(l, &of->chain, &t);
		if (r == 0 && t.n)
			r = slack_find(of, t.of_chain, t.n, w);
	}
	return r;
}

/* Where no row was lost. */
static int find_pipeline(const struct look *l, struct why *w)
{
	struct rows_graph g = l->r->graph;

	if (l->rec.n_ops != g.rec->n_ops)
		return 0;
	g.rec = &l->rec;
	return stages_find(&g, w);
}

static int look(struct look *l, const struct why_config *from, struct why *w, struct err *err)
{
	CLEANUP(timed_deinit) struct timed t = {.n = 0};
	const struct chains_rank *on = chains_of(&l->chains, w->rank);
	const struct slack_step *step;
	double from_ns;
	int r = on ? find_groups(l, w) : -ENOMEM;

	if (r == 0)
		r = find_steps(l, w->rank, &t);
	if (r == 0 && t.n == 0)
		return err_set(err, ENODATA, "rank %u has no two ops: nothing to look at", w->rank);
	if (r == 0)
		r = find_rows(l, &on->chain, &t);
	if (r < 0)
		return r;
	w->has_steps = t.has_steps;
	w->n_timed = t.n;
	memcpy(w->steps_how, t.how, sizeof(w->steps_how));
	w->median_ns = won_median(&l->rec, t.of_ops, t.n);
	step = typical(&on->chain, &t, w->median_ns);
	from_ns = path_begin(&on->chain, step->from);
	w->iteration_ns = step_ns(&on->chain, step);
	r = find_lags(l, from_ns, from_ns + w->iteration_ns, err);
	if (r == 0)
		r = path_walk(&l->chains, step->to, from_ns, w);
	if (r == 0)
		r = find_slacks(l, w);
	if (r == 0)
		r = path_exposed(&on->chain, on->chain.rows[step->from].at,
				 on->chain.rows[step->to].at, w);
	if (r == 0)
		r = find_late(l, &t, w);
	if (r == 0 && !from->skips_won)
		r = find_pipeline(l, w);
	return r < 0 || from->skips_won
		       ? r
		       : won_find(l->r, from, l->config, &l->rec, t.of_ops, t.n, w, err);
}

int why_make(const struct recorded *r, const struct why_config *from, struct why *ret,
	     struct err *err)
{
	CLEANUP(look_deinit) struct look l = {.r = r};
	CLEANUP(why_deinit) struct why w = {.n_timed = 0};
	int e = play(&l, from, &w, err);

	if (e == 0)
		e = look(&l, from, &w, err);
	if (e == -ENOMEM && !err->text[0])
		err_set(err, ENOMEM, "out of memory");
	if (e < 0)
		return e;
	*ret = w;
	w = (struct why){.n_timed = 0};
	return 0;
}
