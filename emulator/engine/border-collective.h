/* Makes the border of a collective. */
#pragma once

#include "engine/border.h"

/**
 * border_make - @real: one bit a comm rank
 * A connection between two real ranks is an out-connection of the one and an in-connection of the
 * other; the latter depends on the former with shift 0. Each dependency names the last message that
 * is needed: the connection delivers the earlier ones before it. Point-to-point calls:
 * border_make_p2p().
 *
 * Memory and time follow the connections of real ranks; a tree also costs a walk from each real
 * rank to the root.
 *
 * Return: 0; -EINVAL when @real is not of the schedule's size; -ENOMEM.
 */
int border_make(const struct sched *s, const struct bitmap *real, struct border *ret,
		struct err *err);
