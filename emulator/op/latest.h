/* Whom the members of an op wait for: the rank that comes last. Nobody waits for a rank that is
 * there and whose op before is over later: that is the time of that op. */
#pragma once

#include "op/table.h"

/* Says it of the @n posts of one op. @arrive: when each rank of the communicator starts it, by
 * rank; INFINITY: not known yet. Of an op with a root ranks wait for the root, or it for them. */
void latest_of_ranks(struct post *const *posts, uint32_t n, const double *arrive);
/* Says it of all posts of @run, whose ranks copy them. */
void latest_of_posts(struct run *run);
/* @post has waited for @world_rank, which starts at @start; of several the last one counts. */
void latest_is(struct post *post, uint32_t world_rank, double start);
