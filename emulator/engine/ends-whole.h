/* Ends of an op from its time alone: where its messages are not known or too many to simulate, or
 * what-ifs are left out. Each rank waits for the arrivals that its data depends on, then for the
 * op's time. */
#pragma once

#include "schedule/schedule.h"

/* In AllReduce a rank waits for all; in AllGather, ReduceScatter and AllToAll for all others: what
 * they sent before it came lies in its buffers. A rank that waits for nobody (root of Broadcast and
 * Scatter, others of Reduce and Gather) is done when what it has still to send fits its buffers; so
 * is the own part of a rank that waits for all others. Its port sends the bytes evenly in
 * @whole_ns. Arrays as ends_solve(); @busy and @ret_busy may be NULL. */
void ends_whole(const struct sched *s, double whole_ns, const double *arrive, const double *busy,
		double *ret_end, double *ret_busy);
