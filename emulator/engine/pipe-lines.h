/* When the messages of a pipeline are ready: message i at the greatest of a few lines
 *
 *   ready(i) = offset + i * slope
 *
 * one for each possible slope: 0 where data starts, and each occupancy that a full chunk has on
 * some class of hop. A line is a path from where the data starts: its offset is the sum of
 * occupancy + latency along the path, its slope the greatest occupancy on it. A connection adds its
 * occupancy + latency to the offset and lifts smaller slopes to its occupancy. The last chunk is
 * followed as a number of its own. A rank's start is a line of slope 0, a busy port one of the
 * slope of its connection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nbox-delaymodel.h"

enum { PIPE_CLASSES = 32, PIPE_SLOPES = 12 };

/* Those of all lanes that meet. The first one is 0. */
struct pipe_slopes {
	double of[PIPE_SLOPES];
	int n; /* besides the first */
};

struct pipe_times {
	double offset[PIPE_SLOPES]; /* of the full chunks; -INFINITY: no such path */
	double last;                /* of the last chunk */
	int n;                      /* slopes that count: the first ones */
};

/* What the connections of a lane have in common. */
struct pipe_lane {
	uint64_t n_messages;
	uint64_t full_bytes, last_bytes;
	struct pipe_slopes *slopes; /* borrowed */
	int slope[PIPE_CLASSES];    /* of each class; 0: not known yet */
	struct nbox_delay full[PIPE_CLASSES], last[PIPE_CLASSES];
};

/* What messages cost on class @hop. Return: false: there are too many slopes. */
bool pipe_set_hop(struct pipe_lane *lane, uint32_t hop, const struct nbox_delay *full,
		  const struct nbox_delay *last);

/* Data is there at @ns. */
struct pipe_times pipe_start(double ns);
double pipe_at(const struct pipe_slopes *s, const struct pipe_times *t, uint64_t i);
/* When the messages that are ready at @t arrive over a hop of class @hop, whose port is free at
 * @port_ns; and when the last of them has left. */
struct pipe_times pipe_over_hop(const struct pipe_lane *lane, const struct pipe_times *t,
				uint32_t hop, double port_ns, double *ret_left_ns);
/* The later of two, line by line. */
void pipe_merge(struct pipe_times *t, const struct pipe_times *other);
