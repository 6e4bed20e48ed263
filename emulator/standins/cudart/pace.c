/* See pace.h. */
#include "pace.h"

#include "runtime.h"

#include "base/clock.h"

static _Thread_local uint64_t over_ns;

void pace_not_before(uint64_t ns)
{
	if (over_ns < ns)
		over_ns = ns;
}

void pace_not_before_now(void)
{
	pace_not_before(clock_now_ns());
}

uint64_t pace_ns(void)
{
	return over_ns;
}

void pace_take(uint64_t takes_ns, bool is_followed)
{
	uint64_t now_ns = clock_now_ns();

	if (!takes_ns) {
		pace_not_before(now_ns);
		return;
	}
	over_ns += takes_ns;
	if (is_followed)
		return;
	while (over_ns > now_ns + RUNTIME_STOP_POLL_NS) {
		if (runtime_is_stopping())
			return;
		clock_sleep_until_ns(now_ns + RUNTIME_STOP_POLL_NS);
		now_ns = clock_now_ns();
	}
	if (over_ns > now_ns)
		clock_sleep_until_ns(over_ns);
}
