/* The time of a stream: when all that its thread has run would be over on a GPU.
 *
 * A thread is late: it wakes late, waits for a CPU, and copies with it. Lateness is not added up. A
 * command whose time is known (kernel-time.h) begins when the one before it is over and it is
 * queued, and lasts that long, whenever the thread comes to it; so a busy machine's streams take
 * the time of an idle one's, as long as its CPUs do the copying meanwhile. What takes no known time
 * (host functions, gates, copies where no time was configured) ends when it ends.
 *
 * One for each thread; for the stream's own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What the stream waited for was over at @ns, of CLOCK_MONOTONIC. */
void pace_not_before(uint64_t ns);
/* It was over just now. */
void pace_not_before_now(void);
uint64_t pace_ns(void);
/* A command was done, and lasts @takes_ns; 0: it is over now. The thread sleeps until that is over,
 * unless the process ends; but where what is queued behind it has a known time as well
 * (@is_followed), it waits for both together, so that many short kernels sleep as one long one
 * instead of keeping a core busy. Where one host thread synchronises and another queues more
 * kernels meanwhile, the first may go on early, by what these kernels take. */
void pace_take(uint64_t takes_ns, bool is_followed);
