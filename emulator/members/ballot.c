/* See ballot.h. */
#include "members/ballot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ballot_init(struct ballot *b, const struct cluster *c, const struct membership *parent,
		const struct split_vote *votes, size_t n_votes, int32_t color)
{
	uint32_t world = topology_world(c->topology);

	*b = (struct ballot){.cluster = c,
			     .parent = parent,
			     .votes = votes,
			     .n_votes = n_votes,
			     .color = color,
			     .first = n_votes};
	b->at = malloc((size_t)parent->n_ranks * sizeof(*b->at));
	b->rank_of = malloc((size_t)world * sizeof(*b->rank_of));
	if (!b->at || !b->rank_of)
		return -ENOMEM;
	memset(b->at, 0xff, (size_t)parent->n_ranks * sizeof(*b->at));
	memset(b->rank_of, 0xff, (size_t)world * sizeof(*b->rank_of));
	for (size_t i = 0; i < n_votes; i++) {
		b->at[votes[i].rank] = (int32_t)i;
		if (votes[i].color == color &&
		    (b->first == n_votes || votes[i].key < votes[b->first].key))
			b->first = i;
	}
	b->is_world = true;
	for (uint32_t r = 0; r < parent->n_ranks; r++) {
		uint32_t w = membership_world(parent, r);

		b->rank_of[w] = r;
		b->is_world = b->is_world && w == r;
	}
	return 0;
}

void ballot_deinit(struct ballot *b)
{
	free(b->at);
	free(b->rank_of);
}

bool ballot_fits(const struct ballot *b, const struct radix *r)
{
	for (size_t i = 0; i < b->n_votes; i++) {
		int64_t rank = radix_find(r, b->votes[i].rank);

		if (b->votes[i].color == b->color ? rank != (int64_t)b->votes[i].key : rank >= 0)
			return false;
	}
	return true;
}
