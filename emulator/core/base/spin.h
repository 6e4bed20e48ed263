/* Decides whether a wait is worth spinning for. A waiter that sleeps pays for being woken, tens
 * of microseconds in a virtual machine; a waiter that spins takes a core from others. So a waiter
 * spins only where its recent waits were short, and at most twice as long as they were. It yields
 * while it spins. One struct spin for each place of waiting and thread. */
#pragma once

#include <stdint.h>

#define SPIN_MAX_NS UINT64_C(200000) /* a longer wait is slept through */
#define SPIN_MIN_NS UINT64_C(5000)
#define SPIN_LEARN_MAX_NS (5 * SPIN_MAX_NS) /* one long pause is soon forgotten */

struct spin {
	uint64_t expected_ns; /* moving average of the waits */
};

/* How long to spin before sleeping; 0: not at all. */
static inline uint64_t spin_budget_ns(const struct spin *s)
{
	uint64_t budget = 2 * s->expected_ns + SPIN_MIN_NS;

	if (s->expected_ns > SPIN_MAX_NS)
		return 0;
	return budget < SPIN_MAX_NS ? budget : SPIN_MAX_NS;
}

static inline void spin_learn(struct spin *s, uint64_t waited_ns)
{
	if (waited_ns > SPIN_LEARN_MAX_NS)
		waited_ns = SPIN_LEARN_MAX_NS;
	s->expected_ns = (3 * s->expected_ns + waited_ns) / 4;
}
