/* Points on their way to nboxd. A point is told when it is stamped, or before the first frame that
 * names it: then the time of that is taken, which cannot be earlier. */
#pragma once

#include <stdint.h>

#include "shim/edges/edges.h"

/* Whom edges.c tells; any thread. */
extern const struct edges_sink points_sink;
/* The world rank of a device of this process. Any thread. */
void points_set_rank(int device, uint32_t world_rank);

/* The progress thread: a frame that names @deps is about to be sent. @time_ns: its own. @replay: of
 * its graph, from 1: later launches of that are not told yet; 0: it is of none, and needs none. */
void points_before(const struct wire_dep *deps, uint32_t n, uint64_t time_ns, uint32_t replay);
/* For people who look for an edge: a line of NBOX_DEBUG=DEBUG. */
void points_log(const char *what, uint64_t name, uint32_t stream, const struct wire_dep *deps,
		uint32_t n);
