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
#include "nbox/why/won.h"

/* What is looked at. */
struct look {
	const struct recorded *r;
	struct config *config;        /* owned */
	struct record rec;            /* owned: re-timed */
	struct timeline_terms *terms; /* owned */
	struct chains chains;
	const struct chain *chain;   /* of the rank that is looked at */
	struct won_step *of_ops;     /* owned; timed iterations, by rows of @rec */
	struct slack_step *of_chain; /* owned; the same, by rows of @chain */
	uint64_t n;
};

static void look_deinit(struct look *l)
{
	config_free(l->config);
	record_deinit(&l->rec);
	chains_deinit(&l->chains);
	free(l->terms);
	free(l->of_ops);
	free(l->of_chain);
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

static void add_step(struct look *l, const struct record_op *from, const struct record_op *to)
{
	l->of_ops[l->n++] =
		(struct won_step){(uint64_t)(from - l->rec.ops), (uint64_t)(to - l->rec.ops)};
}

static int find_steps(struct look *l, struct why *w)
{
	CLEANUP(freep) const struct record_op **ops = calloc(l->rec.n_ops + 1, sizeof(*ops));
	CLEANUP(freep) struct record_op *rows = calloc(l->rec.n_ops + 1, sizeof(*rows));
	CLEANUP(steps_deinit) struct steps s = {0};
	uint64_t n;
	int r;

	l->of_ops = calloc(l->rec.n_ops + 1, sizeof(*l->of_ops));
	if (!ops || !rows || !l->of_ops)
		return -ENOMEM;
	n = take_ops(l, w->rank, ops);
	for (uint64_t i = 0; i < n; i++)
		rows[i] = *ops[i];
	r = steps_find(&l->rec, rows, n, &s);
	for (uint64_t i = s.n_warm_up; r == 0 && i < s.n; i++)
		if (s.list[i].is_timed)
			add_step(l, ops[s.list[i].first], ops[s.list[i].end]);
	w->has_steps = l->n > 0;
	if (r == 0 && !w->has_steps && n > 1)
		add_step(l, ops[0], ops[n - 1]);
	w->n_timed = l->n;
	snprintf(w->steps_how, sizeof(w->steps_how), "%s", s.how);
	return r;
}

/* The same by rows of the chain. */
static int find_rows(struct look *l)
{
	CLEANUP(freep) uint32_t *row_of = calloc(l->rec.n_ops + 1, sizeof(*row_of));

	l->of_chain = calloc(l->n + 1, sizeof(*l->of_chain));
	if (!row_of || !l->of_chain)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->chain->n; i++)
		if (l->chain->rows[i].op)
			row_of[l->chain->rows[i].op - l->rec.ops] = i;
	for (uint64_t i = 0; i < l->n; i++)
		l->of_chain[i] =
			(struct slack_step){row_of[l->of_ops[i].from], row_of[l->of_ops[i].to]};
	return 0;
}

static double step_ns(const struct look *l, uint64_t i)
{
	return l->chain->rows[l->of_chain[i].to].at - l->chain->rows[l->of_chain[i].from].at;
}

/* The iteration that is nearest to the median. */
static uint64_t typical(const struct look *l, double median)
{
	uint64_t best = 0;

	for (uint64_t i = 1; i < l->n; i++)
		if (fabs(step_ns(l, i) - median) < fabs(step_ns(l, best) - median))
			best = i;
	return best;
}

/* --- whom ranks waited for -------------------------------------------------------------------- */

static int by_late(const void *pa, const void *pb)
{
	const struct why_late *a = pa, *b = pb;

	return (a->ns < b->ns) - (a->ns > b->ns);
}

static int find_late(const struct look *l, struct why *w)
{
	uint64_t from = l->rec.ops[l->of_ops[0].from].virtual_arrive_ns;
	uint64_t to = l->rec.ops[l->of_ops[l->n - 1].to].virtual_arrive_ns;
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
		all[op->waited_for].ns += op->waited_ns / (double)l->n;
		all[op->waited_for].n++;
	}
	qsort(all, world, sizeof(*all), by_late);
	while (w->n_late < world && all[w->n_late].n > 0)
		w->n_late++;
	w->late = steal_ptr(all);
	return 0;
}

/* --- all -------------------------------------------------------------------------------------- */

static int play(struct look *l, const struct why_config *from, struct why *w, struct err *err)
{
	const char *const dirs[] = {l->r->models, NULL};
	struct replay in = {.graph = &l->r->graph,
			    .dirs = dirs,
			    .sizes = &l->r->worlds.sizes,
			    .declared = &l->r->declared};
	int r = from->make(from->ctx, &l->config, err);

	if (r == 0)
		r = recorded_finish(l->r, l->config, err);
	if (r == 0 && l->config->n_failures)
		r = err_set(err, EINVAL,
			    "%s: a rank that fails is not re-timed; --what-if none leaves it out",
			    l->config->failures[0].text);
	if (r < 0)
		return r;
	l->terms = calloc((size_t)l->r->graph.n + 1, sizeof(*l->terms));
	if (!l->terms)
		return err_set(err, ENOMEM, "out of memory");
	in.config = l->config;
	in.terms = l->terms;
	r = replay_play(&in, &l->rec, &w->told, err);
	w->rank = UINT32_MAX;
	for (uint64_t i = 0; i < l->rec.n_ops; i++)
		w->rank = l->rec.ops[i].world_rank < w->rank ? l->rec.ops[i].world_rank : w->rank;
	return r;
}

static int find_chain(struct look *l, uint32_t rank)
{
	const struct chains_rank *of;

	l->chains = (struct chains){.graph = &l->r->graph, .rec = &l->rec, .terms = l->terms};
	of = chains_of(&l->chains, rank);
	l->chain = of ? &of->chain : NULL;
	return of ? 0 : -ENOMEM;
}

static int look(struct look *l, const struct why_config *from, struct why *w, struct err *err)
{
	struct slack_step step;
	double from_ns;
	int r = find_groups(l, w);

	if (r == 0)
		r = find_steps(l, w);
	if (r == 0 && l->n == 0)
		return err_set(err, ENODATA, "rank %u has no two ops: nothing to look at", w->rank);
	if (r == 0)
		r = find_chain(l, w->rank);
	if (r == 0)
		r = find_rows(l);
	if (r < 0)
		return r;
	w->median_ns = won_median(&l->rec, l->of_ops, l->n);
	step = l->of_chain[typical(l, w->median_ns)];
	from_ns = l->chain->rows[step.from].at;
	w->iteration_ns = l->chain->rows[step.to].at - from_ns;
	r = path_walk(&l->chains, step.to, from_ns, w);
	if (r == 0)
		r = slack_find(l->chain, l->of_chain, l->n, w);
	if (r == 0)
		r = path_exposed(l->chain, from_ns, l->chain->rows[step.to].at, w);
	if (r == 0)
		r = find_late(l, w);
	return r < 0 || from->skips_won
		       ? r
		       : won_find(l->r, from, l->config, &l->rec, l->of_ops, l->n, w, err);
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
