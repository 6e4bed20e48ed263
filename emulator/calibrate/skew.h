/* An all-to-all of ranks that do not send alike takes as long as its busiest rank in its busier
 * direction: the rule that Lin et al. (fitted/curve.h) found best among three. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define SKEW_RANKS_MAX 4096

struct skew {
	uint64_t bytes;  /* wire bytes of the busiest rank: what a fitted curve is asked */
	double even;     /* the same if all sent as much to each */
	uint32_t rank;   /* the busiest; of several the first */
	bool is_receive; /* its direction; sending where both are as much */
};

/* @bytes: [source * n_ranks + destination]; what a rank keeps for itself does not count. */
struct skew skew_of(const uint64_t *bytes, uint32_t n_ranks);

/* A line for each source with its bytes for each destination, blanks or commas between; from '#' on
 * a line is a comment. @text: is cut up. *ret_bytes: as above, the caller's, by free(). Return: 0;
 * -EINVAL with the sentence; -ENOMEM. */
int skew_read(const char *file, char *text, uint64_t **ret_bytes, uint32_t *ret_n_ranks,
	      struct err *err);
