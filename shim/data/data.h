/* Data policies: what a buffer holds after an op (the table is in README.md). All
 * are carried out by the real NCCL among the real members, and by copies on the
 * device; everything is enqueued on one stream, in three phases because a group of
 * real calls starts nothing before its end. */
#pragma once

#include <stdint.h>

#include "shim/data/p2p-index.h"
#include "shim/progress/comm.h"

/* One call of the job on a virtual communicator. */
struct call {
	struct comm *comm; /* reference held while the call waits in a group */
	uint32_t kind;     /* enum coll_kind; COLL_SENDRECV: one of the two */
	bool is_send;
	const void *send;
	void *recv;
	uint64_t count, bytes; /* as passed; count * element */
	ncclDataType_t dtype;
	ncclRedOp_t redop;
	uint32_t root; /* or peer */
	cudaStream_t stream;

	/* Between the phases. */
	ncclRedOp_t real_op;
	const void *real_send;
	char *scratch;
	uint32_t nth, next_like; /* p2p-index.h */
};

/* @s: the stream that all real work of this launch goes to. @all, @n: the calls of the same
 * launch, which grouped broadcasts need; @x: of them the point-to-point ones. Return: 0;
 * negative errno with the sentence; ncclResult_t > 0 when the real library refused. */
int data_before(struct call *call, device_stream s, bool is_captured, struct err *err);
int data_during(struct call *call, const struct call *all, uint32_t n, device_stream s,
		struct err *err);
int data_after(struct call *call, device_stream s, struct err *err);
/* The same for all point-to-point calls of @c in the launch. */
int data_p2p_after(struct comm *c, const struct p2p_index *x, device_stream s, struct err *err);
/* After data_before(): will data_during() call the real library? */
bool data_needs_real(const struct call *call);
/* Where it does not because there is one real member: what that does with itself. */
int data_during_alone(struct call *call, const struct p2p_index *x, device_stream s,
		      struct err *err);

/* A user's scaled sum on a virtual communicator. Return: as above. */
int data_redop_new(struct comm *c, const void *scalar, ncclDataType_t dtype,
		   ncclScalarResidence_t residence, ncclRedOp_t *ret, struct err *err);
int data_redop_free(struct comm *c, ncclRedOp_t op, struct err *err);
/* @call waits in a group, whose end needs its reduction also if that was destroyed meanwhile. */
void data_redop_hold(const struct call *call);
void data_redop_drop(const struct call *call);
bool data_redop_is_valid(const struct comm *c, ncclRedOp_t op, ncclDataType_t dtype);

/* Scratch on the device. Calls of one launch get disjoint parts; data_begin() starts
 * over: launches on one communicator are ordered. */
void data_begin(struct comm *c);
void data_deinit(struct comm *c); /* scratch and the one-rank communicator */
