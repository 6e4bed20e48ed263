/* What the real members of a communicator said in a split of it. */
#pragma once

#include "members/members.h"

/* What a real member of the parent said in a split. */
struct split_vote {
	uint32_t rank; /* in the parent */
	int32_t color, key;
};

/* The votes of a split, looked up by rank. */
struct ballot {
	const struct cluster *cluster;
	const struct membership *parent;
	const struct split_vote *votes;
	size_t n_votes;
	int32_t color; /* the one that is asked for */
	int32_t *at;   /* owned; by parent rank: number of its vote, -1 a virtual rank */
	size_t first;  /* of this color's votes, the one with the smallest key */
	bool is_world; /* parent ranks are world ranks */
};

int ballot_init(struct ballot *b, const struct cluster *c, const struct membership *parent,
		const struct split_vote *votes, size_t n_votes, int32_t color);
void ballot_deinit(struct ballot *b);
/* Is each real rank of this color in @r (parent ranks), with its key as its number there, and no
 * other real rank? */
bool ballot_fits(const struct ballot *b, const struct radix *r);
