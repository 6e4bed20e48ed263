/* An all-to-all of ranks that do not send alike takes as long as its busiest rank in its busier
 * direction: the rule that Lin et al. (fitted/curve.h) found best among three. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct skew {
	uint64_t bytes;  /* wire bytes of the busiest rank: what a fitted curve is asked */
	double even;     /* the same if all sent as much to each */
	uint32_t rank;   /* the busiest; of several the first */
	bool is_receive; /* its direction; sending where both are as much */
};

/* @bytes: [source * n_ranks + destination]; what a rank keeps for itself does not count. */
struct skew skew_of(const uint64_t *bytes, uint32_t n_ranks);
