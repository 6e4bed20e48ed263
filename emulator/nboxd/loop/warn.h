/* Warnings of the run: each is logged, and counted for the status. Process-wide, as the log is. */
#pragma once

#include <stdint.h>

#include "base/clock.h"

#define WARN_NS (5 * NS_PER_S) /* what has waited for so long is worth a warning */

void warn_run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A warning about a peer that has not shown the token: the first few in each 10 s are logged, then
 * how many more there were. A scan or a flood of ports must not fill the log. */
void warn_stranger(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Logs how many strangers were left out, when their 10 s are over. */
void warn_tick(uint64_t now_ns);
uint64_t warn_count(void);
