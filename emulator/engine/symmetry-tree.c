/* Tree AllReduce of ranks that start together, domain by domain. The chains inside most domains are
 * alike: one stands for all of these. Where the edges between domains are alike too, or follow from
 * groups of 2^k domains, full subtrees of one height have the same times: an in-order tree of n
 * domains has O(log n) others, and what goes down a full subtree ends last at its deepest leaf. The
 * second tree is the first one, mirrored or shifted. Times are lines (pipe-lines.h). */
#include "engine/symmetry-tree.h"

#include <errno.h>
#include <math.h>

#include "base/bitmap.h"
#include "engine/pipe-lines.h"
#include "schedule/dtree.h"
#include "schedule/rails.h"
#include "schedule/tree.h"

#define MAX_BITS 17

struct tree {
	struct symmetry *y;
	uint32_t n, m;        /* domains; ranks of one, but that the last one may have fewer */
	struct bitmap is_odd; /* domains whose chains are not as those of the others */
	uint32_t sample;      /* one of the others */
	bool are_edges_alike;
	uint32_t channel, number; /* the tree of the channel */
	struct pipe_lane lane;
	struct pipe_slopes slopes;               /* of the tree */
	uint32_t class[PIPE_CLASSES], n_classes; /* the caller's numbers */
	struct pipe_times chain;                 /* data of a domain that is not odd, at its head */
	struct pipe_times heads;                 /* all data at their heads, at the latest */
	struct pipe_times full[MAX_BITS]; /* at the root of a full subtree, by its lowest bit */
	bool has_full[MAX_BITS];
};

static uint32_t lane_of(const struct tree *t, uint32_t direction)
{
	return sched_tree_lane(t->channel, t->number, direction);
}

/* The rank at place @i of a domain. */
static uint32_t rank_in(const struct tree *t, uint32_t domain, uint32_t i)
{
	return sched_rank_at(t->y->s, t->channel, domain * t->m + i);
}

static uint32_t ranks_of(const struct tree *t, uint32_t domain)
{
	return sched_node_ranks(t->y->s, domain * t->m);
}

/* When what is ready at @from arrives, no earlier than the receiver starts. */
static int over(struct tree *t, uint32_t src, uint32_t dst, uint32_t direction,
		const struct pipe_times *from, struct pipe_times *ret)
{
	uint16_t lane = (uint16_t)lane_of(t, direction);
	uint32_t number = t->y->class_of(t->y->ctx, src, dst, lane), c = 0;
	struct pipe_lane *l = &t->lane;
	struct pipe_times a;
	double left;
	int r = 0;

	while (c < t->n_classes && t->class[c] != number)
		c++;
	if (c == PIPE_CLASSES || number == UINT32_MAX)
		return SYMMETRY_NONE;
	if (c == t->n_classes)
		t->class[t->n_classes++] = number;
	if (!l->slope[c]) {
		struct nbox_delay full, last;

		r = symmetry_cost(t->y, src, dst, lane, 0, l->full_bytes, &full);
		if (!r)
			r = symmetry_cost(t->y, src, dst, lane, l->n_messages - 1, l->last_bytes,
					  &last);
		if (!r && !pipe_set_hop(l, c, &full, &last))
			r = SYMMETRY_NONE;
	}
	if (r)
		return r;
	a = pipe_over_hop(l, from, c, 0, &left);
	*ret = pipe_start(0);
	pipe_merge(ret, &a);
	return 0;
}

/* From the last of a domain's chain to its head. */
static int up_chain(struct tree *t, uint32_t domain, struct pipe_times *ret)
{
	int r = 0;

	*ret = pipe_start(0);
	for (uint32_t i = ranks_of(t, domain) - 1; i > 0 && !r; i--)
		r = over(t, rank_in(t, domain, i), rank_in(t, domain, i - 1), SCHED_UP, ret, ret);
	return r;
}

static uint32_t bit_of(const struct tree *t, uint32_t domain, bool *ret_is_full)
{
	uint32_t x = t->number == 0  ? domain
		     : t->n % 2 == 0 ? t->n - 1 - domain
		     : domain == 0   ? t->n - 1
				     : domain - 1;
	uint32_t bit = x & -x;

	*ret_is_full = t->are_edges_alike && x && x + bit <= t->n;
	return bit ? (uint32_t)__builtin_ctz(bit) : 0;
}

