/* See pace.h. */
#include "pace.h"

#include "runtime.h"

#include "base/clock.h"

static _Thread_local uint64_t over_ns;
static _Thread_local bool is_told;

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

/* For libnbox.so, in its host functions: this one is over at @ns, 0: at once, whenever it returns.
 * Return: when that is; never before the stream came to it. */
__attribute__((visibility("default"))) uint64_t nbox_host_pace(uint64_t ns);
uint64_t nbox_host_pace(uint64_t ns)
{
	is_told = true;
	pace_not_before(ns);
	return over_ns;
}

void pace_not_before_end_of(void (*fn)(void *), void *arg)
{
	is_told = false;
	fn(arg);
	if (!is_told)
		pace_not_before_now();
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
