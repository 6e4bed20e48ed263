/* The border of an op, made from the rules of its schedule (of point-to-point calls: border-p2p.c).
 *
 * Connections are those of the real ranks. Dependencies are found by walking from
 * a virtual source back to the real ranks that its messages come from:
 *   ring    the previous real rank, h hops back: each hop shifts by one position
 *           (slices messages), see schedule/ring.c
 *   chain   the previous real rank between the start and the source: no shift
 *   tree    up: the nearest real ranks below; down: the nearest above, or, when the
 *           path to the root is virtual, the nearest real ranks below the root (border-tree.c)
 *   direct  nothing
 * What a real rank sends is its own business: dependencies end there. */
#include "engine/border.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/border-make.h"

/* --- finding ------------------------------------------------------------------ */

static int compare_keys(const struct border_conn *c, uint32_t src, uint32_t dst, uint16_t lane)
{
	if (c->src != src)
		return c->src < src ? -1 : 1;
	if (c->dst != dst)
		return c->dst < dst ? -1 : 1;
	return c->lane < lane ? -1 : c->lane > lane;
}

static int compare_conns(const void *a, const void *b)
{
	const struct border_conn *y = b;

	return compare_keys(a, y->src, y->dst, y->lane);
}

static int64_t find(const struct border_conn *conns, uint32_t n, uint32_t src, uint32_t dst,
		    uint16_t lane)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int c = compare_keys(&conns[mid], src, dst, lane);

		if (c == 0)
			return mid;
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return -1;
}

int64_t border_find_in(const struct border *b, uint32_t src, uint32_t dst, uint16_t lane)
{
	return find(b->in, b->n_in, src, dst, lane);
}

int64_t border_find_out(const struct border *b, uint32_t src, uint32_t dst, uint16_t lane)
{
	return find(b->out, b->n_out, src, dst, lane);
}

uint64_t border_message_bytes(const struct border *b, const struct sched *s,
			      const struct border_conn *c, uint64_t index)
{
	uint64_t skip;

	if (b->p2p_chunk_bytes == 0)
		return sched_message_bytes(s, c->src, c->dst, c->lane, index);
	if (index >= c->n_messages)
		return 0;
	skip = index * b->p2p_chunk_bytes;
	return c->bytes - skip < b->p2p_chunk_bytes ? c->bytes - skip : b->p2p_chunk_bytes;
}

void border_deinit(struct border *b)
{
	free(b->in);
	free(b->out);
	free(b->dep_start);
	free(b->dep);
	memset(b, 0, sizeof(*b));
}

/* --- making ------------------------------------------------------------------- */

void border_maker_deinit(struct border_maker *m)
{
	free(m->in.items);
	free(m->out.items);
	free(m->dep_start);
	free(m->dep);
}

int64_t border_find(const struct border_conns *a, uint32_t src, uint32_t dst, uint16_t lane)
{
	return find(a->items, a->n, src, dst, lane);
}

int border_add_conn(struct border_conns *a, const struct border_conn *c)
{
	if (a->n == a->room) {
		uint32_t room = a->room ? a->room * 2 : 64;
		struct border_conn *items;

		if (room < a->room)
			return -ENOMEM;
		items = realloc(a->items, room * sizeof(*items));
		if (!items)
			return -ENOMEM;
		a->items = items;
		a->room = room;
	}
	a->items[a->n++] = *c;
	return 0;
}

uint64_t border_arrange(struct border_conns *a)
{
	uint64_t bits = 0;

	if (a->n > 0)
		qsort(a->items, a->n, sizeof(*a->items), compare_conns);
	for (uint32_t i = 0; i < a->n; i++) {
		a->items[i].first_bit = bits;
		bits += a->items[i].n_messages;
	}
	return bits;
}

int border_add_dep(struct border_maker *m, uint32_t src, uint32_t dst, uint16_t lane,
		   uint64_t shift)
{
	int64_t out = border_find(&m->out, src, dst, lane);

	assert(out >= 0); /* a real rank's own connection */
	if (m->n_dep == m->dep_room) {
		uint32_t room = m->dep_room * 2;
		struct border_dep *dep;

		if (room < m->dep_room)
			return -ENOMEM;
		dep = realloc(m->dep, room * sizeof(*dep));
		if (!dep)
			return -ENOMEM;
		m->dep = dep;
		m->dep_room = room;
	}
	m->dep[m->n_dep++] = (struct border_dep){(uint32_t)out, shift};
	return 0;
}