/* All data of a domain's subtree at its head. */
static int up(struct tree *t, uint32_t domain, struct pipe_times *ret)
{
	int32_t parent, child[2];
	struct pipe_times a;
	bool is_full;
	uint32_t bit = bit_of(t, domain, &is_full);
	int r = 0;

	if (is_full && t->has_full[bit]) {
		*ret = t->full[bit];
		return 0;
	}
	*ret = t->chain;
	if (bitmap_test(&t->is_odd, domain))
		r = up_chain(t, domain, ret);
	sched_dtree(t->n, domain, (int)t->number, &parent, child);
	for (int i = 0; i < 2 && !r; i++) {
		if (child[i] < 0)
			continue;
		r = up(t, (uint32_t)child[i], &a);
		if (!r)
			r = over(t, rank_in(t, (uint32_t)child[i], 0), rank_in(t, domain, 0),
				 SCHED_UP, &a, &a);
		if (!r)
			pipe_merge(ret, &a);
	}
	if (!r && is_full) {
		t->full[bit] = *ret;
		t->has_full[bit] = true;
	}
	return r;
}

/* From the heads of domains, where all data is ready at @heads at the latest, to the last of their
 * chains. These are alike: the latest of all is that of the latest. */
static int down_chain(struct tree *t, uint32_t domain, const struct pipe_times *heads)
{
	struct pipe_times a = *heads;
	int r = 0;

	for (uint32_t i = 1; i < ranks_of(t, domain) && !r; i++)
		r = over(t, rank_in(t, domain, i - 1), rank_in(t, domain, i), SCHED_DOWN, &a, &a);
	t->y->end_ns = fmax(t->y->end_ns, a.last);
	return r;
}

static uint32_t class_down(const struct tree *t, uint32_t domain, int32_t child)
{
	return t->y->class_of(t->y->ctx, rank_in(t, domain, 0), rank_in(t, (uint32_t)child, 0),
			      (uint16_t)lane_of(t, SCHED_DOWN));
}

static int down(struct tree *t, uint32_t domain, const struct pipe_times *at)
{
	int32_t parent, child[2];
	struct pipe_times a;
	bool is_full;
	int r = 0;

	bit_of(t, domain, &is_full);
	if (bitmap_test(&t->is_odd, domain))
		r = down_chain(t, domain, at);
	else
		pipe_merge(&t->heads, at);
	sched_dtree(t->n, domain, (int)t->number, &parent, child);
	for (int i = 0; i < 2 && !r; i++) {
		if (child[i] < 0)
			continue;
		if (is_full && i &&
		    class_down(t, domain, child[0]) == class_down(t, domain, child[1]))
			continue; /* that one is alike */
		r = over(t, rank_in(t, domain, 0), rank_in(t, (uint32_t)child[i], 0), SCHED_DOWN,
			 at, &a);
		if (!r)
			r = down(t, (uint32_t)child[i], &a);
	}
	return r;
}

/* The messages of an edge. */
static bool load_lane(const struct tree *t, uint32_t channel, uint32_t number,
		      struct pipe_lane *ret)
{
	const struct sched *s = t->y->s;
	uint16_t lane = (uint16_t)sched_tree_lane(channel, number, SCHED_UP);
	uint32_t child = sched_rank_at(s, channel, 0);
	int64_t parent = sched_tree_parent(s, child, channel, number);

	if (parent < 0) { /* the root: an edge to another one */
		child = sched_rank_at(s, channel, s->n_ranks - 1);
		parent = sched_tree_parent(s, child, channel, number);
	}
	*ret = (struct pipe_lane){.n_messages =
					  sched_conn_messages(s, child, (uint32_t)parent, lane)};
	if (!ret->n_messages)
		return false;
	ret->full_bytes = sched_message_bytes(s, child, (uint32_t)parent, lane, 0);
	ret->last_bytes =
		sched_message_bytes(s, child, (uint32_t)parent, lane, ret->n_messages - 1);
	return true;
}

static int solve_tree(struct tree *t)
{
	struct pipe_times all;
	int32_t parent = 0, child[2];
	uint32_t root = 0;
	int r = 0;

	if (!load_lane(t, t->channel, t->number, &t->lane))
		return 0;
	t->lane.slopes = &t->slopes;
	t->slopes.n = 0;
	t->n_classes = 0;
	for (int i = 0; i < MAX_BITS; i++)
		t->has_full[i] = false;
	t->heads = pipe_start(0);
	r = up_chain(t, t->sample, &t->chain);
	while (parent >= 0) {
		sched_dtree(t->n, root, (int)t->number, &parent, child);
		root = parent < 0 ? root : (uint32_t)parent;
	}
	if (!r)
		r = up(t, root, &all);
	if (!r)
		r = down(t, root, &all);
	return r ? r : down_chain(t, t->sample, &t->heads);
}

#define NO_HOPS UINT64_MAX

/* The classes of all hops inside a domain, round and round, down and up; so they are those of all
 * channels. NO_HOPS: they differ, or the domain is cut. */
