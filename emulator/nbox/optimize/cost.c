/* See cost.h. */
#include "nbox/optimize/cost.h"

#include <math.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough" /* of uthash's macros */

struct optimize_size {
	uint64_t bytes;
	double ns;
	UT_hash_handle hh;
};

static double ask(struct optimize_cost *c, uint64_t bytes)
{
	struct optimize_size *s;
	struct answer answer;

	if (!c->ask)
		return c->alpha_ns + (double)bytes / c->bytes_per_ns;
	HASH_FIND(hh, c->sizes, &bytes, sizeof(bytes), s);
	if (s)
		return s->ns;
	c->n_asked++;
	if (ask_op_of(c->ask, 1, &c->of, COLL_ALLREDUCE, bytes, c->elem_bytes, 0, &answer,
		      &c->err) < 0)
		return NAN;
	s = malloc(sizeof(*s));
	if (!s)
		return answer.ns;
	*s = (struct optimize_size){.bytes = bytes, .ns = answer.ns};
	HASH_ADD(hh, c->sizes, bytes, sizeof(bytes), s);
	return answer.ns;
}

/* Pieces are ops, one after the other. */
static double sync_ns(void *ctx, uint64_t bytes, uint32_t pieces)
{
	struct optimize_cost *c = ctx;
	uint64_t elems = bytes / c->elem_bytes, each = elems / pieces, more = elems % pieces;
	double ns = (double)(pieces - more) * ask(c, each * c->elem_bytes);

	return more ? ns + (double)more * ask(c, (each + 1) * c->elem_bytes) : ns;
}

struct buckets_cost optimize_cost(struct optimize_cost *c, uint32_t most_pieces)
{
	return (struct buckets_cost){sync_ns, c, most_pieces};
}

void optimize_cost_deinit(struct optimize_cost *c)
{
	struct optimize_size *s, *next;

	HASH_ITER(hh, c->sizes, s, next) {
		HASH_DEL(c->sizes, s);
		free(s);
	}
}
