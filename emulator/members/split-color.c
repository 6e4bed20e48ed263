/* See split-color.h. PyTorch passes a rank's number in the new group as its key, so each vote names
 * a member of the list and its place in it. */
#include "members/split-color.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "members/color.h"

#define LEVELS 3
#define STEPS_MAX (UINT64_C(1) << 24) /* ranks hashed for one color: some 50 ms */

void found_deinit(struct found *f)
{
	free(f->ranks);
}

/* --- lists that match ---------------------------------------------------------------- */

struct hunt {
	const struct ballot *b;
	struct found *found;
	struct radix first; /* of the list in found, when it is regular */
	uint32_t n_wanted;  /* at least: the largest key and one */
	uint64_t n_steps;
	bool is_out_of_memory;
};

static uint32_t world_of(const struct hunt *h, uint32_t rank)
{
	return membership_world(h->b->parent, rank);
}

/* A hash over the parent's ranks and one over the world's. */
struct two_hashes {
	struct color_hash of_parent, of_world;
};

#define TWO_HASHES_INIT ((struct two_hashes){COLOR_HASH_INIT, COLOR_HASH_INIT})

static void two_add(const struct hunt *h, struct two_hashes *t, uint32_t rank)
{
	color_hash_add(&t->of_parent, rank);
	if (!h->b->is_world)
		color_hash_add(&t->of_world, world_of(h, rank));
}

static bool two_match(const struct hunt *h, const struct two_hashes *t)
{
	return color_matches(&t->of_parent, h->b->color) ||
	       (!h->b->is_world && color_matches(&t->of_world, h->b->color));
}

/* The list @r has the color. */
static void keep(struct hunt *h, const struct radix *r)
{
	struct found *f = h->found;

	if (f->n_lists == 0) {
		f->n = radix_size(r);
		f->ranks = malloc(((size_t)f->n + 1) * sizeof(*f->ranks));
		h->is_out_of_memory = !f->ranks;
		if (!f->ranks)
			return;
		for (uint32_t i = 0; i < f->n; i++)
			f->ranks[i] = radix_at(r, i);
		h->first = *r;
		f->n_lists = 1;
		return;
	}
	if (radix_equal(&h->first, r))
		return;
	f->n_lists++;
}

static bool consider(void *ctx, const struct radix *family)
{
	struct two_hashes t = TWO_HASHES_INIT;
	struct hunt *h = ctx;
	const struct split_vote *v = &h->b->votes[h->b->first];
	struct radix r = *family;
	uint32_t n = radix_size(&r);

	if (n < h->n_wanted || radix_move(&r, v->rank) != (uint32_t)v->key ||
	    !ballot_fits(h->b, &r))
		return true;
	for (uint32_t i = 0; i < n; i++)
		two_add(h, &t, radix_at(&r, i));
	h->n_steps += n;
	if (two_match(h, &t))
		keep(h, &r);
	return h->n_steps < STEPS_MAX && !h->is_out_of_memory;
}

static int compare_keys(const void *pa, const void *pb)
{
	const struct split_vote *a = pa, *b = pb;

	return (a->key > b->key) - (a->key < b->key);
}

/* If all members are real, the votes are the list. */
static void try_real_alone(struct hunt *h)
{
	const struct ballot *b = h->b;
	CLEANUP(freep) struct split_vote *mine = malloc((b->n_votes + 1) * sizeof(*mine));
	struct two_hashes t = TWO_HASHES_INIT;
	struct found *f = h->found;
	uint32_t n = 0;

	if (!mine) {
		h->is_out_of_memory = true;
		return;
	}
	for (size_t i = 0; i < b->n_votes; i++)
		if (b->votes[i].color == b->color)
			mine[n++] = b->votes[i];
	qsort(mine, n, sizeof(*mine), compare_keys);
	for (uint32_t i = 0; i < n; i++) {
		if (mine[i].key != (int32_t)i)
			return;
		two_add(h, &t, mine[i].rank);
	}
	if (!two_match(h, &t))
		return;
	f->ranks = malloc(((size_t)n + 1) * sizeof(*f->ranks));
	h->is_out_of_memory = !f->ranks;
	if (!f->ranks)
		return;
	for (uint32_t i = 0; i < n; i++)
		f->ranks[i] = mine[i].rank;
	f->n = n;
	f->n_lists = 1;
}

/* In a parent that is the world. */
static void try_layouts(struct hunt *h)
{
	uint32_t axes = 0;
	struct radix r;

	while (h->b->is_world && cluster_next_group(h->b->cluster, 0, &axes, &r))
		consider(h, &r);
}

/* Every progression of this stride through the first vote, of any length. */
static void try_stride(struct hunt *h, uint32_t stride)
{
	const struct ballot *b = h->b;
	const struct split_vote *v = &b->votes[b->first];
	struct two_hashes t = TWO_HASHES_INIT;
	struct radix r = {.base = v->rank - (uint32_t)v->key * stride, .n_levels = 1};
	uint32_t n = 0;

	for (uint64_t at = r.base; at < b->parent->n_ranks; at += stride) {
		const struct split_vote *w = b->at[at] < 0 ? NULL : &b->votes[b->at[at]];

		if (w && (w->color != b->color || w->key != (int32_t)n))
			return;
		two_add(h, &t, (uint32_t)at);
		n++;
		h->n_steps++;
		if (n < h->n_wanted || n < 2 || !two_match(h, &t))
			continue;
		r.level[0] = (struct radix_level){n, stride};
		if (ballot_fits(b, &r))
			keep(h, &r);
	}
}

static void try_strides(struct hunt *h)
{
	const struct ballot *b = h->b;
	const struct split_vote *v = &b->votes[b->first];

	for (size_t i = 0; i < b->n_votes; i++) {
		const struct split_vote *w = &b->votes[i];

		if (w->color != b->color || w->key == v->key)
			continue;
		/* two members say what the stride is */
		if (w->rank > v->rank && (w->rank - v->rank) % (uint32_t)(w->key - v->key) == 0) {
			uint32_t stride = (w->rank - v->rank) / (uint32_t)(w->key - v->key);

			if ((uint64_t)v->key * stride <= v->rank)
				try_stride(h, stride);
		}
		return;
	}
	for (uint32_t stride = 1; stride < b->parent->n_ranks; stride++) {
		if ((uint64_t)v->key * stride > v->rank)
			return;
		if (v->key == 0 && (uint64_t)v->rank + stride >= b->parent->n_ranks)
			return;
		try_stride(h, stride);
	}
}

int split_color_find(const struct ballot *b, struct found *ret)
{
	struct hunt h = {.b = b, .found = ret};
	uint32_t n = b->parent->n_ranks;

	*ret = (struct found){0};
	for (size_t i = 0; i < b->n_votes; i++) {
		if (b->votes[i].color != b->color)
			continue;
		if (b->votes[i].key < 0 || (uint32_t)b->votes[i].key >= n)
			return 0; /* no number of a rank */
		if ((uint32_t)b->votes[i].key >= h.n_wanted)
			h.n_wanted = (uint32_t)b->votes[i].key + 1;
	}
	try_real_alone(&h);
	if (ret->n_lists == 0)
		try_layouts(&h);
	if (ret->n_lists == 0)
		try_strides(&h);
	for (uint32_t levels = 2; levels <= LEVELS && ret->n_lists == 0; levels++)
		radix_each(n, levels, consider, &h);
	return h.is_out_of_memory ? -ENOMEM : 0;
}
