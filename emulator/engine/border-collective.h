/* Makes the border of a collective; see border-collective.c. */
#pragma once

#include "engine/border.h"

/**
 * border_make - @real: one bit a comm rank
 * A message between two real ranks is an out-connection of the one and an
 * in-connection of the other, that depends on it with shift 0. COLL_SENDRECV has
 * no schedule here: see border_make_p2p(). A dependency on a message of the same
 * connection that is before the one named is implied: connections keep order.
 *
 * Costs memory and time for the connections of real ranks only; trees also a walk
 * from each real rank to the root.
 *
 * Return: 0; -EINVAL when @real is not of the schedule's size; -ENOMEM.
 */
int border_make(const struct sched *s, const struct bitmap *real, struct border *ret,
		struct err *err);
