/* Reductions among the real members that stand for all ranks of the virtual world (policy mirror):
 * a sum counts each real member as often as it has copies, a product is a power. */
#pragma once

#include "shim/data/call.h"

/* Chooses call->real_op, and enqueues what has to be done with the inputs first (call->real_send).
 * Return: 0; negative errno or ncclResult_t > 0 with the sentence. */
int data_reduce_before(struct call *call, device_stream s, bool is_captured, struct err *err);
