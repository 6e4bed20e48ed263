/* What unequal chunks of a ring gain. */
#pragma once

#include "engine/ring-lane.h"

/* How much earlier loop @loop is over than one whose chunks are all as large as its first. Return:
 * 0; the cost function's error. */
int ring_gain(struct ring *g, uint64_t loop, double *ret_ns);
