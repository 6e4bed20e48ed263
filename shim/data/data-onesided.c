/* See data-onesided.h. */
#include "shim/data/data-onesided.h"

#include <errno.h>

#include "shim/data/scalar.h"
#include "shim/real/real.h"

bool data_onesided_needs_real(const struct call *call)
{
	struct comm *c = call->comm;

	return call_policy(call) != DATA_NONE && c->n_real > 1 && comm_member(c, call->root) >= 0;
}

int data_onesided_during(const struct call *call, device_stream s, struct err *err)
{
	struct comm *c = call->comm;
	int peer = comm_member(c, call->root);
	ncclWaitSignalDesc_t wait = {.count = (int)call->count, .peer = peer};

	if (!call->is_send)
		return REAL(WaitSignal, (1, &wait, c->real, (cudaStream_t)s));
	if (!call->at)
		return REAL(Signal, (peer, 0, 0, 0, c->real, (cudaStream_t)s));
	return REAL(PutSignal, (call->send, call->count, call->dtype, peer, call->window,
				call->offset, 0, 0, 0, c->real, (cudaStream_t)s));
}

int data_onesided_after(const struct call *call, device_stream s, struct err *err)
{
	struct comm *c = call->comm;
	uint32_t source =
		(uint32_t)((2 * (uint64_t)c->rank + c->n_ranks - call->root) % c->n_ranks);
	bool is_own = call->root == c->rank && c->n_real == 1;

	if (call_policy(call) == DATA_NONE || !call->is_send || !call->at || !call->bytes)
		return 0;
	if (!is_own && comm_member(c, source) >= 0)
		return 0; /* it puts itself */
	if (is_own || call_policy(call) == DATA_MIRROR)
		return DEVICE(c, copy, (s, call->at, call->send, call->bytes));
	if (call_policy(call) == DATA_FILL)
		return DEVICE(c, fill, (s, call->at, scalar_fill_byte(call->dtype), call->bytes));
	return 0;
}
