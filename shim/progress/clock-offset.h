/* How far nboxd's clock is from ours, when the two are on different hosts. Of several pings the one
 * with the shortest round trip counts: nboxd wrote its answer half of that round trip after the
 * ping was sent, give or take the other half. */
#pragma once

#include <stdint.h>

struct clock_offset {
	int64_t offset_ns; /* nboxd's clock minus ours */
	uint64_t rtt_ns;   /* of the ping it was taken from */
	uint32_t n_pings;
};

/* One ping: sent at @sent_ns and answered at @now_ns in our clock, seen by nboxd at
 * @daemon_ns in its own. */
void clock_offset_add(struct clock_offset *o, uint64_t sent_ns, uint64_t daemon_ns,
		      uint64_t now_ns);
