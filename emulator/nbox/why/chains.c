/* See chains.h. */
#include "nbox/why/chains.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define ROUNDED_NS 2 /* rows have whole nanoseconds, and what waited has not */

static void rank_free(struct chains_rank *r)
{
	chain_deinit(&r->chain);
	chain_times_deinit(&r->times);
	free(r);
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
	if (chain_make(c->graph, c->rec, c->terms, rank, &made->chain) < 0 ||
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
		    fabs(row->start - start) <= ROUNDED_NS)
			return i;
	}
	return CHAIN_NONE;
}
