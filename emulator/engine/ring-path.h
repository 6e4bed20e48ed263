/* The end of a ring by its longest path. */
#pragma once

#include "engine/ring-lane.h"

/* With all messages of a loop as large as its first. Return: 0; -ENOMEM; the cost function's error.
 */
int ring_by_path(struct ring *g, double *ret_end_ns);
/* Whether all messages of the lane have the same bytes. */
bool ring_has_one_size(const struct ring *g);
