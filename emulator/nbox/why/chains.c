/* See chains.h. */
#include "nbox/why/chains.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "op/image.h"
#include "schedule/coll.h"

static void rank_free(struct chains_rank *r)
{
	chain_deinit(&r->chain);
	chain_times_deinit(&r->times);
	free(r);
}

/* The real rank that @rank computes as; UINT32_MAX: not known. */
static uint32_t template_of_rank(const struct chains *c, uint32_t rank)
{
	const struct lags_of *of;
	uint32_t index;

	for (size_t i = 0; i < c->config->n_real; i++)
		if (c->config->real[i] == rank)
			return rank;
	of = c->from.lags ? lags_find(c->from.lags, rank, &index) : NULL;
	return of ? of->real_rank : UINT32_MAX;
}

const struct chains_rank *chains_of(struct chains *c, uint32_t rank)
{
	struct chains_rank *made, **list;

	for (size_t i = 0; i < c->n; i++)
		if (c->list[i]->rank == rank)
			return c->list[i];
	list = reallocarray(c->list, c->n + 1, sizeof(struct chains_rank *));
	if (!list)
		return NULL;
	c->list = list;
	made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	made->rank = rank;
	made->template = template_of_rank(c, rank);
	if ((made->template != UINT32_MAX &&
	     chain_make(&c->from, rank, made->template, &made->chain) < 0) ||
	    chain_times_make(&made->chain, &made->times) < 0) {
		rank_free(made);
		return NULL;
	}
	return list[c->n++] = made;
}

void chains_deinit(struct chains *c)
{
	for (size_t i = 0; i < c->n; i++)
		rank_free(c->list[i]);
	free(c->list);
}

uint32_t chains_op(const struct chains_rank *rank, const struct record_op *op, double start)
{
	for (uint32_t i = 0; i < rank->chain.n; i++) {
		const struct chain_row *row = &rank->chain.rows[i];

		if (row->op && row->op->comm == op->comm && row->op->kind == op->kind &&
		    fabs(row->start - start) <= CHAIN_ROUNDED_NS)
			return i;
	}
	return CHAIN_NONE;
}

/* --- whom a virtual rank waited for: as op/latest.h has it for real ones ---------------------- */

/* Those that play an op together: the members of a communicator, or of an image of it. */
struct group {
	struct membership members;
	struct radix image;
	bool is_image;
};

static int64_t number_in(const struct group *g, int64_t world_rank)
{
	if (world_rank < 0 || world_rank > UINT32_MAX)
		return -1;
	return g->is_image ? radix_find(&g->image, (uint32_t)world_rank)
			   : membership_rank(&g->members, (uint32_t)world_rank);
}

/* Those that @rank plays ops of @comm with. Return: false: not known. */
static bool find_group(const struct chains *c, const struct record_comm *comm, uint32_t rank,
		       struct group *ret)
{
	const struct cluster cluster = {.topology = &c->config->topology,
					.real = c->config->real,
					.n_real = c->config->n_real,
					.layouts = c->config->layouts,
					.n_layouts = c->config->n_layouts};

	ret->members = (struct membership){comm->n_ranks, comm->base, comm->stride,
					   comm->n_members ? comm->members : NULL};
	ret->is_image = membership_rank(&ret->members, rank) < 0;
	return !ret->is_image ||
	       image_of(&cluster, &ret->members, comm->axes, rank, &ret->image) == 0;
}

/* The row of @op in a chain. */
static uint32_t same_op(const struct chain *c, const struct record_op *op)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->rows[i].op && c->rows[i].op->comm == op->comm &&
		    c->rows[i].op->seq == op->seq && c->rows[i].op->kind != COLL_SENDRECV)
			return i;
	return CHAIN_NONE;
}

/* When a rank came to an op, and when the op before it in its communicator was over there. */
struct coming {
	uint32_t rank;
	double at, before; /* before -INFINITY: there is none */
};

static double start_of(const struct coming *x)
{
	return fmax(x->at, x->before);
}

