/* The part of a kernel launch that happens when its stream gets there. */
#pragma once

#include <stdint.h>

/* Holds the calling thread for @time_ns, less when the process ends. */
void launch_sleep(uint64_t time_ns);
