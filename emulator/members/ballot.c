/* See ballot.h. */
#include "members/ballot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ballot_init(struct ballot *b, const struct cluster *c, const struct membership *parent,
		const struct split_vote *votes, size_t n_votes, int32_t color)
{
	*b = (struct ballot){.cluster = c,
			     .parent = parent,
			     .votes = votes,
			     .n_votes = n_votes,
			     .color = color,
			     .first = n_votes};
	b->at = malloc((size_t)parent->n_ranks * sizeof(*b->at));
	if (!b->at)
		return -ENOMEM;
	memset(b->at, 0xff, (size_t)parent->n_ranks * sizeof(*b->at));
	for (size_t i = 0; i < n_votes; i++) {
		b->at[votes[i].rank] = (int32_t)i;
		if (votes[i].color == color &&
		    (b->first == n_votes || votes[i].key < votes[b->first].key))
			b->first = i;
	}
	b->is_world = true;
	for (uint32_t r = 0; b->is_world && r < parent->n_ranks; r++)
		b->is_world = membership_world(parent, r) == r;
	return 0;
}

void ballot_deinit(struct ballot *b)
{
	free(b->at);
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
