/* The one clock: CLOCK_MONOTONIC in integer nanoseconds. */
#pragma once

#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

uint64_t clock_now_ns(void);

/* Sleeps until @due_ns, then spins the last part: returns at or after @due_ns,
 * never before. The slack that is spun adapts to the observed wake-up latency
 * (50 us to 200 us). Thread-safe. */
void clock_sleep_until_ns(uint64_t due_ns);

/* How long before @due_ns a sleeper should wake to be in time. */
uint64_t clock_slack_ns(void);
/* For a thread that sleeps elsewhere (a futex, poll): its wait ended now by timeout, and was to end
 * at @asked_ns. Thread-safe. */
void clock_learn_wake(uint64_t asked_ns);

/* Equal: one clock, which is that of a boot and of a time namespace in it. Zeros: not known. */
void clock_id(uint8_t ret[16]);
