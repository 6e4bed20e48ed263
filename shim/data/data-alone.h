/* What a single real member does with itself: copies instead of calls of the real library. Copies
 * do all calls of its communicator but scaled sums, which multiply. */
#pragma once

#include "shim/data/call-index.h"

/* Can copies do all of @call? */
bool data_is_alone(const struct call *call);
int data_alone(const struct call *call, const struct call_index *x, device_stream s,
	       struct err *err);
