/* What complete check-ins make: a communicator by its id, the children of a split, that of a
 * shrink. */
#pragma once

#include "nboxd/comm/gather.h"

/* Return: whether an init is complete (or failed) and freed. */
bool gather_init_complete(struct gather *g, enum members_patience patience);
/* All have come: the communicators are made, or every member is told why not; the gather is freed.
 */
void gather_split_complete(struct gather *g, const struct comm *parent);
void gather_shrink_complete(struct gather *g, const struct comm *parent);
