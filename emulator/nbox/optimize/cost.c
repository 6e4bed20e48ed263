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

/* Of @i * 2^@octave elements. */
static double ask_grid(struct optimize_cost *c, uint32_t octave, uint64_t i)
{
	double *known = &c->grid[octave][i];

	if (*known == 0)
		*known = ask(c, (i << octave) * c->elem_bytes);
	return *known;
}

/* In proportion, between two of sixteen sizes an octave. */
static double ask_near(struct optimize_cost *c, uint64_t bytes)
{
	uint64_t elems = bytes / c->elem_bytes;
	uint32_t octave = elems < 32 ? 0 : 59 - (uint32_t)__builtin_clzll(elems);
	uint64_t i = elems >> octave, more = elems - (i << octave);
	double at;

	if (!c->ask)
		return ask(c, bytes);
	at = ask_grid(c, octave, i);
	return more ? at + (ask_grid(c, octave, i + 1) - at) * ldexp((double)more, -(int)octave)
		    : at;
}

/* Pieces are ops, one after the other. */
static double in_pieces(struct optimize_cost *c, uint64_t bytes, uint32_t pieces,
			double (*one)(struct optimize_cost *c, uint64_t bytes))
{
	uint64_t elems = bytes / c->elem_bytes, each = elems / pieces, more = elems % pieces;
	double ns = (double)(pieces - more) * one(c, each * c->elem_bytes);

	return more ? ns + (double)more * one(c, (each + 1) * c->elem_bytes) : ns;
}

static double sync_ns(void *ctx, uint64_t bytes, uint32_t pieces)
{
	return in_pieces(ctx, bytes, pieces, ask);
}

static double sync_near_ns(void *ctx, uint64_t bytes, uint32_t pieces)
{
	return in_pieces(ctx, bytes, pieces, ask_near);
}

struct buckets_cost optimize_cost(struct optimize_cost *c, uint32_t most_pieces, bool is_near)
{
	return (struct buckets_cost){is_near ? sync_near_ns : sync_ns, c, most_pieces};
}

void optimize_cost_deinit(struct optimize_cost *c)
{
	struct optimize_size *s, *next;

	HASH_ITER(hh, c->sizes, s, next) {
		HASH_DEL(c->sizes, s);
		free(s);
	}
}
