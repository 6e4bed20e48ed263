/* A record as the run would have left it with other buckets: all-reduces that follow each other
 * become one. Its wall times are made up where rows are gone; what replays take from them,
 * stretches of computation, is kept. */
#pragma once

#include "buckets/buckets.h"
#include "nbox/optimize/found.h"

/* @g: of @rec, to be made anew. In the communicator of @f, in its steps, the buckets of @p are one
 * op each, at the place of the last of them; whoever waited for the others goes on when it waits
 * for what stays. Return: 0; -ENOMEM. */
int fuse_record(struct record *rec, const struct rows_graph *g, const struct found *f,
		const struct buckets_plan *p);
