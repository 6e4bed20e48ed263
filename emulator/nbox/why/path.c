/* See path.h. */
#include "nbox/why/path.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Where the walk is. */
struct walk {
	struct chains *chains;
	const struct chains_rank *on;
	struct why *w;
	double at, from; /* not walked yet */
	bool has_no_memory;
};

static bool is_like(const struct why_part *a, const struct why_part *b)
{
	return a->kind == b->kind && a->stream == b->stream && a->group == b->group &&
	       a->op == b->op && a->rank == b->rank && a->own == b->own;
}

struct why_part *path_part(struct why *w, const struct why_part *like)
{
	struct why_part *more;

	for (uint32_t i = 0; i < w->n_parts; i++)
		if (is_like(&w->parts[i], like))
			return &w->parts[i];
	more = realloc(w->parts, ((size_t)w->n_parts + 1) * sizeof(*more));
	if (!more)
		return NULL;
	w->parts = more;
	more[w->n_parts] = *like;
	more[w->n_parts].ns = 0;
	return &more[w->n_parts++];
}

/* Back to @to, or by @ns, what comes first: that is of the part like @part. */
static void take(struct walk *k, struct why_part part, double to, double ns)
{
	struct why_part *of;

	to = fmax(fmax(to, k->at - fmax(ns, 0)), k->from);
	if (to >= k->at)
		return;
	part.own = part.kind < WHY_MODELLED ? k->on->rank : k->w->rank;
	k->w->has_ranks |= part.own != k->w->rank;
	of = path_part(k->w, &part);
	if (!of) {
		k->has_no_memory = true;
		return;
	}
	of->ns += k->at - to;
	k->at = to;
}

/* From an op's end to when its last rank came. */
static void take_op(struct walk *k, const struct chain_row *row)
{
	const struct record_op *op = row->op;
	struct why_part part = {.group = why_group_of(k->w, op->comm), .op = op->kind};
	double took = row->end - row->start, waited = fmin(op->waited_ns, took);
	double shared = fmin(op->shared_ns, took - waited);

	part.kind = WHY_INJECTED;
	take(k, part, row->start, fmin(op->injected_ns, took - waited - shared));
	part.kind = WHY_SHARED;
	take(k, part, row->start, shared);
	part.kind = WHY_MODELLED;
	take(k, part, row->start + waited, INFINITY);
}

static void take_waited(struct walk *k, const struct chain_row *row, double to)
{
	take(k,
	     (struct why_part){.kind = WHY_WAITED,
			       .group = why_group_of(k->w, row->op->comm),
			       .op = row->op->kind,
			       .rank = row->op->waited_for},
	     to, INFINITY);
}

/* From when row @i is reached, as @t has it, to where what it waited for last stands. Return: that
 * row. */
static uint32_t take_wait(struct walk *k, uint32_t i, const struct chain_times *t)
{
	const struct chain_row *row = &k->on->chain.rows[i];
	const struct timeline_terms *terms = row->terms;
	uint32_t by, stream = row->op ? row->op->stream : row->point->stream;
	double reached = chain_reached(&k->on->chain, i, t, &by), to;
	bool is_gap;

	if (by == CHAIN_NONE)
		return by;
	is_gap = row->row->host != ROWS_NONE && by == k->on->chain.place[row->row->host] &&
		 reached <= t->at[by] + terms->gap_ns;
	to = chain_is_over(&k->on->chain, i, by) ? t->end[by] : t->at[by];
	if (!is_gap) {
		take(k, (struct why_part){.kind = WHY_SLOWED, .stream = stream}, to,
		     terms->slowed_ns);
		take(k, (struct why_part){.kind = WHY_COMPUTED, .stream = stream}, to,
		     terms->segment_ns - fmax(terms->slowed_ns, 0));
	}
	take(k, (struct why_part){.kind = WHY_HOST}, to, INFINITY);
	return by;
}

/* At the beginning of row @i, an op. Return: the row to go on with; the walk is where that ends,
 * or,
 * *@ret_is_begun, begins. */
static uint32_t take_queue(const struct walk *k, uint32_t i, bool *ret_is_begun)
{
	const struct chain_row *row = &k->on->chain.rows[i];

	*ret_is_begun = row->start <= row->at || row->before == CHAIN_NONE;
	return *ret_is_begun ? i : row->before;
}