static uint64_t hops_inside(const struct tree *t, uint32_t domain)
{
	const struct symmetry *y = t->y;
	uint64_t all = 0;

	if (ranks_of(t, domain) < t->m)
		return NO_HOPS;
	for (uint32_t i = 0; i < t->m && t->m > 1; i++) {
		uint32_t a = domain * t->m + i, b = domain * t->m + (i + 1) % t->m;
		uint64_t hops = (uint64_t)y->class_of(y->ctx, a, b, SCHED_DOWN) << 32 |
				y->class_of(y->ctx, b, a, SCHED_UP);

		if (i && hops != all)
			return NO_HOPS;
		all = hops;
	}
	return all;
}

/* Two neighbours that are alike are as most. Domains behind the first period are as those in it. */
static int find_odd(struct tree *t)
{
	bool is_regular = t->y->period && t->y->period < t->y->s->n_ranks;
	uint32_t end = is_regular ? t->y->period / t->m : t->n;
	uint64_t hops = hops_inside(t, 0);

	if (bitmap_init(&t->is_odd, t->n))
		return -ENOMEM;
	for (uint32_t d = 1; d < end; d++) {
		uint64_t next = hops_inside(t, d);

		if (next != NO_HOPS && next == hops)
			break;
		hops = next;
		t->sample = d;
	}
	hops = hops_inside(t, t->sample);
	for (uint32_t d = 0; d < end; d++)
		if (hops == NO_HOPS || hops_inside(t, d) != hops)
			bitmap_set(&t->is_odd, d);
	/* where domains stand for others, none may be odd */
	return (t->are_edges_alike || is_regular) && bitmap_count(&t->is_odd) ? SYMMETRY_NONE : 0;
}

static bool has_messages_of(const struct tree *t, uint32_t channel, uint32_t other)
{
	struct pipe_lane a, b;

	for (uint32_t i = 0; i < 2; i++) {
		bool has_a = load_lane(t, channel, i, &a), has_b = load_lane(t, other, i, &b);

		if (has_a != has_b ||
		    (has_a && (a.n_messages != b.n_messages || a.full_bytes != b.full_bytes ||
			       a.last_bytes != b.last_bytes)))
			return false;
	}
	return true;
}

/* Whether channel @channel is as one before: its messages are those of the one of its rail, or
 * those of the first one, and in a regular world its rail, too, as far as the edges inside a group
 * and between groups go. */
static bool is_known(const struct tree *t, uint32_t channel)
{
	const struct symmetry *y = t->y;
	uint32_t n = y->s->n_ranks, period = y->period ? y->period : n;
	uint32_t pairs[2][2] = {{0, t->m}, {period - t->m, period}};
	uint32_t n_rails = sched_n_rails(y->s);

	if (channel >= n_rails && has_messages_of(t, channel, channel - n_rails))
		return true;
	if (!channel || (n_rails > 1 && period == n) || !has_messages_of(t, channel, 0))
		return false;
	for (uint32_t i = 0; i < 4 && period < n; i++) {
		uint32_t src = pairs[i / 2][i % 2], dst = pairs[i / 2][1 - i % 2];

		if (y->class_of(y->ctx, sched_rank_at(y->s, channel, src),
				sched_rank_at(y->s, channel, dst), (uint16_t)(channel * 4)) !=
		    y->class_of(y->ctx, sched_rank_at(y->s, 0, src), sched_rank_at(y->s, 0, dst),
				0))
			return false;
	}
	return true;
}

/* Whether full subtrees of one height have the same edges. */
static bool are_edges_alike(const struct symmetry *y)
{
	uint32_t m = y->s->ranks_per_node, group = y->period / m;

	if (!y->period)
		return y->n_nodes == sched_n_nodes(y->s) || y->n_nodes == 1;
	return y->period < y->s->n_ranks && (group & (group - 1)) == 0;
}

static int each_channel(struct tree *t)
{
	int r = find_odd(t);

	for (t->channel = 0; t->channel < t->y->s->n_channels && !r; t->channel++)
		for (t->number = 0; t->number < 2 && !r && !is_known(t, t->channel); t->number++)
			r = solve_tree(t);
	return r;
}

int symmetry_tree(struct symmetry *y, struct err *err)
{
	struct tree t = {.y = y,
			 .n = sched_n_nodes(y->s),
			 .m = y->s->ranks_per_node,
			 .are_edges_alike = are_edges_alike(y)};
	int r;

	if (y->border || y->ranks || y->s->slices > 1 || y->cost->reduce_ns_per_byte > 0)
		return SYMMETRY_NONE;
	r = each_channel(&t);
	bitmap_deinit(&t.is_odd);
	return r == -ENOMEM ? err_set(err, ENOMEM, "no memory for a tree of %u domains", t.n) : r;
}
