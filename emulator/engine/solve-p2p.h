/* When a group of point-to-point calls ends. */
#pragma once

#include "engine/delay.h"
#include "engine/timing.h"
#include "schedule/schedule.h"
#include "topology/membership.h"

/* As solve(), for a group of point-to-point calls: arguments as border_make_p2p().
 * Virtual ranks send at the start of the op. The messages of a rank share its egress and its
 * ingress port. */
int solve_p2p(const uint32_t *ranks, uint32_t n, const struct sched_p2p *const *calls,
	      const uint32_t *n_calls, uint64_t chunk_bytes, const struct topology *t,
	      const struct membership *m, struct delay_chain *d, const struct border *border,
	      uint64_t op_number, struct timing *ret, struct err *err);
