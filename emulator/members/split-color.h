/* Looks for the list of ranks whose hash is a split's color (color.h). */
#pragma once

#include "members/members.h"

/* The votes of a split, looked up by rank. */
struct ballot {
	const struct cluster *cluster;
	const struct membership *parent;
	const struct split_vote *votes;
	size_t n_votes;
	int32_t color;    /* the one that is asked for */
	int32_t *at;      /* owned; by parent rank: number of its vote, -1 a virtual rank */
	int64_t *rank_of; /* owned; by world rank: parent rank, or -1 */
	size_t first;     /* of this color's votes, the one with the smallest key */
	bool is_world;    /* parent ranks are world ranks */
};

int ballot_init(struct ballot *b, const struct cluster *c, const struct membership *parent,
		const struct split_vote *votes, size_t n_votes, int32_t color);
void ballot_deinit(struct ballot *b);
/* Has every real rank of this color its key as its number in @r (parent ranks), and is
 * no other real rank in it? */
bool ballot_fits(const struct ballot *b, const struct radix *r);

/* What was found: parent ranks in the order of the new ranks. */
struct found {
	uint32_t *ranks; /* owned */
	uint32_t n;
	uint32_t n_lists; /* different lists with that hash; 0: none */
	bool is_placed;   /* they all share nodes alike */
};

/**
 * split_color_find - the real members alone; the groups of the layouts; progressions; groups of
 *                    2 and 3 levels: the first of these that has the hash
 *
 * A few 10 us in a world of 512. Return: 0; -ENOMEM.
 */
int split_color_find(const struct ballot *b, struct found *ret);
void found_deinit(struct found *f);
