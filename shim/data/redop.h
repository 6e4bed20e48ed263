/* Users' reductions (ncclRedOpCreatePreMulSum) on a virtual communicator: the scalar times the
 * number of ranks that each real member stands for. A host scalar is scaled at once. A scalar on
 * the device is scaled in the stream, by a one-rank all-reduce right before it is used, because the
 * job may write it until then. */
#pragma once

#include "shim/data/call.h"

/* Return: 0; negative errno or ncclResult_t > 0 with the sentence. */
int redop_new(struct comm *c, const void *scalar, ncclDataType_t dtype,
	      ncclScalarResidence_t residence, ncclRedOp_t *ret, struct err *err);
int redop_free(struct comm *c, ncclRedOp_t op, struct err *err);
bool redop_is_valid(const struct comm *c, ncclRedOp_t op, ncclDataType_t dtype);
/* @call waits in a group. The group's end needs the reduction, also if the job has destroyed it
 * meanwhile. */
void redop_hold(const struct call *call);
void redop_drop(const struct call *call);
/* Scales the device scalar of @call's reduction, in the stream. Return: as redop_new(). */
int redop_scale(const struct call *call, device_stream s, struct err *err);
/* Once no stream uses them. */
void redop_deinit(struct comm *c);
