/* Check-in frames: each joins the gather that it is for, or begins one. The one that is the last
 * makes the communicator. */
#pragma once

#include "nboxd/comm/gather.h"

int gather_on_init(struct gathers *gs, struct worker *w, const struct wire_hdr *h,
		   const void *body);
int gather_on_split(struct gathers *gs, struct worker *w, const struct wire_hdr *h,
		    const void *body);
int gather_on_shrink(struct gathers *gs, struct worker *w, const struct wire_hdr *h,
		     const void *body);
