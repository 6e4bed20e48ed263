/* Communicators made by ncclCommSplit. */
#pragma once

#include "members/ballot.h"

enum split_policy { SPLIT_TEMPLATE, SPLIT_SAME, SPLIT_NODE };

/**
 * members_split - the members of the communicator of @color
 * @votes: all real members of the parent, sorted by rank
 * @ret_ranks: the parent ranks of the members, in the order of the new ranks; the
 *             caller's to free()
 * @warning: a sentence when sources contradict each other; else ""
 *
 * A list of ranks whose hash is the color is exact. Else a group of the layout that fits all votes
 * is: exact, but guessed when each voter could be alone in its group as well. Else a virtual rank
 * votes as its template, or as @policy says, and its key is the template's, shifted by the
 * difference of their ranks: guessed. PyTorch 2.11 and later pass the lowest rank of the group as
 * its color: then the layout's first group that fits is taken.
 *
 * Return: 0; -ENOMEM.
 */
int members_split(const struct cluster *c, const struct membership *parent,
		  const struct split_vote *votes, size_t n_votes, enum split_policy policy,
		  int32_t color, struct members *ret, uint32_t **ret_ranks, struct err *warning);
