/* See result.h. */
#include "shim/entry/result.h"

#include <errno.h>

#include "shim/real/last-error.h"

ncclResult_t result_of(int r)
{
	switch (r) {
	case -EINVAL:
	case -EPROTO: /* members disagree */
		return ncclInvalidUsage;
	case -ECONNRESET: /* another member is gone */
		return ncclRemoteError;
	case -EBADMSG:   /* a frame that fits no op */
	case -ECANCELED: /* aborted by this process */
		return ncclInternalError;
	default:
		return r >= 0 ? (ncclResult_t)r : ncclSystemError;
	}
}

ncclResult_t result_check(struct comm *c, const char *what)
{
	int error = comm_error(c);
	int state = atomic_load_explicit(&c->state, memory_order_acquire);

	if (note_is_child())
		return last_error_set(ncclSystemError,
				      "%s: this process was forked after NCCL was set up", what);
	if (error)
		return last_error_set(result_of(error), "%s: %s", what, c->why);
	if (state == COMM_DEAD) /* inside a group that began before */
		return last_error_set(ncclInvalidArgument, "%s: the communicator was destroyed",
				      what);
	if (state == COMM_STARTING)
		return last_error_set(ncclInvalidArgument,
				      "%s: the communicator is not ready yet; wait until "
				      "ncclCommGetAsyncError says ncclSuccess",
				      what);
	if (atomic_load_explicit(&c->is_finalized, memory_order_relaxed))
		return last_error_set(ncclInvalidArgument, "%s: the communicator was finalized",
				      what);
	return ncclSuccess;
}
