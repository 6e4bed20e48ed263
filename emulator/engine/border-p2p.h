/* Makes the border of point-to-point calls. */
#pragma once

#include "engine/border.h"

/* @calls[i]: the calls of real rank ranks[i], n_calls[i] of them. Calls between
 * real ranks must match (-EPROTO with the sentence); virtual ranks do what the calls ask of them.
 * -EINVAL: a call that cannot be (no such peer, a send to oneself without a
 * receive); -ENOMEM. */
int border_make_p2p(const uint32_t *ranks, uint32_t n, const struct sched_p2p *const *calls,
		    const uint32_t *n_calls, uint64_t chunk_bytes, const struct bitmap *real,
		    struct border *ret, struct err *err);
