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
	part.template = part.kind < WHY_MODELLED ? k->on->template : k->w->rank;
	k->w->has_ranks |= part.own != k->w->rank;
	of = path_part(k->w, &part);
	if (!of) {
		k->has_no_memory = true;
		return;
	}
	of->ns += k->at - to;
	k->at = to;
}

/* From an op's end to @came, when the last rank had come. */
static void take_op(struct walk *k, const struct chain_row *row, double came)
{
	const struct record_op *op = row->op;
	struct why_part part = {.group = why_group_of(k->w, op->comm), .op = op->kind};
	double shared = fmin(op->shared_ns, row->end - came);

	part.kind = WHY_INJECTED;
	take(k, part, came, fmin(op->injected_ns, row->end - came - shared));
	part.kind = WHY_SHARED;
	take(k, part, came, shared);
	part.kind = WHY_MODELLED;
	take(k, part, came, INFINITY);
}

/* From when row @i is reached to where what it waited for last stands. Return: that row. */
static uint32_t take_wait(struct walk *k, uint32_t i)
{
	const struct chain *c = &k->on->chain;
	const struct chain_times *t = &k->on->times;
	const struct chain_row *row = &c->rows[i];
	const struct timeline_terms *terms = &row->terms;
	uint32_t by, stream = row->op ? row->op->stream : row->point->stream;
	double reached = chain_reached(c, i, t, &by), to;
	bool is_gap;

	if (by == CHAIN_NONE)
		return by;
	is_gap = row->row->host != ROWS_NONE && by == c->place[row->row->host] &&
		 reached <= t->at[by] + terms->gap_ns;
	to = chain_is_over(c, i, by) ? t->end[by] : t->at[by];
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

/* From the end of row @i, an op, or where it @is_begun from when the last rank had come, to its
 * beginning at that rank. Return: as take_queue(). */
static uint32_t take_whole_op(struct walk *k, uint32_t i, bool is_begun, bool *ret_is_begun)
{
	const struct chain_row *row = &k->on->chain.rows[i];
	const struct chains_rank *there = NULL;
	struct chains_wait wait;
	int r = chains_waited(k->chains, k->on, i, &wait);
	uint32_t at = CHAIN_NONE;

	if (is_begun)
		k->at = wait.at;
	else
		take_op(k, row, wait.at);
	if (r > 0) {
		there = chains_of(k->chains, wait.rank);
		at = there ? chains_op(there, row->op, wait.at) : CHAIN_NONE;
	}
	k->has_no_memory |= r < 0 || (r > 0 && !there);
	if (at != CHAIN_NONE) {
		k->on = there;
		return take_queue(k, at, ret_is_begun);
	}
	take(k,
	     (struct why_part){.kind = WHY_WAITED,
			       .group = why_group_of(k->w, row->op->comm),
			       .op = row->op->kind,
			       .rank = wait.rank},
	     row->start, INFINITY);
	return take_queue(k, i, ret_is_begun);
}

static int by_length(const void *pa, const void *pb)
{
	const struct why_part *a = pa, *b = pb;

	return (a->ns < b->ns) - (a->ns > b->ns);
}

double path_begin(const struct chain *c, uint32_t row)
{
	return fmin(c->rows[row].start + c->rows[row].op->waited_ns, c->rows[row].end);
}

int path_walk(struct chains *chains, uint32_t to, double from_ns, struct why *w)
{
	struct walk k = {.chains = chains,
			 .on = chains_of(chains, w->rank),
			 .w = w,
			 .from = from_ns};
	bool is_begun; /* the walk is at the beginning of row i, not at its end */
	uint32_t i;

	if (!k.on)
		return -ENOMEM;
	i = take_whole_op(&k, to, true, &is_begun);
	while (i != CHAIN_NONE && k.at > k.from && !k.has_no_memory) {
		if (!is_begun && k.on->chain.rows[i].op) {
			i = take_whole_op(&k, i, false, &is_begun);
			continue;
		}
		to = i;
		i = take_wait(&k, to);
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
