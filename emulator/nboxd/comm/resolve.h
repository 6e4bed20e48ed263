/* The members of a communicator that was made with an id: asked of the job's store, of the job's
 * own list, then of members/. */
#pragma once

#include "nboxd/comm/gather.h"

/* As members_by_id(), with all that nboxd knows besides the check-ins. */
int resolve_init(const struct gather *g, enum members_patience patience, struct members *ret,
		 struct err *err);
