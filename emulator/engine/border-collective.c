/* The border of a collective, made from the rules of its schedule.
 *
 * The border holds the connections of the real ranks. An in-connection whose source is virtual
 * depends on the real ranks that its messages come from. They are found by walking back:
 *   ring    to the previous real rank, h hops back: each hop shifts by one position
 *           (slices messages), see schedule/ring.c
 *   chain   to the previous real rank between the start and the source: no shift
 *   tree    upwards to the nearest real ranks below; downwards to the nearest real rank above, or,
 *           when the path to the root is virtual, to the nearest real ranks below the root
 *   direct  to nobody
 * The walk ends at a real rank: what that one sends is its own affair. */
#include "engine/border-collective.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/border-tree.h"
#include "schedule/rails.h"

/* --- rings and chains ----------------------------------------------------------- */

/* How many hops the nearest real rank is behind @rank, 0 when @rank is real; n_ranks when there is
 * no real rank. */
static uint32_t hops_to_real(const struct border_maker *m, uint32_t rank)
{
	const uint64_t *words = m->real->words;
	uint32_t n = (uint32_t)m->real->n_bits, at = rank, hops = 0;

	while (hops < n) {
		uint64_t word = words[at / 64] << (63 - at % 64);
		uint32_t step;

		if (word) /* the highest bit set at or below @at */
			return hops + (uint32_t)__builtin_clzll(word);
		step = at % 64 + 1;
		hops += step;
		at = at >= step ? at - step : n - 1;
	}
	return n;
}

/* The nearest real rank behind @rank on the ring of channel @lane; @ret_hops: how far. */
static uint32_t real_before(const struct border_maker *m, const struct sched *s, uint16_t lane,
			    uint32_t rank, uint32_t *ret_hops)
{
	uint32_t n = s->n_ranks;

	*ret_hops = 0;
	if (sched_head(s, lane, rank) == 0) {
		*ret_hops = hops_to_real(m, rank);
		return (rank + n - *ret_hops) % n;
	}
	for (; *ret_hops < n && !border_is_real(m, rank); ++*ret_hops)
		rank = sched_previous(s, lane, rank);
	return rank;
}

static int add_ring_deps(struct border_maker *m, const struct sched *s, const struct border_conn *c)
{
	uint64_t slices = s->slices ? s->slices : 1;
	uint32_t hops, from = real_before(m, s, c->lane, c->src, &hops);

	return border_add_dep(m, from, sched_next(s, c->lane, from), c->lane, hops * slices);
}

static int add_chain_deps(struct border_maker *m, const struct sched *s,
			  const struct border_conn *c)
{
	uint32_t n = s->n_ranks, hops, from = real_before(m, s, c->lane, c->src, &hops);
	uint32_t root = sched_place_of(s, c->lane, s->root);
	uint32_t start = s->kind == COLL_REDUCE ? (root + 1) % n : root;

	if (hops > (sched_place_of(s, c->lane, c->src) + n - start) % n)
		return 0; /* virtual all the way from the start */
	return border_add_dep(m, from, sched_next(s, c->lane, from), c->lane, 0);
}

/* --- collectives ---------------------------------------------------------------- */

static int collect(struct border_maker *m, const struct sched *s)
{
	for (uint64_t r = bitmap_next_set(m->real, 0); r != BITMAP_NONE;
	     r = bitmap_next_set(m->real, r + 1)) {
		CLEANUP(freep) struct sched_conn *conns = NULL;
		uint32_t n_in, n_out;
		int e = sched_conns(s, (uint32_t)r, &conns, &n_in, &n_out);

		for (uint32_t i = 0; e == 0 && i < n_in + n_out; i++) {
			struct border_conn c = {.src = conns[i].src,
						.dst = conns[i].dst,
						.lane = conns[i].lane,
						.n_messages = conns[i].n_messages};

			e = border_add_conn(i < n_in ? &m->in : &m->out, &c);
		}
		if (e < 0)
			return e;
	}
	return 0;
}

/* What an op's virtual sources wait for. */
struct plan {
	const struct sched *s;
	struct border_forest forest; /* of trees */
};

static int add_deps(struct border_maker *m, const void *ctx, const struct border_conn *c)
{
	const struct plan *p = ctx;

	if (p->s->algo == SCHED_DIRECT)
		return 0;
	if (p->s->algo == SCHED_TREE)
		return border_add_tree_deps(m, &p->forest, c);
	if (p->s->kind == COLL_BROADCAST || p->s->kind == COLL_REDUCE)
		return add_chain_deps(m, p->s, c);
	return add_ring_deps(m, p->s, c);
}

int border_make(const struct sched *s, const struct bitmap *real, struct border *ret,
		struct err *err)
{
	struct border_maker m = {.real = real};
	struct plan p = {.s = s};
	int r;

	if (s->kind == COLL_SENDRECV || real->n_bits != s->n_ranks)
		return err_set(err, EINVAL, "no border of %s over %u ranks with %llu bits",
			       coll_kind_name(s->kind), s->n_ranks,
			       (unsigned long long)real->n_bits);
	r = collect(&m, s);
	if (r == 0 && s->algo == SCHED_TREE)
		r = border_forest_init(&p.forest, &m, s);
	if (r == 0)
		r = border_maker_finish(&m, add_deps, &p, ret);
	border_forest_deinit(&p.forest);
	border_maker_deinit(&m);
	return r < 0 ? err_set(err, -r, "no memory for the border of %s over %u ranks",
			       coll_kind_name(s->kind), s->n_ranks)
		     : 0;
}
