/* The border of an op, made from the rules of its schedule.
 *
 * Connections are those of the real ranks. Dependencies are found by walking from
 * a virtual source back to the real ranks that its messages come from:
 *   ring    the previous real rank, h hops back: each hop shifts by one position
 *           (slices messages), see schedule/ring.c
 *   chain   the previous real rank between the start and the source: no shift
 *   tree    up: the nearest real ranks below; down: the nearest above, or, when the
 *           path to the root is virtual, the nearest real ranks below the root
 *   direct  nothing
 * What a real rank sends is its own business: dependencies end there. */
#include "engine/border.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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

struct conn_array {
	struct border_conn *items;
	uint32_t n, room;
};

struct maker {
	const struct bitmap *real;
	struct conn_array in, out;
	uint32_t *dep_start;
	struct border_dep *dep;
	uint32_t n_dep, dep_room;
};

static void maker_deinit(struct maker *m)
{
	free(m->in.items);
	free(m->out.items);
	free(m->dep_start);
	free(m->dep);
}

static bool is_real(const struct maker *m, uint32_t rank)
{
	return bitmap_test(m->real, rank);
}

static int add_conn(struct conn_array *a, const struct border_conn *c)
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

/* In order of source, destination, lane; messages get their bits. */
static uint64_t arrange(struct conn_array *a)
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