static double behind(const struct coming *x)
{
	return x->at - x->before;
}

/* How rank number @index of @of, which copy the rank of @chain, came to its row @i. */
static struct coming coming_of(const struct chains *c, const struct chain *chain, uint32_t i,
			       const struct lags_of *of, uint32_t index)
{
	const struct chain_row *row = &chain->rows[i];
	const struct chain_row *before =
		row->before == CHAIN_NONE ? NULL : &chain->rows[row->before];
	const struct rows_row *rows = chain->graph->rows;

	return (struct coming){
		.rank = of->ranks[index],
		.at = row->at + lags_at(c->from.lags, (uint32_t)(row->row - rows), index),
		.before = before ? before->end + lags_end(c->from.lags,
							  (uint32_t)(before->row - rows), index)
				 : -INFINITY};
}

/* Whether member @other keeps member @own of an op. */
static bool is_needed(const struct record_op *op, int64_t own, int64_t other)
{
	bool is_from_root = op->kind == COLL_BROADCAST || op->kind == COLL_SCATTER;

	if (other < 0 || other == own)
		return false;
	return !coll_has_root(op->kind) || (is_from_root ? other : own) == op->root;
}

static int waited_for_member(struct chains *c, const struct chains_rank *on, uint32_t i,
			     const struct group *g, struct chains_wait *ret)
{
	const struct record_op *op = on->chain.rows[i].op;
	int64_t own = number_in(g, on->rank);
	struct coming last = {.at = -INFINITY, .before = -INFINITY}, self = last;

	for (size_t k = 0; k < c->config->n_real; k++) {
		const struct chains_rank *real = chains_of(c, c->config->real[k]);
		uint32_t row = real ? same_op(&real->chain, op) : CHAIN_NONE, index;
		const struct lags_of *of =
			real ? lags_find(c->from.lags, real->rank, &index) : NULL;

		if (!real)
			return -ENOMEM;
		for (index = 0; row != CHAIN_NONE && of && index < of->n; index++) {
			struct coming x = coming_of(c, &real->chain, row, of, index);

			if (x.rank == on->rank)
				self = x;
			else if (is_needed(op, own, number_in(g, x.rank)) &&
				 start_of(&x) > start_of(&last))
				last = x;
		}
	}
	if (!(last.at > start_of(&self)) || (isfinite(last.before) && isfinite(self.before) &&
					     behind(&last) <= fmax(behind(&self), 0) + 1))
		return 0;
	*ret = (struct chains_wait){last.rank, start_of(&last)};
	return 1;
}

/* Whether @op, of a rank that computes as @template, sends to @peer, or receives of it. */
static bool calls(const struct record_op *op, const struct membership *m, uint32_t template,
		  uint32_t rank, int64_t peer, bool is_send)
{
	for (uint32_t k = 0; k < op->n_calls; k++)
		if (op->calls[k].is_send == is_send &&
		    (int64_t)membership_world(m, op->calls[k].peer) - template + rank == peer)
			return true;
	return false;
}

/* The last op of number @index of @of that is the other end of a call of @on, and that it came to
 * in (from, to]. Return: when; -INFINITY: none. */
static double other_end(const struct chains *c, const struct chains_rank *on,
			const struct chain *real, const struct lags_of *of, uint32_t index,
			const struct chain_row *row, const struct record_call *call,
			const struct membership *m)
{
	double last = -INFINITY;

	for (uint32_t i = 0; i < real->n; i++) {
		const struct record_op *op = real->rows[i].op;
		struct coming x;

		if (!op || op->comm != row->op->comm || op->kind != row->op->kind ||
		    !calls(op, m, of->real_rank, of->ranks[index], on->rank, !call->is_send))
			continue;
		x = coming_of(c, real, i, of, index);
		if (start_of(&x) > row->start + CHAIN_ROUNDED_NS &&
		    start_of(&x) <= row->end + CHAIN_ROUNDED_NS)
			last = fmax(last, start_of(&x));
	}
	return last;
}

