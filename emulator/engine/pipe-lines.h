/* When the messages of a pipeline are ready: message i at the greatest of a few lines
 *
 *   ready(i) = offset + i * slope
 *
 * one for each possible slope: 0 where data starts, and the occupancy of a full chunk on each
 * class of hop. A line is a path from where the data starts: its offset is the sum of occupancy +
 * latency along the path, its slope the greatest occupancy on it. A connection adds its occupancy +
 * latency to the offset and lifts smaller slopes to its occupancy. The last chunk is followed as a
 * number of its own. A rank's start is a line of slope 0, a busy port one of the slope of its
 * connection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nbox-delaymodel.h"

enum { PIPE_CLASSES = 7, PIPE_SLOPES = 1 + PIPE_CLASSES }; /* 0, occupancy of each class */

struct pipe_times {
	double offset[PIPE_SLOPES]; /* of the full chunks; -INFINITY: no such path */
	double slope[PIPE_SLOPES];
	double last; /* of the last chunk */
	int n;       /* slopes that count: the first ones */
};

/* What the connections of a lane have in common. */
struct pipe_lane {
	uint64_t n_messages;
	uint64_t full_bytes, last_bytes;
	bool has_hop[PIPE_CLASSES];
	struct nbox_delay full[PIPE_CLASSES], last[PIPE_CLASSES];
};

/* Data is there at @ns. */
struct pipe_times pipe_start(double ns);
double pipe_at(const struct pipe_times *t, uint64_t i);
/* When the messages that are ready at @t arrive over a hop of class @hop, whose port is free at
 * @port_ns; and when the last of them has left. */
struct pipe_times pipe_over_hop(const struct pipe_lane *lane, const struct pipe_times *t,
				uint32_t hop, double port_ns, double *ret_left_ns);
/* The later of two, line by line. Return: false where lines of other chunks meet. */
bool pipe_merge(struct pipe_times *t, const struct pipe_times *other);