static int add_dep(struct maker *m, uint32_t src, uint32_t dst, uint16_t lane, uint64_t shift)
{
	int64_t out = find(m->out.items, m->out.n, src, dst, lane);

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
static void finish(struct maker *m, struct border *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->n_in = m->in.n;
	ret->n_out = m->out.n;
	ret->in = steal_ptr(m->in.items);
	ret->out = steal_ptr(m->out.items);
	ret->dep_start = steal_ptr(m->dep_start);
	ret->dep = steal_ptr(m->dep);
}

/* --- trees -------------------------------------------------------------------- */

/* A real rank in a tree. */
struct tree_node {
	int64_t above;   /* nearest real rank on the way to the root, or -1 */
	uint32_t via;    /* its child on the way to us */
	uint32_t rank;
	int64_t parent;  /* -1: we are the root */
};

struct forest {
	struct tree_node *by_rank[2], *by_above[2]; /* owned; the same nodes twice */
	uint32_t n;
};

static void forest_deinit(struct forest *f)
{
	for (int t = 0; t < 2; t++) {
		free(f->by_rank[t]);
		free(f->by_above[t]);
	}
}

static int compare_above(const void *a, const void *b)
{
	const struct tree_node *x = a, *y = b;

	if (x->above != y->above)
		return x->above < y->above ? -1 : 1;
	if (x->above >= 0 && x->via != y->via)
		return x->via < y->via ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static struct tree_node tree_node(const struct maker *m, const struct sched *s, uint32_t rank,
				  uint32_t tree)
{
	int64_t parent = sched_tree_parent(s, rank, tree), up = parent;
	struct tree_node x = {.above = -1, .via = rank, .rank = rank, .parent = parent};

	while (up >= 0 && !is_real(m, (uint32_t)up)) {
		x.via = (uint32_t)up;
		up = sched_tree_parent(s, x.via, tree);
	}
	x.above = up;
	return x;
}

static int forest_init(struct forest *f, const struct maker *m, const struct sched *s)
{
	memset(f, 0, sizeof(*f));
	f->n = (uint32_t)bitmap_count(m->real);
	for (uint32_t t = 0; t < 2; t++) {
		uint32_t i = 0;

		f->by_rank[t] = calloc(f->n + 1, sizeof(struct tree_node));
		f->by_above[t] = calloc(f->n + 1, sizeof(struct tree_node));
		if (!f->by_rank[t] || !f->by_above[t])
			return -ENOMEM;
		for (uint64_t r = bitmap_next_set(m->real, 0); r != BITMAP_NONE;
		     r = bitmap_next_set(m->real, r + 1))
			f->by_rank[t][i++] = tree_node(m, s, (uint32_t)r, t);
		memcpy(f->by_above[t], f->by_rank[t], f->n * sizeof(struct tree_node));
		qsort(f->by_above[t], f->n, sizeof(struct tree_node), compare_above);
	}
	return 0;
}

static const struct tree_node *forest_find(const struct forest *f, uint32_t tree, uint32_t rank)
{
	uint32_t low = 0, high = f->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (f->by_rank[tree][mid].rank < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return &f->by_rank[tree][low];
}

/* All real ranks next below @via, a child of @above (-1: below the root): what they
 * send up. */
static int add_below(struct maker *m, const struct forest *f, uint32_t tree, int64_t above,
		     uint32_t via, uint16_t up_lane)
{
	struct tree_node key = {.above = above, .via = via, .rank = 0};
	uint32_t low = 0, high = f->n;
	int r;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (compare_above(&f->by_above[tree][mid], &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < f->n; low++) {
		const struct tree_node *x = &f->by_above[tree][low];

		if (x->above != above || (above >= 0 && x->via != via))
			break;
		if (x->parent < 0)
			continue;
		r = add_dep(m, x->rank, (uint32_t)x->parent, up_lane, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_tree_deps(struct maker *m, const struct forest *f, const struct border_conn *c)
{
	uint32_t tree = c->lane / 2 % 2, channel = c->lane / 4;
	uint16_t up = (uint16_t)sched_tree_lane(channel, tree, SCHED_UP);
	const struct tree_node *x;

	if (c->lane == up)
		return add_below(m, f, tree, c->dst, c->src, up);
	x = forest_find(f, tree, c->dst);
	if (x->above < 0)
		return add_below(m, f, tree, -1, 0, up);
	return add_dep(m, (uint32_t)x->above, x->via, c->lane, 0);
}

/* --- rings and chains ----------------------------------------------------------- */

/* How many hops before @rank the previous real rank is, going round; n_ranks when
 * there is none. */
static uint32_t hops_to_real(const struct maker *m, uint32_t rank)
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

static int add_ring_deps(struct maker *m, const struct sched *s, const struct border_conn *c)
{
	uint32_t n = s->n_ranks, hops = hops_to_real(m, c->src);
	uint32_t from = (c->src + n - hops) % n;
	uint64_t slices = s->slices ? s->slices : 1;

	return add_dep(m, from, (from + 1) % n, c->lane, hops * slices);
}

static int add_chain_deps(struct maker *m, const struct sched *s, const struct border_conn *c)
{
	uint32_t n = s->n_ranks, hops = hops_to_real(m, c->src), from;
	uint32_t start = s->kind == COLL_REDUCE ? (s->root + 1) % n : s->root;

	if (hops > (c->src + n - start) % n)
		return 0; /* virtual all the way from the start */
	from = (c->src + n - hops) % n;
	return add_dep(m, from, (from + 1) % n, c->lane, 0);
}

/* --- both kinds of border --------------------------------------------------------- */

static int collect(struct maker *m, const struct sched *s)
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

			e = add_conn(i < n_in ? &m->in : &m->out, &c);
		}
		if (e < 0)
			return e;
	}
	return 0;
}

static int add_deps(struct maker *m, const struct sched *s, const struct forest *f,
		    const struct border_conn *c)
{
	if (is_real(m, c->src))
		return add_dep(m, c->src, c->dst, c->lane, 0);
	if (s == NULL || s->algo == SCHED_DIRECT)
		return 0;
	if (s->algo == SCHED_TREE)
		return add_tree_deps(m, f, c);
	if (s->kind == COLL_BROADCAST || s->kind == COLL_REDUCE)
		return add_chain_deps(m, s, c);
	return add_ring_deps(m, s, c);
}

/* From connections to a border. @s NULL: SENDRECV. */
static int make(struct maker *m, const struct sched *s, const struct forest *f,
		struct border *ret)
{
	uint64_t n_in_messages = arrange(&m->in), n_out_messages = arrange(&m->out);
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
	finish(m, ret);
	ret->n_in_messages = n_in_messages;
	ret->n_out_messages = n_out_messages;
	return 0;
}
int border_make(const struct sched *s, const struct bitmap *real, struct border *ret,
		struct err *err)
{
	struct maker m = {.real = real};
	struct forest f = {.n = 0};
	int r;

	if (s->kind == COLL_SENDRECV || real->n_bits != s->n_ranks)
		return err_set(err, EINVAL, "no border of %s over %u ranks with %llu bits",
			       coll_kind_name(s->kind), s->n_ranks,
			       (unsigned long long)real->n_bits);
	r = collect(&m, s);
	if (r == 0 && s->algo == SCHED_TREE)
		r = forest_init(&f, &m, s);
	if (r == 0)
		r = make(&m, s, &f, ret);
	forest_deinit(&f);
	maker_deinit(&m);
	return r < 0 ? err_set(err, -r, "no memory for the border of %s over %u ranks",
			       coll_kind_name(s->kind), s->n_ranks)
		     : 0;
}

/* The connections of one rank's calls. */
static int collect_calls(struct maker *m, const struct sched *s)
{
	for (uint32_t i = 0; i < s->n_p2p; i++) {
		const struct sched_p2p *call = &s->p2p[i];
		struct border_conn c = {.src = call->is_send ? s->p2p_rank : call->peer,
					.dst = call->is_send ? call->peer : s->p2p_rank,
					.lane = call->lane,
					.bytes = call->bytes};
		int r;

		c.n_messages = sched_conn_messages(s, c.src, c.dst, c.lane);
		if (c.n_messages == 0) /* without bytes, or to oneself */
			continue;
		r = add_conn(call->is_send ? &m->out : &m->in, &c);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Sends and receives between real ranks are the same connections. */
static int check_pairs(const struct maker *m, struct err *err)
{
	for (uint32_t i = 0; i < m->out.n; i++) {
		const struct border_conn *c = &m->out.items[i];
		int64_t k;

		if (!is_real(m, c->dst))
			continue;
		k = find(m->in.items, m->in.n, c->src, c->dst, c->lane);
		if (k < 0)
			return err_set(err, EPROTO,
				       "rank %u sends %llu bytes to rank %u (send %u between them), "
				       "which has no receive for it in this group",
				       c->src, (unsigned long long)c->bytes, c->dst, c->lane);
		if (m->in.items[k].bytes != c->bytes)
			return err_set(err, EPROTO,
				       "rank %u sends %llu bytes to rank %u (send %u between them), "
				       "which receives %llu",
				       c->src, (unsigned long long)c->bytes, c->dst, c->lane,
				       (unsigned long long)m->in.items[k].bytes);
	}
	for (uint32_t i = 0; i < m->in.n; i++) {
		const struct border_conn *c = &m->in.items[i];

		if (is_real(m, c->src) &&
		    find(m->out.items, m->out.n, c->src, c->dst, c->lane) < 0)
			return err_set(err, EPROTO,
				       "rank %u receives %llu bytes from rank %u (receive %u between "
				       "them), which has no send for it in this group",
				       c->dst, (unsigned long long)c->bytes, c->src, c->lane);
	}
	return 0;
}

/* One rank's calls become a schedule of their own, which numbers and checks them. */
static int add_rank(struct maker *m, uint32_t rank, const struct sched_p2p *calls,
		    uint32_t n_calls, uint64_t chunk_bytes, uint64_t *ret_chunk_bytes,
		    struct err *err)
{
	CLEANUP(freep) struct sched_p2p *copy = calloc((size_t)n_calls + 1, sizeof(*copy));
	struct sched s = {.kind = COLL_SENDRECV,
			  .algo = SCHED_DIRECT,
			  .n_ranks = (uint32_t)m->real->n_bits,
			  .ranks_per_node = 1,
			  .n_channels = 1,
			  .elem_bytes = 1,
			  .chunk_bytes = chunk_bytes,
			  .p2p = copy,
			  .n_p2p = n_calls,
			  .p2p_rank = rank};
	int r;

	if (!copy)
		return err_set(err, ENOMEM, "no memory for %u calls", n_calls);
	if (n_calls > 0)
		memcpy(copy, calls, n_calls * sizeof(*copy));
	r = sched_init(&s, err);
	if (r < 0)
		return r;
	if (!is_real(m, rank))
		return err_set(err, EINVAL, "rank %u is virtual: it makes no calls", rank);
	*ret_chunk_bytes = sched_max_step_bytes(&s);
	r = collect_calls(m, &s);
	return r < 0 ? err_set(err, -r, "no memory for %u calls", n_calls) : 0;
}

int border_make_p2p(const uint32_t *ranks, uint32_t n, const struct sched_p2p *const *calls,
		    const uint32_t *n_calls, uint64_t chunk_bytes, const struct bitmap *real,
		    struct border *ret, struct err *err)
{
	struct maker m = {.real = real};
	uint64_t chunk = chunk_bytes ? chunk_bytes : SCHED_CHUNK_DEFAULT;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = add_rank(&m, ranks[i], calls[i], n_calls[i], chunk_bytes, &chunk, err);
	if (r == 0) {
		arrange(&m.in);
		arrange(&m.out);
		r = check_pairs(&m, err);
	}
	if (r == 0 && (r = make(&m, NULL, NULL, ret)) < 0)
		err_set(err, -r, "no memory for the border of %u ranks' calls", n);
	if (r == 0)
		ret->p2p_chunk_bytes = chunk;
	maker_deinit(&m);
	return r;
}