/* The peer that came last to the other end of a call. Return: 1: it is found; 0; -ENOMEM. */
static int find_peer(struct chains *c, const struct chains_rank *on, const struct chain_row *row,
		     const struct group *g, struct chains_wait *ret)
{
	struct chains_wait last = {.at = -INFINITY};

	for (uint32_t k = 0; k < row->op->n_calls; k++) {
		const struct record_call *call = &row->op->calls[k];
		int64_t peer = (int64_t)membership_world(&g->members, call->peer) - on->template +
			       on->rank;
		uint32_t index;
		const struct lags_of *of =
			number_in(g, peer) < 0 ? NULL
					       : lags_find(c->from.lags, (uint32_t)peer, &index);
		const struct chains_rank *real = of ? chains_of(c, of->real_rank) : NULL;
		double at;

		if (of && !real)
			return -ENOMEM;
		at = of ? other_end(c, on, &real->chain, of, index, row, call, &g->members)
			: -INFINITY;
		if (at > last.at)
			last = (struct chains_wait){(uint32_t)peer, at};
	}
	if (isinf(last.at))
		return 0;
	*ret = last;
	return 1;
}

/* Whether number @index of @of came to calls like @op at @at. */
static bool came_at(const struct chains *c, const struct chain *real, const struct lags_of *of,
		    uint32_t index, const struct record_op *op, double at)
{
	for (uint32_t i = 0; i < real->n; i++) {
		const struct record_op *own = real->rows[i].op;
		struct coming x;

		if (!own || own->comm != op->comm || own->kind != op->kind)
			continue;
		x = coming_of(c, real, i, of, index);
		if (fabs(start_of(&x) - at) <= CHAIN_ROUNDED_NS)
			return true;
	}
	return false;
}

/* Where all send to all, which takes as long at each rank once all are there: the member that came
 * then. Return: as above. */
static int find_member(struct chains *c, const struct chains_rank *on, const struct chain_row *row,
		       const struct group *g, struct chains_wait *ret)
{
	const struct chains_rank *template = chains_of(c, on->template);
	const struct chain_row *of_template;
	double at;

	if (!template)
		return -ENOMEM;
	of_template =
		&template->chain.rows[template->chain.place[row->row - on->chain.graph->rows]];
	at = row->end - fmax(of_template->end - of_template->start - of_template->op->waited_ns, 0);
	for (uint32_t k = 0; k < c->from.lags->n_of && at > row->start + CHAIN_ROUNDED_NS; k++) {
		const struct lags_of *of = &c->from.lags->of[k];
		const struct chains_rank *real = chains_of(c, of->real_rank);

		if (!real)
			return -ENOMEM;
		for (uint32_t i = 0; i < of->n; i++)
			if (number_in(g, of->ranks[i]) >= 0 &&
			    came_at(c, &real->chain, of, i, row->op, at)) {
				*ret = (struct chains_wait){of->ranks[i], at};
				return 1;
			}
	}
	return 0;
}

int chains_waited(struct chains *c, const struct chains_rank *on, uint32_t i,
		  struct chains_wait *ret)
{
	const struct chain_row *row = &on->chain.rows[i];
	const struct record_op *op = row->op;
	struct group g;
	int r;

	*ret = (struct chains_wait){on->rank, row->start};
	if (on->rank == on->template) {
		if (!(op->waited_ns > 0) || op->waited_for == on->rank)
			return 0;
		*ret = (struct chains_wait){op->waited_for,
					    fmin(row->start + op->waited_ns, row->end)};
		return 1;
	}
	if (!find_group(c, op->of, on->rank, &g))
		return 0;
	if (op->kind != COLL_SENDRECV)
		r = waited_for_member(c, on, i, &g, ret);
	else if (op->of->n_ranks == 2 || op->n_calls + 2 < 2 * op->of->n_ranks)
		r = find_peer(c, on, row, &g, ret);
	else
		r = find_member(c, on, row, &g, ret);
	ret->at = fmin(ret->at, row->end);
	return r;
}
