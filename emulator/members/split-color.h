/* Looks for the list of ranks whose hash is a split's color (color.h). */
#pragma once

#include "members/ballot.h"

/* What was found: parent ranks in the order of the new ranks. */
struct found {
	uint32_t *ranks; /* owned */
	uint32_t n;
	uint32_t n_lists; /* different lists with that hash; 0: none */
};

/* Tries the real members alone, the groups of the layouts, progressions, then groups of 2 and 3
 * levels, until one has the hash. It takes a few 10 us in a world of 512. Return: 0; -ENOMEM. */
int split_color_find(const struct ballot *b, struct found *ret);
void found_deinit(struct found *f);
