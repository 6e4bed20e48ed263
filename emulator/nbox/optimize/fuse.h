/* A recorded run as it would have been with other buckets: all-reduces that follow each other
 * become one, in the record and in its graph. Who waited for one of them waits for all. */
#pragma once

#include "buckets/buckets.h"
#include "nbox/optimize/found.h"

/* In the communicators of @f, in its steps, the buckets of @p are one op each, at the place of the
 * last of them. @rec loses the other ops; @g, its graph, is replaced by one of what stays, in which
 * stretches of computation are as they were. Return: 0; -ENOMEM. */
int fuse_buckets(struct record *rec, struct rows_graph *g, const struct found *f,
		 const struct buckets_plan *p);
