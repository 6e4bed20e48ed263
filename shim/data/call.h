/* One call of the job on a virtual communicator: a collective, a send or a receive. It waits in its
 * thread's group, then goes through the three phases of data.h. */
#pragma once

#include "shim/progress/comm.h"

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
	/* One-sided: a put is a send, a wait for @count signals a receive, of no bytes that the
	 * caller knows. @at: in the own window, where the peer has it in its own; NULL: a signal
	 * alone. */
	bool is_onesided;
	ncclWindow_t window; /* the real library's */
	char *at;
	uint64_t offset;
	uint64_t seq;  /* of its op, as in frames */
	struct op *op; /* that, until it passes */

	/* Between the phases. */
	ncclRedOp_t real_op;
	const void *real_send;
	char *scratch;
	uint32_t nth, next_like; /* call-index.h */
};

static inline uint32_t call_policy(const struct call *call)
{
	return comm_data(call->comm, call->kind);
}
