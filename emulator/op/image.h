/* Images of a communicator: an op of a template is also played by the virtual ranks that copy it,
 * on communicators of their own that no real rank is in. The image of {0..7} at rank 42 is
 * {40..47}: the group along the same axes of the declared layout; without a layout the group of the
 * same family, where the members are evenly spaced and the groups divide the world. */
#pragma once

#include "members/radix.h"
#include "op/comm.h"

/* Of a communicator of the members @m, along @axes as struct members has them. Return: 0; 1: there
 * is none, or it would have members of the communicator itself. */
int image_of(const struct cluster *cluster, const struct membership *m, uint32_t axes,
	     uint32_t world_rank, struct radix *ret);
int image_at(const struct comm *c, uint32_t world_rank, struct radix *ret);
/* Says, once, that @world_rank, which copies a member of @c, keeps its lag: whom it meets is
 * unknown. */
void image_warn_none(const struct comm *c, uint32_t world_rank);
