/* Entry points of windows, puts and signals. A window's handle is the real library's where the data
 * policy has a real communicator. */
#include "schedule/coll.h"
#include "shim/data/real-comm.h"
#include "shim/data/windows.h"
#include "shim/entry/entry.h"
#include "shim/entry/group.h"
#include "shim/entry/result.h"
#include "shim/progress/traffic.h"
#include "shim/real/last-error.h"
#include "shim/real/real.h"

#define SIGNALS_MAX 65536 /* that a rank waits for at a time, of one peer */

/* NCCL's network for them is not the plug-in's. */
static ncclResult_t refuse_full(const char *what)
{
	return last_error_set(ncclInvalidUsage,
			      "%s: --nccl full has no windows, puts and signals; use --nccl gate",
			      what);
}

static ncclResult_t register_window(struct comm *c, void *buff, size_t bytes, ncclWindow_t *ret,
				    int flags)
{
	ncclResult_t result = result_check(c, "ncclCommWindowRegister");
	struct window w = {.comm = c,
			   .is_symmetric = flags & NCCL_WIN_COLL_SYMMETRIC,
			   .base = buff,
			   .bytes = bytes};
	ncclWindow_t *at;
	ncclComm_t real;
	struct err err;
	bool is_grouped;

	if (result != ncclSuccess)
		return result;
	if (!buff || !bytes || !ret)
		return last_error_set(ncclInvalidArgument,
				      "ncclCommWindowRegister: needs memory, and a place for the "
				      "window");
	if (traffic_is_full())
		return refuse_full("ncclCommWindowRegister");
	w.is_real = real_comm_get(c, &real, &err) == 0;
	at = windows_add(&w, ret);
	if (!at)
		return last_error_set(ncclSystemError, "no memory");
	if (!w.is_real)
		return ncclSuccess;
	is_grouped = group_enter_real();
	result = CALL_REAL(CommWindowRegister, (real, buff, bytes, at, flags));
	if (!is_grouped)
		windows_end_group();
	return result;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
				    int flags)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);

	return c ? register_window(c, buff, size, win, flags)
		 : FORWARD(CommWindowRegister, (comm, buff, size, win, flags));
}
ALSO_PNCCL(CommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	struct window w;
	ncclComm_t real;
	struct err err;

	if (!c)
		return FORWARD(CommWindowDeregister, (comm, win));
	if (!win)
		return ncclSuccess;
	if (!windows_take(c, win, &w))
		return last_error_set(ncclInvalidArgument,
				      "ncclCommWindowDeregister: no window of this communicator");
	if (!w.is_real || real_comm_get(c, &real, &err) != 0)
		return ncclSuccess;
	group_enter_real();
	return CALL_REAL(CommWindowDeregister, (real, win));
}
ALSO_PNCCL(CommWindowDeregister);

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **ret)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	struct window w;

	if (!c)
		return FORWARD(WinGetUserPtr, (comm, win, ret));
	if (!ret || !windows_find(c, win, &w))
		return last_error_set(ncclInvalidArgument,
				      "ncclWinGetUserPtr: no window of this communicator");
	*ret = w.base;
	return ncclSuccess;
}
ALSO_PNCCL(WinGetUserPtr);

/* --- puts, signals, waits ------------------------------------------------------------- */

static ncclResult_t check(const struct call *call, const char *what, int peer, int signal,
			  int context, unsigned int flags)
{
	struct comm *c = call->comm;
	ncclResult_t result = result_check(c, what);
	uint64_t elem = coll_dtype_bytes(call->dtype);

	if (result != ncclSuccess)
		return result;
	if (traffic_is_full())
		return refuse_full(what);
	if (peer < 0 || (uint32_t)peer >= c->n_ranks)
		return last_error_set(ncclInvalidArgument,
				      "%s: rank %d of a communicator of %u ranks", what, peer,
				      c->n_ranks);
	if (signal || context || flags) /* as in NCCL, which has no others yet */
		return last_error_set(ncclInvalidArgument, "%s: signal %d, context %d, flags %#x",
				      what, signal, context, flags);
	if (!elem || call->count > SCHED_MAX_BYTES / elem / c->n_ranks)
		return last_error_set(ncclInvalidArgument, "%s: data type %d, count %llu", what,
				      (int)call->dtype, (unsigned long long)call->count);
	return ncclSuccess;
}

