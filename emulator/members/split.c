/* See split.h. */
#include "members/split.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "members/split-color.h"
#include "topology/template.h"

/* --- votes of virtual ranks ------------------------------------------------------ */

struct seat {
	int64_t key;
	uint32_t rank; /* in the parent */
};

static int compare_seats(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Every virtual rank votes as its template does. */
static int split_by_template(const struct ballot *b, enum split_policy policy, struct members *ret,
			     uint32_t **ret_ranks)
{
	const struct membership *parent = b->parent;
	const struct cluster *c = b->cluster;
	CLEANUP(templates_deinit) struct templates t = {0};
	CLEANUP(freep) struct seat *seats = malloc((size_t)parent->n_ranks * sizeof(*seats));
	CLEANUP(freep) uint32_t *voters = malloc(b->n_votes * sizeof(*voters));
	CLEANUP(freep) uint32_t *ranks = malloc(((size_t)parent->n_ranks + 1) * sizeof(*ranks));
	uint32_t n = 0, gpus = c->topology->gpus_per_node;

	if (!seats || !voters || !ranks)
		return -ENOMEM;
	for (size_t i = 0; i < b->n_votes; i++)
		voters[i] = b->votes[i].rank;
	if (templates_init(&t, parent, gpus, c->classes, voters, (uint32_t)b->n_votes) < 0)
		return -ENOMEM;
	for (uint32_t rank = 0; rank < parent->n_ranks; rank++) {
		const struct split_vote *v;
		bool joins;

		if (b->at[rank] >= 0) {
			v = &b->votes[b->at[rank]];
			if (v->color == b->color)
				seats[n++] = (struct seat){v->key, rank};
			continue;
		}
		v = &b->votes[template_of(&t, rank)];
		joins = (policy == SPLIT_SAME ? b->votes[0].color : v->color) == b->color;
		if (policy == SPLIT_NODE && joins)
			joins = membership_world(parent, rank) / gpus ==
				membership_world(parent, v->rank) / gpus;
		if (joins)
			seats[n++] =
				(struct seat){(int64_t)v->key + (int64_t)rank - (int64_t)v->rank,
					      rank};
	}
	qsort(seats, n, sizeof(*seats), compare_seats);
	for (uint32_t i = 0; i < n; i++)
		ranks[i] = seats[i].rank;
	if (members_of_parent(parent, ranks, n, ret) < 0)
		return -ENOMEM;
	*ret_ranks = steal_ptr(ranks);
	return 0;
}

/* --- families that fit all votes --------------------------------------------------- */

/* Do the groups of @family (parent ranks) divide all voters as their colors do, in the order of
 * their keys? @by_lowest: each color must be the lowest rank of its group, and each key the rank's
 * number in it. */
static bool family_fits(const struct ballot *b, const struct radix *family, bool by_lowest)
{
	for (size_t i = 0; i < b->n_votes; i++) {
		const struct split_vote *v = &b->votes[i];
		struct radix r = *family;
		uint32_t rank = radix_move(&r, v->rank);

		if (v->color < 0)
			return false;
		if (by_lowest && (r.base != (uint32_t)v->color || rank != (uint32_t)v->key))
			return false;
		for (size_t k = 0; k < i; k++) {
			int64_t other = radix_find(&r, b->votes[k].rank);

			if ((other >= 0) != (b->votes[k].color == v->color) ||
			    (other >= 0 && (other < (int64_t)rank) != (b->votes[k].key < v->key)))
				return false;
		}
	}
	return true;
}

struct families {
	const struct ballot *b;
	bool by_lowest;
	struct radix first, last; /* of those that fit; the group of this color */
	uint32_t n;
};

static void family_consider(struct families *f, const struct radix *family)
{
	struct radix r = *family;

	/* PyTorch splits no group into itself */
	if (f->by_lowest && radix_size(family) == f->b->parent->n_ranks)
		return;
	if (!family_fits(f->b, family, f->by_lowest))
		return;
	radix_move(&r, f->b->votes[f->b->first].rank);
	if (f->n == 0)
		f->first = r;
	if (f->n == 0 || !radix_equal(&f->last, &r))
		f->n++;
	f->last = r;
}

static void families_of_layouts(struct families *f)
{
	uint32_t axes = 0;
	struct radix r;

	while (f->b->is_world && cluster_next_group(f->b->cluster, 0, &axes, &r))
		family_consider(f, &r);
}

/* Could each color be the lowest rank of its group? */
static bool is_by_lowest(const struct ballot *b)
{
	for (size_t i = 0; i < b->n_votes; i++) {
		const struct split_vote *v = &b->votes[i];

		if (v->color < 0 || v->key < 0 || (uint32_t)v->color > v->rank ||
		    ((uint32_t)v->color == v->rank) != (v->key == 0))
			return false;
	}
	return true;
}

/* Could each voter be alone in its group as well? Then no two share a color, and none has a color
 * below its own rank (@by_lowest). */
static bool may_be_alone(const struct ballot *b, bool by_lowest)
{
	for (size_t i = 0; i < b->n_votes; i++) {
		if (by_lowest && (uint32_t)b->votes[i].color != b->votes[i].rank)
			return false;
		for (size_t k = 0; k < i; k++)
			if (b->votes[i].color == b->votes[k].color)
				return false;
	}
	return true;
}

static int take_group(const struct ballot *b, const struct radix *r, struct members *ret,
		      uint32_t **ret_ranks)
{
	uint32_t n = radix_size(r);
	CLEANUP(freep) uint32_t *ranks = malloc((size_t)n * sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		ranks[i] = radix_at(r, i);
	if (members_of_parent(b->parent, ranks, n, ret) < 0)
		return -ENOMEM;
	*ret_ranks = steal_ptr(ranks);
	return 0;
}

/* --- the whole ----------------------------------------------------------------------- */

static int take_color(const struct ballot *b, struct found *f, struct members *ret,
		      uint32_t **ret_ranks)
{
	if (members_of_parent(b->parent, f->ranks, f->n, ret) < 0)
		return -ENOMEM;
	*ret_ranks = steal_ptr(f->ranks);
	ret->source = MEMBERS_COLOR;
	ret->sure = f->n_lists == 1 ? MEMBERS_EXACT : MEMBERS_GUESSED;
	return 0;
}

static void warn_no_layout(const struct ballot *b, const struct members *m, struct err *warning)
{
	char why[64] = "";

	if (m->map.n_ranks == 0)
		return;
	if (m->map.table)
		snprintf(why, sizeof(why), "an irregular list from world rank %u on",
			 m->map.table[0]);
	else
		snprintf(why, sizeof(why), "world rank %u + %u x rank", m->map.base, m->map.stride);
	err_set(warning, EINVAL,
		"a split (color %d) gives a group of %u ranks, %s, by %s; the declared layout has "
		"no such group: check layout",
		b->color, m->map.n_ranks, why, members_source_name(m->source));
}

int members_split(const struct cluster *c, const struct membership *parent,
		  const struct split_vote *votes, size_t n_votes, enum split_policy policy,
		  int32_t color, struct members *ret, uint32_t **ret_ranks, struct err *warning)
{
	CLEANUP(ballot_deinit) struct ballot b = {0};
	CLEANUP(found_deinit) struct found found = {0};
	struct families f = {.b = &b};
	bool is_lowest;
	int r = ballot_init(&b, c, parent, votes, n_votes, color);

	warning->text[0] = '\0';
	/* colors that could be ranks are no hashes: a hash is as small once in a million times */
	is_lowest = r == 0 && is_by_lowest(&b);
	if (r == 0 && n_votes < parent->n_ranks && !is_lowest)
		r = split_color_find(&b, &found);
	if (r < 0)
		return r;
	if (n_votes == parent->n_ranks) {
		r = split_by_template(&b, policy, ret, ret_ranks);
		ret->source = MEMBERS_ALL_REAL;
	} else if (found.n_lists) {
		r = take_color(&b, &found, ret, ret_ranks);
	} else {
		f.by_lowest = c->is_torch && policy == SPLIT_TEMPLATE && is_lowest;
		families_of_layouts(&f);
		/* where several groups fit, the template is the better guess unless colors are
		 * ranks */
		if (f.n == 1 || (f.n > 1 && f.by_lowest)) {
			r = take_group(&b, &f.first, ret, ret_ranks);
			ret->source = MEMBERS_LAYOUT;
			ret->sure = f.n == 1 && !may_be_alone(&b, f.by_lowest) ? MEMBERS_EXACT
									       : MEMBERS_GUESSED;
		} else {
			r = split_by_template(&b, policy, ret, ret_ranks);
			ret->source = MEMBERS_TEMPLATE;
			ret->sure = MEMBERS_GUESSED;
		}
	}
	if (r < 0)
		return r;
	ret->axes = members_axes(c, &ret->map);
	if (c->n_layouts && ret->axes == 0 && ret->sure != MEMBERS_EXACT)
		warn_no_layout(&b, ret, warning);
	return 0;
}
