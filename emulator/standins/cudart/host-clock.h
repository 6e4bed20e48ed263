/* The time of the threads that queue work, as it would be with a processor for each.
 *
 * What such a thread waited for a processor (/proc/thread-self/schedstat) is left out. A thread
 * that waited for a stream goes on when that was over by the stream's own time (pace.h), however
 * late it woke. One clock for the process: of a job's threads one queues work at a time, and what
 * it queues comes after what another has queued before. */
#pragma once

#include <stdint.h>

/* In the time of CLOCK_MONOTONIC, which it never is ahead of. */
uint64_t host_clock_now_ns(void);
/* The same; the calling thread queues work. */
uint64_t host_clock_queue_ns(void);
/* If it queues work: the calling thread has waited for what was over at @ns. */
void host_clock_not_before(uint64_t ns);
