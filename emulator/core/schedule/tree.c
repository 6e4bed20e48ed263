/* Tree AllReduce: NCCL's double binary tree over nodes, a chain inside a node.
 * A node's first rank on the channel (rails.h) is its head: it has the edges to other
 * nodes. Each other rank is the child of the one before. Each tree carries half of the channel's
 * data, in chunks that go up (reduced) and down (copied): as many messages on each edge either way.
 *
 * Threads and lanes have the same numbers: (channel * 2 + tree) * 2 + direction.
 * The root reduces, stores and sends down in one step of its up thread; its down
 * thread is empty. */
#include "schedule/tree.h"

#include "schedule/algo.h"
#include "schedule/dtree.h"
#include "schedule/rails.h"

struct place {
	uint32_t channel, tree, direction;
};

struct edges {
	int64_t parent;
	uint32_t n_children;
	uint32_t child[SCHED_FAN];
};

static struct place place_of(uint32_t lane)
{
	return (struct place){lane / 4, lane / 2 % 2, lane % 2};
}

static struct edges edges_of(const struct sched *s, uint32_t rank, uint32_t channel, uint32_t tree)
{
	uint32_t m = s->ranks_per_node, local = sched_place_of(s, channel, rank) % m;
	struct edges e = {.parent = -1, .n_children = 0};
	int32_t parent, child[2];

	if (local > 0) {
		e.parent = sched_previous(s, channel, rank);
	} else {
		sched_dtree(sched_n_nodes(s), rank / m, (int)tree, &parent, child);
		e.parent =
			parent < 0 ? -1 : (int64_t)sched_rank_at(s, channel, (uint32_t)parent * m);
		for (int i = 0; i < 2; i++)
			if (child[i] >= 0)
				e.child[e.n_children++] =
					sched_rank_at(s, channel, (uint32_t)child[i] * m);
	}
	if (local + 1 < sched_node_ranks(s, rank))
		e.child[e.n_children++] = sched_next(s, channel, rank);
	return e;
}

int64_t sched_tree_parent(const struct sched *s, uint32_t rank, uint32_t channel, uint32_t tree)
{
	return edges_of(s, rank, channel, tree).parent;
}

void sched_tree_edges(const struct sched *s, uint32_t *ret_inter, uint32_t *ret_intra)
{
	uint32_t m = s->ranks_per_node;

	*ret_inter = sched_dtree_edges(sched_n_nodes(s));
	*ret_intra = m == 1 ? *ret_inter : m == 2 ? 2 : 4;
}

/* The data of one tree of a channel. */
static struct span tree_span(const struct sched *s, uint32_t channel, uint32_t tree)
{
	struct span c = channel_span(s, channel);

	if (s->lane_bytes)
		return span_piece((struct span){0, s->bytes}, tree * s->n_channels + channel,
				  s->lane_bytes);
	return span_piece(c, tree, align_up(div_up(c.bytes, 2), s->grain));
}

uint64_t sched_tree_bytes(const struct sched *s, uint16_t lane)
{
	struct place p = place_of(lane);

	return tree_span(s, p.channel, p.tree).bytes;
}

static uint64_t tree_messages(const struct sched *s, uint32_t channel, uint32_t tree)
{
	return div_up(tree_span(s, channel, tree).bytes, s->step_bytes) * s->n_slices;
}

static struct span piece(const struct sched *s, struct place p, uint64_t index)
{
	struct span d = tree_span(s, p.channel, p.tree);

	d = span_piece(d, index / s->n_slices, s->step_bytes);
	return slice_span(s, d, index % s->n_slices);
}

static uint32_t n_threads(const struct sched *s, uint32_t rank)
{
	(void)rank;
	return s->n_channels * 4;
}

static uint64_t n_steps(const struct sched *s, uint32_t rank, uint32_t thread)
{
	struct place p = place_of(thread);

	if (p.direction == SCHED_DOWN && edges_of(s, rank, p.channel, p.tree).parent < 0)
		return 0;
	return tree_messages(s, p.channel, p.tree);
}

static void step(const struct sched *s, uint32_t rank, uint32_t thread, uint64_t t,
		 struct sched_step *ret)
{
	struct place p = place_of(thread);
	struct edges e = edges_of(s, rank, p.channel, p.tree);
	struct span d = piece(s, p, t);
	uint32_t down = sched_tree_lane(p.channel, p.tree, SCHED_DOWN);

	ret->bytes = d.bytes;
	ret->in_off = ret->out_off = d.off;
	if (p.direction == SCHED_DOWN) {
		ret->flags = STEP_OUTPUT;
		step_recv(ret, (uint32_t)e.parent, thread, t);
		for (uint32_t i = 0; i < e.n_children; i++)
			step_send(ret, e.child[i], thread, t);
		return;
	}
	ret->flags = STEP_INPUT | (e.n_children ? STEP_REDUCE : 0);
	for (uint32_t i = 0; i < e.n_children; i++)
		step_recv(ret, e.child[i], thread, t);
	if (e.parent >= 0) {
		step_send(ret, (uint32_t)e.parent, thread, t);
		return;
	}
	ret->flags |= STEP_REDUCE | STEP_OUTPUT | STEP_FINAL;
	for (uint32_t i = 0; i < e.n_children; i++)
		step_send(ret, e.child[i], down, t);
}

static void conns(const struct sched *s, uint32_t rank, struct conn_list *l)
{
	for (uint32_t i = 0; i < s->n_channels * 2; i++) {
		uint32_t channel = i / 2, tree = i % 2;
		uint32_t up = sched_tree_lane(channel, tree, SCHED_UP),
			 down = sched_tree_lane(channel, tree, SCHED_DOWN);
		uint64_t n = tree_messages(s, channel, tree);
		struct edges e;

		if (n == 0)
			continue;
		e = edges_of(s, rank, channel, tree);
		for (uint32_t k = 0; k < e.n_children; k++) {
			conn_in(l, e.child[k], rank, up, n);
			conn_out(l, rank, e.child[k], down, n);
		}
		if (e.parent >= 0) {
			conn_in(l, (uint32_t)e.parent, rank, down, n);
			conn_out(l, rank, (uint32_t)e.parent, up, n);
		}
	}
}

static uint64_t n_messages(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	struct place p = place_of(lane);
	uint32_t child = p.direction == SCHED_UP ? src : dst;
	uint32_t parent = p.direction == SCHED_UP ? dst : src;

	if (p.channel >= s->n_channels ||
	    edges_of(s, child, p.channel, p.tree).parent != (int64_t)parent)
		return 0;
	return tree_messages(s, p.channel, p.tree);
}

static uint64_t message_bytes(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane,
			      uint64_t index)
{
	(void)src;
	(void)dst;
	return piece(s, place_of(lane), index).bytes;
}

static uint64_t total(const struct sched *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->n_channels * 2; i++)
		sum += tree_messages(s, i / 2, i % 2);
	return sum * 2 * (s->n_ranks - 1);
}

static uint32_t send_thread(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	struct place p = place_of(lane);

	(void)dst;
	if (p.direction == SCHED_DOWN && edges_of(s, src, p.channel, p.tree).parent < 0)
		return sched_tree_lane(p.channel, p.tree, SCHED_UP);
	return lane;
}

const struct sched_ops sched_tree = {
	.n_threads = n_threads,
	.n_steps = n_steps,
	.step = step,
	.conns = conns,
	.n_messages = n_messages,
	.message_bytes = message_bytes,
	.total = total,
	.recv_thread = lane_thread,
	.send_thread = send_thread,
};
