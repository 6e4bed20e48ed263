/* What a group receives from virtual ranks by point-to-point calls. */
#pragma once

#include "shim/data/call-index.h"

/* For all calls of @c in the group, after the real ones. Return: as data_after(). */
int data_p2p_after(struct comm *c, const struct call_index *x, device_stream s, struct err *err);