/* @result: of what was looked at so far. */
static ncclResult_t submit(struct call *call, int peer, ncclResult_t result)
{
	call->kind = COLL_SENDRECV;
	call->is_onesided = true;
	call->root = (uint32_t)peer;
	return result == ncclSuccess ? group_call(call) : group_failed(result);
}

/* Where it goes, a window of this communicator, which all ranks have; and where it comes from, by
 * which NCCL refuses it, too. */
static ncclResult_t aim(struct call *call, ncclWindow_t win, uint64_t offset)
{
	const char *why = NULL;
	struct window w;

	call->bytes = call->count * coll_dtype_bytes(call->dtype);
	if (!windows_find(call->comm, win, &w))
		why = "that is no window of this communicator";
	else if (offset > w.bytes || call->bytes > w.bytes - offset)
		why = "the window is smaller";
	else if (!windows_hold(call->comm, call->send, call->bytes))
		why = "what is put must lie in a window with NCCL_WIN_COLL_SYMMETRIC, too";
	if (why)
		return last_error_set(ncclInvalidArgument,
				      "ncclPutSignal: %llu bytes at %llu of a window: %s",
				      (unsigned long long)call->bytes, (unsigned long long)offset,
				      why);
	call->window = w.handle;
	call->at = w.base + offset;
	call->offset = offset;
	return ncclSuccess;
}

ncclResult_t ncclPutSignal(const void *local, size_t count, ncclDataType_t dtype, int peer,
			   ncclWindow_t win, size_t offset, int sig, int ctx, unsigned int flags,
			   ncclComm_t comm, cudaStream_t stream)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	struct call call = {.comm = c,
			    .is_send = true,
			    .send = local,
			    .count = count,
			    .dtype = dtype,
			    .stream = stream};
	ncclResult_t result;

	if (!c)
		return FORWARD(PutSignal, (local, count, dtype, peer, win, offset, sig, ctx, flags,
					   comm, stream));
	result = check(&call, "ncclPutSignal", peer, sig, ctx, flags);
	return submit(&call, peer, result == ncclSuccess ? aim(&call, win, offset) : result);
}
ALSO_PNCCL(PutSignal);

ncclResult_t ncclSignal(int peer, int sig, int ctx, unsigned int flags, ncclComm_t comm,
			cudaStream_t stream)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	struct call call = {.comm = c, .is_send = true, .stream = stream};

	return c ? submit(&call, peer, check(&call, "ncclSignal", peer, sig, ctx, flags))
		 : FORWARD(Signal, (peer, sig, ctx, flags, comm, stream));
}
ALSO_PNCCL(Signal);

/* The signals of all peers are one op. */
static ncclResult_t wait_for(struct comm *c, int n, const ncclWaitSignalDesc_t *descs,
			     cudaStream_t stream)
{
	ncclResult_t result = ncclSuccess, ended;

	ncclGroupStart();
	for (int i = 0; i < n && result == ncclSuccess; i++) {
		int n_signals = descs[i].count;
		struct call call = {.comm = c, .count = (uint64_t)n_signals, .stream = stream};

		if (n_signals <= 0 || n_signals > SIGNALS_MAX)
			result = group_fail(ncclInvalidArgument,
					    "ncclWaitSignal: for %d signals: from 1 to %d at a "
					    "time (nbox)",
					    n_signals, SIGNALS_MAX);
		else
			result = submit(&call, descs[i].peer,
					check(&call, "ncclWaitSignal", descs[i].peer,
					      descs[i].signal, descs[i].context, 0));
	}
	ended = ncclGroupEnd();
	return result == ncclSuccess ? ended : result;
}

ncclResult_t ncclWaitSignal(int n, ncclWaitSignalDesc_t *descs, ncclComm_t comm,
			    cudaStream_t stream)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);

	if (!c)
		return FORWARD(WaitSignal, (n, descs, comm, stream));
	if (n <= 0 || !descs)
		return group_fail(ncclInvalidArgument, "ncclWaitSignal: for nothing");
	return wait_for(c, n, descs, stream);
}
ALSO_PNCCL(WaitSignal);
