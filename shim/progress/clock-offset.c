/* See clock-offset.h. */
#include "shim/progress/clock-offset.h"

void clock_offset_add(struct clock_offset *o, uint64_t sent_ns, uint64_t daemon_ns, uint64_t now_ns)
{
	uint64_t rtt_ns = now_ns - sent_ns;

	if (o->n_pings == 0 || rtt_ns < o->rtt_ns) {
		o->rtt_ns = rtt_ns;
		o->offset_ns = (int64_t)(daemon_ns - (sent_ns + rtt_ns / 2));
	}
	o->n_pings++;
}
