/* What a window holds after a put. Among real members the real library puts and signals. What a
 * virtual rank puts into this rank's window is, under mirror, what this rank itself puts to the
 * rank that is as far from it, at the same place: it is there when this rank has put its own. */
#pragma once

#include "shim/data/call.h"

bool data_onesided_needs_real(const struct call *call);
/* Inside the real group. Return: as data_during(). */
int data_onesided_during(const struct call *call, device_stream s, struct err *err);
int data_onesided_after(const struct call *call, device_stream s, struct err *err);
