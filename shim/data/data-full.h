/* Calls of a communicator at the virtual size (--nccl full): each goes to the real library as the
 * job made it, with all ranks, and is told to the plug-in before. What no real rank sends comes as
 * the element that changes no result. So scaled inputs stand for the virtual ranks in reductions,
 * and copies for their slots afterwards. All as in data.h. */
#pragma once

#include "shim/data/call-index.h"

int data_full_before(struct call *call, device_stream s, bool is_captured, struct err *err);
int data_full_during(const struct call *call, const struct call_index *x, device_stream s,
		     struct err *err);
/* Policy none, and calls of nothing, need none. */
int data_full_after(const struct call *call, device_stream s, struct err *err);
