/* Reductions among the real members that stand for all ranks of the virtual world (policy mirror):
 * a sum counts each real member as often as it has copies, a product is a power. */
#pragma once

#include "shim/data/call.h"

/* The real reduction whose result is that of the virtual world. Return: 0; negative errno or
 * ncclResult_t > 0 with the sentence. */
int data_map_redop(const struct call *call, ncclRedOp_t *ret, struct err *err);
/* Is it a product in which virtual ranks have factors? */
bool data_needs_power(const struct call *call);
/* @dst = @src to the power of our multiplicity, through pinned host memory. A captured one stays
 * for the replays. Return: 0; negative errno with the sentence. */
int data_enqueue_power(const struct call *call, void *dst, const void *src, uint64_t bytes,
		       device_stream s, bool is_captured, struct err *err);