/* To the call of another real rank that row @i waited for. Return: its row there; CHAIN_NONE: it
 * waited for nobody, or for a virtual rank. */
static uint32_t go_over(struct walk *k, const struct chain_row *row)
{
	const struct chains_rank *there;
	uint32_t i;

	if (!(row->op->waited_ns > 0) || row->op->waited_for == k->on->rank)
		return CHAIN_NONE;
	there = chains_of(k->chains, row->op->waited_for);
	k->has_no_memory |= !there;
	i = there ? chains_op(there, row->op, row->start + row->op->waited_ns) : CHAIN_NONE;
	if (i != CHAIN_NONE)
		k->on = there;
	return i;
}

/* From the end of row @i, an op, to its beginning, or to what was computed before. Return: as
 * take_queue(). */
static uint32_t take_whole_op(struct walk *k, uint32_t i, bool *ret_is_begun)
{
	const struct chain_row *row = &k->on->chain.rows[i];
	const struct chain_times own = {k->on->times.at, k->on->times.end, .without_ops = true};
	uint32_t by;
	double computed;

	take_op(k, row);
	by = go_over(k, row);
	if (by != CHAIN_NONE)
		return take_queue(k, by, ret_is_begun);
	if (chain_computed(&k->on->chain, i, &k->on->times, &computed, &by)) {
		take_waited(k, row, computed);
		*ret_is_begun = false;
		return take_wait(k, i, &own);
	}
	take_waited(k, row, row->start);
	return take_queue(k, i, ret_is_begun);
}

static int by_length(const void *pa, const void *pb)
{
	const struct why_part *a = pa, *b = pb;

	return (a->ns < b->ns) - (a->ns > b->ns);
}

int path_walk(struct chains *chains, uint32_t to, double from_ns, struct why *w)
{
	struct walk k = {.chains = chains,
			 .on = chains_of(chains, w->rank),
			 .w = w,
			 .from = from_ns};
	bool is_begun = true; /* the walk is at the beginning of row i, not at its end */
	uint32_t i = to;

	if (!k.on)
		return -ENOMEM;
	k.at = k.on->chain.rows[to].at;
	while (i != CHAIN_NONE && k.at > k.from && !k.has_no_memory) {
		if (!is_begun && k.on->chain.rows[i].op) {
			i = take_whole_op(&k, i, &is_begun);
			continue;
		}
		to = i;
		i = take_wait(&k, to, &k.on->times);
		is_begun = i != CHAIN_NONE && !chain_is_over(&k.on->chain, to, i);
	}
	take(&k, (struct why_part){.kind = WHY_OTHER}, from_ns, INFINITY);
	qsort(w->parts, w->n_parts, sizeof(*w->parts), by_length);
	return k.has_no_memory ? -ENOMEM : 0;
}

/* The op that @row waited for last, or NULL. */
static const struct record_op *waited_op(const struct chain *c, const struct chain_row *row)
{
	const struct chain_row *last = NULL;

	for (uint32_t k = 0; k < row->row->n_deps; k++) {
		uint32_t p = c->place[c->graph->deps[row->row->first_dep + k].row];

		if (p != CHAIN_NONE && c->rows[p].op && (!last || c->rows[p].end > last->end))
			last = &c->rows[p];
	}
	return last ? last->op : NULL;
}

int path_exposed(const struct chain *c, double from_ns, double to_ns, struct why *w)
{
	CLEANUP(freep) double *ns = calloc((size_t)w->n_groups + 1, sizeof(*ns));

	w->exposed = calloc((size_t)w->n_groups + 1, sizeof(*w->exposed));
	if (!ns || !w->exposed)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct chain_row *row = &c->rows[i];
		uint64_t own = row->op ? row->op->exposed_ns : row->point->exposed_ns;
		const struct record_op *op = own ? waited_op(c, row) : NULL;

		if (op && row->at > from_ns && row->at <= to_ns)
			ns[why_group_of(w, op->comm)] += (double)own;
	}
	for (uint32_t i = 0; i < w->n_groups; i++)
		if (why_group_is_used(w, i))
			w->exposed[w->n_exposed++] = (struct why_exposed){i, ns[i]};
	return 0;
}