/* Hands over to the border what was made. */
static void hand_over(struct border_maker *m, struct border *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->n_in = m->in.n;
	ret->n_out = m->out.n;
	ret->in = steal_ptr(m->in.items);
	ret->out = steal_ptr(m->out.items);
	ret->dep_start = steal_ptr(m->dep_start);
	ret->dep = steal_ptr(m->dep);
}

/* --- rings and chains ----------------------------------------------------------- */

/* How many hops before @rank the previous real rank is, going round; n_ranks when
 * there is none. */
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

static int add_ring_deps(struct border_maker *m, const struct sched *s, const struct border_conn *c)
{
	uint32_t n = s->n_ranks, hops = hops_to_real(m, c->src);
	uint32_t from = (c->src + n - hops) % n;
	uint64_t slices = s->slices ? s->slices : 1;

	return border_add_dep(m, from, (from + 1) % n, c->lane, hops * slices);
}

static int add_chain_deps(struct border_maker *m, const struct sched *s,
			  const struct border_conn *c)
{
	uint32_t n = s->n_ranks, hops = hops_to_real(m, c->src), from;
	uint32_t start = s->kind == COLL_REDUCE ? (s->root + 1) % n : s->root;

	if (hops > (c->src + n - start) % n)
		return 0; /* virtual all the way from the start */
	from = (c->src + n - hops) % n;
	return border_add_dep(m, from, (from + 1) % n, c->lane, 0);
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

static int add_deps(struct border_maker *m, const struct sched *s, const struct border_forest *f,
		    const struct border_conn *c)
{
	if (border_is_real(m, c->src))
		return border_add_dep(m, c->src, c->dst, c->lane, 0);
	if (s == NULL || s->algo == SCHED_DIRECT)
		return 0;
	if (s->algo == SCHED_TREE)
		return border_add_tree_deps(m, f, c);
	if (s->kind == COLL_BROADCAST || s->kind == COLL_REDUCE)
		return add_chain_deps(m, s, c);
	return add_ring_deps(m, s, c);
}

int border_finish(struct border_maker *m, const struct sched *s, const struct border_forest *f,
		  struct border *ret)
{
	uint64_t n_in_messages = border_arrange(&m->in), n_out_messages = border_arrange(&m->out);
	int r = 0;

	/* never NULL, so that &dep[dep_start[i]] is sound without any */
	m->dep_room = 64;
	m->dep = calloc(m->dep_room, sizeof(*m->dep));
	m->dep_start = calloc((size_t)m->in.n + 1, sizeof(*m->dep_start));
	if (!m->dep || !m->dep_start)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < m->in.n; i++) {
		r = add_deps(m, s, f, &m->in.items[i]);
		m->dep_start[i + 1] = m->n_dep;
	}
	if (r < 0)
		return r;
	hand_over(m, ret);
	ret->n_in_messages = n_in_messages;
	ret->n_out_messages = n_out_messages;
	return 0;
}

int border_make(const struct sched *s, const struct bitmap *real, struct border *ret,
		struct err *err)
{
	struct border_maker m = {.real = real};
	struct border_forest f = {.n = 0};
	int r;

	if (s->kind == COLL_SENDRECV || real->n_bits != s->n_ranks)
		return err_set(err, EINVAL, "no border of %s over %u ranks with %llu bits",
			       coll_kind_name(s->kind), s->n_ranks,
			       (unsigned long long)real->n_bits);
	r = collect(&m, s);
	if (r == 0 && s->algo == SCHED_TREE)
		r = border_forest_init(&f, &m, s);
	if (r == 0)
		r = border_finish(&m, s, &f, ret);
	border_forest_deinit(&f);
	border_maker_deinit(&m);
	return r < 0 ? err_set(err, -r, "no memory for the border of %s over %u ranks",
			       coll_kind_name(s->kind), s->n_ranks)
		     : 0;
}
