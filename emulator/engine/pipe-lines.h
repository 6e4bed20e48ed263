/* When the messages of a pipeline are ready: message i at the greatest of a few lines
 *
 *   ready(i) = offset + i * slope
 *
 * one for each possible slope: 0 where data starts, and the occupancy of a full chunk on either
 * kind of hop. A line is a path from where the data starts: its offset is the sum of occupancy +
 * latency along the path, its slope the greatest occupancy on it. A connection adds its occupancy +
 * latency to the offset and lifts smaller slopes to its occupancy. The last chunk is followed as a
 * number of its own. A rank's start is a line of slope 0, a busy port one of the slope of its
 * connection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nbox-delaymodel.h"

enum { PIPE_SLOPES = 3 }; /* 0, occupancy of hop 0, of hop 1 */

struct pipe_times {
	double offset[PIPE_SLOPES]; /* of the full chunks; -INFINITY: no such path */
	double slope[PIPE_SLOPES];
	double last; /* of the last chunk */
};

/* What the connections of a lane have in common. */
struct pipe_lane {
	uint64_t n_messages;
	uint64_t full_bytes, last_bytes;
	bool has_hop[2];
	struct nbox_delay full[2], last[2];
};

/* Data is there at @ns. */
struct pipe_times pipe_start(double ns);
double pipe_at(const struct pipe_times *t, uint64_t i);
/* When the messages that are ready at @t arrive over a hop of kind @hop, whose port is free at
 * @port_ns; and when the last of them has left. */
struct pipe_times pipe_over_hop(const struct pipe_lane *lane, const struct pipe_times *t,
				uint32_t hop, double port_ns, double *ret_left_ns);
/* The later of two, line by line. Return: false where lines of other chunks meet. */
bool pipe_merge(struct pipe_times *t, const struct pipe_times *other);
