/* See border-tree.h. */
#include "engine/border-tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/rails.h"
#include "schedule/tree.h"

void border_forest_deinit(struct border_forest *f)
{
	for (uint32_t t = 0; t < f->n_trees; t++) {
		free(f->by_rank[t]);
		free(f->by_above[t]);
	}
	free(f->by_rank);
	free(f->by_above);
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

static struct tree_node tree_node(const struct border_maker *m, const struct sched *s,
				  uint32_t rank, uint32_t t)
{
	int64_t parent = sched_tree_parent(s, rank, t / 2, t % 2), up = parent;
	struct tree_node x = {.above = -1, .via = rank, .rank = rank, .parent = parent};

	while (up >= 0 && !border_is_real(m, (uint32_t)up)) {
		x.via = (uint32_t)up;
		up = sched_tree_parent(s, x.via, t / 2, t % 2);
	}
	x.above = up;
	return x;
}

int border_forest_init(struct border_forest *f, const struct border_maker *m, const struct sched *s)
{
	/* the channels of one rail have the same trees */
	uint32_t n_rails = sched_n_rails(s);

	if (n_rails > s->n_channels)
		n_rails = s->n_channels;
	memset(f, 0, sizeof(*f));
	f->n = (uint32_t)bitmap_count(m->real);
	f->by_rank = calloc(2 * n_rails, sizeof(struct tree_node *));
	f->by_above = calloc(2 * n_rails, sizeof(struct tree_node *));
	if (!f->by_rank || !f->by_above)
		return -ENOMEM;
	for (uint32_t t = 0; t < 2 * n_rails; t++) {
		uint32_t i = 0;

		f->by_rank[t] = calloc(f->n + 1, sizeof(struct tree_node));
		f->by_above[t] = calloc(f->n + 1, sizeof(struct tree_node));
		f->n_trees = t + 1;
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

static const struct tree_node *forest_find(const struct border_forest *f, uint32_t tree,
					   uint32_t rank)
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

/* Adds what the next real ranks below @via send up. @via is a child of @above; @above -1: the next
 * real ranks below the root. */
static int add_below(struct border_maker *m, const struct border_forest *f, uint32_t tree,
		     int64_t above, uint32_t via, uint16_t up_lane)
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
		r = border_add_dep(m, x->rank, (uint32_t)x->parent, up_lane, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

int border_add_tree_deps(struct border_maker *m, const struct border_forest *f,
			 const struct border_conn *c)
{
	uint32_t channel = c->lane / 4;
	uint32_t tree = c->lane / 2 % (f->n_trees ? f->n_trees : 1);
	uint16_t up = (uint16_t)sched_tree_lane(channel, tree % 2, SCHED_UP);
	const struct tree_node *x;

	if (c->lane == up)
		return add_below(m, f, tree, c->dst, c->src, up);
	x = forest_find(f, tree, c->dst);
	if (x->above < 0)
		return add_below(m, f, tree, -1, 0, up);
	return border_add_dep(m, (uint32_t)x->above, x->via, c->lane, 0);
}
